//! What differs between the releases, and what a user can set.

use crate::balance::domains::{Era, FIXES, Fixes, Release};
use crate::tunables::{Tunable, Unit};

/// What a user can set of it, by the names of the release: the cost of a migration and how many tasks are looked at.
#[must_use]
pub const fn balancing(cost: &'static str, tasks: &'static str) -> [Tunable; 2] {
    [
        Tunable::number(
            cost,
            Unit::Ns,
            500_000,
            (-1, 1_000_000_000),
            "how long after it ran a task has a warm cache and stays; -1: always, 0: never",
        ),
        Tunable::number(tasks, Unit::Number, 32, (0, 1 << 20), "how many tasks one balancing looks at"),
    ]
}

/// The repairs of the four bugs of "A Decade of Wasted Cores", in the kernels that had them.
pub const BUGS: [Tunable; 4] = [
    Tunable::switch(
        "fix.group_imbalance",
        false,
        "groups are compared by their least loaded CPU, not by their average",
    ),
    FIXES[0],
    Tunable::switch(
        "fix.overload_on_wakeup",
        false,
        "a wake-up takes the CPU that has been idle longest, wherever it is, if the last one is busy",
    ),
    FIXES[1],
];

/// How a kernel balances.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The release, for its domains.
    pub release: &'static Release,
    /// How long after it ran a task has a warm cache, in ns (`sched_migration_cost`); -1 always, 0 never.
    pub migration_cost: i64,
    /// How many tasks one balancing looks at (`sched_nr_migrate`).
    pub nr_migrate: u32,
    /// The repairs of the domains.
    pub fixes: Fixes,
    /// The repair of the group imbalance: groups are compared by their least loaded CPU.
    pub fix_group_imbalance: bool,
}

impl Rules {
    /// As a release was.
    #[must_use]
    pub fn of(release: &'static Release) -> Self {
        Self { release, migration_cost: 500_000, nr_migrate: 32, fixes: Fixes::default(), fix_group_imbalance: false }
    }

    /// Its generation.
    #[inline]
    pub(super) fn era(&self) -> Era {
        self.release.era
    }

    /// Whether it is of the time before the loads of tasks were looked at in one list a CPU, and idle CPUs were balanced
    /// for by one that kept its tick: 2.6.24 and 2.6.32.
    #[inline]
    pub(super) fn ancient(&self) -> bool {
        self.era() <= Era::V2_6_32
    }

    /// Whether groups have types: 5.5 on.
    #[inline]
    pub(super) fn typed(&self) -> bool {
        self.era() >= Era::V6_1
    }

    /// Whether one task is enough for a CPU that becomes idle (`CONFIG_PREEMPTION`, which `PREEMPT_DYNAMIC` implies).
    #[inline]
    pub(super) fn one_when_newly_idle(&self) -> bool {
        self.typed()
    }
}
