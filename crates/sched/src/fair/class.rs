//! The fair class: the operations of the kernel's `fair_sched_class`, on the hierarchy.

use super::entity::{Entity, EntityId, Leave};
use super::walk::Picked;
use super::{Discipline, Fair};
use crate::balance::fair;
use crate::classes::{Class, ClassId, sync};
use schedlab_base::{CpuId, Nanos, v};
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{
    Attributes, Core, Dequeue, Enqueue, Placement, QueueList, Scheduler, State, TaskId, Ticks, TimerId, View,
};

impl<D: Discipline> Fair<D> {
    fn set_attributes(&mut self, e: EntityId, a: &Attributes) {
        self.entities[e as usize].idle = a.policy == Policy::Idle;
        D::set_attributes(self, e, a);
    }

    /// The next task, while `prev` is still the running one if it is given.
    #[inline]
    fn pick_next(&mut self, cx: &mut Core, cpu: CpuId, mut prev: Option<EntityId>) -> Option<EntityId> {
        let mut pulled = self.balancer.is_none() || self.numa_expects(cpu);
        loop {
            if self.queues[cpu as usize].nr_queued == 0 {
                if std::mem::replace(&mut pulled, true) {
                    break;
                }
                fair::newly_idle(self, cx, cpu);
                continue;
            }
            if self.d.picks_with_current() && (prev.is_some() || self.d.picks_again()) {
                match self.pick_down(cx, cpu) {
                    Picked::Again => {
                        self.forget_reasons();
                        continue;
                    }
                    Picked::Anew => {
                        self.forget_reasons();
                        if self.queues[cpu as usize].nr_queued == 0 {
                            continue;
                        }
                    }
                    Picked::Task(next) => {
                        match prev {
                            Some(prev) if prev != next => self.switch(cx, cpu, prev, next),
                            Some(_) => {}
                            None => self.set_next(cx, cpu, next),
                        }
                        return Some(next);
                    }
                }
            }
            if let Some(prev) = prev.take() {
                self.put_prev(cx, cpu, prev);
                // Putting it back can throttle its group.
                if self.queues[cpu as usize].nr_queued == 0 {
                    break;
                }
            }
            return Some(self.pick_anew(cx, cpu));
        }
        if let Some(prev) = prev {
            self.put_prev(cx, cpu, prev);
        }
        self.went_idle(cx, cpu);
        None
    }

    /// Takes a task off its queue and out of the CPU, changes it, and puts it back as it was.
    fn while_off(
        &mut self,
        cx: &mut Core,
        e: EntityId,
        how: Leave,
        puts: bool,
        change: impl FnOnce(&mut Self, &mut Core),
    ) {
        let cpu = self.cpu_of(self.entities[e as usize].queue);
        let queued = self.entities[e as usize].on_rq;
        let running = puts && self.running[cpu as usize] == Some(e);
        if queued {
            self.dequeue(cx, e, how);
        }
        if running {
            self.put_prev(cx, cpu, e);
        }
        change(self, cx);
        if queued {
            self.enqueue(cx, e, Enqueue::Migrated);
        }
        if running {
            self.set_next(cx, cpu, e);
        }
    }
}

impl<D: Discipline> Scheduler for Fair<D> {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, _how: Start) {
        if !self.started {
            self.started = true;
            self.start_pools(cx);
            if let Some(balancer) = &mut self.balancer {
                balancer.start(cx, ClassId::Fair.timer(2 * self.groups.all.len() as u32));
            }
        }
        let e = self.entity(p);
        self.arena.grow(e);
        self.tasks.grow(p);
        self.places.grow(p);
        self.estimates.grow(p);
        if self.entities.len() <= e as usize {
            self.entities.resize(e as usize + 1, Entity::default());
        }
        self.entities[e as usize] = Entity::default();
        self.clock = cx.now();
        self.track(e, cx.now());
        let q = self.queue_of(cx, p, cx.task(p).cpu);
        self.set_queue(e, q);
        let attributes = cx.task(p).attributes;
        self.set_attributes(e, &attributes);
        let parent = parent.map(|parent| {
            let cpu = cx.task(parent).cpu;
            sync(self, cx, cpu);
            let parent = self.entity(parent);
            if self.running[cpu as usize] == Some(parent) {
                self.update_curr(cx, self.entities[parent as usize].queue);
            }
            (parent, cpu)
        });
        D::fork(self, e, parent);
        if let Some(numa) = &mut self.numa {
            numa.fork(cx, p);
        }
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        let Some(domains) = self.domains.take() else { return prev };
        let cpu = self.choose_cpu(cx, &domains, p, prev, why);
        self.domains = Some(domains);
        cpu
    }

    fn migrate_task_rq(&mut self, cx: &mut Core, p: TaskId, _from: CpuId, cpu: CpuId) {
        let e = self.entity(p);
        let (from, to) = (self.entities[e as usize].queue, self.queue_of(cx, p, cpu));
        self.track_away(from, e, cx.now());
        if let Some(numa) = &mut self.numa {
            numa.moves(p, cx.task(p).cpu, cpu);
        }
        D::migrate(self, e, from, to);
        self.set_queue(e, to);
        if self.places.release >= v(3, 16) {
            // Nothing of it is in the cache there.
            self.entities[e as usize].exec_start = 0;
        }
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let e = self.entity(p);
        if how != Enqueue::Migrated || !self.entities[e as usize].delayed {
            self.estimates.add(cpu, p);
        }
        self.enqueue(cx, e, how);
        if how == Enqueue::Wakeup {
            self.check_overused(cx, cpu);
        }
        if let Some(balancer) = &mut self.balancer {
            if how == Enqueue::Wakeup {
                balancer.woken(cpu, cx.now());
            }
            if self.queues[cpu as usize].h_nr + self.others[cpu as usize] > 1 {
                balancer.note_overload();
            }
        }
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) {
        let e = self.entity(p);
        if how != Dequeue::Migrated || !self.entities[e as usize].delayed {
            self.estimates.remove(cpu, p);
        }
        if how == Dequeue::Sleep {
            self.estimate(cpu, p, cx.now());
        }
        let how = match how {
            Dequeue::Sleep => Leave::SLEEP,
            Dequeue::Dead => Leave::GONE,
            Dequeue::Migrated => Leave::MOVE,
        };
        self.dequeue(cx, e, how);
    }

    fn wake_delayed(&mut self, cx: &mut Core, p: TaskId) -> bool {
        self.clock = cx.now();
        let e = self.entity(p);
        if !self.entities[e as usize].delayed {
            return false;
        }
        // ttwu_runnable() updates the queue's clock only: the running task is not accounted for.
        D::requeue_delayed(self, e);
        self.estimates.add(cx.task(p).cpu, p);
        true
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        self.clock = cx.now();
        let Some(e) = self.running[cpu as usize] else { return };
        let q = self.entities[e as usize].queue;
        if D::others(self, q) > 0 {
            D::yields(self, cx, q, e);
        }
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        self.clock = cx.now();
        let Some(curr) = self.running[cpu as usize] else { return };
        let e = self.entity(p);
        let before = cx.need_resched(cpu);
        D::wakeup_preempt(self, cx, curr, e, how);
        if curr != e {
            self.explain_wakeup(cx, cpu, curr, e, before);
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.clock = cx.now();
        let prev = prev.map(|p| self.entity(p));
        let next = self.pick_next(cx, cpu, prev);
        self.track_class(cpu, next.map(|_| ClassId::Fair), cx.now());
        if let Some(balancer) = &mut self.balancer {
            if next.is_some() {
                balancer.leave_idle(cx, cpu);
                self.tracking.set_asleep(cpu, false, cx.now());
            } else {
                // The tick of another that was kept may stop, too.
                let kept = balancer.keeps_tick();
                balancer.enter_idle(cx, cpu);
                for cpu in kept.into_iter().chain([cpu]) {
                    self.tracking.set_asleep(cpu, balancer.sleeps(cpu), cx.now());
                }
            }
        }
        self.explain_pick(cx, cpu, next);
        next.map(|e| e - self.first_task)
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.clock = cx.now();
        let task = self.running[cpu as usize];
        let mut at = task;
        while let Some(e) = at {
            let q = self.entities[e as usize].queue;
            self.update_curr(cx, q);
            if self.is_stale(e) {
                self.update_group(cx, e);
                self.tell(cx, e);
            }
            if self.queues[q as usize].nr_queued > 1 {
                D::tick(self, cx, q, e);
            }
            at = self.parent(e);
        }
        self.check_overused(cx, cpu);
        if let Some(e) = task.filter(|_| self.numa.is_some()) {
            self.numa_tick(cx, cpu, e - self.first_task);
        }
    }

    fn catch_up(&mut self, _cx: &Core, cpu: CpuId, ticks: Ticks) {
        let mut at = self.running[cpu as usize];
        while let Some(e) = at {
            let q = self.entities[e as usize].queue;
            let before = self.entities[e as usize].sum_exec;
            D::skip_ticks(self, q, e, ticks);
            let queue = &mut self.queues[q as usize];
            if queue.limited {
                queue.runtime -= (self.entities[e as usize].sum_exec - before) as i64;
            }
            at = self.parent(e);
        }
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let mut first = Nanos::MAX;
        let mut at = self.running[cpu as usize];
        while let Some(e) = at {
            let q = self.entities[e as usize].queue;
            let queue = &self.queues[q as usize];
            if queue.limited {
                first = first.min(self.runs_out(cx, q, e));
            }
            if self.queues[q as usize].nr_queued > 1 {
                first = first.min(D::next_decision(self, q, e));
            }
            if self.is_stale(e) || self.will_be_stale(e, cx.now()) {
                return 0;
            }
            at = self.parent(e);
        }
        first = first.min(self.overused_at(cx, cpu));
        match self.running[cpu as usize] {
            Some(e) if self.numa.is_some() => first.min(self.numa_due(cx, e - self.first_task)),
            _ => first,
        }
    }

    fn run_stopper(&mut self, cx: &mut Core, cpu: CpuId, _prev: Option<TaskId>) {
        self.numa_stop(cx, cpu);
        fair::stopper(self, cx, cpu);
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        for p in self.tasks.from_tail(cpu) {
            let entity = &self.entities[self.entity(p) as usize];
            if entity.delayed {
                list.delayed(p);
            } else if self.queues[entity.queue as usize].throttle_count > 0 {
                list.throttled(p);
            } else {
                list.ready(p);
            }
        }
    }

    fn queue_load(&self, cpu: CpuId) -> Option<(u32, u64)> {
        let root = self.root(cpu);
        Some((root.h_nr - root.h_nr_delayed, root.load.weight))
    }

    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        self.clock = cx.now();
        if let Some(e) = self.running[cpu as usize] {
            self.update_curr(cx, self.entities[e as usize].queue);
        }
    }

    fn clock_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let Some(e) = self.running[cpu as usize] else { return Nanos::MAX };
        let q = self.entities[e as usize].queue;
        let out = if self.queues[q as usize].limited { self.runs_out(cx, q, e) } else { Nanos::MAX };
        if self.queues[q as usize].nr_queued > 1 { out.min(D::clock_decision(self, q, e)) } else { out }
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        self.clock = cx.now();
        let e = self.entity(p);
        let new = cx.task(p).attributes;
        let puts = self.d.change_puts();
        self.while_off(cx, e, Leave::SAVE, puts, |me, _| me.set_attributes(e, &new));
        if self.entities[e as usize].on_rq {
            let running = self.running[self.cpu_of(self.entities[e as usize].queue) as usize] == Some(e);
            D::changed(self, cx, p, old, running);
        }
    }

    fn leave_group(&mut self, cx: &mut Core, p: TaskId) {
        self.clock = cx.now();
        let e = self.entity(p);
        let Entity { on_rq: queued, queue, .. } = self.entities[e as usize];
        let cpu = self.cpu_of(queue);
        if queued {
            self.dequeue(cx, e, Leave::MOVE);
        }
        self.moving = queued;
        if self.running[cpu as usize] == Some(e) {
            self.put_prev(cx, cpu, e);
        }
        self.track_away(queue, e, cx.now());
        D::change_group(self, cx, e, false, queued);
    }

    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let e = self.entity(p);
        self.track_away(self.entities[e as usize].queue, e, cx.now());
        self.tell(cx, e);
        if let Some(numa) = &mut self.numa {
            numa.forget(p);
        }
    }

    fn join_group(&mut self, cx: &mut Core, p: TaskId) {
        self.clock = cx.now();
        let e = self.entity(p);
        let cpu = cx.task(p).cpu;
        self.set_queue(e, self.queue_of(cx, p, cpu));
        let queued = std::mem::take(&mut self.moving);
        D::change_group(self, cx, e, true, queued);
        if queued {
            self.enqueue(cx, e, Enqueue::Migrated);
        }
        if cx.curr(cpu) == Some(p) && self.entities[e as usize].on_rq {
            self.set_next(cx, cpu, e);
            // It may have joined a throttled group.
            cx.resched(cpu);
        }
        cx.touch(cpu);
    }

    fn timer(&mut self, cx: &mut Core, id: TimerId) {
        self.clock = cx.now();
        if id == 2 * self.groups.all.len() as u32 {
            fair::timer(self, cx);
        } else {
            self.pool_timer(cx, id);
        }
    }

    fn tunables(&self) -> Vec<(&'static str, i64)> {
        self.follows.as_ref().map_or_else(Vec::new, |follows| follows.now().iter().collect())
    }

    fn view(&self, _cx: &Core, cpu: CpuId) -> View {
        self.show(cpu)
    }

    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        self.clock = cx.now();
        self.count_cpus(cx, cx.nr_online());
        self.limit(cpu, true);
        if let Some(balancer) = &mut self.balancer {
            balancer.rebuild(cx, cpu, true);
            self.domains = Some(balancer.domains());
            self.spread.rebuilt();
        }
    }

    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        self.clock = cx.now();
        // The kernel does so while the CPU is still online, and not again when it is gone.
        self.count_cpus(cx, cx.nr_online() + 1);
        self.unthrottle_all(cx, cpu);
        let delayed: Vec<TaskId> =
            self.tasks.from_tail(cpu).filter(|p| self.entities[self.entity(*p) as usize].delayed).collect();
        for p in delayed {
            let e = self.entity(p);
            self.dequeue(cx, e, Leave::DELAYED);
        }
        if let Some(balancer) = &mut self.balancer {
            balancer.rebuild(cx, cpu, false);
            self.domains = Some(balancer.domains());
            self.spread.rebuilt();
        }
    }
}

impl<D: Discipline> Class for Fair<D> {
    fn has_runnable(&self, cpu: CpuId) -> bool {
        self.queues[cpu as usize].nr_queued > 0
    }

    fn is_running(&self, cpu: CpuId) -> bool {
        self.running[cpu as usize].is_some()
    }

    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        self.clock = cx.now();
        let e = self.entity(p);
        self.put_prev(cx, cpu, e);
    }

    fn switched_from(&mut self, cx: &mut Core, p: TaskId) {
        self.clock = cx.now();
        let e = self.entity(p);
        let q = self.entities[e as usize].queue;
        let cpu = self.cpu_of(q);
        if self.entities[e as usize].on_rq {
            if !self.entities[e as usize].delayed {
                self.estimates.remove(cpu, p);
            }
            self.dequeue(cx, e, Leave::MOVE);
        }
        if self.running[cpu as usize] == Some(e) {
            self.put_prev(cx, cpu, e);
        }
        self.track_away(q, e, cx.now());
    }

    fn switched_to(&mut self, cx: &mut Core, p: TaskId) {
        self.clock = cx.now();
        let e = self.entity(p);
        let attributes = cx.task(p).attributes;
        let cpu = cx.task(p).cpu;
        self.set_queue(e, self.queue_of(cx, p, cpu));
        self.set_attributes(e, &attributes);
        if cx.task(p).state == State::Runnable {
            self.estimates.add(cpu, p);
            self.enqueue(cx, e, Enqueue::Migrated);
            if cx.curr(cpu) == Some(p) {
                self.set_next(cx, cpu, e);
            }
        }
    }

    fn balance(&mut self, cx: &mut Core, cpu: CpuId) {
        self.clock = cx.now();
        if self.balancer.as_ref().is_some_and(|b| cx.now() >= b.next_decision(cpu)) {
            fair::tick(self, cx, cpu);
        }
    }

    fn runs(&mut self, cx: &mut Core, cpu: CpuId, class: ClassId) {
        self.clock = cx.now();
        self.track_class(cpu, Some(class), cx.now());
        if let Some(balancer) = &mut self.balancer {
            balancer.leave_idle(cx, cpu);
            // Whoever was woken there, it was idle until now.
            balancer.woken(cpu, cx.now());
            self.tracking.set_asleep(cpu, false, cx.now());
        }
    }

    fn others(&mut self, cx: &Core, cpu: CpuId, real_time: u32, deadline: u32) {
        let runnable = real_time + deadline;
        self.real_time[cpu as usize] = real_time;
        let before = std::mem::replace(&mut self.others[cpu as usize], runnable);
        if runnable != before && self.balancer.is_some() {
            self.tracking.count_others(cpu, runnable, cx.now());
        }
        self.note_occupancy(cpu, runnable);
        // Whoever it is that makes two of one, somewhere there is more than one (`add_nr_running`).
        if runnable > before
            && self.queues[cpu as usize].h_nr + runnable > 1
            && let Some(balancer) = &mut self.balancer
        {
            balancer.note_overload();
        }
    }

    fn next_balance(&self, cpu: CpuId) -> Nanos {
        self.balancer.as_ref().map_or(Nanos::MAX, |b| b.next_decision(cpu))
    }
}
