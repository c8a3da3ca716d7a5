//! Walks over the hierarchy: up to enqueue and dequeue, down to pick, and along both branches to switch.

use super::entity::{Entity, EntityId, Flags, Leave, QueueId};
use super::{Discipline, Fair};
use schedlab_base::{CpuId, v};
use schedlab_sim::{Core, Enqueue};

/// The result of the walk down from the root.
pub(super) enum Picked {
    /// A task.
    Task(EntityId),
    /// An entity was dequeued, or a queue throttled, on the way: the pick must start again.
    Again,
    /// A group was throttled on the way: the running task must be put back first.
    Anew,
}

impl<D: Discipline> Fair<D> {
    /// Enqueues a task (`enqueue_task_fair`).
    pub(super) fn enqueue(&mut self, cx: &mut Core, e: EntityId, how: Enqueue) {
        self.enqueue_up(cx, e, how);
        self.update_hrtick(cx, self.rqs.cpu_of(self.rqs.entities[e as usize].queue));
    }

    /// Dequeues an entity (`dequeue_task_fair`, `dequeue_entities`). Returns `false` if it is a task that stays queued,
    /// delayed.
    pub(super) fn dequeue(&mut self, cx: &mut Core, e: EntityId, how: Leave) -> bool {
        let cpu = self.rqs.cpu_of(self.rqs.entities[e as usize].queue);
        let early = self.rqs.queues[cpu as usize].h_nr_idle > 0 && !self.rqs.is_sched_idle(cpu);
        let left = self.dequeue_up(cx, e, how);
        if early && self.rqs.is_sched_idle(cpu) {
            self.balance_early(cx, cpu);
        }
        if left && e >= self.rqs.first_task {
            self.update_hrtick(cx, cpu);
        }
        left
    }

    /// A CPU that has nothing left but tasks of SCHED_IDLE balances at its next tick (323af6deaf70, "sched/fair: Load
    /// balance aggressively for SCHED_IDLE CPUs").
    #[cold]
    fn balance_early(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.places.release >= v(5, 6)
            && let Some(balancer) = &mut self.balancer
        {
            balancer.balance_early(cpu, cx.jiffies());
            cx.touch(cpu);
        }
    }

    /// Enqueues a task, and the entities of its groups that are not queued yet.
    fn enqueue_up(&mut self, cx: &mut Core, e: EntityId, mut how: Enqueue) {
        let Entity { idle, delayed, .. } = self.rqs.entities[e as usize];
        let (mut idle, delayed) = (u32::from(idle), u32::from(delayed && how != Enqueue::Wakeup));
        let mut slice = None;
        let mut at = Some(e);
        while let Some(x) = at {
            if self.rqs.entities[x as usize].on_rq {
                if self.rqs.entities[x as usize].delayed {
                    D::requeue_delayed(self, x);
                }
                break;
            }
            let q = self.rqs.entities[x as usize].queue;
            if let Some(slice) = slice {
                D::set_slice(self, x, slice, true);
            }
            D::join(self, cx, q, x, how);
            at = self.rqs.parent(x);
            slice = at.map(|_| D::min_slice(self, q));
            idle = self.rqs.tally(q, 1, idle, delayed);
            if self.rqs.queues[q as usize].cut_off {
                return self.rqs.touch_group(cx, e);
            }
            how = Enqueue::Wakeup;
        }
        let mut slice = slice.unwrap_or(0);
        while let Some(x) = at {
            self.pelt.report(&self.rqs, self.rqs.entities[x as usize].queue, cx.now());
            self.update_group(cx, x);
            D::set_slice(self, x, slice, false);
            let q = self.rqs.entities[x as usize].queue;
            slice = D::min_slice(self, q);
            idle = self.rqs.tally(q, 1, idle, delayed);
            if self.rqs.queues[q as usize].cut_off {
                break;
            }
            at = self.rqs.parent(x);
        }
        self.rqs.touch_group(cx, e);
    }

    /// Dequeues an entity, and the groups that become empty.
    fn dequeue_up(&mut self, cx: &mut Core, e: EntityId, how: Leave) -> bool {
        let entity = &self.rqs.entities[e as usize];
        let is_task = e >= self.rqs.first_task;
        let nr = u32::from(is_task);
        let mut idle = u32::from(is_task && entity.idle);
        let delayed = u32::from(is_task && entity.delayed && !how.sleep && !how.delayed);
        let mut flags = how;
        let mut slice = 0;
        let mut at = Some(e);
        while let Some(x) = at {
            let q = self.rqs.entities[x as usize].queue;
            if !self.dequeue_entity(cx, q, x, flags) {
                if x == e && is_task {
                    return false;
                }
                slice = D::min_slice(self, q);
                break;
            }
            idle = self.rqs.untally(q, nr, idle, delayed);
            if self.rqs.queues[q as usize].cut_off {
                self.rqs.touch_group(cx, e);
                return true;
            }
            at = self.rqs.parent(x);
            if self.rqs.queues[q as usize].load.weight > 0 {
                if let Some(group) = at {
                    slice = D::min_slice(self, q);
                    if how.sleep && !self.rqs.is_cut_off(q) {
                        D::goes_on(self, group);
                    }
                }
                break;
            }
            flags = Leave { sleep: true, delayed: false, special: how.throttle, ..how };
        }
        while let Some(x) = at {
            self.pelt.report(&self.rqs, self.rqs.entities[x as usize].queue, cx.now());
            self.update_group(cx, x);
            D::set_slice(self, x, slice, false);
            let q = self.rqs.entities[x as usize].queue;
            slice = D::min_slice(self, q);
            idle = self.rqs.untally(q, nr, idle, delayed);
            if self.rqs.queues[q as usize].cut_off {
                break;
            }
            at = self.rqs.parent(x);
        }
        self.rqs.touch_group(cx, e);
        true
    }

    /// Dequeues one entity (`dequeue_entity`). Returns `false` if it stays queued, delayed.
    #[inline]
    pub(super) fn dequeue_entity(&mut self, cx: &mut Core, q: QueueId, e: EntityId, how: Leave) -> bool {
        self.update_curr(cx, q);
        if !D::leave(self, q, e, how, cx.now()) {
            return false;
        }
        if how.detach && e >= self.rqs.first_task {
            self.pelt.detach(&self.rqs, q, e, cx.now());
            self.pelt.report(&self.rqs, q, cx.now());
        }
        if self.rqs.queues[q as usize].limited {
            self.rqs.return_runtime(cx, q);
        }
        self.update_group(cx, e);
        D::left(self, q, e, how);
        true
    }

    /// Puts the running entity of a queue back (`put_prev_entity`).
    #[inline(always)]
    pub(super) fn put_prev_entity(&mut self, cx: &mut Core, e: EntityId) {
        let q = self.rqs.entities[e as usize].queue;
        debug_assert_eq!(self.rqs.queues[q as usize].curr, Some(e), "what is put back has to be running");
        self.pelt.set_running(&self.rqs, e, false, cx.now());
        if self.rqs.entities[e as usize].on_rq {
            self.update_curr(cx, q);
        }
        self.check_runtime(cx, q);
        if self.rqs.entities[e as usize].on_rq {
            D::insert(self, q, e);
        }
        self.rqs.queues[q as usize].curr = None;
    }

    /// Makes an entity the running one of its queue (`set_next_entity`).
    #[inline(always)]
    pub(super) fn set_next_entity(&mut self, cx: &mut Core, e: EntityId, picked: bool) {
        let q = self.rqs.entities[e as usize].queue;
        self.pelt.set_running(&self.rqs, e, true, cx.now());
        if self.rqs.entities[e as usize].on_rq && self.pelt.report(&self.rqs, q, cx.now()) {
            self.rqs.touch_queue(cx, q);
        }
        D::taken(self, q, e, picked);
        self.rqs.queues[q as usize].curr = Some(e);
        let entity = &mut self.rqs.entities[e as usize];
        entity.exec_start = cx.now();
        entity.prev_sum_exec = entity.sum_exec;
    }

    /// Puts the running task of a CPU back, along with its groups.
    #[inline]
    pub(super) fn put_prev(&mut self, cx: &mut Core, cpu: CpuId, e: EntityId) {
        let mut at = Some(e);
        while let Some(x) = at {
            self.put_prev_entity(cx, x);
            at = self.rqs.parent(x);
        }
        self.rqs.running[cpu as usize] = None;
    }

    /// Makes a task and its groups the running ones of a CPU (`set_next_task_fair`).
    #[inline]
    pub(super) fn set_next(&mut self, cx: &mut Core, cpu: CpuId, e: EntityId, picked: bool) {
        let mut at = Some(e);
        while let Some(x) = at {
            self.set_next_entity(cx, x, picked);
            let q = self.rqs.entities[x as usize].queue;
            if self.rqs.queues[q as usize].limited {
                self.rqs.account_runtime(cx, q, 0);
            }
            at = self.rqs.parent(x);
        }
        self.runs(cpu, e);
    }

    #[inline]
    fn runs(&mut self, cpu: CpuId, e: EntityId) {
        self.rqs.running[cpu as usize] = Some(e);
        if self.d.heads_list_when_picked() {
            self.rqs.tasks.move_to_head(cpu, e - self.rqs.first_task);
        }
    }

    /// Walks down from the root to the next task, while the running task stays where it is.
    #[inline]
    pub(super) fn pick_down(&mut self, cx: &mut Core, cpu: CpuId) -> Picked {
        let (mut q, mut throttled) = (cpu, false);
        loop {
            let curr = self.rqs.queued_curr(q);
            if curr.is_some() {
                self.update_curr(cx, q);
            }
            let looks = self.d.picks_again() || self.rqs.queues[q as usize].curr.is_some();
            if looks && self.check_runtime(cx, q) {
                if !self.rqs.throttles_tasks {
                    return if self.d.picks_again() { Picked::Again } else { Picked::Anew };
                }
                throttled = true;
            }
            let e = D::pick(self, q, curr).expect("a queue that is queued is not empty");
            if cx.explaining() {
                self.note_pick(q, curr, e);
            }
            if self.rqs.entities[e as usize].delayed {
                self.dequeue(cx, e, Leave::DELAYED);
                return Picked::Again;
            }
            if e >= self.rqs.first_task {
                if throttled {
                    self.rqs.entities[e as usize].flags.set(Flags::MUST_LEAVE, true);
                    cx.resched_after_switch(cpu);
                }
                return Picked::Task(e);
            }
            q = e + self.rqs.cpus;
        }
    }

    /// Walks down from the root to the next task if none is running, and makes the entities on the way the running
    /// ones.
    #[inline]
    pub(super) fn pick_anew(&mut self, cx: &mut Core, cpu: CpuId) -> EntityId {
        let mut q = cpu;
        loop {
            let e = D::pick(self, q, None).expect("a queue that is queued is not empty");
            if cx.explaining() {
                self.note_pick(q, None, e);
            }
            self.set_next_entity(cx, e, true);
            if e >= self.rqs.first_task {
                self.runs(cpu, e);
                return e;
            }
            q = e + self.rqs.cpus;
        }
    }

    /// Switches from `prev` to `next`. The groups that contain both keep running.
    #[inline]
    pub(super) fn switch(&mut self, cx: &mut Core, cpu: CpuId, prev: EntityId, next: EntityId) {
        let up = |me: &Self, e: EntityId| me.rqs.parent(e).expect("tasks of one CPU meet in its root queue");
        let (mut p, mut n) = (prev, next);
        while self.rqs.entities[p as usize].queue != self.rqs.entities[n as usize].queue {
            let (prev_depth, next_depth) = (self.rqs.entities[p as usize].depth, self.rqs.entities[n as usize].depth);
            if next_depth <= prev_depth {
                self.put_prev_entity(cx, p);
                p = up(self, p);
            }
            if next_depth >= prev_depth {
                self.set_next_entity(cx, n, true);
                n = up(self, n);
            }
        }
        self.put_prev_entity(cx, p);
        self.set_next_entity(cx, n, true);
        self.runs(cpu, next);
    }
}
