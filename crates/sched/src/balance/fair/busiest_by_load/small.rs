//! Whether one task moves although the imbalance is less than one task (`fix_small_imbalance`).

use super::{SCALE, Stats};
use crate::balance::fair::load_balance::{Env, Work};
use crate::balance::fair::queues::Queues;
use crate::balance::fair::rules::by_capacity;
use schedlab_base::Release;

/// When a task moves although it exceeds the imbalance.
pub(super) trait Wanted {
    /// The mean task weight assumed for a CPU without tasks; 0 to use the CPU's own load.
    const EMPTY: u64;

    /// Whether the busiest group has enough load for a task to move. `tasks` is the required imbalance in mean tasks of
    /// the busiest group (`imbn`), and `scaled` is the weight of one such task divided by the group's capacity.
    fn is_wanted(busiest: &Stats, local: &Stats, scaled: u64, tasks: u64) -> bool;
}

impl<Q: Queues> Work<'_, Q> {
    /// Sets the imbalance to one task if a task should move although the imbalance is smaller than that.
    pub(super) fn small_imbalance<G: Wanted>(&self, env: &mut Env, local: &mut Stats, busiest: &Stats) {
        let release = self.b.rules.release();
        let mut tasks = 2;
        if local.nr > 0 {
            tasks = if busiest.per_task > local.per_task { 1 } else { 2 };
        } else {
            let (nr, load) = (self.q.nr_running(env.dst), self.q.weighted_load(env.dst, self.cx.now()));
            local.per_task = if G::EMPTY > 0 { G::EMPTY } else { load.checked_div(nr.into()).unwrap_or(0) };
        }
        let scaled = by_capacity(release, busiest.per_task * SCALE, busiest.capacity);
        if G::is_wanted(busiest, local, scaled, tasks) || gains(release, local, busiest, scaled) {
            env.imbalance = busiest.per_task as i64;
        }
    }
}

/// Whether moving one task would make better use of the CPUs' total capacity.
fn gains(release: Release, local: &Stats, busiest: &Stats, scaled: u64) -> bool {
    let now =
        busiest.capacity * busiest.per_task.min(busiest.avg_load) + local.capacity * local.per_task.min(local.avg_load);
    let left =
        if busiest.avg_load > scaled { busiest.capacity * busiest.per_task.min(busiest.avg_load - scaled) } else { 0 };
    let most = (busiest.avg_load * busiest.capacity).min(busiest.per_task * SCALE);
    let more = by_capacity(release, most, local.capacity);
    let then = left + local.capacity * local.per_task.min(local.avg_load + more);
    then / SCALE > now / SCALE
}
