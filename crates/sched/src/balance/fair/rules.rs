//! What differs between the releases, and what a user can set.

use crate::balance::domains::{Era, Fixes, Release};

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
