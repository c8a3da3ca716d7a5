//! Changes that stable trees took over from later releases.
//!
//! A profile stands for a release as distributions have it, which is a late stable tree: that of 5.10, 5.15, 6.1 and
//! 6.12 was read. `release >= v(6, 5)` would miss what such a tree has from 6.5 on.

use schedlab_base::{Release, v};

/// A change that is in mainline from one release on, and in some stable trees before.
#[derive(Clone, Copy, Debug)]
pub struct Backport {
    /// None: after 6.12.
    mainline: Option<Release>,
    stable: &'static [Release],
}

impl Backport {
    /// Whether a release has it.
    #[inline]
    #[must_use]
    pub fn is_in(&self, release: Release) -> bool {
        self.mainline.is_some_and(|mainline| release >= mainline) || self.stable.contains(&release)
    }
}

/// A pinned task goes to a CPU for which the group may balance, not to any of the group: "sched/fair: Don't balance
/// task to its current running CPU".
pub const MASKED_DESTINATION: Backport = Backport { mainline: Some(v(6, 5)), stable: &[v(5, 10), v(6, 1)] };

/// A task's utilisation counts for less after failures, as its load does: "sched/fair: Use all little CPUs for
/// CPU-bound workloads". 6.6.9 did not have it yet.
pub const RELAXED_UTIL: Backport = Backport { mainline: Some(v(6, 8)), stable: &[v(6, 1), v(6, 6)] };

/// Newly idle balancing looks at a domain as often as it helped lately: "sched/fair: Proportional newidle balance".
pub const PROPORTIONAL_NEWIDLE: Backport = Backport { mainline: None, stable: &[v(6, 1), v(6, 12)] };

/// The CPU that balances for idle ones stops when it has work and is not idle; before, whenever it is to reschedule.
/// 6.6.9 did not have it yet.
pub const STOPS_WITH_WORK: Backport = Backport { mainline: None, stable: &[v(6, 1), v(6, 6), v(6, 12)] };

/// Tasks that are too big for their CPU are moved while energy is saved: "sched/fair: unlink misfit task from cpu
/// overutilized".
pub const MISFIT_SAVES_ENERGY: Backport = Backport { mainline: Some(v(6, 3)), stable: &[v(6, 1)] };

/// A CPU whose load is above the average takes none.
pub const AVERAGE_IS_ENOUGH: Backport = Backport { mainline: Some(v(6, 3)), stable: &[v(5, 10), v(6, 1)] };

/// Intervals and failures leave tasks that are too big out: "sched/fair: Don't double balance_interval for
/// migrate_misfit". 6.6.9 did not have it yet.
pub const MISFIT_APART: Backport = Backport { mainline: Some(v(6, 10)), stable: &[v(6, 6)] };

/// Searches for an idle CPU are bounded by the utilisation of the cache's CPUs: 70fb5ccf2ebb, "sched/fair: Introduce
/// SIS_UTIL to search idle CPU based on sum of util_avg".
pub const SIS_UTIL: Backport = Backport { mainline: Some(v(6, 0)), stable: &[v(5, 15)] };

/// The NUMA imbalance that is allowed goes by the own group with the new task: 2cfb7a1b031b, "sched/fair: Improve
/// consistency of allowed NUMA balance calculations".
pub const ALLOWED_BY_LOCAL: Backport = Backport { mainline: Some(v(5, 18)), stable: &[v(5, 15)] };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stable_tree_has_it_before_its_successors() {
        let has = |change: &Backport| [v(5, 10), v(5, 15), v(6, 1), v(6, 6), v(6, 12)].map(|r| change.is_in(r));
        assert_eq!(has(&MASKED_DESTINATION), [true, false, true, true, true]);
        assert_eq!(has(&PROPORTIONAL_NEWIDLE), [false, false, true, false, true]);
        assert_eq!(has(&SIS_UTIL), [false, true, true, true, true]);
    }
}
