//! 3.18 to 4.0: groups have types, and a worse type is busier. A group is overloaded if it has more tasks than it can
//! hold, which is one per core. It is imbalanced if affinity kept tasks in its child domain from being evened out.

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
    const BY_USAGE: bool = false;
    const BY_TASKS: bool = false;
    const PREFERS_SIBLINGS: bool = true;
    const OWN_BY_CPU: bool = true;

    fn classify<Q: Queues>(work: &Work<'_, Q>, env: &Env, group: GroupId, stats: &mut Stats, _own: bool) {
        stats.imbalanced = work.b.of_group[group.index()].imbalance;
        let (cpus, nr) = (u64::from(stats.weight), u64::from(stats.nr));
        let siblings = (SCALE * cpus).div_ceil(work.capacity_orig(group).max(1));
        let cores = (cpus / siblings.max(1)).min(stats.whole_cpus());
        stats.factor = if cores == 0 { work.small_capacity(env, group).into() } else { cores };
        stats.overloaded = nr > stats.factor;
        stats.has_room = stats.factor > nr;
    }

    /// The group's type is already decided, so this only raises how much may be pulled.
    fn spread(stats: &mut Stats, room: Option<bool>) {
        if room == Some(true) {
            stats.factor = stats.factor.min(1);
        }
    }

    fn is_busier(stats: &Stats, than: &Stats) -> bool {
        (stats.kind(), stats.avg_load) > (than.kind(), than.avg_load)
    }

    fn imbalance<Q: Queues>(work: &Work<'_, Q>, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) -> bool {
        work.imbalance_by_average::<Self>(env, seen, busiest)
    }

    fn rank(of: &Candidate, small: impl FnOnce() -> bool) -> Option<(u64, u64)> {
        let stays = of.is_too_much(of.load) && (of.capacity >= SCALE / 2 || small());
        (!stays).then_some((of.load, of.capacity))
    }
}

impl ByAverage for Rules {
    fn lacks_room(busiest: &Stats) -> bool {
        !busiest.has_room
    }

    fn has_what_it_can_run(busiest: &Stats) -> bool {
        busiest.kind() != Kind::Overloaded
    }

    fn is_below_average(seen: &Seen, busiest: &Stats) -> bool {
        busiest.avg_load <= seen.avg_load || seen.local.avg_load >= seen.avg_load
    }

    /// The load of the tasks beyond what the group can hold, if both groups are overloaded.
    fn excess(seen: &Seen, busiest: &Stats) -> u64 {
        if busiest.kind() != Kind::Overloaded || seen.local.kind() != Kind::Overloaded {
            return u64::MAX;
        }
        u64::from(busiest.nr).wrapping_sub(busiest.factor).wrapping_mul(SCALE * SCALE) / busiest.capacity.max(1)
    }
}

impl Wanted for Rules {
    const EMPTY: u64 = 0;

    fn is_wanted(busiest: &Stats, local: &Stats, scaled: u64, tasks: u64) -> bool {
        busiest.avg_load + scaled >= local.avg_load + scaled * tasks
    }
}
