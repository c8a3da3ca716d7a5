//! Picking the next task of a CPU when several classes have tasks.

use super::Stack;
use crate::classes::deadline::Next;
use crate::classes::{Class, ClassId};
use schedlab_base::CpuId;
use schedlab_sim::{Choice, Core, Decision, Scheduler, State, TaskId};

impl<F: Class> Stack<F> {
    /// Pulls tasks before a CPU picks, if its last task was in a class above fair and has left
    /// (`put_prev_task_balance`).
    pub(super) fn pull(&mut self, cx: &mut Core, cpu: CpuId, prev: TaskId, class: ClassId) {
        if cx.nr_cpus() == 1 || class == ClassId::Fair {
            return;
        }
        if let Some(dl) = &mut self.dl {
            if class == ClassId::Deadline && !dl.is_queued(prev) && dl.fell(cpu, prev) {
                dl.pull(cx, cpu);
            }
            if dl.has_runnable(cpu) {
                return;
            }
        }
        if !self.rt.is_queued(prev) && self.rt.fell(cx, cpu, prev) {
            self.rt.pull(cx, cpu);
        }
    }

    /// The class that picks the next task on `cpu`. Stops a fair server that has no task to serve.
    pub(super) fn next_class(&mut self, cx: &mut Core, cpu: CpuId) -> ClassId {
        if let Some(dl) = &mut self.dl {
            match dl.first(cpu) {
                Some(Next::Task(_)) => return ClassId::Deadline,
                Some(Next::Fair) if self.fair.has_runnable(cpu) => return ClassId::Fair,
                Some(Next::Fair) => {
                    dl.stop_server(cx, cpu);
                    return self.next_class(cx, cpu);
                }
                None => {}
            }
        }
        if self.rt.has_runnable(cpu) { ClassId::RealTime } else { ClassId::Fair }
    }

    /// Picks the next task of a CPU from the highest class that has one.
    #[inline(never)]
    pub(super) fn pick_by_class(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.account(cx, cpu);
        self.switch_takes_time(cx, cpu);
        let mut was = prev.map(|p| (p, self.classes[p as usize]));
        if let Some((p, class)) = was {
            self.pull(cx, cpu, p, class);
        }
        loop {
            let class = self.next_class(cx, cpu);
            // Whether it is put back here or by its own class, that happens once, however often a class is chosen.
            let was = was.take();
            if let Some((p, of)) = was
                && of != class
            {
                self.put_back(cx, cpu, p, of);
            }
            // Even with tasks queued, the fair class may find none to run (delayed tasks, throttled groups), and then
            // balance.
            self.tell_others(cx);
            let same = was.filter(|(_, of)| *of == class).map(|(p, _)| p);
            let next = class!(self, class, pick_next_task(cx, cpu, same));
            let served = class == ClassId::Fair && self.dl.as_ref().is_some_and(|dl| dl.first(cpu) == Some(Next::Fair));
            if next.is_none() && served {
                continue;
            }
            if class != ClassId::Fair {
                self.fair.runs(cx, cpu, class);
            }
            self.since[cpu as usize] = cx.now();
            self.explain_pick(cx, cpu, class, next, served);
            return next;
        }
    }

    /// Called when the running task gives up the CPU to a task of another class.
    pub(super) fn put_back(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, class: ClassId) {
        let running = class!(self, class, is_running(cpu));
        if running {
            class!(self, class, put_prev_task(cx, cpu, p));
        }
    }

    /// Explains a pick between classes. The fair class explains its own picks.
    pub(super) fn explain_pick(&self, cx: &mut Core, cpu: CpuId, class: ClassId, who: Option<TaskId>, served: bool) {
        let throttled = class == ClassId::Fair && self.rt.nr_running(cpu) > 0;
        if !cx.explaining() || (class == ClassId::Fair && !throttled) {
            return;
        }
        let lower = |p: &TaskId| self.classes[*p as usize] != class && Some(*p) != who;
        let waits = |p: &TaskId| cx.task(*p).cpu == cpu && cx.task(*p).state == State::Runnable;
        let over: Vec<_> = (0..cx.nr_tasks()).filter(|p| waits(p) && lower(p)).collect();
        let rule = match class {
            ClassId::Deadline => "deadline goes first: the earliest deadline",
            ClassId::RealTime => "real time goes before fair: the first of the highest priority",
            ClassId::Fair if served => "the fair server runs a fair task ahead of the real-time ones",
            ClassId::Fair => "real time is throttled: fair tasks run",
        };
        let numbers = who.map(|p| (who, "priority", i64::from(cx.task(p).attributes.prio())));
        cx.explain(|_| Decision::new(cpu, Choice::Pick, who, rule).over(over).numbers(numbers));
    }
}
