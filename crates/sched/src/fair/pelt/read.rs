//! The queries of task placement and load balancing.

use super::{Loads, Pelt, SCALE};
use crate::fair::entity::{EntityId, QueueId};
use crate::fair::rqs::Runqueues;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::TaskId;

impl Pelt {
    /// The load of a queue. For a root queue it is the load of the CPU that load balancing compares (`cpu_load`,
    /// `weighted_cpuload`). Until 4.2 it is a sum of whole numbers, and an average reaches its level after a third of a
    /// second.
    pub(in crate::fair) fn load_avg(&self, rqs: &Runqueues, q: QueueId, now: Nanos) -> f64 {
        if self.averages() {
            let load = self.queues[q as usize].load.at(self.clock(rqs.cpu_of(q), now));
            if self.loads == Loads::Runnable { load.round() } else { load }
        } else if let Some(flat) = self.flat.get(q as usize) {
            *flat as f64
        } else {
            rqs.queues[q as usize].load.weight as f64
        }
    }

    /// Whether the averages of a group's queue and of all its queues have reached their levels.
    pub(in crate::fair) fn group_is_settled(&self, rqs: &Runqueues, q: QueueId, now: Nanos) -> bool {
        self.queues[q as usize].load.is_settled(self.clock(rqs.cpu_of(q), now))
            && self.groups[rqs.group_of(q)].is_settled(now)
    }

    /// The runnable average of a CPU, with 1024 for each fair task.
    pub(in crate::fair) fn runnable_avg(&self, cpu: CpuId, now: Nanos) -> f64 {
        self.cpus[cpu as usize].runnable.at(self.clock(cpu, now))
    }

    /// The utilisation of a CPU by fair tasks, where 1024 is all of the biggest CPU. A small CPU without idle time can
    /// exceed its capacity.
    pub(in crate::fair) fn util_avg(&self, cpu: CpuId, now: Nanos) -> f64 {
        self.cpus[cpu as usize].util.at(self.clock(cpu, now))
    }

    /// The utilisation of a CPU by real-time and by deadline tasks, in the same unit.
    pub(in crate::fair) fn util_above(&self, cpu: CpuId, now: Nanos) -> (u64, u64) {
        self.above[cpu as usize].util(self.clock(cpu, now))
    }

    /// What the higher classes leave of a CPU's capacity (`scale_rt_capacity`).
    pub(in crate::fair) fn capacity_left(&self, cpu: CpuId, now: Nanos) -> u64 {
        let capacity = self.capacity(cpu);
        self.above[cpu as usize].leave(self.release, capacity, now, self.clock(cpu, now))
    }

    /// The utilisation of a task, where 1024 is all of the biggest CPU.
    pub(in crate::fair) fn task_util(&self, rqs: &Runqueues, p: TaskId, now: Nanos) -> f64 {
        let e = rqs.entity(p);
        self.entities[e as usize].running.at(self.clock_of(rqs, e, now)) * SCALE
    }

    /// The time by the clock of an entity's averages.
    #[inline]
    pub(super) fn clock_of(&self, rqs: &Runqueues, e: EntityId, now: Nanos) -> Nanos {
        if self.clocks.is_empty() || !self.ties[e as usize].attached {
            return now;
        }
        self.clock(rqs.cpu_of(rqs.entities[e as usize].queue), now)
    }

    /// The runnable average of a task, out of 1024.
    pub(in crate::fair) fn task_runnable(&self, rqs: &Runqueues, p: TaskId, now: Nanos) -> f64 {
        let e = rqs.entity(p);
        let average = self.entities[e as usize].runnable.at(self.clock_of(rqs, e, now)) * SCALE;
        (average - self.util_est.excess(p, now)).max(0.0)
    }

    /// The load that a task contributes to its CPU (`task_h_load`).
    pub(in crate::fair) fn task_load(&self, rqs: &Runqueues, p: TaskId, now: Nanos) -> f64 {
        let e = rqs.entity(p);
        self.load_below(
            rqs,
            p,
            self.entities.get(e as usize).map_or(0.0, |of| of.runnable.at(self.clock_of(rqs, e, now))),
            now,
        )
    }

    /// The load that a sleeping task contributed to its CPU when it left the queue. The kernel does not update it
    /// before it compares two CPUs for a wake-up (`wake_affine_weight`).
    pub(in crate::fair) fn task_load_before(&self, rqs: &Runqueues, p: TaskId, now: Nanos) -> f64 {
        let e = rqs.entity(p);
        self.load_below(rqs, p, self.entities.get(e as usize).map_or(0.0, |of| of.runnable.last()), now)
    }

    /// The load of a task whose runnable average is `runnable`.
    fn load_below(&self, rqs: &Runqueues, p: TaskId, runnable: f64, now: Nanos) -> f64 {
        if !self.averages() {
            return rqs.root_load(p) as f64;
        }
        let part = |e: EntityId| {
            let runnable = &self.entities[e as usize].runnable;
            rqs.entities[e as usize].load.weight() as f64 * runnable.at(self.clock_of(rqs, e, now))
        };
        let mut e = rqs.entity(p);
        let mut load = rqs.entities[e as usize].load.weight() as f64 * runnable;
        while let Some(group) = rqs.parent(e) {
            load *= part(group) / (self.load_avg(rqs, group + rqs.cpus, now) + 1.0);
            e = group;
        }
        if self.loads == Loads::Runnable { load.round() } else { load }
    }

    /// The load of a CPU as sampled by its ticks (`rq->cpu_load[index]`).
    pub(in crate::fair) fn cpu_load(&mut self, cpu: CpuId, index: u8, now: Nanos) -> u64 {
        self.fold_ticks(cpu, now);
        self.folded_cpu_load(cpu, index)
    }

    /// The same, as of the last change or call of [`Pelt::fold_cpu_load`].
    pub(in crate::fair) fn folded_cpu_load(&self, cpu: CpuId, index: u8) -> u64 {
        self.tick_loads[cpu as usize].get(index)
    }
}
