//! Explanations: the rule and the numbers of each pick, wake-up, end of a turn and throttling, if they are requested.
//!
//!
//! A group has no task id, so its numbers are reported for the queue.

use super::entity::{EntityId, QueueId};
use super::{Discipline, Fair};
use schedlab_base::CpuId;
use schedlab_sim::{Choice, Core, Decision, TaskId};

/// The maximum number of waiting tasks that an explanation names.
const NAMED: usize = 6;

/// The reasons of a pick, collected while it descends the hierarchy.
#[derive(Debug, Default)]
pub(super) struct Why {
    rule: &'static str,
    over: Vec<TaskId>,
    numbers: Vec<(Option<TaskId>, &'static str, i64)>,
}

impl<D: Discipline> Fair<D> {
    fn numbers_of(&self, q: QueueId, e: EntityId, all: &mut Vec<(Option<TaskId>, &'static str, i64)>) {
        all.extend(D::numbers(self, q, e).map(|(what, number)| (self.rqs.task(e), what, number)));
    }

    /// Records why `picked` is the best entity of a queue. `curr` is the running entity if it takes part.
    pub(super) fn note_pick(&mut self, q: QueueId, curr: Option<EntityId>, picked: EntityId) {
        let mut others: Vec<EntityId> = curr.into_iter().collect();
        let mut at = self.rqs.queues[q as usize].tree.first();
        while let Some(e) = at.filter(|_| others.len() < NAMED) {
            others.push(e);
            at = self.rqs.queues[q as usize].tree.next(&self.rqs.arena, e);
        }
        others.retain(|e| *e != picked);
        let mut why = std::mem::take(&mut self.why);
        if others.is_empty() {
            if why.rule.is_empty() {
                why.rule = "the only one";
            }
        } else {
            why.rule = D::pick_rule(self, q, curr, picked);
            for e in std::iter::once(picked).chain(others.iter().copied()) {
                self.numbers_of(q, e, &mut why.numbers);
            }
            why.over.extend(others.iter().filter_map(|e| self.rqs.task(*e)));
        }
        self.why = why;
    }

    /// Discards the reasons because the pick starts again.
    pub(super) fn forget_reasons(&mut self) {
        self.why = Why::default();
    }

    /// Explains why a task was picked.
    #[inline]
    pub(super) fn explain_pick(&mut self, cx: &mut Core, cpu: CpuId, next: Option<EntityId>) {
        if cx.explaining() {
            self.record_pick(cx, cpu, next);
        }
    }

    #[cold]
    fn record_pick(&mut self, cx: &mut Core, cpu: CpuId, next: Option<EntityId>) {
        let Why { rule, over, numbers } = std::mem::take(&mut self.why);
        let rule = if next.is_none() { "no task is queued" } else { rule };
        let who = next.and_then(|e| self.rqs.task(e));
        cx.explain(|_| Decision { time: 0, cpu, choice: Choice::Pick, who, over, rule, numbers });
    }

    /// Explains why a task that became runnable preempts or does not. `before` says that the CPU was already to
    /// reschedule.
    #[inline]
    pub(super) fn explain_wakeup(&self, cx: &mut Core, cpu: CpuId, curr: EntityId, e: EntityId, before: bool) {
        if cx.explaining() {
            self.record_wakeup(cx, cpu, curr, e, before);
        }
    }

    #[cold]
    fn record_wakeup(&self, cx: &mut Core, cpu: CpuId, curr: EntityId, e: EntityId, before: bool) {
        let preempts = !before && cx.will_resched(cpu);
        cx.explain(|_| {
            let throttled = self.rqs.is_cut_off(self.rqs.entities[e as usize].queue);
            let mut numbers = Vec::new();
            let rule = if throttled {
                "its group is throttled"
            } else if before {
                "the CPU reschedules already"
            } else {
                let (se, pse) = self.rqs.matching(curr, e);
                let q = self.rqs.entities[se as usize].queue;
                self.numbers_of(q, pse, &mut numbers);
                self.numbers_of(q, se, &mut numbers);
                D::wakeup_rule(self, se, pse, preempts, &mut numbers)
            };
            let choice = if preempts { Choice::Preempt } else { Choice::Wait };
            let over = self.rqs.task(curr).into_iter().collect();
            Decision { time: 0, cpu, choice, who: self.rqs.task(e), over, rule, numbers }
        });
    }

    /// Explains why the turn of an entity of a queue ends.
    #[inline]
    pub(super) fn explain_turn(&self, cx: &mut Core, q: QueueId, e: EntityId, rule: &'static str, slice: Option<u64>) {
        if cx.explaining() {
            self.record_turn(cx, q, e, rule, slice);
        }
    }

    #[cold]
    fn record_turn(&self, cx: &mut Core, q: QueueId, e: EntityId, rule: &'static str, slice: Option<u64>) {
        cx.explain(|_| {
            let entity = &self.rqs.entities[e as usize];
            let mut numbers = vec![(self.rqs.task(e), "ran_ns", (entity.sum_exec - entity.prev_sum_exec) as i64)];
            numbers.extend(slice.map(|slice| (self.rqs.task(e), "slice_ns", slice as i64)));
            self.numbers_of(q, e, &mut numbers);
            let cpu = self.rqs.cpu_of(q);
            let who = self.rqs.running[cpu as usize].and_then(|e| self.rqs.task(e));
            Decision { time: 0, cpu, choice: Choice::TurnEnds, who, over: Vec::new(), rule, numbers }
        });
    }

    /// Explains that a group's queue has been throttled or unthrottled.
    pub(super) fn explain_throttle(&self, cx: &mut Core, q: QueueId, rule: &'static str) {
        cx.explain(|_| {
            let queue = &self.rqs.queues[q as usize];
            let numbers = vec![(None, "runtime_left_ns", queue.runtime), (None, "tasks", i64::from(queue.h_nr))];
            let cpu = self.rqs.cpu_of(q);
            Decision { time: 0, cpu, choice: Choice::Throttle, who: None, over: Vec::new(), rule, numbers }
        });
    }
}
