//! The limit on the run time of real-time tasks per period: throttling, borrowing and the period timer.

use super::{PERIOD_TIMER, RealTime};
use crate::classes::sync;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Choice, Core, Decision};

impl RealTime {
    /// Whether run time is limited at all.
    pub(super) fn limited(&self) -> bool {
        self.rules.throttles && self.tunables.runtime.is_some()
    }

    /// Throttles the CPU if it has exceeded its runtime (`sched_rt_runtime_exceeded`). Returns whether it is throttled.
    pub(super) fn exceeds(&mut self, cx: &mut Core, cpu: CpuId) -> bool {
        if self.rq(cpu).throttled {
            return true;
        }
        if self.rq(cpu).runtime >= self.tunables.period {
            return false;
        }
        self.borrow(cx, cpu);
        let nothing = self.tunables.runtime == Some(0);
        let rq = self.rq_mut(cpu);
        if rq.time <= rq.runtime {
            return false;
        }
        if nothing {
            // Replenishing by a runtime of 0 would never unthrottle the CPU.
            rq.time = 0;
            return false;
        }
        rq.throttled = true;
        let (time, runtime) = (rq.time as i64, rq.runtime as i64);
        cx.explain(|_| {
            let rule = "real-time tasks have used more than their runtime of this period: none runs until the next";
            Decision::new(cpu, Choice::Throttle, None, rule)
                .numbers([(None, "rt_time", time), (None, "rt_runtime", runtime)])
        });
        true
    }

    /// Borrows a part of the runtime that other CPUs of the root domain have left (`do_balance_runtime`).
    pub(super) fn borrow(&mut self, cx: &mut Core, cpu: CpuId) {
        if !self.rules.shares || self.rq(cpu).time <= self.rq(cpu).runtime {
            return;
        }
        let weight = (0..cx.nr_cpus()).filter(|c| cx.online(*c) && self.roots.join(*c, cpu)).count() as Nanos;
        for other in (0..cx.nr_cpus()).filter(|c| *c != cpu) {
            if !cx.online(other) || !self.roots.join(other, cpu) {
                continue;
            }
            sync(self, cx, other);
            let spare = self.rq(other).runtime.saturating_sub(self.rq(other).time) / weight;
            let taken = spare.min(self.tunables.period - self.rq(cpu).runtime);
            self.rq_mut(other).runtime -= taken;
            self.rq_mut(cpu).runtime += taken;
            cx.touch(other);
            if self.rq(cpu).runtime == self.tunables.period {
                break;
            }
        }
    }

    /// Counts `spent` ns of deadline tasks on `cpu` against the limit.
    pub(in crate::classes) fn count_deadline(&mut self, cpu: CpuId, spent: Nanos) {
        if !self.limited() {
            return;
        }
        let period_runs = self.period_active;
        let rq = self.rq_mut(cpu);
        if period_runs {
            rq.time += spent;
        } else if rq.time < rq.runtime {
            rq.time = (rq.time + spent).min(rq.runtime);
        }
    }

    /// Whether the period timer is not running.
    pub(in crate::classes) fn period_stands(&self) -> bool {
        !self.period_active
    }

    /// Starts the period timer, unless it is already running (`start_rt_bandwidth`).
    pub(super) fn start_period(&mut self, cx: &mut Core) {
        if self.limited() && self.period_stands() {
            self.period_active = true;
            let (now, period) = (cx.now(), self.tunables.period);
            // If periods are not aligned, a period that has begun continues even if the class had no task for a while.
            // If it is over, the timer expires at once and subtracts the time that deadline tasks left behind.
            let at = if self.rules.aligned { (now / period + 1) * period } else { self.period_ends.max(now + 1) };
            cx.start_timer(PERIOD_TIMER, at);
        }
    }

    /// Called when the period ends. Replenishes each CPU by its runtime (`do_sched_rt_period_timer`).
    pub(super) fn end_period(&mut self, cx: &mut Core) {
        let mut idle = true;
        for cpu in 0..cx.nr_cpus() {
            if !cx.online(cpu) || (self.rq(cpu).time == 0 && self.rq(cpu).nr == 0) {
                continue;
            }
            if self.rq(cpu).throttled {
                self.borrow(cx, cpu);
            }
            let rq = self.rq_mut(cpu);
            rq.time -= rq.time.min(rq.runtime);
            idle &= rq.time == 0 && rq.nr == 0;
            if rq.throttled && rq.time < rq.runtime {
                rq.throttled = false;
                let (nr, time) = (rq.nr, rq.time as i64);
                if nr > 0 {
                    cx.resched(cpu);
                }
                cx.explain(|_| {
                    Decision::new(cpu, Choice::Throttle, None, "a new period: real-time tasks may run again")
                        .numbers([(None, "rt_time", time)])
                });
            }
            cx.touch(cpu);
        }
        self.period_ends = cx.now() + self.tunables.period;
        self.period_active = !idle;
        if !idle {
            cx.start_timer(PERIOD_TIMER, self.period_ends);
        }
    }

    /// When the limit is reached if the running task continues.
    pub(super) fn limit_at(&self, cpu: CpuId) -> Nanos {
        let rq = self.rq(cpu);
        if rq.curr.is_none() || !self.limited() || rq.runtime >= self.tunables.period {
            return Nanos::MAX;
        }
        if rq.throttled { 0 } else { rq.exec_start.saturating_add((rq.runtime + 1).saturating_sub(rq.time)) }
    }
}
