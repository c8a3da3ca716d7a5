//! The events that change the averages: entities are enqueued, run, are dequeued, leave and change their weight.

use super::{Average, Loads, OfEntity, Pelt, SCALE, Tie, Utilisation};
use crate::classes::ClassId;
use crate::fair::entity::{EntityId, QueueId};
use crate::fair::rqs::Runqueues;
use schedlab_base::{Averages, CpuId, Nanos, v};

impl Pelt {
    /// Initialises the averages of a new entity: of a task as if it had always been runnable, of a group's from 4.3 on
    /// as if it never had.
    pub(in crate::fair) fn init_entity(&mut self, e: EntityId, task: bool, now: Nanos) {
        if self.loads == Loads::Weights {
            return;
        }
        if self.entities.len() <= e as usize {
            self.entities.resize(e as usize + 1, OfEntity::default());
            self.ties.resize(e as usize + 1, Tie::default());
        }
        let runnable =
            if task || self.loads == Loads::Runnable { Average::of(1.0, 0.0, now) } else { Average::default() };
        self.entities[e as usize] = OfEntity { runnable, ..OfEntity::default() };
        self.ties[e as usize] = Tie::default();
    }

    /// Initialises the averages of a task that was there before.
    pub(in crate::fair) fn init_as_before(&mut self, e: EntityId, before: Averages, cpu: CpuId, now: Nanos) {
        let share = |of: u32| f64::from(of) / f64::from(Averages::ALWAYS);
        let whole = self.whole();
        if let Some(of) = self.entities.get_mut(e as usize) {
            let running = share(before.running) * self.capacities[cpu as usize] / SCALE;
            of.runnable = Average::of(share(before.runnable).min(whole), 0.0, now);
            of.running = Average::of(running, 0.0, now);
            self.ties[e as usize].utilisation = Utilisation::Own;
        }
    }

    /// Notes that a new task is of another class.
    pub(in crate::fair) fn is_born_elsewhere(&mut self, e: EntityId) {
        if let Some(tie) = self.ties.get_mut(e as usize)
            && tie.utilisation == Utilisation::None
        {
            tie.utilisation = Utilisation::NoneElsewhere;
        }
    }

    /// Called when an entity is enqueued.
    #[inline]
    pub(in crate::fair) fn enqueue(&mut self, rqs: &Runqueues, q: QueueId, e: EntityId, now: Nanos) {
        if self.averages() {
            self.average_in(rqs, q, e, now);
        } else if !self.flat.is_empty() {
            self.count_flat_task(rqs, q, e, 1);
        }
    }

    fn average_in(&mut self, rqs: &Runqueues, q: QueueId, e: EntityId, now: Nanos) {
        let (task, cpu, weight) = rqs.counted(q, e);
        let whole = self.whole();
        let (time, now) = (now, self.clock(cpu, now));
        let attach = !self.ties[e as usize].attached;
        let fresh = task && attach && self.ties[e as usize].utilisation != Utilisation::Own;
        if attach {
            self.rebase(e, time, now);
        }
        if fresh {
            self.begin(rqs, (q, e), weight, time);
        }
        self.ties[e as usize].attached = true;
        let before = self.entities[e as usize].runnable.steer_by(now, whole, &mut self.left);
        let brings = if attach || self.loads == Loads::Runnable { weight * before } else { 0.0 };
        self.shift(q, time, brings, weight);
        if !task {
            self.report(rqs, q, time);
            return;
        }
        let (runnable, running) = if attach { self.brought(rqs, e, time, now) } else { (0.0, 0.0) };
        let of_cpu = &mut self.cpus[cpu as usize];
        of_cpu.runnable.shift(now, runnable, SCALE, &mut self.left);
        of_cpu.util.shift(now, running, 0.0, &mut self.left);
        if attach {
            self.propagate(rqs, q, Some(before), running / SCALE, time);
        }
        self.report(rqs, q, time);
    }

    /// Gives a new task its utilisation: the part of its queue's by weight, but at most half of the spare capacity; its
    /// runnable average is the same (`post_init_entity_util_avg`). One that was born in another class has none.
    fn begin(&mut self, rqs: &Runqueues, (q, e): (QueueId, EntityId), weight: f64, time: Nanos) {
        let cpu = rqs.cpu_of(q);
        let now = self.clock(cpu, time);
        let used = match q.checked_sub(rqs.cpus) {
            Some(group) => self.entities[group as usize].running.at(now) * SCALE,
            None => self.cpus[cpu as usize].util.at(now),
        };
        let (used, all) = (used.trunc(), self.queues[q as usize].load.at(now).trunc());
        let left = ((self.capacities[cpu as usize] - used) / 2.0).trunc().max(0.0);
        // "sched/fair: Fix initial util_avg calculation" (6.10): until then with the weight of 64-bit kernels, which is
        // 1024 times as large.
        let weight = if self.release >= v(6, 10) { weight } else { weight * SCALE };
        let util = if used > 0.0 { (used * weight / (all + 1.0)).min(left) } else { left };
        let of = &mut self.entities[e as usize];
        let elsewhere = std::mem::replace(&mut self.ties[e as usize].utilisation, Utilisation::Own);
        let util = if elsewhere == Utilisation::NoneElsewhere { 0.0 } else { util };
        of.running = Average::of(util / SCALE, 0.0, now);
        self.util_est.begin(e - rqs.first_task, of.runnable.at(now) * SCALE - util, time);
    }

    /// The runnable average and the utilisation that a task brings to its CPU, or takes from it, out of 1024.
    fn brought(&self, rqs: &Runqueues, e: EntityId, time: Nanos, now: Nanos) -> (f64, f64) {
        let of = &self.entities[e as usize];
        let excess = self.util_est.excess(e - rqs.first_task, time);
        ((of.runnable.at(now) * SCALE - excess).max(0.0), of.running.at(now) * SCALE)
    }

    /// Called when an entity is dequeued.
    #[inline]
    pub(in crate::fair) fn dequeue(&mut self, rqs: &Runqueues, q: QueueId, e: EntityId, now: Nanos) {
        if self.averages() {
            self.average_out(rqs, q, e, now);
        } else if !self.flat.is_empty() {
            self.count_flat_task(rqs, q, e, -1);
        }
    }

    fn average_out(&mut self, rqs: &Runqueues, q: QueueId, e: EntityId, now: Nanos) {
        let (task, cpu, weight) = rqs.counted(q, e);
        let (time, now) = (now, self.clock(cpu, now));
        let of = &mut self.entities[e as usize];
        let runnable = of.runnable.steer_by(now, 0.0, &mut self.left);
        let takes = if self.loads == Loads::Runnable { weight * runnable } else { 0.0 };
        self.shift(q, time, -takes, -weight);
        if task {
            self.cpus[cpu as usize].runnable.shift(now, 0.0, -SCALE, &mut self.left);
        }
        self.report(rqs, q, time);
    }

    /// Called when an entity leaves its queue for good: to another CPU or group, or because it exits.
    pub(in crate::fair) fn detach(&mut self, rqs: &Runqueues, q: QueueId, e: EntityId, now: Nanos) {
        let (task, cpu, weight) = rqs.counted(q, e);
        if !self.averages() || !std::mem::take(&mut self.ties[e as usize].attached) {
            return;
        }
        let (time, now) = (now, self.clock(cpu, now));
        let load = self.entities[e as usize].runnable.at(now);
        let (runnable, running) = if task { self.brought(rqs, e, time, now) } else { (0.0, 0.0) };
        self.rebase(e, now, time);
        if self.loads == Loads::All {
            self.shift(q, time, -weight * load, 0.0);
        }
        if task {
            let of_cpu = &mut self.cpus[cpu as usize];
            of_cpu.runnable.shift(now, -runnable, 0.0, &mut self.left);
            of_cpu.util.shift(now, -running, 0.0, &mut self.left);
            self.propagate(rqs, q, None, -running / SCALE, time);
        }
    }

    /// Lets the averages of an entity that is attached to no queue stand still, or age again.
    pub(in crate::fair) fn set_ageing(&mut self, e: EntityId, ages: bool, now: Nanos) {
        let Some(of) = self.entities.get_mut(e as usize).filter(|of| self.on && of.running != Average::default())
        else {
            return;
        };
        for average in [&mut of.runnable, &mut of.running] {
            let value = average.at(now);
            *average = Average::of(value, if ages { 0.0 } else { value }, now);
        }
    }

    /// Adds the load of an entity to its CPU's, or subtracts it, if it is a task.
    fn count_flat_task(&mut self, rqs: &Runqueues, q: QueueId, e: EntityId, sign: i64) {
        let (task, cpu, weight) = rqs.counted(q, e);
        self.count_flat(cpu, if task { sign * weight as i64 } else { 0 });
    }

    /// Called when an entity starts or stops being the running one of its queue.
    #[inline(always)]
    pub(in crate::fair) fn set_running(&mut self, rqs: &Runqueues, e: EntityId, runs: bool, now: Nanos) {
        if self.averages() {
            self.average_running(rqs, e, runs, now);
        }
    }

    fn average_running(&mut self, rqs: &Runqueues, e: EntityId, runs: bool, now: Nanos) {
        let q = rqs.entities[e as usize].queue;
        let cpu = rqs.cpu_of(q);
        // A task that leaves while it runs has been detached before it is put back.
        let own = self.clock_of(rqs, e, now);
        let now = self.clock(cpu, now);
        let full = if self.clocks.is_empty() { self.capacities[cpu as usize] } else { SCALE };
        let level = if runs { full } else { 0.0 };
        let whole = self.whole();
        self.entities[e as usize].running.steer_by(own, level / SCALE * whole, &mut self.left);
        // A switch from a task of the root to one of a group sets the latter before it puts the former back. On one
        // queue the order is always the other one.
        if q == cpu {
            self.cpus[cpu as usize].util.steer_by(now, level, &mut self.left);
        }
    }

    /// Called when the weight of an entity changes by `by`.
    pub(in crate::fair) fn reweight(&mut self, rqs: &Runqueues, q: QueueId, e: EntityId, by: f64, now: Nanos) {
        let queued = rqs.entities[e as usize].on_rq;
        let (task, cpu, _) = rqs.counted(q, e);
        if queued && task {
            self.count_flat(cpu, by as i64);
        }
        if !self.averages() || !self.ties[e as usize].attached {
            return;
        }
        let runnable = self.entities[e as usize].runnable.at(self.clock(cpu, now));
        let counts = queued || self.loads == Loads::All;
        let value = if counts { by * runnable } else { 0.0 };
        self.shift(q, now, value, if queued { by } else { 0.0 });
    }

    /// Sets the class of the task that a CPU runs from now on; `None` if it is idle.
    #[inline]
    pub(in crate::fair) fn set_class(&mut self, cpu: CpuId, class: Option<ClassId>, now: Nanos) {
        self.mixed |= class.is_some_and(|class| class != ClassId::Fair);
        if self.on && self.mixed {
            self.steer_class(cpu, class, now);
        }
    }

    /// Applies the ticks so far to `cpu_load[]`.
    pub(in crate::fair) fn fold_cpu_load(&mut self, cpu: CpuId, now: Nanos) {
        self.fold_ticks(cpu, now);
    }

    /// Called when the weight of a queue has changed. In releases where ticks sample weights (that of the root queue,
    /// or the sum over the CPU's tasks), they sample another one from now on.
    #[inline]
    pub(in crate::fair) fn note_cpu_load(&mut self, rqs: &Runqueues, q: QueueId, now: Nanos) {
        if !self.on || self.loads != Loads::Weights {
            return;
        }
        let cpu = rqs.cpu_of(q);
        if let Some(flat) = self.flat.get(cpu as usize) {
            let load = *flat;
            self.see_load(cpu, load, now);
        } else if q < rqs.cpus {
            self.see_load(q, rqs.queues[q as usize].load.weight, now);
        }
    }
}
