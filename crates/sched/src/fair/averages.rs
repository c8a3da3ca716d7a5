//! Load averages that are none: what is queued now stands for what was lately.

use super::{Discipline, Fair};
use crate::balance::fair::Averages;
use crate::classes::sync;
use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

/// The utilisation of a CPU, or of a task, that always runs.
const WHOLE: u64 = 1024;

impl<D: Discipline> Averages for Fair<D> {
    fn account(&mut self, cx: &mut Core, cpu: CpuId) {
        sync(self, cx, cpu);
    }

    fn decay_blocked(&mut self, _cx: &mut Core, _cpu: CpuId) -> bool {
        false
    }

    fn account_idle(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn weighted_load(&self, cpu: CpuId) -> u64 {
        self.root(cpu).load.weight
    }

    fn cpu_load(&self, cpu: CpuId, _index: u8) -> u64 {
        self.weighted_load(cpu)
    }

    fn load_avg(&self, cpu: CpuId) -> u64 {
        self.weighted_load(cpu)
    }

    fn runnable_avg(&self, cpu: CpuId) -> u64 {
        let root = self.root(cpu);
        WHOLE * u64::from(root.h_nr - root.h_nr_delayed)
    }

    fn util(&self, cpu: CpuId) -> u64 {
        if self.root(cpu).h_nr > 0 { self.capacity(cpu) } else { 0 }
    }

    fn capacity(&self, cpu: CpuId) -> u64 {
        self.capacities[cpu as usize]
    }

    fn task_load(&self, p: TaskId) -> u64 {
        self.root_load(p)
    }

    fn task_util(&self, _p: TaskId) -> u64 {
        WHOLE
    }
}
