//! Overutilised CPUs, which are utilised above four fifths. While there is one, placement ignores energy.

use crate::balance::fair::fits;
use crate::fair::rqs::Runqueues;
use crate::fair::{Discipline, Fair};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::Core;

/// The combined clamps of the runnable tasks of a CPU, as (least, most); `None` without runnable tasks (`rq->uclamp`).
/// Real-time tasks request the full capacity.
pub(super) fn uclamp(rqs: &Runqueues, cx: &Core, cpu: CpuId) -> Option<(u64, u64)> {
    if rqs.has_real_time(cpu) {
        return Some((1024, 1024));
    }
    let runnable = rqs.tasks.from_head(cpu).filter(|p| !rqs.entities[rqs.entity(*p) as usize].delayed);
    let all = runnable.map(|p| cx.task(p).clamp);
    all.map(|(least, most)| (u64::from(least), u64::from(most))).reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))
}

impl<D: Discipline> Fair<D> {
    /// Whether fair tasks use more than four fifths of a CPU (`cpu_overutilized`). `left` is what the higher classes
    /// leave of the original capacity `whole`.
    pub(in crate::fair) fn is_overused(&self, cx: &Core, cpu: CpuId, (left, whole): (u64, u64)) -> bool {
        let clamps = uclamp(&self.rqs, cx, cpu).unwrap_or((0, 1024));
        fits(self.pelt.cpu_util_cfs(cpu, whole, cx.now()), clamps, left, whole) == 0
    }

    /// Called after a task woke on a CPU and at its ticks, to notice overutilisation
    /// (`check_update_overutilized_status`).
    #[inline]
    pub(in crate::fair) fn check_overused(&mut self, cx: &Core, cpu: CpuId) {
        if self.saves_energy()
            && self.is_overused(cx, cpu, self.capacity_of(cpu))
            && let Some(balancer) = &mut self.balancer
        {
            balancer.note_overused();
        }
    }

    /// A lower bound of the time at which a tick could find a CPU overutilised, based on how fast its utilisation can
    /// rise now.
    pub(in crate::fair) fn overused_at(&self, cx: &Core, cpu: CpuId) -> Nanos {
        const HALF: f64 = 32.0 * 1024.0 * 1024.0;
        if !self.saves_energy() {
            return Nanos::MAX;
        }
        let (left, whole) = self.capacity_of(cpu);
        let need = self.pelt.cpu_util_cfs(cpu, whole, cx.now()) as f64;
        let limit = left as f64 * 0.8;
        if need >= limit - 1.0 {
            return 0;
        }
        let slope = (1024.0 - need) * std::f64::consts::LN_2 / HALF;
        cx.now() + ((limit - 1.0 - need) / slope) as Nanos
    }
}
