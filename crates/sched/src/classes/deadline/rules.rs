//! What differs between releases.

/// How SCHED_FLAG_RECLAIM tasks reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grub {
    /// Until 6.4: at least its own rate, over what may be given in all.
    Ratio,
    /// 6.5 on: of what may be given in all.
    Most,
}

/// When a task that yields loses what is left of its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// At once, and the time that it has just run is taken off nothing: it is missing in the next period (3.14 to
    /// 3.19).
    Overrun,
    /// At once (4.0 and 4.1).
    AtOnce,
    /// When it is replenished (4.2 on).
    WhenReplenished,
}

/// What differs between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Reclaiming and 0-lag times (4.13 on).
    pub grub: Option<Grub>,
    /// Deadlines shorter than periods have rules of their own, and budgets scale with the CPU's capacity (4.13 on).
    pub constrained: bool,
    /// What `sched_yield()` does.
    pub yields: Yields,
    /// A task that sleeps when its timer expires is replenished (4.1 on).
    pub replenishes_sleepers: bool,
}
