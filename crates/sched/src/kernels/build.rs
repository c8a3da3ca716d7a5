//! How a kernel was built, as far as its configuration concerns a user.

use crate::tunables::{Handle, Tunable};

/// Where kernel code can be preempted. Tasks run in user mode here, which an interrupt that asks for rescheduling does
/// not return to, so the models that differ only in kernel mode do not differ here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// Only on return to user mode.
    None,
    /// At explicit preemption points, too.
    Voluntary,
    /// Wherever no lock forbids it.
    Full,
    /// As `Full`, and most locks can be preempted too.
    RealTime,
    /// As `Full` for real-time and deadline tasks. What a fair task asks of another CPU waits there for the return to
    /// user mode (6.13 on).
    Lazy,
}

const MODELS: [&str; 5] = ["none", "voluntary", "full", "rt", "lazy"];
const MEANING: &str = "where the kernel can be preempted; here lazy lets a fair task wait for the tick or system call \
                       of the CPU that it wakes on, and rt has nr_migrate=8";

const fn choice(words: &'static [&'static str], default: Preemption) -> Handle<i64> {
    Handle::word("preempt", words, default as i64, MEANING)
}

/// The model as a tunable where it can be chosen as the kernel boots (`PREEMPT_DYNAMIC`).
pub(super) const DYNAMIC: Tunable = choice(MODELS.first_chunk::<3>().unwrap(), Preemption::Voluntary).tunable;

/// The same with the model of PREEMPT_RT (6.12 on), which is chosen as the kernel is built.
pub(super) const REAL_TIME: Tunable = choice(MODELS.first_chunk::<4>().unwrap(), Preemption::Voluntary).tunable;

/// The same with lazy preemption (6.13 on).
pub(super) const LAZY: Handle<i64> = choice(&MODELS, Preemption::None);

impl Preemption {
    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        MODELS[self as usize]
    }
}

/// How a kernel was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Where kernel code can be preempted.
    pub preemption: Preemption,
    /// Whether idle CPUs stop their tick (`NO_HZ_IDLE`, from 2.6.21 on).
    pub no_hz: bool,
}
