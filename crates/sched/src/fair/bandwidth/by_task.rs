//! Throttling task by task, from 6.18 on: "sched/fair: Task based throttle model". A throttled queue stays queued. A
//! task that is picked from it gets a piece of work that it does when it returns to user mode: it leaves the queue and
//! is put aside until the queue has runtime again.

use crate::fair::entity::{EntityId, Flags, Leave, QueueId};
use crate::fair::rqs::Runqueues;
use crate::fair::{Discipline, Fair};
use schedlab_base::CpuId;
use schedlab_sim::{Core, Enqueue};

impl Runqueues {
    /// The tasks that the throttled groups of a CPU have put aside.
    pub(in crate::fair) fn put_aside(&self, cpu: CpuId) -> impl Iterator<Item = EntityId> + '_ {
        self.aside.iter().skip(cpu as usize).step_by(self.cpus as usize).flatten().copied()
    }

    /// Takes a task off its group's list (`dequeue_throttled_task`). A task that migrates goes on the list of its new
    /// queue if that is throttled too.
    pub(in crate::fair) fn take_from_aside(&mut self, e: EntityId, migrates: bool) {
        let q = self.entities[e as usize].queue;
        self.aside[q as usize].retain(|other| *other != e);
        self.entities[e as usize].flags.set(Flags::ASIDE, migrates);
    }
}

impl<D: Discipline> Fair<D> {
    /// The running task returns to user mode. If its group is still throttled, it is put aside
    /// (`throttle_cfs_rq_work`).
    #[cold]
    pub(in crate::fair) fn returns_to_user(&mut self, cx: &mut Core, e: EntityId) {
        let entity = &mut self.rqs.entities[e as usize];
        entity.flags.set(Flags::MUST_LEAVE, false);
        let (q, queued) = (entity.queue, entity.on_rq);
        if !queued || self.rqs.queues[q as usize].throttle_count == 0 {
            return;
        }
        let (cpu, p) = (self.rqs.cpu_of(q), e - self.rqs.first_task);
        self.pelt.util_est.remove(cpu, p);
        self.pelt.update_util_est(&self.rqs, cx, cpu, p);
        self.dequeue(cx, e, Leave::THROTTLE);
        self.rqs.aside[q as usize].push(e);
        self.rqs.entities[e as usize].flags.set(Flags::ASIDE, true);
    }

    /// Whether a task that was put aside, and now comes to another queue, is put aside there as well
    /// (`enqueue_throttled_task`).
    #[cold]
    pub(in crate::fair) fn stays_aside(&mut self, e: EntityId) -> bool {
        let q = self.rqs.entities[e as usize].queue;
        let stays = self.rqs.queues[q as usize].throttle_count > 0;
        self.rqs.entities[e as usize].flags.set(Flags::ASIDE, stays);
        if stays {
            self.rqs.aside[q as usize].push(e);
        }
        stays
    }

    /// Enqueues the tasks of queues that are no longer throttled, those of nested groups first, and in each the one
    /// first that was put aside last (`tg_unthrottle_up`).
    pub(super) fn put_back_from_aside(&mut self, cx: &mut Core, queues: &[QueueId]) {
        for &q in queues.iter().rev().filter(|q| self.rqs.queues[**q as usize].throttle_count == 0).collect::<Vec<_>>()
        {
            for e in std::mem::take(&mut self.rqs.aside[q as usize]).into_iter().rev() {
                self.rqs.entities[e as usize].flags.set(Flags::ASIDE, false);
                self.pelt.util_est.add(self.rqs.cpu_of(q), e - self.rqs.first_task);
                self.enqueue(cx, e, Enqueue::Wakeup);
            }
        }
    }
}
