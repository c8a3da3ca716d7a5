//! The queues as the balancer sees them, their inspection, and explanations.

use super::Mlfq;
use crate::balance::Queues;
use schedlab_base::CpuId;
use schedlab_sim::{Choice, Core, Decision, TaskId, View};

/// The load of one task, for the balancer.
const LOAD_SCALE: u64 = 128;

impl Mlfq {
    /// Iterates over the tasks of a CPU, best level first, each level from its head.
    pub(super) fn in_order(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let array = &self.rqs[cpu as usize].array;
        let lists = std::iter::successors(array.level_from(0), |list| array.level_from(list + 1));
        lists.flat_map(|list| std::iter::successors(array.head(list), |p| self.links.after(*p)))
    }

    /// Shows a CPU's levels. The running task and the number of runnable tasks are part of every view.
    pub(super) fn view_queues(&self, cpu: CpuId) -> View {
        let task = |p: TaskId| {
            let t = &self.tasks[p as usize];
            View::Map(vec![
                ("task", View::Task(p)),
                ("level", u32::from(t.level).into()),
                ("time_slice_ticks", t.time_slice.into()),
            ])
        };
        View::Map(vec![
            ("boosts", self.rqs[cpu as usize].boosts.into()),
            ("queue", View::List(self.in_order(cpu).map(task).collect())),
        ])
    }

    pub(super) fn explain_pick(&self, cx: &mut Core, cpu: CpuId, next: Option<TaskId>) {
        cx.explain(|_| {
            let numbers = self.in_order(cpu).map(|p| self.place(p));
            let over = self.in_order(cpu).filter(|p| Some(*p) != next);
            let rule = if next.is_some() { "the first task of the best level" } else { "no level has a task" };
            Decision::new(cpu, Choice::Pick, next, rule).over(over).numbers(numbers)
        });
    }
}

impl Mlfq {
    /// Returns the level of a task, as a number for an explanation.
    pub(super) fn place(&self, p: TaskId) -> (Option<TaskId>, &'static str, i64) {
        (Some(p), "level", i64::from(self.tasks[p as usize].level))
    }

    /// Explains that the slice of `p` is used up, after `p` has moved to its new place.
    pub(super) fn explain_turn(&self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        cx.explain(|_| {
            let left = i64::from(self.tasks[p as usize].time_slice);
            Decision::new(cpu, Choice::TurnEnds, Some(p), "its slice is used up: down one level, with a new slice")
                .numbers([self.place(p), (Some(p), "time_slice_ticks", left)])
        });
    }
}

impl Queues for Mlfq {
    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rqs[cpu as usize].array.nr_active()
    }

    fn load(&self, cpu: CpuId) -> u64 {
        u64::from(self.nr_running(cpu)) * LOAD_SCALE
    }

    /// Returns the last task of the best level that may move.
    fn movable(&self, cx: &Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        if max_load < LOAD_SCALE {
            return None;
        }
        let array = &self.rqs[from as usize].array;
        let lists = std::iter::successors(array.level_from(0), |list| array.level_from(list + 1));
        let mut tasks = lists.flat_map(|list| std::iter::successors(array.last(list), |p| self.links.before(*p)));
        tasks.find(|p| cx.curr(from) != Some(*p) && cx.task(*p).allowed.contains(to))
    }
}
