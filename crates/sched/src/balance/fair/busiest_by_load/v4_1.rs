//! 4.1 to 5.4: a group is overloaded if it has more tasks than CPUs and its utilisation exceeds its capacity after
//! allowing for the domain's imbalance percentage.

use super::{ByAverage, Candidate, Generation, Kind, SCALE, Seen, Stats, small::Wanted};
use crate::balance::domains::GroupId;
use crate::balance::fair::load_balance::{Env, Work};
use crate::balance::fair::queues::Queues;

/// The rules of these releases.
pub(super) struct Rules;

impl Generation for Rules {
    const WAITING_ONLY: Option<u64> = None;
    const NOTES_OVERLOAD: bool = true;
    const FAIR_ONLY: bool = true;
    const BY_USAGE: bool = true;
    const BY_TASKS: bool = false;
    const PREFERS_SIBLINGS: bool = true;
    const OWN_BY_CPU: bool = true;

    fn classify<Q: Queues>(work: &Work<'_, Q>, env: &Env, group: GroupId, stats: &mut Stats, _own: bool) {
        stats.imbalanced = work.b.of_group[group.index()].imbalance;
        let (capacity, usage) = (stats.capacity * 100, stats.usage * work.pct(env));
        stats.has_room = stats.nr < stats.weight || capacity > usage;
        stats.overloaded = stats.nr > stats.weight && capacity < usage;
    }

    /// A remote group with several tasks is overloaded if the local group has room.
    fn spread(stats: &mut Stats, room: Option<bool>) {
        stats.overloaded |= room == Some(true) && stats.nr > 1;
    }

    fn is_busier(stats: &Stats, than: &Stats) -> bool {
        (stats.kind(), stats.avg_load) > (than.kind(), than.avg_load)
    }

    fn imbalance<Q: Queues>(work: &Work<'_, Q>, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) -> bool {
        work.imbalance_by_average::<Self>(env, seen, busiest)
    }

    fn rank(of: &Candidate, _small: impl FnOnce() -> bool) -> Option<(u64, u64)> {
        let stays = of.is_too_much(of.load) && of.capacity * of.pct >= of.capacity_orig * 100;
        (!stays).then_some((of.load, of.capacity))
    }
}

impl ByAverage for Rules {
    fn lacks_room(busiest: &Stats) -> bool {
        busiest.overloaded
    }

    fn has_what_it_can_run(busiest: &Stats) -> bool {
        busiest.kind() != Kind::Overloaded
    }

    fn is_below_average(seen: &Seen, busiest: &Stats) -> bool {
        busiest.avg_load <= seen.avg_load || seen.local.avg_load >= seen.avg_load
    }

    /// The tasks as full CPUs' load, minus the capacity, if both groups are overloaded.
    fn excess(seen: &Seen, busiest: &Stats) -> u64 {
        let (load, capacity) = (u64::from(busiest.nr) * SCALE, busiest.capacity.max(1));
        let both = busiest.kind() == Kind::Overloaded && seen.local.kind() == Kind::Overloaded;
        if both && load > capacity { load - capacity } else { u64::MAX }
    }
}

impl Wanted for Rules {
    const EMPTY: u64 = 0;

    fn is_wanted(busiest: &Stats, local: &Stats, scaled: u64, tasks: u64) -> bool {
        busiest.avg_load + scaled >= local.avg_load + scaled * tasks
    }
}
