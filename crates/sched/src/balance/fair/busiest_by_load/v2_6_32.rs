//! 2.6.32 and 2.6.33: capacities follow what the higher classes leave of the CPUs and are rounded to full CPUs. A group
//! is imbalanced if its CPUs' loads differ by more than two mean tasks, and a domain can ask for one task per group.
//!
//!
//! 2.6.34 changed this ("sched: Fix SCHED_MC regression caused by change in sched cpu_power").

use super::{Candidate, Generation, SCALE, Seen, Stats, small::Wanted};
use crate::balance::domains::GroupId;
use crate::balance::fair::load_balance::{Env, Work};
use crate::balance::fair::queues::Queues;

/// The rules of these releases.
pub(super) struct Rules;

impl Generation for Rules {
    const WAITING_ONLY: Option<u64> = Some(SCALE / 2);
    const NOTES_OVERLOAD: bool = false;
    const FAIR_ONLY: bool = false;
    const BY_USAGE: bool = false;
    const BY_TASKS: bool = true;
    const PREFERS_SIBLINGS: bool = true;
    const OWN_BY_CPU: bool = false;

    fn classify<Q: Queues>(_work: &Work<'_, Q>, _env: &Env, _group: GroupId, stats: &mut Stats, own: bool) {
        let task = stats.per_task_sum * SCALE / stats.capacity.max(1);
        stats.imbalanced = !own && stats.gap() > 2 * task;
        stats.factor = stats.whole_cpus();
    }

    /// Every group, including the local one, can hold only one task.
    fn spread(stats: &mut Stats, _room: Option<bool>) {
        stats.factor = stats.factor.min(1);
    }

    fn is_busier(stats: &Stats, than: &Stats) -> bool {
        stats.avg_load > than.avg_load && (u64::from(stats.nr) > stats.factor || stats.imbalanced)
    }

    fn imbalance<Q: Queues>(work: &Work<'_, Q>, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) -> bool {
        work.imbalance_but_a_task::<Self>(env, seen, busiest)
    }

    /// The only task of a CPU is compared by its load divided by capacity, and not at all if the CPU has less than half
    /// a CPU's capacity.
    fn rank(of: &Candidate, _small: impl FnOnce() -> bool) -> Option<(u64, u64)> {
        let load = of.scaled();
        (!of.is_too_much(load) || of.capacity < SCALE / 2).then_some((load, 1))
    }
}

impl Wanted for Rules {
    const EMPTY: u64 = 0;

    fn is_wanted(busiest: &Stats, local: &Stats, _scaled: u64, tasks: u64) -> bool {
        busiest.avg_load.wrapping_sub(local.avg_load).wrapping_add(busiest.per_task) >= busiest.per_task * tasks
    }
}
