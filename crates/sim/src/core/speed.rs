//! The speed of tasks on their CPUs.

use super::Core;
use crate::task::TaskId;
use schedlab_base::{CpuId, Nanos};

impl Core {
    /// Returns the present speed of a task on a CPU. 1024 is the speed of the biggest CPU with its core to itself and
    /// local memory.
    pub(crate) fn speed(&self, cpu: CpuId, p: TaskId) -> u32 {
        let place = &self.machine.cpus[cpu as usize].place;
        let Some(effects) = self.effects.as_deref() else { return place.capacity };
        let mut speed = u64::from(place.capacity);
        let busy = effects.siblings(cpu).iter().filter(|other| self.curr(**other).is_some()).count();
        if busy > 0 {
            speed = speed * u64::from(effects.smt_speed(busy)) / 1024;
        }
        let bound = u64::from(effects.memories.bound_percent(p));
        if bound > 0 {
            speed = speed * 1_000_000 / (1_000_000 + self.farther(p, cpu) * bound * 10);
        }
        speed.max(1) as u32
    }

    /// Returns how long a stream of memory takes a task on a CPU, in terms of a `Run` of this task; `local` is how long
    /// it would take with all of the memory local.
    #[inline(never)]
    pub(crate) fn stream(&self, cpu: CpuId, p: TaskId, local: Nanos) -> Nanos {
        let Some(effects) = self.effects.as_deref() else { return local };
        let (far, bound) = (self.farther(p, cpu), u64::from(effects.memories.bound_percent(p)));
        // Computed as if the task only waited for memory, minus what slows down a run anyway.
        let slowed = u128::from(1000 + far) * 100_000 / u128::from(100_000 + far * bound);
        (u128::from(local) * slowed / 1000) as Nanos
    }

    /// Returns how much further than local a task's memory is from a CPU, in thousandths.
    fn farther(&self, p: TaskId, cpu: CpuId) -> u64 {
        let node = self.machine.cpus[cpu as usize].place.node;
        let Some(effects) = self.effects.as_deref() else { return 0 };
        effects.memories.farther(&self.machine, p, node) * self.machine.costs.remote_percent / 100
    }
}
