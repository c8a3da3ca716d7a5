//! Tasks become runnable, are migrated, are created, and take over other threads' ids.

use super::Tracker;
use crate::tasks::{Leaves, NEVER, Slot, Status, Task};
use crate::{Move, Observer, Occupant, Wake};
use schedlab_base::{Context, CpuId, Tid};

impl Tracker {
    /// Handles a wake-up of the task requested by `waker` on the CPU `cpu`.
    #[inline]
    pub(super) fn waking(
        &mut self,
        cpu: CpuId,
        (tid, prio): (Tid, i16),
        target: CpuId,
        (waker, context): (Tid, Context),
        observer: &mut impl Observer,
    ) {
        let Some(slot) = self.living(tid, observer).filter(|slot| self.follows(*slot)) else { return };
        self.is_on(cpu, waker, observer);
        let current = self.certainly_on(cpu).filter(|_| context != Context::HardIrq);
        let by = current.filter(|slot| self.tasks.get(*slot).is_some_and(|task| task.tid == waker));
        observer.waking(slot, Wake { now: self.now, cpu, target, by, context, prio, new: false });
        self.tasks[slot].prio = prio;
        self.woken_again(slot, observer);
        let task = &mut self.tasks[slot];
        // A task that is about to sleep may be woken before it is switched out; its waking counts from here.
        if matches!(task.status, Status::Sleeping | Status::Unknown | Status::Running) {
            task.waking = self.now;
            self.asks(cpu, slot);
        }
    }

    /// An event says who runs on this CPU.
    #[inline]
    pub(super) fn is_on(&mut self, cpu: CpuId, tid: Tid, observer: &mut impl Observer) {
        if self.exits.hidden {
            self.learn_act(cpu);
        }
        if self.cpus[cpu as usize].occupant == Occupant::Idle {
            self.is_on_after_all(cpu, tid, observer);
        }
    }

    /// The CPU was assumed to be idle. If the task was woken, it got the CPU unseen.
    #[cold]
    fn is_on_after_all(&mut self, cpu: CpuId, tid: Tid, observer: &mut impl Observer) {
        let Some(slot) = self.tasks.seen(tid).filter(|slot| tid != 0 && self.follows(*slot)) else { return };
        let who = Occupant::Task(slot);
        if self.woken_onto(who).is_some() && !self.came_back(cpu, who) {
            self.start_unseen(cpu, slot, self.likely(cpu, who), observer);
        }
    }

    /// Handles that the task was woken on the CPU `cpu`, for the first time if it is `new`.
    #[inline]
    pub(super) fn woken(
        &mut self,
        cpu: CpuId,
        (tid, prio): (Tid, i16),
        target: CpuId,
        new: bool,
        observer: &mut impl Observer,
    ) {
        let Some(mut slot) = self.task(tid, observer).filter(|slot| self.follows(*slot)) else { return };
        if !self.has(target) && !self.admit(target) {
            return;
        }
        self.tasks[slot].prio = prio;
        self.woken_again(slot, observer);
        let Task { status, waking, leaves, .. } = self.tasks[slot];
        if status == Status::Dead {
            slot = self.reborn(slot, observer);
        }
        let by = self.certainly_on(cpu);
        observer.woken(slot, Wake { now: self.now, cpu, target, by, context: Context::Unknown, prio, new });
        match status {
            Status::Waiting => {
                // It has run and slept unseen, or it was preempted just before it slept.
                observer.doubted(slot, self.now);
                return;
            }
            Status::Running => {
                // It had not gone to sleep yet.
                self.tasks[slot].waking = NEVER;
                return;
            }
            Status::Dead | Status::Sleeping | Status::Unknown => {}
        }
        if leaves == Leaves::Unseen {
            // It may get a CPU unseen, and it leaves unseen: its wait counts if it is seen to end.
            observer.doubted(slot, self.now);
            return;
        }
        self.enqueue(slot, target, observer);
        if !new {
            let task = &mut self.tasks[slot];
            (task.wakeup, task.waking) = (self.now, waking);
        }
        self.tell_queue(target, observer);
        let cpu = &self.cpus[target as usize];
        if cpu.blind && cpu.occupant == Occupant::Idle {
            self.comes(target, slot);
        }
    }

    /// A task that waits because it was woken can be woken again only after it got a CPU, which was not seen. If it is
    /// one that is seen to leave, it still has it. Otherwise nobody knows.
    #[inline]
    fn woken_again(&mut self, slot: Slot, observer: &mut impl Observer) {
        let task = self.tasks[slot];
        if task.status != Status::Waiting || task.wakeup == NEVER {
            return;
        }
        let cpu = &self.cpus[task.cpu as usize];
        let gave_way = match cpu.occupant {
            Occupant::Unknown => false,
            Occupant::Idle => true,
            Occupant::Task(other) => self.tasks[other].leaves != Leaves::Seen,
        };
        if task.leaves == Leaves::Seen && gave_way && task.epoch == cpu.epoch {
            let at = self.likely(task.cpu, Occupant::Task(slot));
            self.start_unseen(task.cpu, slot, at, observer);
        } else {
            self.doubt(slot, observer);
        }
    }

    /// Returns the task that certainly runs on this CPU.
    #[inline]
    fn certainly_on(&self, cpu: CpuId) -> Option<Slot> {
        match self.cpus.get(cpu as usize)?.occupant {
            Occupant::Task(slot) => self.tasks.get(slot)?.is_on(cpu).then_some(slot),
            Occupant::Unknown | Occupant::Idle => None,
        }
    }

    /// Handles that the task was migrated from one CPU's queue to another's.
    #[inline]
    pub(super) fn migrate(&mut self, tid: Tid, from: CpuId, to: CpuId, observer: &mut impl Observer) {
        let Some(slot) = self.task(tid, observer).filter(|slot| self.follows(*slot)) else { return };
        if (!self.has(from) && !self.admit(from)) || (!self.has(to) && !self.admit(to)) {
            return;
        }
        let task = self.tasks[slot];
        observer.migrated(slot, Move { now: self.now, from, to, first: task.status == Status::Unknown });
        if task.status != Status::Waiting || task.cpu == to {
            return;
        }
        if self.cpus[task.cpu as usize].epoch == task.epoch {
            observer.waited(slot, task.cpu, task.since, self.now, true);
        }
        self.dequeue(slot, to, observer);
        self.enqueue(slot, to, observer);
        let moved = &mut self.tasks[slot];
        (moved.queued, moved.wakeup, moved.waking) = (task.queued, task.wakeup, task.waking);
        self.tell_queue(to, observer);
    }

    /// Handles that a task was created: the next life of its thread id begins, unless the present one was only named.
    pub(super) fn fork(&mut self, cpu: CpuId, parent: Tid, child: Tid, observer: &mut impl Observer) {
        self.abandon(child, observer);
        let Some(mut slot) = self.task(child, observer) else { return };
        if self.tasks[slot].status != Status::Unknown {
            observer.replaced(slot, self.now);
            slot = self.reborn(slot, observer);
        }
        let parent = self.task(parent, observer);
        self.members.forked(parent, slot);
        let sure = parent.is_some() && parent == self.certainly_on(cpu);
        observer.forked(parent, slot, sure, self.now);
    }

    /// Handles that a task became another program.
    pub(super) fn exec(&mut self, tid: Tid, old: Tid, observer: &mut impl Observer) {
        if tid != old {
            self.take_over(tid, old, observer);
        }
        if let Some(slot) = self.task(tid, observer) {
            observer.execs(slot, self.now);
        }
    }

    /// A thread that called exec took over its leader's id.
    fn take_over(&mut self, tid: Tid, old: Tid, observer: &mut impl Observer) {
        self.abandon(tid, observer);
        if tid == 0 {
            return;
        }
        let (Some(slot), Some(leader)) = (self.task(old, observer), self.task(tid, observer)) else { return };
        if self.tasks.rename(slot, old, tid) {
            observer.replaced(leader, self.now);
            observer.appears(slot, tid, false);
        }
    }

    /// Ends the present life of a thread id, whose end was not seen: if the task was waiting, it no longer is.
    fn abandon(&mut self, tid: Tid, observer: &mut impl Observer) {
        let Some(slot) = self.task(tid, observer) else { return };
        if self.tasks[slot].status == Status::Waiting {
            self.doubt(slot, observer);
            self.tasks[slot].status = Status::Dead;
        }
    }
}
