//! The tick of the running task: counts its slice down, gives its equals a turn, and predicts the next relevant tick.

use super::O1;
use super::state::Task;
use super::view::SliceEnd;
use schedlab_base::CpuId;
use schedlab_sim::program::Policy;
use schedlab_sim::{Core, TaskId};

impl O1<'_> {
    /// Handles a tick of the running task.
    pub(super) fn tick_running(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let active = self.active(cpu);
        if self.task(p).side != Some(active) {
            // It has expired or yielded, but has not been switched out yet.
            cx.resched(cpu);
            return;
        }
        match self.task(p).policy {
            Policy::Fifo => {}
            Policy::Rr => {
                let slice = self.rules.timeslice(self.task(p).static_prio);
                let t = self.task_mut(p);
                t.time_slice -= 1;
                if t.time_slice == 0 {
                    (t.time_slice, t.first_time_slice) = (slice, false);
                    self.requeue(cx, cpu, p);
                    let left = ("time_slice_ticks", i64::from(slice));
                    self.explain_turn(cx, cpu, p, "its slice of the round is used up: behind its equals", &[left]);
                }
            }
            _ => {
                let t = self.task_mut(p);
                t.time_slice -= 1;
                if t.time_slice == 0 {
                    self.slice_ends(cx, cpu, p);
                } else if self.ticks_to_turn(p, 0) == Some(0) {
                    self.turn(cx, cpu, p);
                }
            }
        }
    }

    fn requeue(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        if let Some(side) = self.take(cpu, p) {
            self.push(cpu, p, side);
        }
        cx.resched(cpu);
    }

    /// Puts an interactive task behind its equals.
    fn turn(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let Task { time_slice, sleep_avg, .. } = *self.task(p);
        let every = self.rules.granularity(sleep_avg);
        if self.rules.release().turn_sets_prio
            && let Some(side) = self.take(cpu, p)
        {
            self.update_prio(p);
            self.push(cpu, p, side);
            cx.resched(cpu);
        } else {
            self.requeue(cx, cpu, p);
        }
        let own = [("time_slice_ticks", i64::from(time_slice)), ("granularity_ticks", i64::from(every))];
        self.explain_turn(cx, cpu, p, "being interactive, it goes behind its equals within its slice", &own);
    }

    /// Gives the task a new slice and a new priority. An interactive task stays active unless expired tasks starve.
    fn slice_ends(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        self.take(cpu, p);
        cx.resched(cpu);
        self.update_prio(p);
        let t = &mut self.tasks[p as usize];
        let Task { prio, static_prio, .. } = *t;
        t.time_slice = self.rules.timeslice(static_prio);
        t.first_time_slice = false;
        let rq = &mut self.queues[cpu as usize];
        let jiffies = cx.jiffies();
        if rq.expired_timestamp == 0 {
            rq.expired_timestamp = jiffies;
        }
        // The task itself still counts as running.
        let best_expired = rq.best_expired_prio;
        let end = if !self.rules.interactive(static_prio, prio) {
            SliceEnd::Expires
        } else if self.rules.starving(rq.expired_timestamp, jiffies, rq.nr_running() + 1) {
            SliceEnd::Starving
        } else if self.rules.release().best_expired_counts && static_prio > best_expired {
            SliceEnd::BetterExpired
        } else {
            SliceEnd::Stays
        };
        if end == SliceEnd::Stays {
            self.push(cpu, p, self.active(cpu));
        } else {
            rq.best_expired_prio = best_expired.min(static_prio);
            let expired = rq.expired();
            self.push(cpu, p, expired);
        }
        self.explain_slice(cx, cpu, p, end, best_expired);
    }

    /// Returns after how many more ticks, at least `from`, an interactive task goes behind its equals within its slice,
    /// or `None` if it does not in this slice.
    fn ticks_to_turn(&self, p: TaskId, from: u32) -> Option<u64> {
        let t = self.task(p);
        if !self.rules.interactive(t.static_prio, t.prio) {
            return None;
        }
        let every = u64::from(self.rules.granularity(t.sleep_avg));
        let left = t.time_slice - from;
        // Unsigned, as in the kernel: the rest of a slice can exceed a whole slice (a child returned some, or nice
        // changed).
        let used = u64::from(self.rules.timeslice(t.static_prio).wrapping_sub(left));
        let wait = (used.next_multiple_of(every) - used).min((1 << 32) - used);
        (u64::from(left) >= every + wait).then_some(u64::from(from) + wait)
    }

    /// Returns after how many ticks the next one comes that does more than count the running task's slice down.
    pub(super) fn ticks_to_decision(&self, cpu: CpuId, p: TaskId) -> Option<u64> {
        let t = self.task(p);
        if t.side != Some(self.active(cpu)) {
            return Some(1);
        }
        let slice = u64::from(t.time_slice);
        match t.policy {
            Policy::Fifo => None,
            Policy::Rr => Some(slice),
            _ => Some(self.ticks_to_turn(p, 1).map_or(slice, |turn| turn.min(slice))),
        }
    }
}
