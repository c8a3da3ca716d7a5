//! Changes of a task's policy or nice level.

use super::O1;
use super::state::{policy, static_prio};
use schedlab_base::CpuId;
use schedlab_sim::program::Policy;
use schedlab_sim::{Attributes, Core, TaskId};

impl O1<'_> {
    /// Puts the task onto the active array at its new priority (`sched_setscheduler()`).
    pub(super) fn set_policy(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, new: &Attributes) {
        let on_rq = self.take(cpu, p).is_some();
        let policy = policy(new, self.rules.release());
        let prio = new.real_time_level().unwrap_or_else(|| self.prio_after_change(p));
        let t = self.task_mut(p);
        let old_prio = std::mem::replace(&mut t.prio, prio);
        t.policy = policy;
        if policy == Policy::Batch {
            // The task keeps the priority that its sleep has earned until the end of its slice.
            t.sleep_avg = 0;
        }
        let worse = t.prio > old_prio;
        if !on_rq {
            return;
        }
        self.push(cpu, p, self.home(cpu, p));
        if cx.curr(cpu) != Some(p) {
            self.preempt_if_better(cx, cpu, p);
        } else if worse {
            cx.resched(cpu);
        }
    }

    /// Returns the priority of an ordinary task whose policy or nice level has changed.
    pub(super) fn prio_after_change(&self, p: TaskId) -> u8 {
        let t = self.task(p);
        let keeps = self.rules.release().change_keeps_bonus;
        if keeps { self.rules.effective_prio(t.static_prio, t.sleep_avg) } else { t.static_prio }
    }

    /// Requeues the task at its new priority (`set_user_nice()`).
    pub(super) fn set_nice(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, new: &Attributes) {
        if self.task(p).is_real_time() {
            self.task_mut(p).static_prio = static_prio(new);
            return;
        }
        let side = self.take(cpu, p);
        self.task_mut(p).static_prio = static_prio(new);
        let prio = self.prio_after_change(p);
        let old_prio = std::mem::replace(&mut self.task_mut(p).prio, prio);
        if let Some(side) = side {
            self.push(cpu, p, side);
            if prio < old_prio || (prio > old_prio && cx.curr(cpu) == Some(p)) {
                cx.resched(cpu);
            }
        }
    }
}
