//! What the balancers go by, out of what the fair class keeps ([`super::tracking`]).

use super::{Discipline, Fair};
use crate::balance::fair::Averages;
use crate::classes::sync;
use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

impl<D: Discipline> Averages for Fair<D> {
    fn account(&mut self, cx: &mut Core, cpu: CpuId) {
        sync(self, cx, cpu);
        self.clock = cx.now();
        self.fold_tick_load(cpu);
    }

    fn decay_blocked(&mut self, cx: &mut Core, cpu: CpuId) -> bool {
        // It decays by itself; what is left of it is what is above the weight that is queued.
        self.clock = cx.now();
        let (rt, dl) = self.util_above_at(cpu, cx.now());
        rt + dl > 0 || self.load_avg_at(cpu, cx.now()) >= self.root(cpu).load.weight as f64 + 1.0
    }

    fn account_idle(&mut self, cx: &mut Core, cpu: CpuId) {
        self.tracking.miss_ticks(cpu, cx.now());
    }

    #[inline]
    fn account_load(&mut self, cx: &Core, cpu: CpuId) {
        self.clock = cx.now();
        self.fold_tick_load(cpu);
    }

    #[inline]
    fn weighted_load(&self, cpu: CpuId) -> u64 {
        self.load_avg_at(cpu, self.clock) as u64
    }

    #[inline]
    fn cpu_load(&self, cpu: CpuId, index: u8) -> u64 {
        self.folded_tick_load(cpu, index)
    }

    fn load_avg(&self, cpu: CpuId) -> u64 {
        self.load_avg_at(cpu, self.clock) as u64
    }

    fn runnable_avg(&self, cpu: CpuId) -> u64 {
        self.runnable_avg_at(cpu, self.clock) as u64
    }

    fn util(&self, cpu: CpuId) -> u64 {
        self.cpu_need(cpu, self.tracking.capacity(cpu), self.clock)
    }

    fn overused(&self, cx: &Core, cpu: CpuId, capacity: (u64, u64)) -> bool {
        self.is_overused(cx, cpu, capacity)
    }

    fn capacity(&mut self, cx: &Core, cpu: CpuId) -> u64 {
        self.clock = cx.now();
        self.left_at(cpu, cx.now())
    }

    fn task_load(&self, p: TaskId) -> u64 {
        self.task_load_at(p, self.clock) as u64
    }

    fn task_util(&self, p: TaskId) -> u64 {
        self.task_need(p, self.clock)
    }
}
