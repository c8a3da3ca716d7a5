//! The averages that load balancing reads, taken from what the fair class keeps ([`super::pelt`]).

use super::{Discipline, Fair};
use crate::balance::fair::Averages;
use crate::classes::sync;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

impl<D: Discipline> Averages for Fair<D> {
    fn account(&mut self, cx: &mut Core, cpu: CpuId) {
        sync(self, cx, cpu);
        self.pelt.fold_cpu_load(cpu, cx.now());
    }

    fn decay_blocked(&mut self, cx: &mut Core, cpu: CpuId) -> bool {
        for q in self.pelt.report_all(&self.rqs, cpu, cx.now()) {
            self.rqs.touch_queue(cx, q);
        }
        // The averages decay without an update. Blocked load is left if the average exceeds the weight of what is
        // queued.
        let (rt, dl) = self.pelt.util_above(cpu, cx.now());
        rt + dl > 0 || self.pelt.load_avg(&self.rqs, cpu, cx.now()) >= self.root(cpu).load.weight as f64 + 1.0
    }

    fn account_idle(&mut self, cx: &mut Core, cpu: CpuId) {
        self.pelt.miss_ticks(cpu, cx.now());
    }

    #[inline]
    fn account_load(&mut self, cx: &Core, cpu: CpuId) {
        self.pelt.fold_cpu_load(cpu, cx.now());
    }

    #[inline]
    fn weighted_load(&self, cpu: CpuId, now: Nanos) -> u64 {
        self.pelt.load_avg(&self.rqs, cpu, now) as u64
    }

    #[inline]
    fn cpu_load(&self, cpu: CpuId, index: u8) -> u64 {
        self.pelt.folded_cpu_load(cpu, index)
    }

    fn load_avg(&self, cpu: CpuId, now: Nanos) -> u64 {
        self.pelt.load_avg(&self.rqs, cpu, now) as u64
    }

    fn runnable_avg(&self, cpu: CpuId, now: Nanos) -> u64 {
        self.pelt.runnable_avg(cpu, now) as u64
    }

    fn util(&self, cpu: CpuId, now: Nanos) -> u64 {
        self.pelt.cpu_util_cfs(cpu, self.pelt.capacity(cpu), now)
    }

    fn overused(&self, cx: &Core, cpu: CpuId, capacity: (u64, u64)) -> bool {
        self.is_overused(cx, cpu, capacity)
    }

    fn capacity(&mut self, cx: &Core, cpu: CpuId) -> u64 {
        self.pelt.capacity_left(cpu, cx.now())
    }

    fn task_load(&self, p: TaskId, now: Nanos) -> u64 {
        self.pelt.task_load(&self.rqs, p, now) as u64
    }

    fn task_util(&self, p: TaskId, now: Nanos) -> u64 {
        self.pelt.task_util_est(&self.rqs, p, now)
    }
}
