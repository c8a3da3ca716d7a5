//! Choosing a CPU for a queued task (an idle CPU, or the one whose task has the worst claim), and stickiness.

use super::rules::{Class, PRIO_LIMIT, RESCHED_US};
use super::{Bfs, Place};
use crate::balance::sync;
use schedlab_base::{CpuId, Looking};
use schedlab_sim::program::Start;
use schedlab_sim::{Choice, Core, Decision, TaskId};

impl Bfs {
    /// Signals the best idle CPU near `from` that `p` is allowed on and that `suits`. Returns `false` if there is none.
    pub(super) fn call_idle(
        &self,
        cx: &mut Core,
        p: TaskId,
        from: CpuId,
        suits: impl Fn(&Core, CpuId) -> bool,
    ) -> bool {
        let may = |cpu| cx.task(p).allowed.contains(cpu) && suits(cx, cpu);
        let idle = self.cpus.best_idle(from, may);
        if let Some(cpu) = idle {
            cx.resched(cpu);
        }
        idle.is_some()
    }

    /// Finds a CPU for a task that was just put on the queue: an idle one; otherwise the one whose task has the worst
    /// priority and, among equals, the latest deadline, if `p` beats it. IDLEPRIO tasks preempt no task
    /// (`try_preempt`).
    pub(super) fn try_preempt(&mut self, cx: &mut Core, p: TaskId) {
        self.task_mut(p).sticky = false;
        let from = cx.task(p).cpu;
        if !self.call_idle(cx, p, from, |_, _| true) {
            self.preempt_worst(cx, p, Looking::Wake);
        }
    }

    fn preempt_worst(&self, cx: &mut Core, p: TaskId, why: Looking) {
        if self.task(p).class == Class::IdlePrio {
            return;
        }
        if cx.traces_queues() {
            let all: Vec<CpuId> = (0..cx.nr_cpus()).filter(|c| cx.task(p).allowed.contains(*c)).collect();
            cx.trace_considered(cx.task(p).cpu, why, Some(p), all);
        }
        let mut worst = None;
        for cpu in (0..cx.nr_cpus()).filter(|c| cx.task(p).allowed.contains(*c)) {
            let claim = cx.curr(cpu).map_or((PRIO_LIMIT, 0), |q| (self.task(q).prio, self.task(q).deadline));
            if worst.is_none_or(|(most, _)| claim > most) {
                worst = Some((claim, cpu));
            }
        }
        let Some((claim, cpu)) = worst else { return };
        let own = (self.task(p).prio, self.task(p).deadline);
        let better = own < claim;
        if better {
            cx.resched(cpu);
        }
        cx.explain(|cx| {
            let (choice, rule) = if better {
                (Choice::Preempt, "an earlier deadline than the latest of all that run preempts it")
            } else {
                (Choice::Wait, "no running task has a worse priority or a later deadline")
            };
            let running = cx.curr(cpu);
            let deadline = |who, at: u64| (who, "deadline_us", self.until_us(cx.now(), at));
            let numbers = vec![deadline(Some(p), own.1), deadline(running, claim.1)];
            Decision::new(cpu, choice, Some(p), rule).over(running).numbers(numbers)
        });
    }

    /// Puts a new task on the queue with its parent's deadline and half of the parent's remaining slice. A process runs
    /// before its parent unless a CPU is idle; a thread competes for a CPU like a waking task (`wake_up_new_task`).
    pub(super) fn wake_up_new(&mut self, cx: &mut Core, p: TaskId) {
        let now = cx.now();
        let parent = self.task(p).parent.filter(|q| self.task(*q).place == Place::Running);
        let Some(q) = parent else {
            self.renew(p, now);
            self.put(cx, p, false);
            self.find_cpu_for_new(cx, p);
            return;
        };
        let cpu = cx.task(q).cpu;
        sync(self, cx, cpu);
        cx.touch(cpu);
        let process = cx.start() != Start::Threads;
        let fifo = self.task(p).class == Class::Fifo;
        let theirs = *self.task(q);
        if !fifo && theirs.time_slice < RESCHED_US * 2 {
            // There is nothing to share: the child gets its own slice and deadline, and the parent's are renewed later.
            self.renew(p, now);
            self.put(cx, p, false);
            if process {
                self.task_mut(q).time_slice = 0;
                cx.resched(cpu);
            }
            return;
        }
        if !fifo {
            self.task_mut(q).time_slice = theirs.time_slice / 2;
        }
        let t = self.task_mut(p);
        (t.deadline, t.time_slice) = (theirs.deadline, if fifo { theirs.time_slice } else { theirs.time_slice / 2 });
        self.put(cx, p, false);
        if !process {
            self.find_cpu_for_new(cx, p);
        } else if !self.call_idle(cx, p, cpu, |cx, c| !cx.need_resched(c)) {
            cx.resched(cpu);
        }
    }

    /// Does the same as [`Bfs::try_preempt`], but skips idle CPUs that were signalled and have not responded yet: a
    /// real fork takes long enough for them to have responded.
    fn find_cpu_for_new(&self, cx: &mut Core, p: TaskId) {
        let from = cx.task(p).cpu;
        if !self.call_idle(cx, p, from, |cx, c| !cx.need_resched(c)) {
            self.preempt_worst(cx, p, Looking::Fork);
        }
    }

    /// Makes a task that goes back on the queue stick to its CPU. The CPU's previous sticky task stops being sticky and
    /// may go to another idle CPU. Real-time tasks do not become sticky (`swap_sticky`).
    pub(super) fn stick(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let elsewhere = |_: &Core, c: CpuId| c != cpu;
        if let Some(last) = self.rqs[cpu as usize].sticky.filter(|last| *last != p)
            && std::mem::take(&mut self.task_mut(last).sticky)
        {
            self.call_idle(cx, last, cpu, elsewhere);
        }
        let real_time = self.task(p).class.is_real_time();
        if !real_time || self.rqs[cpu as usize].sticky == Some(p) {
            self.task_mut(p).sticky = true;
            self.rqs[cpu as usize].sticky = Some(p);
        } else {
            self.call_idle(cx, p, cpu, elsewhere);
            self.rqs[cpu as usize].sticky = None;
        }
    }

    /// `prev` has left `cpu` and `next` runs there: offers `prev` to an idle CPU. No task stays sticky to a CPU that a
    /// real-time task takes.
    pub(super) fn left(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        if let Some(p) = prev {
            self.call_idle(cx, p, cpu, |_, _| true);
        }
        if next.is_some_and(|q| self.task(q).class.is_real_time()) {
            self.rqs[cpu as usize].sticky = None;
            if let Some(p) = prev {
                self.task_mut(p).sticky = false;
            }
        }
    }
}
