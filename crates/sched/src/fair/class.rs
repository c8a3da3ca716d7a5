//! The fair class within a stack of classes: the methods of [`Class`].

use super::entity::{Entity, EntityId, Flags, Leave};
use super::{Discipline, Fair};
use crate::balance::fair;
use crate::classes::{Class, ClassId};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, Enqueue, State, TaskId};

impl<D: Discipline> Fair<D> {
    /// Called when a task leaves the class, and with `again` when it returns. Without `ATTACH_AGE_LOAD` its averages
    /// stand still in between (`SKIP_AGE_LOAD`).
    fn age_in_another_class(&mut self, e: EntityId, again: bool, now: Nanos) {
        if !self.places.features.attach_age_load {
            self.pelt.set_ageing(e, again, now);
        }
    }
}

impl<D: Discipline> Class for Fair<D> {
    fn has_runnable(&self, cpu: CpuId) -> bool {
        self.rqs.queues[cpu as usize].nr_queued > 0
    }

    fn is_running(&self, cpu: CpuId) -> bool {
        self.rqs.running[cpu as usize].is_some()
    }

    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let e = self.rqs.entity(p);
        self.note_put(e);
        self.put_prev(cx, cpu, e);
    }

    fn switched_from(&mut self, cx: &mut Core, p: TaskId) {
        let e = self.rqs.entity(p);
        let q = self.rqs.entities[e as usize].queue;
        let cpu = self.rqs.cpu_of(q);
        let Entity { on_rq, delayed, flags, .. } = self.rqs.entities[e as usize];
        if flags.has(Flags::ASIDE) {
            self.rqs.take_from_aside(e, false);
        } else if delayed {
            self.dequeue(cx, e, Leave::DELAYED);
        } else if on_rq {
            self.pelt.util_est.remove(cpu, p);
            self.dequeue(cx, e, Leave::MOVE);
        } else {
            D::change_class(self, e, false);
        }
        if self.rqs.running[cpu as usize] == Some(e) {
            self.put_prev(cx, cpu, e);
        }
        self.pelt.detach(&self.rqs, q, e, cx.now());
        self.age_in_another_class(e, false, cx.now());
    }

    fn switched_to(&mut self, cx: &mut Core, p: TaskId, _from: ClassId) {
        let e = self.rqs.entity(p);
        let attributes = cx.task(p).attributes;
        let cpu = cx.task(p).cpu;
        self.rqs.set_queue(e, self.rqs.queue_of(cx, p, cpu));
        self.set_attributes(e, &attributes);
        self.age_in_another_class(e, true, cx.now());
        if cx.task(p).state == State::Runnable {
            self.pelt.util_est.add(cpu, p);
            self.enqueue(cx, e, Enqueue::Migrated);
            if cx.curr(cpu) == Some(p) {
                self.set_next(cx, cpu, e, false);
            }
        } else {
            D::change_class(self, e, true);
        }
    }

    fn hrtick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.hrtick_expired(cx, cpu);
    }

    fn balance(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.balancer.as_ref().is_some_and(|b| cx.now() >= b.next_decision(cpu)) {
            fair::tick(self, cx, cpu);
        }
    }

    fn runs(&mut self, cx: &mut Core, cpu: CpuId, class: ClassId) {
        self.pelt.set_class(cpu, Some(class), cx.now());
        if let Some(balancer) = &mut self.balancer {
            balancer.leave_idle(cx, cpu);
            // The CPU was idle until now.
            balancer.woken(cpu, cx.now());
            self.pelt.set_asleep(cpu, false, cx.now());
        }
    }

    fn charge_groups(&mut self, cx: &mut Core, cpu: CpuId) {
        let mut e = self.rqs.running[cpu as usize].and_then(|e| self.rqs.parent(e));
        while let Some(x) = e {
            self.update_curr(cx, self.rqs.entities[x as usize].queue);
            e = self.rqs.parent(x);
        }
    }

    fn charged_until(&self, cpu: CpuId) -> Nanos {
        self.rqs.running[cpu as usize].map_or(Nanos::MAX, |e| self.rqs.entities[e as usize].exec_start)
    }

    fn charge_from(&mut self, cpu: CpuId, at: Nanos) {
        let mut e = self.rqs.running[cpu as usize];
        while let Some(x) = e {
            self.rqs.entities[x as usize].exec_start = at;
            e = self.rqs.parent(x);
        }
    }

    fn is_taken(&mut self, cpu: CpuId, taken: (Nanos, Nanos)) {
        if self.places.features.nontask_capacity {
            self.pelt.note_taken(cpu, taken);
        }
    }

    fn others(&mut self, cx: &Core, cpu: CpuId, real_time: u32, deadline: u32) {
        let runnable = real_time + deadline;
        let before = self.rqs.count_others(cpu, runnable, real_time);
        if runnable != before && self.balancer.is_some() {
            self.pelt.count_others(cpu, runnable, cx.now());
        }
        self.rqs.note_occupancy(cpu, runnable);
        if let Some(balancer) = &mut self.balancer {
            let now = self.rqs.nr_running(cpu);
            balancer.note_runnable(now + before - runnable, now);
        }
    }

    fn next_balance(&self, cpu: CpuId) -> Nanos {
        self.balancer.as_ref().map_or(Nanos::MAX, |b| b.next_decision(cpu))
    }
}
