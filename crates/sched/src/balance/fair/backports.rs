//! Changes that stable trees took over from later releases.
//!
//! A profile stands for a release as distributions ship it, which is a late stable tree. The trees of 5.10, 5.15, 6.1,
//! 6.12 and 6.18 were read. A plain `release >= v(6, 5)` would miss a change that such a tree has backported from 6.5.

use schedlab_base::{Release, v};

/// A change that is in mainline from one release on, and in some earlier stable trees.
#[derive(Clone, Copy, Debug)]
pub struct Backport {
    /// `None` if mainline got it after 6.18.
    mainline: Option<Release>,
    stable: &'static [Release],
}

impl Backport {
    /// Whether a release has the change.
    #[inline]
    #[must_use]
    pub fn is_in(&self, release: Release) -> bool {
        self.mainline.is_some_and(|mainline| release >= mainline) || self.stable.contains(&release)
    }
}

/// A pinned task is retried for a CPU in the group's balance mask, not for any CPU of the group: "sched/fair: Don't
/// balance task to its current running CPU".
pub const MASKED_DESTINATION: Backport = Backport { mainline: Some(v(6, 5)), stable: &[v(5, 10), v(6, 1)] };

/// After failures a task's utilisation is shifted down like its load: "sched/fair: Use all little CPUs for CPU-bound
/// workloads". 6.6.9 did not have it yet.
pub const RELAXED_UTIL: Backport = Backport { mainline: Some(v(6, 8)), stable: &[v(6, 1), v(6, 6)] };

/// Newly idle balancing of a domain is tried in proportion to its recent success: "sched/fair: Proportional newidle
/// balance".
pub const PROPORTIONAL_NEWIDLE: Backport = Backport { mainline: None, stable: &[v(6, 1), v(6, 12), v(6, 18)] };

/// The idle load balancer stops only if it is no longer idle and must reschedule. Before, `need_resched()` alone
/// stopped it. 6.6.9 did not have it yet.
pub const STOPS_WITH_WORK: Backport = Backport { mainline: None, stable: &[v(6, 1), v(6, 6), v(6, 12), v(6, 18)] };

/// Misfit tasks are moved even while energy-aware scheduling is active: "sched/fair: unlink misfit task from cpu
/// overutilized".
pub const MISFIT_SAVES_ENERGY: Backport = Backport { mainline: Some(v(6, 3)), stable: &[v(6, 1)] };

/// A group whose load is at or above the average does not pull.
pub const AVERAGE_IS_ENOUGH: Backport = Backport { mainline: Some(v(6, 3)), stable: &[v(5, 10), v(6, 1)] };

/// Misfit balancing changes neither the balancing interval nor the failure count: "sched/fair: Don't double
/// balance_interval for migrate_misfit". 6.6.9 did not have it yet.
pub const MISFIT_APART: Backport = Backport { mainline: Some(v(6, 10)), stable: &[v(6, 6)] };

/// The search for an idle CPU is bounded by the utilisation of the CPUs that share the cache: 70fb5ccf2ebb,
/// "sched/fair: Introduce SIS_UTIL to search idle CPU based on sum of util_avg".
pub const SIS_UTIL: Backport = Backport { mainline: Some(v(6, 0)), stable: &[v(5, 15)] };

/// The allowed NUMA imbalance depends on the local group's tasks, counting the one to be moved: 2cfb7a1b031b,
/// "sched/fair: Improve consistency of allowed NUMA balance calculations".
pub const ALLOWED_BY_LOCAL: Backport = Backport { mainline: Some(v(5, 18)), stable: &[v(5, 15)] };

/// A new task's slow path counts only the CPUs of a group that the task may use (`update_sg_wakeup_stats`).
pub const WAKEUP_STATS_OF_ALLOWED: Backport = Backport { mainline: None, stable: &[v(6, 1), v(6, 12)] };

/// A misfit task is pulled to a CPU only if its whole core is idle.
pub const MISFIT_TO_IDLE_CORE: Backport = Backport { mainline: None, stable: &[v(6, 1), v(6, 12), v(6, 18)] };

/// The counts of local and remote faults start anew even if there were none of interest (`update_task_scan_period`).
pub const LOCALITY_FORGOTTEN: Backport = Backport { mainline: None, stable: &[v(6, 12)] };

/// The runnable time of a CPU that a task would join or leave is counted with or without the task's own (`cpu_util`).
pub const OWN_RUNNABLE: Backport = Backport { mainline: None, stable: &[v(6, 12)] };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stable_tree_has_it_before_its_successors() {
        let has =
            |change: &Backport| [v(5, 10), v(5, 15), v(6, 1), v(6, 6), v(6, 12), v(6, 18)].map(|r| change.is_in(r));
        assert_eq!(has(&MASKED_DESTINATION), [true, false, true, true, true, true]);
        assert_eq!(has(&PROPORTIONAL_NEWIDLE), [false, false, true, false, true, true]);
        assert_eq!(has(&SIS_UTIL), [false, true, true, true, true, true]);
        assert_eq!(has(&WAKEUP_STATS_OF_ALLOWED), [false, false, true, false, true, false]);
        assert_eq!(has(&OWN_RUNNABLE), [false, false, false, false, true, false]);
    }
}
