//! The queues as the balancer sees them and as they can be shown.

use super::{Class, Mlfq, TOP};
use crate::balance::{Balancer, Queues};
use schedlab_base::CpuId;
use schedlab_sim::{Choice, Core, Decision, TaskId, View};

/// The load of one task in the balancer's eyes.
const LOAD_SCALE: u64 = 128;

impl Mlfq {
    /// The tasks of a CPU, best level first, each level from its head.
    pub(super) fn in_order(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let array = &self.rqs[cpu as usize].array;
        let lists = std::iter::successors(array.level_from(0), |list| array.level_from(list + 1));
        lists.flat_map(|list| std::iter::successors(array.head(list), |p| self.links.after(*p)))
    }

    /// Whom the balancer may move from `from` to `to`: the last of the best level that may run there.
    fn movable(&self, cx: &Core, from: CpuId, to: CpuId) -> Option<TaskId> {
        let array = &self.rqs[from as usize].array;
        let lists = std::iter::successors(array.level_from(0), |list| array.level_from(list + 1));
        let mut tasks = lists.flat_map(|list| std::iter::successors(array.last(list), |p| self.links.before(*p)));
        tasks.find(|p| cx.curr(from) != Some(*p) && cx.task(*p).allowed.contains(to))
    }

    /// A CPU's levels, as they can be shown.
    pub(super) fn show(&self, cx: &Core, cpu: CpuId) -> View {
        let task = |p: TaskId| {
            let t = &self.tasks[p as usize];
            View::Map(vec![
                ("task", View::Task(p)),
                ("level", t.list.filter(|list| *list >= TOP).map(|_| u32::from(t.level)).into()),
                ("time_slice_ticks", t.time_slice.into()),
            ])
        };
        View::Map(vec![
            ("curr", cx.curr(cpu).map_or(View::Nothing, View::Task)),
            ("nr_running", self.nr_running(cpu).into()),
            ("boosts", self.rqs[cpu as usize].boosts.into()),
            ("queue", View::List(self.in_order(cpu).map(task).collect())),
        ])
    }

    pub(super) fn explain_pick(&self, cx: &mut Core, cpu: CpuId, next: Option<TaskId>) {
        cx.explain(|_| {
            let numbers = self.in_order(cpu).map(|p| self.place(p)).collect();
            let over = self.in_order(cpu).filter(|p| Some(*p) != next).collect();
            let rule = if next.is_some() { "the first task of the best level" } else { "no level has a task" };
            Decision { time: 0, cpu, choice: Choice::Pick, who: next, over, rule, numbers }
        });
    }
}

impl Mlfq {
    /// The level of a task, or its real-time priority, as a reason.
    pub(super) fn place(&self, p: TaskId) -> (Option<TaskId>, &'static str, i64) {
        let t = &self.tasks[p as usize];
        match t.list.filter(|list| *list < TOP) {
            Some(list) => (Some(p), "real_time_priority", i64::from(TOP - 1 - list)),
            None => (Some(p), "level", i64::from(t.level)),
        }
    }

    /// The slice of `p` is used up, and it stands where it goes.
    pub(super) fn explain_turn(&self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        cx.explain(|_| {
            let t = &self.tasks[p as usize];
            let left = (Some(p), "time_slice_ticks", i64::from(t.time_slice));
            let level = (t.class == Class::Other).then_some((Some(p), "level", i64::from(t.level)));
            let rule = match t.class {
                Class::Other => "its slice is used up: down one level, with a new slice",
                Class::Fifo | Class::Rr => "its slice of the round is used up: behind its equals",
            };
            let numbers = level.into_iter().chain([left]).collect();
            Decision { time: 0, cpu, choice: Choice::TurnEnds, who: Some(p), over: Vec::new(), rule, numbers }
        });
    }
}

impl Queues for Mlfq {
    fn balancer(&mut self) -> &mut Option<Balancer> {
        &mut self.balancer
    }

    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rqs[cpu as usize].array.nr_active()
    }

    fn load(&self, cpu: CpuId) -> u64 {
        u64::from(self.nr_running(cpu)) * LOAD_SCALE
    }

    fn pull(&mut self, cx: &mut Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        if max_load < LOAD_SCALE {
            return None;
        }
        let p = self.movable(cx, from, to)?;
        self.take(from, p);
        cx.set_task_cpu(p, to);
        self.arrive(cx, to, p);
        self.preempt_if_better(cx, to, p);
        cx.touch(from);
        cx.touch(to);
        Some(p)
    }
}
