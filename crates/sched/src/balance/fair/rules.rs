//! What differs between the releases, and what a user can set.

use crate::balance::domains::{Fixes, GROUP_CONSTRUCTION, MISSING_DOMAINS};
use crate::tunables::{Handle, Tunable, Unit};
use schedlab_base::{Release, v, v2_6};

const fn migration_cost(name: &'static str) -> Handle<i64> {
    let meaning = "how long after it ran a task has a warm cache and stays; -1: always, 0: never";
    Handle::number(name, Unit::Ns, 500_000, (-1, 1_000_000_000), meaning)
}

const fn nr_migrate(name: &'static str) -> Handle<u32> {
    Handle::number(name, Unit::Number, 32, (0, 1 << 20), "how many tasks one balancing looks at")
}

/// The cost of a migration, by its names: until 2.6.32, from 2.6.33 and from 5.13 on.
pub const MIGRATION_COST: [Handle<i64>; 3] = [
    migration_cost("sched_migration_cost"),
    migration_cost("sched_migration_cost_ns"),
    migration_cost("migration_cost_ns"),
];

/// How many tasks one balancing looks at, by its names: until 5.12 and from 5.13 on.
pub const NR_MIGRATE: [Handle<u32>; 2] = [nr_migrate("sched_nr_migrate"), nr_migrate("nr_migrate")];

/// Placement by energy came with 5.0.
pub const ENERGY_AWARE: Handle<bool> = Handle::switch(
    "sched_energy_aware",
    true,
    "wake-ups choose CPUs by energy, where CPUs differ and the machine has an energy model",
);

/// The repair of the group imbalance of "A Decade of Wasted Cores".
pub const GROUP_IMBALANCE: Handle<bool> =
    Handle::switch("fix.group_imbalance", false, "groups are compared by their least loaded CPU, not by their average");

/// The repair of the overload on wake-up.
pub const OVERLOAD_ON_WAKEUP: Handle<bool> = Handle::switch(
    "fix.overload_on_wakeup",
    false,
    "a wake-up takes the CPU that has been idle longest, wherever it is, if the last one is busy",
);

/// The repairs of all four bugs, in the kernels that had them.
pub const BUGS: [Tunable; 4] =
    [GROUP_IMBALANCE.tunable, GROUP_CONSTRUCTION.tunable, OVERLOAD_ON_WAKEUP.tunable, MISSING_DOMAINS.tunable];

/// A load divided by the capacity of its CPUs; `scaled` is 1024 times the load. Until 2.6.31 by the capacity's inverse,
/// which is rounded up, and of the low 32 bits only (`sg_div_cpu_power`; "sched: Remove reciprocal for cpu_power").
#[must_use]
pub fn by_capacity(release: Release, scaled: u64, capacity: u64) -> u64 {
    let capacity = capacity.max(1);
    if release < v2_6(32) {
        let inverse = (1u64 << 32).div_ceil(capacity);
        ((scaled & u64::from(u32::MAX)) * (inverse & u64::from(u32::MAX))) >> 32
    } else {
        scaled / capacity
    }
}

/// How a kernel balances.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Which release it is.
    pub release: Release,
    /// How long after it ran a task has a warm cache, in ns (`sched_migration_cost`); -1 always, 0 never.
    pub migration_cost: i64,
    /// How many tasks one balancing looks at (`sched_nr_migrate`).
    pub nr_migrate: u32,
    /// The repairs of the domains.
    pub fixes: Fixes,
    /// The repair of the group imbalance: groups are compared by their least loaded CPU.
    pub fix_group_imbalance: bool,
    /// Wake-ups go by energy where there is a model of it (`sched_energy_aware`).
    pub energy_aware: bool,
}

impl Rules {
    /// As a release was.
    #[must_use]
    pub fn of(release: Release) -> Self {
        Self {
            release,
            migration_cost: 500_000,
            nr_migrate: 32,
            fixes: Fixes::default(),
            fix_group_imbalance: false,
            energy_aware: false,
        }
    }

    /// Which release it is.
    #[inline]
    pub(super) fn release(&self) -> Release {
        self.release
    }

    /// Whether the tasks of a CPU are moved queue by queue. The one list of them a CPU (`cfs_tasks`) came between 3.1
    /// and 3.6.
    #[inline]
    pub(super) fn moves_by_queue(&self) -> bool {
        self.release() < v(3, 6)
    }

    /// Whether each queue gives half of what it has more than the one that it gives to, whatever its group weighs (until
    /// 2.6.26; "sched: revert revert of: fair-group: SMP-nice for group scheduling").
    #[inline]
    pub(super) fn equal_parts(&self) -> bool {
        self.release() < v2_6(27)
    }

    /// Whether a CPU that becomes idle balances by rules of its own (until 2.6.33; "sched: Remove
    /// load_balance_newidle()").
    #[inline]
    pub(super) fn newly_idle_apart(&self) -> bool {
        self.release() < v2_6(34)
    }

    /// Whether a sibling that runs something counts as an answer (`sd_idle`), and balancing spreads the groups' shares
    /// (`update_shares`). Both went between 2.6.37 and 2.6.39.
    #[inline]
    pub(super) fn siblings_answer(&self) -> bool {
        self.release() < v2_6(38)
    }

    /// Whether one idle CPU keeps its tick and balances for all. A busy CPU sends one instead from between 2.6.35 and
    /// 2.6.37 on.
    #[inline]
    pub(super) fn idle_cpu_keeps_tick(&self) -> bool {
        self.release() < v2_6(36)
    }

    /// Whether the load of sleeping tasks on idle CPUs is brought up to date by a CPU that is sent for it
    /// (`NOHZ_STATS_KICK`; between 4.16 and 4.18).
    #[inline]
    pub(super) fn kicks_for_blocked(&self) -> bool {
        self.release() >= v(4, 17)
    }

    /// Whether a CPU is idle though something waits there (`idle_cpu`; it looks at the queue from between 3.1 and 3.6
    /// on).
    #[inline]
    pub(super) fn idle_with_waiting(&self) -> bool {
        self.release() < v(3, 6)
    }

    /// Whether groups have types: 0b0695f2b34a, "sched/fair: Rework load_balance()".
    #[inline]
    pub(super) fn typed(&self) -> bool {
        self.release() >= v(5, 5)
    }

    /// Whether one task is enough for a CPU that becomes idle (`CONFIG_PREEMPTION`). Kernels of voluntary preemption
    /// have it from 5.16 on, by `PREEMPT_DYNAMIC`.
    #[inline]
    pub(super) fn one_when_newly_idle(&self) -> bool {
        self.release() >= v(5, 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_of_2_6_24_is_divided_in_32_bits() {
        // reciprocal_value(3072) = 1398102, two thirds of one too much: 4,294,965,248 * 1398102 >> 32.
        assert_eq!(by_capacity(v2_6(24), 4_294_965_248, 3072), 1_398_101);
        assert_eq!(by_capacity(v2_6(32), 4_294_965_248, 3072), 1_398_100);
        // 48 tasks of nice -20 are 4,260,528, of which 1024 times are 67,776,512 above 2^32.
        assert_eq!(by_capacity(v2_6(24), 48 * 88761 * 1024, 1024), 48 * 88761 - (1 << 22));
    }
}
