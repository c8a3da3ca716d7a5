//! The buddies of a queue: the pick that prefers them, and the wake-ups that set them.

use super::Cfs;
use crate::fair::Fair;
use crate::fair::entity::{Entity, EntityId, QueueId};
use crate::fair::timeline::before;
use schedlab_sim::program::Policy;
use schedlab_sim::{Core, Enqueue};

impl Fair<Cfs> {
    /// Clears an entity, and its groups on its account, as buddies of their queues.
    #[inline(always)]
    pub(super) fn clear_buddies(&mut self, e: EntityId) {
        let Entity { queue: q, depth, .. } = self.rqs.entities[e as usize];
        let queue = &self.rqs.queues[q as usize];
        let mine = Some(e);
        if depth > 0 || queue.next == mine || queue.last == mine || queue.skip == mine {
            self.clear_buddies_above(e);
        }
    }

    fn clear_buddies_above(&mut self, e: EntityId) {
        // 2.6.32 visits every level. Later kernels stop at the first level where the entity is not the buddy.
        let every = !self.d.rules.buddy_on_preempt;
        let (mut next, mut last, mut skip) = (true, true, true);
        let mut at = Some(e);
        while let Some(x) = at {
            let queue = &mut self.rqs.queues[self.rqs.entities[x as usize].queue as usize];
            for (going, buddy) in
                [(&mut next, &mut queue.next), (&mut last, &mut queue.last), (&mut skip, &mut queue.skip)]
            {
                if *going && *buddy == Some(x) {
                    *buddy = None;
                } else if !every {
                    *going = false;
                }
            }
            if !(next || last || skip) {
                return;
            }
            at = self.rqs.parent(x);
        }
    }

    /// Makes an entity and its groups the next buddies of their queues (`set_next_buddy`).
    pub(super) fn set_next_buddy(&mut self, e: EntityId) {
        self.set_buddy(e, |queue, e| queue.next = Some(e));
    }

    fn set_last_buddy(&mut self, e: EntityId) {
        self.set_buddy(e, |queue, e| queue.last = Some(e));
    }

    fn set_buddy(&mut self, e: EntityId, set: impl Fn(&mut crate::fair::entity::Queue, EntityId)) {
        let mut at = Some(e);
        while let Some(x) = at {
            let entity = &self.rqs.entities[x as usize];
            if !entity.on_rq || (self.d.rules.idle_gives_way && entity.idle) {
                return;
            }
            set(&mut self.rqs.queues[entity.queue as usize], x);
            at = self.rqs.parent(x);
        }
    }

    /// Makes an entity and its groups the skip buddies, which are passed over once.
    pub(super) fn set_skip_buddy(&mut self, e: EntityId) {
        let mut at = Some(e);
        while let Some(x) = at {
            self.rqs.queues[self.rqs.entities[x as usize].queue as usize].skip = Some(x);
            at = self.rqs.parent(x);
        }
    }

    /// The leftmost entity, unless a buddy is preferred. `curr` is the running entity if it takes part in the pick.
    #[inline]
    pub(super) fn pick_entity(&self, q: QueueId, curr: Option<EntityId>) -> Option<EntityId> {
        let queue = &self.rqs.queues[q as usize];
        let v = |e: EntityId| self.rqs.entities[e as usize].vruntime;
        let sooner = |other: Option<EntityId>| match (curr, other) {
            (Some(c), Some(o)) => Some(if before(v(c), v(o)) { c } else { o }),
            (c, o) => o.or(c),
        };
        let left = sooner(queue.tree.first())?;
        let mut best = left;
        let fair = |e: EntityId| !self.should_preempt(e, left);
        if queue.skip == Some(left) {
            let second =
                if curr == Some(left) { queue.tree.first() } else { sooner(queue.tree.next(&self.rqs.arena, left)) };
            if let Some(second) = second.filter(|e| fair(*e)) {
                best = second;
            }
        }
        if let Some(next) = queue.next.filter(|e| fair(*e)) {
            best = next;
        } else if let Some(last) = queue.last.filter(|e| fair(*e)) {
            best = last;
        }
        Some(best)
    }

    /// Reschedules the CPU if `e`, which became runnable, preempts `curr` (`check_preempt_wakeup`).
    pub(super) fn check_preempt(&mut self, cx: &mut Core, curr: EntityId, e: EntityId, how: Enqueue) {
        let q = self.rqs.entities[curr as usize].queue;
        let (rules, cpu) = (self.d.rules, self.rqs.cpu_of(q));
        if !rules.buddy_on_preempt {
            self.update_curr(cx, q);
        }
        if curr == e || self.rqs.queues[self.rqs.entities[e as usize].queue as usize].throttle_count > 0 {
            return;
        }
        let scale = self.rqs.queues[q as usize].nr_queued >= self.d.nr_latency;
        let marked = rules.features.next_buddy && scale && how != Enqueue::New;
        if marked {
            self.set_next_buddy(e);
        }
        if rules.early_last_buddy && rules.features.last_buddy {
            self.set_last_buddy(curr);
        }
        if cx.need_resched(cpu) {
            return;
        }
        if self.wakes_into(cx, curr, e) {
            return cx.resched(cpu);
        }
        let Some(preempted) = self.who_gives_way(cx, curr, e, marked) else { return };
        cx.resched(cpu);
        let is_task = preempted >= self.rqs.first_task;
        if !rules.early_last_buddy && rules.features.last_buddy && scale && is_task {
            self.set_last_buddy(preempted);
        }
    }

    /// Whether `e` preempts `curr` whatever their virtual runtimes are (`WAKEUP_SYNC`, `WAKEUP_OVERLAP` and
    /// `WAKEUP_RUNNING` of 2.6.32).
    fn wakes_into(&mut self, cx: &Core, curr: EntityId, e: EntityId) -> bool {
        let on = self.d.rules.features;
        if !(on.wakeup_sync || on.wakeup_overlap || on.wakeup_running) {
            return false;
        }
        let [woken, running] = [e, curr].map(|e| e - self.rqs.first_task);
        if cx.task(woken).attributes.policy != Policy::Other || cx.task(running).attributes.policy == Policy::Idle {
            return false;
        }
        if on.wakeup_sync && cx.sync_waker().is_some() && self.places.features.sync_wakeups {
            return true;
        }
        if on.wakeup_overlap && [running, woken].iter().all(|p| self.places.sleeps_soon(*p)) {
            return true;
        }
        let shorter = on.wakeup_running && self.places.mean_run(woken) < self.places.mean_run(running);
        if shorter {
            self.set_next_buddy(e);
        }
        shorter
    }

    /// The entity that `e` preempts: the running task or one of its groups. `None` if it does not preempt.
    fn who_gives_way(&mut self, cx: &mut Core, curr: EntityId, e: EntityId, marked: bool) -> Option<EntityId> {
        let rules = self.d.rules;
        let policy = |e: EntityId| cx.task(e - self.rqs.first_task).attributes.policy;
        let idle = |e: EntityId| rules.idle_gives_way && policy(e) == Policy::Idle;
        let batch = policy(e) == Policy::Batch;
        if idle(curr) && !idle(e) && (rules.idle_gives_way_to_batch || !batch) {
            return Some(curr);
        }
        if idle(e) || batch || !rules.features.wakeup_preemption {
            return None;
        }
        let (se, pse) = self.rqs.matching(curr, e);
        let (curr_idle, idle) = (self.rqs.entities[se as usize].idle, self.rqs.entities[pse as usize].idle);
        if rules.idle_gives_way && curr_idle != idle {
            return curr_idle.then_some(se);
        }
        if rules.buddy_on_preempt {
            self.update_curr(cx, self.rqs.entities[se as usize].queue);
        }
        if !self.should_preempt(se, pse) {
            return None;
        }
        if rules.buddy_on_preempt && !marked {
            self.set_next_buddy(pse);
        }
        Some(se)
    }
}
