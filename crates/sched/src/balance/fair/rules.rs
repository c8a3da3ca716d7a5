//! The balancing rules that differ between releases, and the tunables.

use super::Features;
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

/// The migration cost tunable under its names: until 2.6.32, from 2.6.33 to 5.12, and from 5.13 on.
pub const MIGRATION_COST: [Handle<i64>; 3] = [
    migration_cost("sched_migration_cost"),
    migration_cost("sched_migration_cost_ns"),
    migration_cost("migration_cost_ns"),
];

/// The limit on tasks per balancing pass under its names: until 5.12, and from 5.13 on.
pub const NR_MIGRATE: [Handle<u32>; 2] = [nr_migrate("sched_nr_migrate"), nr_migrate("nr_migrate")];

/// The rate of success of newidle balancing that a kernel assumes when it boots, out of 1024 (`sd_init`).
const FIRST_RATIO: u32 = 512;

/// That rate at the start, which a kernel that has run for a while has learnt (with `NI_RANDOM`).
pub const NEWIDLE_RATIO: Handle<u32> = Handle::number(
    "newidle_ratio",
    Unit::Number,
    FIRST_RATIO as i64,
    (0, 1024),
    "how many of 1024 newly idle CPUs balance at the start, with NI_RANDOM; 512 at boot, later what helped so far",
);

/// Which tasks are packed onto busy CPUs. No release has it: virtual machines of one vendor start their 6.18 with
/// `sched_vcpu_pack=15`.
pub const VCPU_PACK: Handle<u32> = Handle::number(
    "sched_vcpu_pack",
    Unit::Number,
    0,
    (0, 15),
    "a vendor's: a task is put onto a busy CPU, not an idle one; 1 woken by an idle CPU, 2 by a task that sleeps then, \
     4 by others, 8 new or another program; 0 is off",
);

/// The switch for energy-aware wake-up placement, which came with 5.0.
pub const ENERGY_AWARE: Handle<bool> = Handle::switch(
    "sched_energy_aware",
    true,
    "wake-ups choose CPUs by energy, where CPUs differ and the machine has an energy model",
);

/// The switch for the group imbalance fix of "A Decade of Wasted Cores".
pub const GROUP_IMBALANCE: Handle<bool> =
    Handle::switch("fix.group_imbalance", false, "groups are compared by their least loaded CPU, not by their average");

/// The switch for the overload-on-wakeup fix of the same paper.
pub const OVERLOAD_ON_WAKEUP: Handle<bool> = Handle::switch(
    "fix.overload_on_wakeup",
    false,
    "a wake-up takes the CPU that has been idle longest, wherever it is, if the last one is busy",
);

/// The fixes of all four bugs, for the kernels that have them.
pub const BUGS: [Tunable; 4] =
    [GROUP_IMBALANCE.tunable, GROUP_CONSTRUCTION.tunable, OVERLOAD_ON_WAKEUP.tunable, MISSING_DOMAINS.tunable];

/// Divides a load by the capacity of its CPUs. `scaled` is the load times 1024. Until 2.6.31 the kernel multiplies by
/// the rounded-up reciprocal of the capacity, using only the low 32 bits (`sg_div_cpu_power`; changed by "sched: Remove
/// reciprocal for cpu_power").
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

/// The balancing rules of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The release whose rules apply.
    pub release: Release,
    /// How long after running a task counts as cache-hot, in ns (`sched_migration_cost`); -1 means always, 0 never.
    pub migration_cost: i64,
    /// How many tasks one balancing pass looks at (`sched_nr_migrate`).
    pub nr_migrate: u32,
    /// The rate of success of newidle balancing that a domain begins with, out of 1024.
    pub newidle_ratio: u32,
    /// Which tasks are packed onto busy CPUs, as bits; 0 if none are.
    pub vcpu_pack: u32,
    /// The fixes of the domains that are enabled.
    pub fixes: Fixes,
    /// Whether the group imbalance fix is enabled: groups are compared by their least loaded CPU.
    pub fix_group_imbalance: bool,
    /// Whether wake-ups go by energy on machines with an energy model (`sched_energy_aware`).
    pub energy_aware: bool,
    /// The `sched_features` of placement and balancing.
    pub features: Features,
}

impl Rules {
    /// The default rules of a release, without fixes.
    #[must_use]
    pub fn of(release: Release) -> Self {
        Self {
            release,
            migration_cost: 500_000,
            nr_migrate: 32,
            newidle_ratio: FIRST_RATIO,
            vcpu_pack: 0,
            fixes: Fixes::default(),
            fix_group_imbalance: false,
            energy_aware: false,
            features: Features::DEFAULT,
        }
    }

    /// The release whose rules apply.
    #[inline]
    pub(super) fn release(&self) -> Release {
        self.release
    }

    /// Whether tasks are moved queue by queue. The single list of a CPU's tasks (`cfs_tasks`) came between 3.1 and 3.6.
    #[inline]
    pub(super) fn moves_by_queue(&self) -> bool {
        self.release() < v(3, 6)
    }

    /// Whether each queue gives up half of its excess over the destination queue, whatever its group weighs (until
    /// 2.6.26; "sched: revert revert of: fair-group: SMP-nice for group scheduling").
    #[inline]
    pub(super) fn equal_parts(&self) -> bool {
        self.release() < v2_6(27)
    }

    /// Whether newly idle balancing has a function of its own (until 2.6.33; "sched: Remove load_balance_newidle()").
    #[inline]
    pub(super) fn newly_idle_apart(&self) -> bool {
        self.release() < v2_6(34)
    }

    /// Whether a sibling that runs tasks counts as a result of balancing (`sd_idle`), and balancing distributes the
    /// groups' shares (`update_shares`). Both were removed between 2.6.37 and 2.6.39.
    #[inline]
    pub(super) fn siblings_answer(&self) -> bool {
        self.release() < v2_6(38)
    }

    /// Whether one idle CPU keeps its tick and balances for all the others. The change to a busy CPU that kicks an idle
    /// one came between 2.6.35 and 2.6.37.
    #[inline]
    pub(super) fn idle_cpu_keeps_tick(&self) -> bool {
        self.release() < v2_6(36)
    }

    /// Whether a CPU is kicked just to update the load of blocked tasks on idle CPUs (`NOHZ_STATS_KICK`, which came
    /// between 4.16 and 4.18).
    #[inline]
    pub(super) fn kicks_for_blocked(&self) -> bool {
        self.release() >= v(4, 17)
    }

    /// Whether a CPU counts as idle although a task waits there. `idle_cpu` has looked at the runqueue since a change
    /// between 3.1 and 3.6.
    #[inline]
    pub(super) fn idle_with_waiting(&self) -> bool {
        self.release() < v(3, 6)
    }

    /// Whether groups have types: 0b0695f2b34a, "sched/fair: Rework load_balance()".
    #[inline]
    pub(super) fn typed(&self) -> bool {
        self.release() >= v(5, 5)
    }

    /// Whether newly idle balancing stops after one task (`CONFIG_PREEMPTION`). Kernels with voluntary preemption do so
    /// from 5.16 on, because of `PREEMPT_DYNAMIC`.
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
        // reciprocal_value(3072) = 1398102, which is too large by two thirds: 4,294,965,248 * 1398102 >> 32.
        assert_eq!(by_capacity(v2_6(24), 4_294_965_248, 3072), 1_398_101);
        assert_eq!(by_capacity(v2_6(32), 4_294_965_248, 3072), 1_398_100);
        // 48 tasks of nice -20 weigh 4,260,528; 1024 times that exceeds 2^32 by 67,776,512.
        assert_eq!(by_capacity(v2_6(24), 48 * 88761 * 1024, 1024), 48 * 88761 - (1 << 22));
    }
}
