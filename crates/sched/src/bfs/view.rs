//! Inspection of the queue, and the explanations of its picks.

use super::Bfs;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Choice, Core, Decision, TaskId, View};

impl Bfs {
    /// Returns the time left until a deadline, in us; negative if the deadline has passed.
    pub(super) fn until_us(&self, now: Nanos, deadline: Nanos) -> i64 {
        (deadline as i64 - self.rules.niffies(now) as i64) / 1000
    }

    fn view_task(&self, now: Nanos, p: TaskId) -> View {
        let t = self.task(p);
        View::Map(vec![
            ("task", View::Task(p)),
            ("prio", u32::from(t.prio).into()),
            ("time_slice_us", t.time_slice.into()),
            ("deadline_us", self.until_us(now, t.deadline).into()),
            ("sticky", t.sticky.into()),
        ])
    }

    /// Shows what a CPU runs, and the queue that all CPUs share.
    pub(super) fn view_queue(&self, cx: &Core, cpu: CpuId) -> View {
        let (now, rq) = (cx.now(), &self.rqs[cpu as usize]);
        View::Map(vec![
            ("curr", cx.curr(cpu).map_or(View::Nothing, View::Task)),
            ("running", cx.curr(cpu).map_or(View::Nothing, |p| self.view_task(now, p))),
            ("dither", rq.dither.into()),
            ("sticky_task", rq.sticky.map_or(View::Nothing, View::Task)),
            ("queue", View::List(self.queue.iter().map(|p| self.view_task(now, p)).collect())),
        ])
    }

    pub(super) fn explain_pick(&self, cx: &mut Core, cpu: CpuId, next: Option<TaskId>) {
        cx.explain(|cx| {
            let over: Vec<_> = self.queue.iter().collect();
            let deadline = |p: TaskId| (Some(p), "deadline_us", self.until_us(cx.now(), self.task(p).deadline));
            let numbers: Vec<_> = next.into_iter().chain(over.iter().copied()).map(deadline).collect();
            let rule = if next.is_some() {
                "the earliest deadline of the best priority, as this CPU counts those that stick elsewhere"
            } else {
                "no waiting task may run here"
            };
            Decision::new(cpu, Choice::Pick, next, rule).over(over).numbers(numbers)
        });
    }
}
