//! The fair class as a scheduler: the operations of the kernel's `fair_sched_class` on the group hierarchy.

use super::entity::{Entity, EntityId, Flags, Leave, QueueId};
use super::{Discipline, Fair};
use crate::balance::fair;
use crate::classes::{ClassId, sync};
use schedlab_base::{CpuId, Nanos, v};
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{
    Attributes, Core, Dequeue, Due, Enqueue, Placement, QueueList, Scheduler, TaskId, Ticks, TimerId, View,
};

impl<D: Discipline> Fair<D> {
    /// Sets what a task's attributes determine for its entity.
    pub(super) fn set_attributes(&mut self, e: EntityId, a: &Attributes) {
        self.rqs.entities[e as usize].idle = a.policy == Policy::Idle;
        D::set_attributes(self, e, a);
    }

    /// Notes that a task leaves its CPU (`put_prev_task`).
    #[inline(always)]
    pub(super) fn note_put(&mut self, e: EntityId) {
        if self.places.counts_overlaps() {
            let (p, entity) = (e - self.rqs.first_task, &self.rqs.entities[e as usize]);
            self.places.overlap_goes_on(p, entity, entity.on_rq);
        }
    }

    /// A tick of a CPU, by its high-resolution timer if `queued` says so (`task_tick_fair`).
    pub(super) fn tick(&mut self, cx: &mut Core, cpu: CpuId, queued: bool) {
        let task = self.rqs.running[cpu as usize];
        let judges = !queued && !self.hrtick_ends_slice(cx, cpu);
        let mut at = task;
        while let Some(e) = at {
            let q = self.rqs.entities[e as usize].queue;
            self.update_curr(cx, q);
            if self.pelt.report(&self.rqs, q, cx.now()) {
                self.rqs.touch_queue(cx, q);
            }
            if self.rqs.is_stale(&self.pelt, e, cx.now()) {
                self.update_group(cx, e);
                self.rqs.touch_group(cx, e);
            }
            if judges && self.rqs.queues[q as usize].nr_queued > 1 {
                D::tick(self, cx, q, e);
            }
            at = self.rqs.parent(e);
        }
        self.check_overused(cx, cpu);
        let Some(e) = task else { return };
        if self.numa.is_some() {
            self.numa_tick(cx, cpu, e - self.rqs.first_task);
        }
        self.note_misfit(cx, cpu, e);
    }

    /// [`Discipline::turn_due`], while a timer may end the turn instead of ticks.
    #[inline(always)]
    fn turn_due(&mut self, cx: &Core, cpu: CpuId, q: QueueId, e: EntityId) -> (Nanos, Nanos) {
        if D::TICKS_END_TURNS && self.hrtick_ends_slice(cx, cpu) {
            (Nanos::MAX, Nanos::MAX)
        } else {
            D::turn_due(self, q, e)
        }
    }
}

impl<D: Discipline> Scheduler for Fair<D> {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, _how: Start) {
        self.begin(cx);
        let e = self.rqs.entity(p);
        self.rqs.grow(p);
        self.places.grow(p, parent.map(|parent| (parent, cx.task(parent).cpu)));
        if self.places.counts_overlaps() {
            self.places.overlap_is_new(p, D::usual_time_to_wakeup(&self.d));
        }
        self.pelt.util_est.grow(p);
        self.pelt.init_entity(e, true, cx.now());
        if let Some(averages) = cx.averages(p) {
            self.pelt.init_as_before(e, averages, cx.task(p).cpu, cx.now());
        }
        let attributes = cx.task(p).attributes;
        let fair = attributes.prio() >= 100;
        if !fair {
            self.pelt.is_born_elsewhere(e);
        }
        let q = self.rqs.queue_of(cx, p, cx.task(p).cpu);
        self.rqs.set_queue(e, q);
        self.set_attributes(e, &attributes);
        let parent = parent.map(|parent| {
            let cpu = cx.task(parent).cpu;
            sync(self, cx, cpu);
            let parent = self.rqs.entity(parent);
            if self.rqs.running[cpu as usize] == Some(parent) {
                self.update_curr(cx, self.rqs.entities[parent as usize].queue);
            }
            (parent, cpu)
        });
        D::fork(self, cx, e, parent, fair);
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
        let e = self.rqs.entity(p);
        let (from, to) = (self.rqs.entities[e as usize].queue, self.rqs.queue_of(cx, p, cpu));
        self.pelt.detach(&self.rqs, from, e, cx.now());
        if let Some(numa) = &mut self.numa {
            numa.moves(p, cx.task(p).cpu, cpu);
        }
        D::migrate(self, e, from, to);
        self.rqs.set_queue(e, to);
        if self.places.release >= v(3, 16) {
            // The task is not cache-hot on the new CPU.
            self.rqs.entities[e as usize].exec_start = 0;
        }
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let e = self.rqs.entity(p);
        if self.rqs.entities[e as usize].flags.has(Flags::ASIDE) && self.stays_aside(e) {
            return;
        }
        if how != Enqueue::Migrated || !self.rqs.entities[e as usize].delayed {
            self.pelt.util_est.add(cpu, p);
        }
        if how == Enqueue::Wakeup && self.places.counts_overlaps() {
            self.places.overlap_restarts(p, &self.rqs.entities[e as usize]);
        }
        let before = self.rqs.nr_running(cpu);
        self.enqueue(cx, e, how);
        if how == Enqueue::Wakeup {
            self.check_overused(cx, cpu);
        }
        if let Some(balancer) = &mut self.balancer {
            if how == Enqueue::Wakeup {
                balancer.woken(cpu, cx.now());
            }
            balancer.note_runnable(before, self.rqs.nr_running(cpu));
        }
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) {
        let e = self.rqs.entity(p);
        if self.rqs.entities[e as usize].flags.has(Flags::ASIDE) {
            return self.rqs.take_from_aside(e, how == Dequeue::Migrated);
        }
        if how != Dequeue::Migrated || !self.rqs.entities[e as usize].delayed {
            self.pelt.util_est.remove(cpu, p);
        }
        if how == Dequeue::Sleep {
            if self.places.counts_overlaps() {
                self.places.overlap_ends(p, &self.rqs.entities[e as usize], D::usual_time_to_wakeup(&self.d));
            }
            self.pelt.update_util_est(&self.rqs, cx, cpu, p);
        }
        let how = match how {
            Dequeue::Sleep => Leave::SLEEP,
            Dequeue::Dead => Leave::GONE,
            // "sched/fair: Combine detach into dequeue when migrating task" (6.1).
            Dequeue::Migrated => Leave { detach: self.places.release >= v(6, 1), ..Leave::MOVE },
        };
        self.dequeue(cx, e, how);
    }

    fn wake_delayed(&mut self, cx: &mut Core, p: TaskId) -> bool {
        let e = self.rqs.entity(p);
        if !self.rqs.entities[e as usize].delayed {
            return false;
        }
        // ttwu_runnable() only updates the queue's clock, and does not charge the running task.
        D::requeue_delayed(self, e);
        self.pelt.util_est.add(cx.task(p).cpu, p);
        true
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(e) = self.rqs.running[cpu as usize] else { return };
        let q = self.rqs.entities[e as usize].queue;
        if D::others(self, q) > 0 {
            D::yields(self, cx, q, e);
        }
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let Some(curr) = self.rqs.running[cpu as usize] else { return };
        let e = self.rqs.entity(p);
        let before = cx.need_resched(cpu);
        D::wakeup_preempt(self, cx, curr, e, how);
        if curr != e {
            self.explain_wakeup(cx, cpu, curr, e, before);
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let prev = prev.map(|p| self.rqs.entity(p));
        if let Some(e) = prev
            && self.rqs.entities[e as usize].flags.has(Flags::MUST_LEAVE)
        {
            self.returns_to_user(cx, e);
        }
        if let Some(e) = prev {
            self.note_put(e);
        }
        let next = self.pick_next(cx, cpu, prev);
        self.pelt.set_class(cpu, next.map(|_| ClassId::Fair), cx.now());
        if next.is_none() {
            self.enter_idle(cx, cpu);
        } else if prev.is_none()
            && let Some(balancer) = &mut self.balancer
        {
            balancer.leave_idle(cx, cpu);
            self.pelt.set_asleep(cpu, false, cx.now());
        }
        // From 6.12 on what goes on running is not set anew (`__set_next_task_fair`).
        if let Some(next) = next.filter(|next| self.places.release < v(6, 12) || prev != Some(*next)) {
            self.start_hrtick(cx, cpu, next);
            self.note_misfit(cx, cpu, next);
        }
        self.explain_pick(cx, cpu, next);
        next.map(|e| e - self.rqs.first_task)
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.tick(cx, cpu, false);
    }

    fn catch_up(&mut self, _cx: &Core, cpu: CpuId, ticks: Ticks) {
        let mut at = self.rqs.running[cpu as usize];
        while let Some(e) = at {
            let q = self.rqs.entities[e as usize].queue;
            let Entity { sum_exec: before, exec_start, .. } = self.rqs.entities[e as usize];
            if let Some(ticks) = ticks.since(exec_start) {
                D::skip_ticks(self, q, e, ticks);
            }
            let queue = &mut self.rqs.queues[q as usize];
            if queue.limited {
                queue.runtime -= (self.rqs.entities[e as usize].sum_exec - before) as i64;
            }
            if ticks.end_turn {
                D::turn_ended(self, e);
            }
            at = self.rqs.parent(e);
        }
    }

    #[inline]
    fn due(&mut self, cx: &Core, cpu: CpuId) -> Due {
        // A group's weight and its quota can change at any tick, and where CPUs differ, all ticks are taken.
        if self.rqs.first_task > 0 || self.notes_misfits() {
            return Due::at(self.next_decision(cx, cpu));
        }
        let Some(e) = self.rqs.running[cpu as usize] else { return Due::at(Nanos::MAX) };
        let other = self.overused_at(cx, cpu).min(self.numa_due(cx, e));
        if self.rqs.queues[cpu as usize].nr_queued == 1 {
            return Due::at(other);
        }
        let (at, ends) = self.turn_due(cx, cpu, cpu, e);
        Due { at: at.min(other), turn_ends: (ends, other) }
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        // Each tick notes whether the task fits.
        if self.notes_misfits() && self.rqs.running[cpu as usize].is_some() {
            return 0;
        }
        let mut first = Nanos::MAX;
        let mut at = self.rqs.running[cpu as usize];
        while let Some(e) = at {
            let q = self.rqs.entities[e as usize].queue;
            let queue = &self.rqs.queues[q as usize];
            if queue.limited {
                first = first.min(self.rqs.runs_out(cx, q, e));
            }
            if self.rqs.queues[q as usize].nr_queued > 1 {
                first = first.min(self.turn_due(cx, cpu, q, e).0);
            }
            if self.rqs.is_stale(&self.pelt, e, cx.now()) || self.rqs.will_be_stale(&self.pelt, e, cx.now()) {
                return 0;
            }
            at = self.rqs.parent(e);
        }
        first = first.min(self.overused_at(cx, cpu));
        match self.rqs.running[cpu as usize] {
            Some(e) if self.numa.is_some() => first.min(self.numa_due(cx, e - self.rqs.first_task)),
            _ => first,
        }
    }

    fn run_stopper(&mut self, cx: &mut Core, cpu: CpuId, _prev: Option<TaskId>) {
        self.numa_stop(cx, cpu);
        fair::stopper(self, cx, cpu);
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        for p in self.rqs.tasks.from_tail(cpu) {
            let entity = &self.rqs.entities[self.rqs.entity(p) as usize];
            if entity.delayed {
                list.delayed(p);
            } else if self.rqs.is_cut_off(entity.queue) {
                list.throttled(p);
            } else {
                list.ready(p);
            }
        }
        for e in self.rqs.put_aside(cpu) {
            list.throttled(e - self.rqs.first_task);
        }
    }

    fn queue_load(&self, cpu: CpuId) -> Option<(u32, u64)> {
        let root = self.root(cpu);
        Some((root.h_nr - root.h_nr_delayed, root.load.weight))
    }

    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        if let Some(e) = self.rqs.running[cpu as usize] {
            self.update_curr(cx, self.rqs.entities[e as usize].queue);
        }
    }

    fn clock_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let Some(e) = self.rqs.running[cpu as usize] else { return Nanos::MAX };
        let q = self.rqs.entities[e as usize].queue;
        let out = if self.rqs.queues[q as usize].limited { self.rqs.runs_out(cx, q, e) } else { Nanos::MAX };
        if self.rqs.queues[q as usize].nr_queued > 1 { out.min(D::clock_decision(self, q, e)) } else { out }
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let e = self.rqs.entity(p);
        let new = cx.task(p).attributes;
        let puts = self.d.change_puts();
        self.while_off(cx, e, Leave::SAVE, puts, |me, _| me.set_attributes(e, &new));
        if self.rqs.entities[e as usize].on_rq {
            let running = self.rqs.running[self.rqs.cpu_of(self.rqs.entities[e as usize].queue) as usize] == Some(e);
            D::changed(self, cx, p, old, running);
        }
    }

    fn affinity_changed(&mut self, cx: &mut Core, p: TaskId) {
        // In releases that put the running task back while its attributes change, they do so here too (4.3 on).
        if self.d.change_puts() {
            self.while_off(cx, self.rqs.entity(p), Leave::SAVE, true, |_, _| {});
        }
    }

    fn leave_group(&mut self, cx: &mut Core, p: TaskId) {
        let e = self.rqs.entity(p);
        let Entity { on_rq: queued, queue, .. } = self.rqs.entities[e as usize];
        let cpu = self.rqs.cpu_of(queue);
        if queued {
            self.dequeue(cx, e, Leave::MOVE);
        }
        self.moving = queued;
        if self.rqs.running[cpu as usize] == Some(e) {
            self.put_prev(cx, cpu, e);
        }
        self.pelt.detach(&self.rqs, queue, e, cx.now());
        self.pelt.report(&self.rqs, queue, cx.now());
        D::change_group(self, cx, e, false, queued);
    }

    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let e = self.rqs.entity(p);
        self.pelt.detach(&self.rqs, self.rqs.entities[e as usize].queue, e, cx.now());
        self.rqs.touch_group(cx, e);
        if let Some(numa) = &mut self.numa {
            numa.forget(p);
        }
    }

    fn join_group(&mut self, cx: &mut Core, p: TaskId) {
        let e = self.rqs.entity(p);
        let cpu = cx.task(p).cpu;
        self.rqs.set_queue(e, self.rqs.queue_of(cx, p, cpu));
        let queued = std::mem::take(&mut self.moving);
        D::change_group(self, cx, e, true, queued);
        if queued {
            self.enqueue(cx, e, Enqueue::Migrated);
        }
        if cx.curr(cpu) == Some(p) && self.rqs.entities[e as usize].on_rq {
            self.set_next(cx, cpu, e, false);
            // The task may have joined a throttled group.
            cx.resched(cpu);
        }
        cx.touch(cpu);
    }

    fn timer(&mut self, cx: &mut Core, id: TimerId) {
        if id == 2 * self.rqs.groups.all.len() as u32 {
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
        self.count_cpus(cx, cx.nr_online());
        self.rqs.limit(cpu, true);
        if let Some(balancer) = &mut self.balancer {
            balancer.rebuild(cx, cpu, true);
            self.domains = Some(balancer.domains());
            self.rqs.spread.rebuilt();
        }
    }

    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        self.begin(cx);
        let counted = self.follows.as_ref().map_or(0, |follows| follows.counted(cx.nr_online()));
        self.count_cpus(cx, counted);
        self.unthrottle_all(cx, cpu);
        let delayed: Vec<TaskId> =
            self.rqs.tasks.from_tail(cpu).filter(|p| self.rqs.entities[self.rqs.entity(*p) as usize].delayed).collect();
        for p in delayed {
            let e = self.rqs.entity(p);
            self.dequeue(cx, e, Leave::DELAYED);
        }
        if let Some(balancer) = &mut self.balancer {
            balancer.rebuild(cx, cpu, false);
            self.domains = Some(balancer.domains());
            self.rqs.spread.rebuilt();
        }
    }
}
