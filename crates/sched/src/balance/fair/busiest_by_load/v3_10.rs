//! 3.10 to 3.17: a group can hold a number of tasks, at least one for an SMT sibling that has all of its small
//! capacity. It is imbalanced if its CPUs' loads differ by a task and their task counts by more than one.
//!
//!
//! Parts of this came between 2.6.35 and 3.9. Releases 3.12 to 3.17 compare some sums differently.

use super::{ByAverage, Candidate, Generation, Kind, SCALE, Seen, Stats, small::Wanted};
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
    const BY_TASKS: bool = false;
    const PREFERS_SIBLINGS: bool = true;
    const OWN_BY_CPU: bool = true;

    fn classify<Q: Queues>(work: &Work<'_, Q>, env: &Env, group: GroupId, stats: &mut Stats, own: bool) {
        stats.imbalanced = !own && stats.gap() >= stats.per_task && stats.max_nr.saturating_sub(stats.min_nr) > 1;
        let cpus = stats.whole_cpus();
        stats.factor = if cpus == 0 { work.small_capacity(env, group).into() } else { cpus };
        stats.has_room = stats.factor > u64::from(stats.nr);
    }

    /// A remote group can hold only one task if the local group has room for the others.
    fn spread(stats: &mut Stats, room: Option<bool>) {
        if room == Some(true) {
            stats.factor = stats.factor.min(1);
        }
    }

    fn is_busier(stats: &Stats, than: &Stats) -> bool {
        stats.avg_load > than.avg_load && (u64::from(stats.nr) > stats.factor || stats.imbalanced)
    }

    fn imbalance<Q: Queues>(work: &Work<'_, Q>, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) -> bool {
        work.imbalance_by_average::<Self>(env, seen, busiest)
    }

    fn rank(of: &Candidate, small: impl FnOnce() -> bool) -> Option<(u64, u64)> {
        let stays = of.is_too_much(of.load) && (of.capacity >= SCALE / 2 || small());
        (!stays).then(|| (of.scaled(), 1))
    }
}

impl ByAverage for Rules {
    fn lacks_room(busiest: &Stats) -> bool {
        !busiest.has_room
    }

    fn has_what_it_can_run(busiest: &Stats) -> bool {
        busiest.nr <= busiest.weight
    }

    fn is_below_average(seen: &Seen, busiest: &Stats) -> bool {
        busiest.avg_load < seen.avg_load
    }

    /// The load of the tasks beyond what the group can hold. Unsigned as in the kernel: with fewer tasks the limit is
    /// huge.
    fn excess(_seen: &Seen, busiest: &Stats) -> u64 {
        if busiest.kind() == Kind::Imbalanced {
            return u64::MAX;
        }
        u64::from(busiest.nr).wrapping_sub(busiest.factor).wrapping_mul(SCALE * SCALE) / busiest.capacity.max(1)
    }
}

impl Wanted for Rules {
    const EMPTY: u64 = 0;

    /// Unsigned as in the kernel: if the busiest group has less load, the difference wraps around and a task moves,
    /// unless it has less by less than a task.
    fn is_wanted(busiest: &Stats, local: &Stats, scaled: u64, tasks: u64) -> bool {
        busiest.avg_load.wrapping_sub(local.avg_load).wrapping_add(scaled) >= scaled * tasks
    }
}
