//! The high-resolution tick: a timer of each CPU that ends turns exactly where they end.
//!
//! A class starts it when one of its tasks is picked, for what is left of the task's turn, and may move it later. It
//! stops when the CPU reschedules. When it expires, the class of the running task has one more tick.
//!
//! # Reference
//! `hrtick_clear`, `hrtick_start` and `hrtick` in kernel/sched.c of 2.6.32 and kernel/sched/core.c of 3.10 to 6.18.

use crate::tunables::{Handle, Values};
use schedlab_base::{CpuId, Nanos, Release, v};
use schedlab_sim::{Core, TimerId};

/// The timer for the fair class (2.6.25 on), and until 5.11 for the deadline class.
pub const HRTICK: Handle<bool> = Handle::switch("HRTICK", false, "a timer ends slices exactly where they end");
/// The timer for the deadline class: "sched/features: Distinguish between NORMAL and DEADLINE hrtick" (5.12).
pub const HRTICK_DL: Handle<bool> =
    Handle::switch("HRTICK_DL", false, "a timer ends the budgets of deadline tasks exactly where they end");
/// What ticks do beside the timer (2.6.25 to 6.12; from 6.6 on they have nothing left to do).
pub const DOUBLE_TICK: Handle<bool> =
    Handle::switch("DOUBLE_TICK", false, "ticks also end slices although HRTICK does");

/// The shortest time for which the timer is started, in ns.
pub const SHORTEST: Nanos = 10_000;

/// Which classes use the timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hrtick {
    /// Whether the fair class does.
    pub fair: bool,
    /// Whether the deadline class does.
    pub deadline: bool,
    /// Whether ticks end slices, too.
    pub double: bool,
}

impl Hrtick {
    /// The values that are set.
    #[must_use]
    pub fn of(release: Release, values: &Values) -> Self {
        let on = |handle| values.find(handle) == Some(true);
        let fair = on(&HRTICK);
        Self { fair, deadline: if release < v(5, 12) { fair } else { on(&HRTICK_DL) }, double: on(&DOUBLE_TICK) }
    }

    /// Whether any class does.
    #[must_use]
    pub fn any(self) -> bool {
        self.fair || self.deadline
    }
}

/// The timer of a CPU. It is no class's own.
const fn timer(cpu: CpuId) -> TimerId {
    cpu * 4 + 3
}

/// The CPU whose timer this is, if it is one.
pub(super) fn cpu_of(timer: TimerId) -> Option<CpuId> {
    (timer % 4 == 3).then_some(timer / 4)
}

/// Starts the timer of a CPU, or moves its expiry (`hrtick_start`).
pub fn start(cx: &mut Core, cpu: CpuId, after: Nanos) {
    cx.start_timer(timer(cpu), cx.now() + after);
    cx.touch(cpu);
}

/// Stops the timer of a CPU (`hrtick_clear`).
pub(super) fn stop(cx: &mut Core, cpu: CpuId) {
    cx.cancel_timer(timer(cpu));
}

/// Whether the timer of a CPU is running.
#[must_use]
pub fn is_running(cx: &Core, cpu: CpuId) -> bool {
    cx.timer_due(timer(cpu)) != Nanos::MAX
}
