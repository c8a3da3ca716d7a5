//! Whether there is an imbalance, and how much load to move (`find_busiest_group`, `calculate_imbalance`).

use super::small::Wanted;
use super::{ByAverage, Generation, Kind, SCALE, Seen, Stats};
use crate::balance::fair::load_balance::{Env, Work};
use crate::balance::fair::queues::Queues;
use crate::balance::rounds::Idleness;

impl<Q: Queues> Work<'_, Q> {
    /// Computes the imbalance for releases that pull what is above the average (3.10 on). Returns `false` if balanced.
    pub(super) fn imbalance_by_average<G: ByAverage>(
        &self,
        env: &mut Env,
        seen: &mut Seen,
        busiest: &mut Stats,
    ) -> bool {
        let newly = env.idle == Idleness::Newly;
        let forced = busiest.kind() == Kind::Imbalanced || newly && seen.local.has_room && G::lacks_room(busiest);
        if self.b.rules.fix_group_imbalance {
            let moves = forced || seen.local.min_load < busiest.min_load;
            let half = busiest.max_load.saturating_sub(seen.local.min_load) / 2;
            env.imbalance = if moves { half as i64 } else { 0 };
            return moves;
        }
        if !forced && self.is_balanced::<G>(env, seen, busiest) {
            return false;
        }
        if busiest.kind() == Kind::Imbalanced {
            busiest.per_task = busiest.per_task.min(seen.avg_load);
        }
        if G::is_below_average(seen, busiest) {
            self.small_imbalance::<G>(env, &mut seen.local, busiest);
            return true;
        }
        let pull = (busiest.avg_load - seen.avg_load).min(G::excess(seen, busiest));
        let room = seen.avg_load.wrapping_sub(seen.local.avg_load).wrapping_mul(seen.local.capacity);
        env.imbalance = (pull.saturating_mul(busiest.capacity).min(room) / SCALE) as i64;
        if (env.imbalance as u64) < busiest.per_task {
            self.small_imbalance::<G>(env, &mut seen.local, busiest);
        }
        true
    }

    fn is_balanced<G: ByAverage>(&self, env: &Env, seen: &Seen, busiest: &Stats) -> bool {
        let local = &seen.local;
        if local.avg_load >= busiest.avg_load || local.avg_load >= seen.avg_load {
            return true;
        }
        if env.idle != Idleness::Idle {
            return 100 * busiest.avg_load <= self.pct(env) * local.avg_load;
        }
        G::has_what_it_can_run(busiest) && local.idle_cpus <= busiest.idle_cpus + 1
    }

    /// Computes the imbalance for releases that leave one task in the busiest group (until 2.6.33). Returns `false` if
    /// balanced.
    pub(super) fn imbalance_but_a_task<G: Generation + Wanted>(
        &self,
        env: &mut Env,
        seen: &mut Seen,
        busiest: &mut Stats,
    ) -> bool {
        let own = seen.local.avg_load;
        let even = 100 * busiest.avg_load <= self.pct(env) * own;
        if own >= busiest.avg_load || own >= seen.avg_load || even {
            return false;
        }
        if busiest.imbalanced {
            busiest.per_task = busiest.per_task.min(seen.avg_load);
        }
        if busiest.avg_load <= busiest.per_task {
            return false;
        }
        if busiest.avg_load < seen.avg_load {
            self.small_imbalance::<G>(env, &mut seen.local, busiest);
            return true;
        }
        let pull = (busiest.avg_load - seen.avg_load).min(busiest.avg_load - busiest.per_task);
        env.imbalance = ((pull * busiest.capacity).min((seen.avg_load - own) * seen.local.capacity) / SCALE) as i64;
        if (env.imbalance as u64) < busiest.per_task {
            self.small_imbalance::<G>(env, &mut seen.local, busiest);
        }
        true
    }
}
