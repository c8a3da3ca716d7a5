//! The rules of the real-time class that differ between releases, and its tunables.

use schedlab_base::Nanos;

/// Where a runnable task joins its list after its priority was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoin {
    /// At the end (until 3.13).
    End,
    /// At the head, unless the priority was raised (3.14 to 4.3).
    HeadUnlessRaised,
    /// At the head only if the priority was lowered (4.4 on).
    HeadIfLowered,
}

/// The rules of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether real-time tasks are throttled (2.6.25 to 6.11).
    pub throttles: bool,
    /// Whether a CPU borrows runtime from others (`RT_RUNTIME_SHARE`).
    pub shares: bool,
    /// Whether periods begin at multiples of the period since boot (until 4.6). Later a period begins when a real-time
    /// task is enqueued after the last one is over.
    pub aligned: bool,
    /// Where a runnable task joins its list after its priority was changed.
    pub rejoin: Rejoin,
    /// Whether CPUs push and pull real-time tasks.
    pub push_pull: bool,
    /// Whether a CPU that would pull has the others push instead, each its first task that waits (`RT_PUSH_IPI`, 4.1
    /// on).
    pub has_pushed: bool,
    /// Whether one task that waits is enough for a CPU to be overloaded (6.7 on). Until then there must be two, or one
    /// beside another that runs.
    pub one_overloads: bool,
    /// Whether there is a deadline class above this one (3.14 on).
    pub beside_deadline: bool,
    /// Whether CPUs too small for a task are avoided (5.6 on; simulated as 5.7 does it).
    pub by_capacity: bool,
}

/// The tunables of the real-time class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// The run time of real-time tasks per period, in ns; `None` for no limit.
    pub runtime: Option<Nanos>,
    /// The length of a period, in ns.
    pub period: Nanos,
    /// The slice of a SCHED_RR task, in ns.
    pub timeslice: Nanos,
}
