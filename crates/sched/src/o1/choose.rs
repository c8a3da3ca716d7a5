//! `schedule()`: picks the next task, and charges the previous one.

use super::O1;
use super::array::MAX_PRIO;
use super::release::Balancing;
use super::state::Activated;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

impl O1<'_> {
    /// Returns the first task of the best list, after swapping the arrays if the active one is empty. At least one task
    /// must be runnable.
    pub(super) fn choose(&mut self, cx: &mut Core, cpu: CpuId) -> Option<TaskId> {
        let now = cx.now();
        let rq = &mut self.queues[cpu as usize];
        let swapped = rq.arrays[rq.active].nr_active() == 0;
        if swapped {
            rq.active = rq.expired();
            rq.expired_timestamp = 0;
            rq.best_expired_prio = MAX_PRIO;
        }
        let next = rq.arrays[rq.active].first()?;
        let t = *self.task(next);
        // A task from another CPU can appear to have been queued in the future. 2.6.11 takes that for a very long wait.
        let future = t.timestamp > now && self.rules.release().balancing == Balancing::ByWeight;
        let waited = if future { 0 } else { now.wrapping_sub(t.timestamp) };
        let credit = match t.activated {
            _ if t.is_real_time() && !self.rules.release().real_time_waits => None,
            Activated::No | Activated::Uninterruptible => None,
            Activated::ByTask => Some(self.rules.weighted_wait(waited)),
            Activated::ByInterrupt => Some(waited),
        };
        if let Some(credit) = credit {
            let prio = self.credit_sleep(next, credit);
            if prio != t.prio || !self.rules.release().keeps_place {
                let side = self.take(cpu, next)?;
                self.task_mut(next).prio = prio;
                self.push(cpu, next, side);
            }
        }
        self.task_mut(next).activated = Activated::No;
        self.explain_pick(cx, cpu, Some(next), swapped, t.prio);
        Some(next)
    }

    /// Returns what the running task is charged if it leaves the CPU now.
    pub(super) fn charge(&self, cx: &Core, p: Option<TaskId>) -> Nanos {
        p.map_or(0, |p| {
            let t = self.task(p);
            self.rules.run_charge(t.habit(), cx.now() - t.timestamp)
        })
    }

    /// Accounts for the running task leaving the CPU, even if it is picked again at once.
    pub(super) fn leave(&mut self, cx: &Core, p: Option<TaskId>, charge: Nanos) {
        let Some(p) = p else { return };
        let t = &mut self.tasks[p as usize];
        let habit = self.rules.after_run(t.habit(), charge);
        (t.sleep_avg, t.credit) = (habit.sleep_avg, habit.credit);
        (t.timestamp, t.last_ran) = (cx.now(), Some(cx.now()));
    }
}
