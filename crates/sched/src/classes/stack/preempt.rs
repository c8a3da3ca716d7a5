//! Preemption between classes, when a task wakes or changes its class.

use super::Stack;
use crate::classes::{Class, ClassId};
use schedlab_base::CpuId;
use schedlab_sim::{Choice, Core, Decision, Enqueue, Scheduler, State, TaskId};

impl<F: Class> Stack<F> {
    /// Moves a task from class `from` to class `to`, and reschedules if the running task must give way
    /// (`check_class_changed`).
    pub(super) fn class_changed(&mut self, cx: &mut Core, p: TaskId, from: ClassId, to: ClassId) {
        let cpu = cx.task(p).cpu;
        class!(self, from, switched_from(cx, p));
        self.classes[p as usize] = to;
        self.count(cx, to);
        class!(self, to, switched_to(cx, p, from));
        if cx.curr(cpu) == Some(p) {
            self.fair.runs(cx, cpu, to);
        }
        self.uncount(cx, from);
        self.serve(cx, cpu);
        if to != ClassId::Fair || cx.task(p).state != State::Runnable {
            return;
        }
        if cx.curr(cpu) == Some(p) || cx.curr(cpu).is_none() {
            cx.resched(cpu);
        } else if self.running(cx, cpu) == Some(ClassId::Fair) {
            self.fair.wakeup_preempt(cx, cpu, p, Enqueue::Wakeup);
        }
    }

    /// Reschedules the CPU if a woken task is of a higher class than the running one. Within a class, the class
    /// decides.
    pub(super) fn preempts_by_class(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let (ours, theirs) = (self.class_of(p), self.running(cx, cpu).unwrap_or(ClassId::Fair));
        if ours < theirs {
            cx.resched(cpu);
            let over = cx.curr(cpu);
            cx.explain(|_| {
                Decision::new(cpu, Choice::Preempt, Some(p), "the woken task is of a higher class").over(over)
            });
        } else if ours == theirs {
            if ours == ClassId::Fair {
                self.serve(cx, cpu);
            }
            class!(self, ours, wakeup_preempt(cx, cpu, p, how));
        }
        if how != Enqueue::Migrated && cx.nr_cpus() > 1 {
            match (ours, &mut self.dl) {
                (ClassId::RealTime, _) => self.rt.woken(cx, cpu, p),
                (ClassId::Deadline, Some(dl)) => dl.woken(cx, cpu, p),
                _ => {}
            }
            if ours != ClassId::Fair {
                self.tell_others(cx);
            }
        }
    }
}
