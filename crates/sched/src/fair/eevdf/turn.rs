//! Which entity runs: the pick, the protection of the running entity, and the wake-ups that preempt it.

use super::Eevdf;
use crate::fair::entity::{Entity, EntityId, QueueId};
use crate::fair::timeline::before;
use crate::fair::{Discipline, Fair};
use schedlab_base::Nanos;
use schedlab_sim::program::Policy;
use schedlab_sim::{Core, Enqueue};

/// `normalized_sysctl_sched_base_slice`, in ns.
const NORMALIZED_BASE_SLICE: Nanos = 700_000;

/// A lag, taken for a virtual runtime, is as long ago as the CPU has run tasks: at least 18 minutes, in ns.
const LONG_AGO: u64 = 1 << 40;

impl Entity {
    /// Protects the slice of an entity that starts to run (`set_protect_slice`): it keeps its CPU until its deadline
    /// changes. As in the kernel, that is also so if the deadline changes because the weight of a group's entity does.
    #[inline]
    pub(super) fn protect(&mut self) {
        self.vlag = self.deadline as i64;
    }

    /// Whether the slice of the running entity is still protected (`protect_slice`).
    #[inline]
    pub(super) fn is_protected(&self) -> bool {
        self.vlag == self.deadline as i64
    }

    /// Ends the protection of the running entity's slice (`cancel_protect_slice`).
    pub(super) fn cancel_protection(&mut self) {
        if self.is_protected() {
            self.vlag = self.deadline.wrapping_add(1) as i64;
        }
    }

    /// The virtual runtime up to which the running entity is protected, from 6.17 on.
    #[inline]
    fn protected_until(&self) -> u64 {
        self.vlag as u64
    }

    /// Notes that the entity has been placed, from 6.17 on. Its lag is then where a protection's end is (`union { vlag;
    /// vprot; }`), and stays there if the entity goes on to run without being picked, as after a change of its
    /// attributes: it is not protected.
    #[inline]
    pub(super) fn is_placed(&mut self) {
        self.vlag = self.vruntime.wrapping_sub(LONG_AGO) as i64;
    }
}

impl Fair<Eevdf> {
    /// Protects an entity that starts to run (`set_protect_slice`). From 6.17 on it is protected for the least slice of
    /// the entities beside it at most, or without `RUN_TO_PARITY` for a base slice.
    #[inline]
    pub(super) fn protect(&mut self, q: QueueId, e: EntityId) {
        self.rqs.entities[e as usize].protect();
        if !self.d.features.protects_least_slice {
            return;
        }
        let least = if self.d.features.run_to_parity { Eevdf::min_slice(self, q) } else { NORMALIZED_BASE_SLICE };
        if least < self.rqs.entities[e as usize].slice() {
            self.narrow_protection(e, least);
        }
    }

    /// Lets the protection of the running entity end after `slice` ns from now at the latest (`update_protect_slice`).
    fn narrow_protection(&mut self, e: EntityId, slice: Nanos) {
        let until = self.rqs.entities[e as usize].vruntime.wrapping_add(self.virtual_time(e, slice));
        let entity = &mut self.rqs.entities[e as usize];
        if before(until, entity.protected_until()) {
            entity.vlag = until as i64;
        }
    }

    /// Whether the slice of the running entity is still protected (`protect_slice`).
    #[inline]
    pub(super) fn is_protected(&self, e: EntityId) -> bool {
        let entity = &self.rqs.entities[e as usize];
        if self.d.features.protects_least_slice {
            before(entity.vruntime, entity.protected_until())
        } else {
            entity.is_protected()
        }
    }

    /// Ends the protection of the running entity's slice (`cancel_protect_slice`).
    fn cancel_protection(&mut self, e: EntityId) {
        if !self.d.features.protects_least_slice {
            self.rqs.entities[e as usize].cancel_protection();
        } else if self.is_protected(e) {
            let entity = &mut self.rqs.entities[e as usize];
            entity.vlag = entity.vruntime as i64;
        }
    }

    /// The eligible entity with the earliest virtual deadline (`pick_eevdf`). `running` is the running entity if it is
    /// queued; it keeps its CPU if its slice is protected, unless that is to be ignored.
    #[inline]
    pub(super) fn pick_eevdf(&self, q: QueueId, running: Option<EntityId>, protects: bool) -> Option<EntityId> {
        let queue = &self.rqs.queues[q as usize];
        if queue.nr_queued == 1 {
            return running.or(queue.tree.first());
        }
        let (sum, weight) = self.sums(q);
        let holds =
            |v: u64| i128::from(sum) >= i128::from(v.wrapping_sub(queue.min_vruntime) as i64) * i128::from(weight);
        let curr = running.filter(|e| holds(self.rqs.entities[*e as usize].vruntime));
        if let Some(e) = curr
            && protects
            && self.d.features.protects()
            && self.is_protected(e)
        {
            return curr;
        }
        let deadline = |e: EntityId| self.rqs.entities[e as usize].deadline;
        if self.d.features.tree_by_vruntime {
            return queue.tree.least_where(&self.rqs.arena, holds, curr.map(|e| (e, deadline(e))));
        }
        let best = queue.tree.first_where(&self.rqs.arena, holds);
        match (curr, best) {
            (Some(c), Some(b)) => Some(if before(deadline(c), deadline(b)) { c } else { b }),
            (c, b) => b.or(c),
        }
    }

    /// Whether the running entity must prove itself at each accounting: it is not protected, and until 6.16 it also has
    /// had more than its share, without which nothing could take its place (`did_preempt_short`).
    #[inline]
    pub(super) fn turn_is_open(&self, q: QueueId, e: EntityId) -> bool {
        if self.d.features.protects_least_slice {
            return !self.is_protected(e);
        }
        self.d.features.preempt_short && !self.is_protected(e) && !self.eligible(q, e)
    }

    /// The earliest time at which accounting alone could end the turn of the running entity.
    #[inline]
    pub(super) fn turn_ends_at(&self, e: EntityId) -> Nanos {
        let features = &self.d.features;
        let lost = (features.preempt_short || features.protects_least_slice) && !self.is_protected(e);
        if lost { 0 } else { self.consumed_at(e) }
    }

    /// The earliest time at which the running entity has consumed its request, or that part of it that is protected.
    #[inline]
    pub(super) fn consumed_at(&self, e: EntityId) -> Nanos {
        let entity = &self.rqs.entities[e as usize];
        let shorter = self.d.features.protects_least_slice && before(entity.protected_until(), entity.deadline);
        let until = if shorter { entity.protected_until() } else { entity.deadline };
        let left = until.wrapping_sub(entity.vruntime) as i64;
        entity.exec_start.saturating_add(entity.load.get().real_time_at_least(left.max(0) as Nanos))
    }

    /// Whether the woken `e`, with a shorter slice, overrides the running entity's protection (`do_preempt_short`).
    fn overrides(&self, q: QueueId, e: EntityId, curr: EntityId) -> bool {
        let (pse, se) = (&self.rqs.entities[e as usize], &self.rqs.entities[curr as usize]);
        self.d.features.preempt_short
            && pse.slice() < se.slice()
            && self.eligible(q, e)
            && (before(pse.deadline, se.deadline) || !self.eligible(q, curr))
    }

    /// Whether another CPU may have been asked to do the wake-up (`ttwu_queue_wakelist`).
    fn is_handed_over(&self, how: Enqueue) -> bool {
        how == Enqueue::Wakeup && self.d.features.ttwu_queue
    }

    /// Reschedules the CPU if `e`, which became runnable, would be picked instead of `curr`
    /// (`check_preempt_wakeup_fair`).
    pub(super) fn check_preempt(&mut self, cx: &mut Core, curr: EntityId, e: EntityId, how: Enqueue) {
        let cpu = self.rqs.cpu_of(self.rqs.entities[curr as usize].queue);
        let there = self.rqs.entities[e as usize].queue;
        if curr == e || self.rqs.is_cut_off(there) || cx.need_resched(cpu) || !self.d.features.wakeup_preemption {
            return;
        }
        let (se, pse) = self.rqs.matching(curr, e);
        let (curr_idle, idle) = (self.rqs.entities[se as usize].idle, self.rqs.entities[pse as usize].idle);
        if curr_idle && !idle {
            if self.d.features.idle_loses_protection {
                self.cancel_protection(se);
            }
            cx.resched_lazy(cpu, self.is_handed_over(how));
            return;
        }
        if curr_idle != idle || cx.task(e - self.rqs.first_task).attributes.policy != Policy::Other {
            return;
        }
        let q = self.rqs.entities[se as usize].queue;
        self.update_curr(cx, q);
        if self.d.features.protects_least_slice {
            return self.preempts_as_shorter(cx, q, (pse, se), how);
        }
        if self.overrides(q, pse, se) {
            self.cancel_protection(se);
        }
        if self.pick_eevdf(q, self.rqs.queued_curr(q), true) == Some(pse) {
            cx.resched_lazy(cpu, self.is_handed_over(how));
        }
    }

    /// Reschedules the CPU if the woken `e` would be picked, from 6.17 on. If its slice is shorter, the protection of
    /// `curr` does not count. If it is not picked all the same, the protection lasts for its slice at most.
    fn preempts_as_shorter(&mut self, cx: &mut Core, q: QueueId, (e, curr): (EntityId, EntityId), how: Enqueue) {
        let shorter = self.d.features.preempt_short
            && self.rqs.entities[e as usize].slice() < self.rqs.entities[curr as usize].slice();
        if self.pick_eevdf(q, self.rqs.queued_curr(q), !shorter) == Some(e) {
            if shorter {
                self.cancel_protection(curr);
            }
            cx.resched_lazy(self.rqs.cpu_of(q), self.is_handed_over(how));
        } else if shorter && self.d.features.run_to_parity {
            let least = Eevdf::min_slice(self, q);
            self.narrow_protection(curr, least);
        }
    }
}
