//! What differs between releases, and what can be set.

use schedlab_base::Nanos;

/// Where a task joins its list when its priority was changed while it was runnable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoin {
    /// At the end (until 3.13).
    End,
    /// At the head if the priority did not rise (3.14 to 4.3).
    HeadUnlessRaised,
    /// At the head if the priority fell.
    HeadIfLowered,
}

/// What differs between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Real-time tasks are throttled: 2.6.25 to 6.11.
    pub throttles: bool,
    /// A CPU borrows runtime from others (`RT_RUNTIME_SHARE`).
    pub shares: bool,
    /// Periods begin at multiples of the period since boot (until 4.6); later, when a real-time task comes and the last
    /// one is over.
    pub aligned: bool,
    /// Where a task joins its list when its priority was changed.
    pub rejoin: Rejoin,
    /// CPUs push and pull.
    pub push_pull: bool,
    /// There are deadline tasks above (3.14 on).
    pub beside_deadline: bool,
}

/// The tunables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// What real-time tasks may take of a period; `None`: all.
    pub runtime: Option<Nanos>,
    /// The period.
    pub period: Nanos,
    /// A SCHED_RR task's slice.
    pub timeslice: Nanos,
}
