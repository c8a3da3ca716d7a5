//! What differs between the releases, and what a user can set.

use crate::balance::domains::{Era, FIXES, Fixes};
use crate::tunables::{Tunable, Unit};
use schedlab_base::{Release, v};

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

/// Placement by energy came with 5.0.
pub const ENERGY_AWARE: Tunable = Tunable::switch(
    "sched_energy_aware",
    true,
    "wake-ups choose CPUs by energy, where CPUs differ and the machine has an energy model",
);

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

/// A load by what the CPUs that bear it are worth: `scaled` is 1024 times the load. In 2.6.24 by the inverse of the
/// worth, which is rounded up, and of the low 32 bits only (`sg_div_cpu_power`).
#[must_use]
pub fn by_capacity(era: Era, scaled: u64, capacity: u64) -> u64 {
    let capacity = capacity.max(1);
    if era == Era::V2_6_24 {
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
    /// Its generation.
    era: Era,
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
            era: Era::of(release),
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

    /// Its generation.
    #[inline]
    pub(super) fn era(&self) -> Era {
        self.era
    }

    /// Whether it is of the time before the loads of tasks were looked at in one list a CPU, and idle CPUs were
    /// balanced for by one that kept its tick: 2.6.24 and 2.6.32.
    #[inline]
    pub(super) fn ancient(&self) -> bool {
        self.era() <= Era::V2_6_32
    }

    /// Whether groups have types ("sched/fair: Rework load_balance()").
    #[inline]
    pub(super) fn typed(&self) -> bool {
        self.release() >= v(5, 5)
    }

    /// Whether one task is enough for a CPU that becomes idle (`CONFIG_PREEMPTION`, which `PREEMPT_DYNAMIC` implies).
    #[inline]
    pub(super) fn one_when_newly_idle(&self) -> bool {
        self.typed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_of_2_6_24_is_divided_in_32_bits() {
        // reciprocal_value(3072) = 1398102, two thirds of one too much: 4,294,965,248 * 1398102 >> 32.
        assert_eq!(by_capacity(Era::V2_6_24, 4_294_965_248, 3072), 1_398_101);
        assert_eq!(by_capacity(Era::V2_6_32, 4_294_965_248, 3072), 1_398_100);
        // 48 tasks of nice -20 are 4,260,528, of which 1024 times are 67,776,512 above 2^32.
        assert_eq!(by_capacity(Era::V2_6_24, 48 * 88761 * 1024, 1024), 48 * 88761 - (1 << 22));
    }
}
