//! Virtual time: the average of a queue, eligibility, deadlines, and where entities are placed.

use super::Eevdf;
use crate::fair::Fair;
use crate::fair::entity::{EntityId, Flags, QueueId};
use crate::fair::load::Arithmetic;
use crate::fair::timeline::before;
use schedlab_base::Nanos;

impl Fair<Eevdf> {
    /// The virtual runtime of an entity relative to the origin of the sums, in ns (`entity_key`).
    #[inline]
    pub(super) fn key(&self, q: QueueId, e: EntityId) -> i64 {
        self.rqs.entities[e as usize].vruntime.wrapping_sub(self.rqs.queues[q as usize].min_vruntime) as i64
    }

    /// The weight of an entity.
    #[inline]
    pub(super) fn weight(&self, e: EntityId) -> i64 {
        self.rqs.entities[e as usize].load.weight() as i64
    }

    /// The sums of `(vruntime - min_vruntime) * weight` and of `weight`, over the tree and the running entity.
    #[inline]
    pub(super) fn sums(&self, q: QueueId) -> (i64, i64) {
        let queue = &self.rqs.queues[q as usize];
        self.rqs.queued_curr(q).map_or((queue.sum, queue.weight), |e| {
            let w = self.weight(e);
            (queue.sum.wrapping_add(self.key(q, e).wrapping_mul(w)), queue.weight + w)
        })
    }

    /// The virtual time of the ideal CPU. Unlike [`Fair::average`], it does not move the origin of the sums.
    pub(super) fn average_now(&self, q: QueueId) -> u64 {
        let (sum, weight) = self.sums(q);
        let delta = if weight > 0 { sum.div_euclid(weight) } else { 0 };
        self.rqs.queues[q as usize].min_vruntime.wrapping_add(delta as u64)
    }

    /// The virtual time of the ideal CPU, rounded down (`avg_vruntime`). Moves the origin of the sums there.
    #[inline]
    pub(super) fn average(&mut self, q: QueueId) -> u64 {
        let (sum, weight) = self.sums(q);
        let queue = &mut self.rqs.queues[q as usize];
        if weight > 0 {
            let delta = sum.div_euclid(weight);
            queue.sum = queue.sum.wrapping_sub(queue.weight.wrapping_mul(delta));
            queue.min_vruntime = queue.min_vruntime.wrapping_add(delta as u64);
        }
        queue.min_vruntime
    }

    /// Whether an entity with this virtual runtime is eligible.
    #[inline]
    pub(super) fn is_eligible(&self, q: QueueId, vruntime: u64) -> bool {
        let (sum, weight) = self.sums(q);
        let key = vruntime.wrapping_sub(self.rqs.queues[q as usize].min_vruntime) as i64;
        i128::from(sum) >= i128::from(key) * i128::from(weight)
    }

    /// Whether an entity is eligible (`entity_eligible`).
    #[inline]
    pub(super) fn eligible(&self, q: QueueId, e: EntityId) -> bool {
        self.is_eligible(q, self.rqs.entities[e as usize].vruntime)
    }

    /// The slices of the queued entities, including the running one.
    pub(super) fn slices(&self, q: QueueId) -> impl Iterator<Item = Nanos> + '_ {
        let queue = &self.rqs.queues[q as usize];
        let waiting = std::iter::successors(queue.tree.first(), |e| queue.tree.next(&self.rqs.arena, *e));
        self.rqs.queued_curr(q).into_iter().chain(waiting).map(|e| self.rqs.entities[e as usize].slice())
    }

    /// The longest slice of the queued entities (`cfs_rq_max_slice`).
    #[inline]
    fn longest_slice(&self, q: QueueId) -> Nanos {
        if self.d.customs { self.slices(q).max().unwrap_or(0) } else { self.d.base_slice }
    }

    /// How far an entity is behind the average, within its limit (`entity_lag`).
    #[inline]
    pub(super) fn lag(&self, average: u64, e: EntityId) -> i64 {
        let entity = &self.rqs.entities[e as usize];
        let most = if self.d.features.lag_by_longest {
            self.longest_slice(entity.queue) + self.d.tick
        } else {
            (2 * entity.slice()).max(self.d.tick)
        };
        let limit = self.virtual_time(e, most) as i64;
        (average.wrapping_sub(entity.vruntime) as i64).clamp(-limit, limit)
    }

    /// Stores the lag of an entity that leaves its queue (`update_entity_lag`).
    pub(super) fn update_lag(&mut self, q: QueueId, e: EntityId) {
        let average = self.average(q);
        self.rqs.entities[e as usize].vlag = self.lag(average, e);
    }

    /// Renews a request that has been consumed (`update_deadline`). Returns whether it was.
    #[inline]
    pub(super) fn update_deadline(&mut self, q: QueueId, e: EntityId) -> bool {
        let base = self.d.base_slice;
        let entity = &mut self.rqs.entities[e as usize];
        if before(entity.vruntime, entity.deadline) {
            return false;
        }
        if !entity.flags.has(Flags::OWN_SLICE) {
            entity.set_slice(base);
        }
        entity.deadline =
            entity.vruntime.wrapping_add(entity.load.get().virtual_time(entity.slice(), Arithmetic::Calc));
        self.average(q);
        true
    }

    /// Places an entity on the queue with the lag that it had when it left (`place_entity`).
    #[inline]
    pub(super) fn place(&mut self, q: QueueId, e: EntityId, initial: bool) {
        let average = self.average(q);
        if !self.rqs.entities[e as usize].flags.has(Flags::OWN_SLICE) {
            self.rqs.entities[e as usize].set_slice(self.d.base_slice);
        }
        let mut vslice = self.virtual_time(e, self.rqs.entities[e as usize].slice());
        let mut lag = 0;
        if self.d.features.place_lag && self.rqs.queues[q as usize].nr_queued > 0 {
            let load = self.sums(q).1.max(1);
            // Adding the entity moves the average, so the lag is inflated to be the same as before once it is queued.
            lag = self.rqs.entities[e as usize].vlag.wrapping_mul(load + self.weight(e)) / load;
        }
        let entity = &mut self.rqs.entities[e as usize];
        entity.vruntime = average.wrapping_sub(lag as u64);
        if self.d.features.protects_least_slice {
            entity.is_placed();
        }
        if entity.flags.take(Flags::RELATIVE) {
            entity.deadline = entity.deadline.wrapping_add(entity.vruntime);
            return;
        }
        if self.d.features.place_deadline_initial && initial {
            vslice /= 2;
        }
        entity.deadline = entity.vruntime.wrapping_add(vslice);
    }

    /// Marks a task as delayed, or no longer delayed, and updates the counts of its groups (`set_delayed`,
    /// `clear_delayed`).
    pub(super) fn set_delayed(&mut self, e: EntityId, delayed: bool) {
        self.rqs.entities[e as usize].delayed = delayed;
        if e < self.rqs.first_task {
            return;
        }
        let mut at = Some(e);
        while let Some(x) = at {
            let queue = &mut self.rqs.queues[self.rqs.entities[x as usize].queue as usize];
            queue.h_nr_delayed = queue.h_nr_delayed + u32::from(delayed) - u32::from(!delayed);
            if queue.cut_off {
                return;
            }
            at = self.rqs.parent(x);
        }
    }

    /// Clears an entity, and its groups on its account, as next buddies of their queues.
    #[inline]
    pub(super) fn clear_buddies(&mut self, e: EntityId) {
        let mut at = Some(e);
        while let Some(x) = at {
            let queue = &mut self.rqs.queues[self.rqs.entities[x as usize].queue as usize];
            if queue.next != Some(x) {
                return;
            }
            queue.next = None;
            at = self.rqs.parent(x);
        }
    }
}
