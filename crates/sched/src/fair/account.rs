//! Accounting of the running entity (`update_curr`), and of entities that are enqueued, dequeued or reweighted.

use super::entity::{Entity, EntityId, QueueId};
use super::load::Load;
use super::{Discipline, Fair};
use schedlab_base::Nanos;
use schedlab_sim::Core;

impl<D: Discipline> Fair<D> {
    /// The virtual time of `delta` ns for an entity.
    #[inline]
    pub(super) fn virtual_time(&self, e: EntityId, delta: Nanos) -> Nanos {
        self.rqs.entities[e as usize].load.get().virtual_time(delta, self.d.arithmetic())
    }

    /// Charges a queue's running entity for the time up to `now`. Returns that time and whether the entity's turn ends;
    /// `None` if no time has passed.
    #[inline]
    pub(super) fn advance(&mut self, q: QueueId, now: Nanos) -> Option<(Nanos, bool)> {
        let e = self.rqs.queues[q as usize].curr?;
        let entity = &mut self.rqs.entities[e as usize];
        // Time that an interrupt takes is not charged, so the account can be ahead.
        let delta = now.checked_sub(entity.exec_start)?;
        if delta == 0 && !self.d.charges_nothing() {
            return None;
        }
        entity.exec_start = now;
        entity.sum_exec += delta;
        Some((delta, D::charge(self, q, e, delta)))
    }

    /// Updates the accounting of a queue's running entity (`update_curr`).
    #[inline(always)]
    pub(super) fn update_curr(&mut self, cx: &mut Core, q: QueueId) {
        let Some(e) = self.rqs.queues[q as usize].curr else { return };
        if self.rqs.entities[e as usize].exec_start != cx.now() || self.d.charges_nothing() {
            self.charge_curr(cx, q);
        }
    }

    fn charge_curr(&mut self, cx: &mut Core, q: QueueId) {
        let Some((delta, ended)) = self.advance(q, cx.now()) else { return };
        if self.rqs.queues[q as usize].limited {
            self.rqs.account_runtime(cx, q, delta);
        }
        if ended {
            if let Some(e) = self.rqs.queues[q as usize].curr {
                self.explain_turn(cx, q, e, self.d.charge_rule(), None);
            }
            cx.resched_lazy(self.rqs.cpu_of(q), false);
        }
    }

    /// Adds an entity to its queue's counts (`account_entity_enqueue`).
    #[inline]
    pub(super) fn count_in(&mut self, q: QueueId, e: EntityId, now: Nanos) {
        let entity = &mut self.rqs.entities[e as usize];
        entity.on_rq = true;
        let queue = &mut self.rqs.queues[q as usize];
        let old = queue.load.weight;
        queue.load.add(entity.load);
        queue.nr_queued += 1;
        queue.nr_idle += u32::from(entity.idle);
        if e >= self.rqs.first_task {
            self.rqs.tasks.add(self.rqs.cpu_of(q), e - self.rqs.first_task);
        }
        self.rqs.load_changed(q, old);
        self.pelt.enqueue(&self.rqs, q, e, now);
        self.pelt.note_cpu_load(&self.rqs, q, now);
    }

    /// Removes an entity from its queue's counts (`account_entity_dequeue`).
    #[inline]
    pub(super) fn count_out(&mut self, q: QueueId, e: EntityId, now: Nanos) {
        let entity = &mut self.rqs.entities[e as usize];
        entity.on_rq = false;
        let queue = &mut self.rqs.queues[q as usize];
        let old = queue.load.weight;
        queue.load.sub(entity.load);
        queue.nr_queued -= 1;
        queue.nr_idle -= u32::from(entity.idle);
        if e >= self.rqs.first_task {
            self.rqs.tasks.remove(self.rqs.cpu_of(q), e - self.rqs.first_task);
        }
        self.rqs.load_changed(q, old);
        self.pelt.dequeue(&self.rqs, q, e, now);
        self.pelt.note_cpu_load(&self.rqs, q, now);
    }

    /// Changes the weight of an entity, and of its queue if it is queued.
    pub(super) fn set_load(&mut self, e: EntityId, load: Load, now: Nanos) {
        let Entity { queue: q, on_rq, load: old, .. } = self.rqs.entities[e as usize];
        self.rqs.entities[e as usize].load = load.into();
        self.pelt.reweight(&self.rqs, q, e, load.weight as f64 - old.weight() as f64, now);
        if on_rq {
            let queue = &mut self.rqs.queues[q as usize];
            let sum = queue.load.weight;
            queue.load.sub(old);
            queue.load.add(load.into());
            self.rqs.load_changed(q, sum);
            self.pelt.note_cpu_load(&self.rqs, q, now);
        }
    }
}
