//! 2.6.24 to 2.6.31: a group can hold one task per full CPU of capacity, and is imbalanced if its CPUs' loads differ by
//! more than one task. From 2.6.32 on capacities follow what the higher classes leave ("sched: Remove reciprocal for
//! cpu_power").

use super::{Candidate, Generation, SCALE, Seen, Stats, small::Wanted};
use crate::balance::domains::GroupId;
use crate::balance::fair::load_balance::{Env, Work};
use crate::balance::fair::queues::Queues;

/// The rules of these releases.
pub(super) struct Rules;

impl Generation for Rules {
    const WAITING_ONLY: Option<u64> = Some(SCALE);
    const NOTES_OVERLOAD: bool = false;
    const FAIR_ONLY: bool = false;
    const BY_USAGE: bool = false;
    const BY_TASKS: bool = false;
    const PREFERS_SIBLINGS: bool = false;
    const OWN_BY_CPU: bool = false;

    fn classify<Q: Queues>(_work: &Work<'_, Q>, _env: &Env, _group: GroupId, stats: &mut Stats, own: bool) {
        stats.imbalanced = !own && stats.gap() > SCALE;
        stats.factor = stats.capacity / SCALE;
    }

    fn spread(_stats: &mut Stats, _room: Option<bool>) {}

    fn is_busier(stats: &Stats, than: &Stats) -> bool {
        stats.avg_load > than.avg_load && (u64::from(stats.nr) > stats.factor || stats.imbalanced)
    }

    fn imbalance<Q: Queues>(work: &Work<'_, Q>, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) -> bool {
        work.imbalance_but_a_task::<Self>(env, seen, busiest)
    }

    fn rank(of: &Candidate, _small: impl FnOnce() -> bool) -> Option<(u64, u64)> {
        (!of.is_too_much(of.load)).then_some((of.load, 1))
    }
}

impl Wanted for Rules {
    const EMPTY: u64 = SCALE;

    fn is_wanted(busiest: &Stats, local: &Stats, _scaled: u64, tasks: u64) -> bool {
        busiest.avg_load.wrapping_sub(local.avg_load).wrapping_add(SCALE) >= busiest.per_task * tasks
    }
}
