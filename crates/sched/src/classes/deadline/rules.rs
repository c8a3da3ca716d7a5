//! The rules of the deadline class that differ between releases.

/// How tasks with SCHED_FLAG_RECLAIM reclaim unused bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grub {
    /// A task is charged at no less than its own rate, relative to the bandwidth that may be reserved (until 6.4).
    Ratio,
    /// The rate is computed from the bandwidth that may be reserved (6.5 on).
    Most,
}

/// When a task that yields loses the rest of its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// At once. The time since the last update is then charged as an overrun, so it is missing in the next period (3.14
    /// to 3.19).
    Overrun,
    /// At once, without charging the time since the last update (4.0 and 4.1).
    AtOnce,
    /// When it is replenished (4.2 on).
    WhenReplenished,
}

/// The rules of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How reclaiming works; `None` before 4.13, which has neither reclaiming nor 0-lag times.
    pub grub: Option<Grub>,
    /// Whether deadlines shorter than periods have rules of their own, and budgets scale with the CPU's capacity (4.13
    /// on).
    pub constrained: bool,
    /// The effect of `sched_yield()`.
    pub yields: Yields,
    /// Whether a task that is asleep when its timer expires is replenished (4.1 on).
    pub replenishes_sleepers: bool,
    /// Whether CPUs too small for a task are avoided (5.9 on).
    pub by_capacity: bool,
}
