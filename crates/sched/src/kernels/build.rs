//! How a kernel was built, as far as its configuration concerns a user.

/// Where kernel code can be preempted. The simulation has no kernel mode to preempt, so this has no effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// Only on return to user mode.
    None,
    /// At explicit preemption points, too.
    Voluntary,
}

impl Preemption {
    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
        }
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
