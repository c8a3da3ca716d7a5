//! How the deadline class uses the [high-resolution tick](crate::classes::hrtick): a timer ends budgets.
//!
//! # Reference
//! `start_hrtick_dl`, `set_next_task_dl` and `task_tick_dl` in kernel/sched/deadline.c of 4.1 to 6.18.

use super::Deadline;
use crate::classes::hrtick;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

impl Deadline {
    /// The class, with a timer that ends budgets if `on` says so. `restarts` says that it is started anew for a task
    /// that is picked again.
    #[must_use]
    pub fn ticking(self, on: bool, restarts: bool) -> Self {
        Self { hrtick: (on, restarts), ..self }
    }

    /// Starts the timer for the task that was picked, unless it just goes on.
    pub(super) fn picked_hrtick(&self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>, next: TaskId) {
        let (on, restarts) = self.hrtick;
        if on && (restarts || prev != Some(next)) {
            self.start_hrtick(cx, cpu, next);
        }
    }

    /// Starts the timer for what is left of a task's budget.
    fn start_hrtick(&self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let left = self.e(self.entity(p)).runtime;
        hrtick::start(cx, cpu, (left.max(0) as Nanos).max(hrtick::SHORTEST));
    }

    /// The timer has expired. A task whose budget is used up has asked to reschedule, and the next task's timer starts
    /// then.
    pub(super) fn hrtick_expired(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
        if let Some(p) = self.rq(cpu).curr
            && self.hrtick.0
            && self.e(self.entity(p)).runtime > 0
            && self.rq(cpu).queue.first() == Some(&self.entity(p))
        {
            self.start_hrtick(cx, cpu, p);
        }
    }
}
