//! Which entity runs: the pick, the protection of the running entity, and the wake-ups that preempt it.

use super::Eevdf;
use crate::fair::Fair;
use crate::fair::entity::{Entity, EntityId, QueueId};
use crate::fair::timeline::before;
use schedlab_base::Nanos;
use schedlab_sim::Core;
use schedlab_sim::program::Policy;

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
}

impl Fair<Eevdf> {
    /// The eligible entity with the earliest virtual deadline (`pick_eevdf`). `running` is the running entity if it is
    /// queued.
    #[inline]
    pub(super) fn pick_eevdf(&self, q: QueueId, running: Option<EntityId>) -> Option<EntityId> {
        let queue = &self.rqs.queues[q as usize];
        if queue.nr_queued == 1 {
            return running.or(queue.tree.first());
        }
        let (sum, weight) = self.sums(q);
        let holds =
            |v: u64| i128::from(sum) >= i128::from(v.wrapping_sub(queue.min_vruntime) as i64) * i128::from(weight);
        let curr = running.filter(|e| holds(self.rqs.entities[*e as usize].vruntime));
        if let Some(e) = curr
            && self.d.features.run_to_parity
            && self.rqs.entities[e as usize].is_protected()
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

    /// Whether the running entity has lost its protection, so that it can be preempted once it is not eligible.
    #[inline]
    pub(super) fn lost(&self, e: EntityId) -> bool {
        self.d.features.preempt_short && !self.rqs.entities[e as usize].is_protected()
    }

    /// The earliest time at which the running entity has consumed its request.
    #[inline]
    pub(super) fn consumed_at(&self, e: EntityId) -> Nanos {
        let entity = &self.rqs.entities[e as usize];
        let left = entity.deadline.wrapping_sub(entity.vruntime) as i64;
        entity.exec_start.saturating_add(entity.load.real_time_at_least(left.max(0) as Nanos))
    }

    /// Whether the woken `e`, with a shorter slice, overrides the running entity's protection (`do_preempt_short`).
    fn overrides(&self, q: QueueId, e: EntityId, curr: EntityId) -> bool {
        let (pse, se) = (&self.rqs.entities[e as usize], &self.rqs.entities[curr as usize]);
        self.d.features.preempt_short
            && pse.slice < se.slice
            && self.eligible(q, e)
            && (before(pse.deadline, se.deadline) || !self.eligible(q, curr))
    }

    /// Reschedules the CPU if `e`, which became runnable, would be picked instead of `curr`
    /// (`check_preempt_wakeup_fair`).
    pub(super) fn check_preempt(&mut self, cx: &mut Core, curr: EntityId, e: EntityId) {
        let cpu = self.rqs.cpu_of(self.rqs.entities[curr as usize].queue);
        let there = self.rqs.entities[e as usize].queue;
        if curr == e
            || self.rqs.queues[there as usize].throttle_count > 0
            || cx.need_resched(cpu)
            || !self.d.features.wakeup_preemption
        {
            return;
        }
        let (se, pse) = self.rqs.matching(curr, e);
        let (curr_idle, idle) = (self.rqs.entities[se as usize].idle, self.rqs.entities[pse as usize].idle);
        if curr_idle && !idle {
            if self.d.features.idle_loses_protection {
                self.rqs.entities[se as usize].cancel_protection();
            }
            cx.resched(cpu);
            return;
        }
        if curr_idle != idle || cx.task(e - self.rqs.first_task).attributes.policy != Policy::Other {
            return;
        }
        let q = self.rqs.entities[se as usize].queue;
        self.update_curr(cx, q);
        if self.overrides(q, pse, se) {
            self.rqs.entities[se as usize].cancel_protection();
        }
        if self.pick_eevdf(q, self.rqs.queued_curr(q)) == Some(pse) {
            cx.resched(cpu);
        }
    }
}
