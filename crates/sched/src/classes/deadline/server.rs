//! The fair server of 6.12: a deadline entity on each CPU that runs fair tasks when real-time tasks starve them.
//!
//! It replaces real-time throttling, with 50 ms per 1000 ms that are only used if they are needed. While fair tasks run
//! anyway, their time is charged to the server's budget (`dl_server_update`), and a new period begins when the budget
//! is used up. Time in which the CPU is idle is charged too, but does not begin a new period. If some budget is left
//! when the time to the deadline is no longer than that budget (*zero laxity*), fair tasks are starving. The server
//! then gets a new period, because what is left exceeds its share of the time to the deadline (`dl_entity_overflow`).
//! It is enqueued by deadline like a task, and runs fair tasks ahead of real-time tasks.
//!
//! A tick notices that the budget is used up, and the server must then wait for its next period. But the fair task
//! keeps running for some microseconds until the CPU has switched. This time is charged to a server that is waiting
//! without any budget, which the kernel takes for fair tasks running without the server. A new period therefore begins
//! at once, with zero laxity 950 ms away. So real-time tasks run for 950 ms each time, and fair tasks for 50 ms and the
//! rest of a tick. Debian's 6.12.117 behaves like this, as the oracles show. If switches have no cost, one nanosecond
//! stands for that time.

use super::Deadline;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Choice, Core, Decision};

/// A pending timer is not moved by less than this, in ns (`dl_server_min_res`).
const LEAST_WAIT: Nanos = 1_000_000;

impl Deadline {
    /// Adds a fair server with this runtime and period, in ns, to every CPU. A runtime of 0 adds none.
    #[must_use]
    pub fn with_servers(mut self, runtime: Nanos, period: Nanos) -> Self {
        if runtime > 0 {
            self.server = Some((runtime, period));
            for e in &mut self.entities[..self.cpus as usize] {
                (e.dl_runtime, e.dl_deadline, e.dl_period) = (runtime, period, period);
            }
        }
        self
    }

    /// Whether `cpu` has a server that is not active. It should be started if there are fair tasks to run.
    pub(crate) fn wants_start(&self, cpu: CpuId) -> bool {
        self.server.is_some() && !self.e(cpu).active
    }

    /// The server's bandwidth if it is active, otherwise 0.
    pub(super) fn server_running(&self, cpu: CpuId) -> u64 {
        if self.e(cpu).active { self.server_bw() } else { 0 }
    }

    /// Starts the server of `cpu` because there are fair tasks to run (`dl_server_start`).
    pub(crate) fn start_server(&mut self, cx: &mut Core, cpu: CpuId) {
        if !self.wants_start(cpu) || !cx.online(cpu) {
            return;
        }
        self.e_mut(cpu).active = true;
        self.wake_up(cx, cpu);
        self.queue_again(cx, cpu, cpu);
        if self.e(cpu).queued && self.preempts(cpu, cpu) {
            cx.resched(cpu);
        }
    }

    /// Stops the server of `cpu` because there are no fair tasks to run (`dl_server_stop`).
    pub(crate) fn stop_server(&mut self, cx: &mut Core, cpu: CpuId) {
        self.remove(cpu, cpu);
        cx.cancel_timer(self.budget_timer(cpu));
        let e = self.e_mut(cpu);
        (e.active, e.armed, e.throttled) = (false, false, false);
    }

    /// Charges the server for `ran` ns of fair tasks on `cpu`, whether it ran them or not (`dl_server_update`).
    pub(crate) fn charge_server(&mut self, cx: &mut Core, cpu: CpuId, ran: Nanos) {
        let e = self.e_mut(cpu);
        if !e.active || ran == 0 {
            return;
        }
        if !e.throttled {
            self.charge(cx, cpu, cpu, ran);
            return;
        }
        e.runtime -= ran as i64;
        if e.runtime > 0 {
            return;
        }
        // Fair tasks ran without the server, so it is not needed in this period.
        e.starving = false;
        cx.cancel_timer(self.budget_timer(cpu));
        self.new_period(cx.now(), cpu);
        self.start_timer(cx, cpu);
    }

    /// Whether the server of `cpu` has no budget left and is waiting for its next period.
    pub(crate) fn server_spent(&self, cpu: CpuId) -> bool {
        let e = self.e(cpu);
        e.active && e.throttled && e.runtime <= 0
    }

    /// When the fair task that has been running on `cpu` since `since` will have used up the server's budget.
    pub(crate) fn server_spent_at(&self, cpu: CpuId, since: Nanos) -> Nanos {
        let e = self.e(cpu);
        if e.active { since.saturating_add(e.runtime.max(0) as Nanos) } else { Nanos::MAX }
    }

    /// Charges the server of `cpu` for idle time, which fair tasks could have used (`dl_server_update_idle_time`).
    pub(crate) fn charge_idle(&mut self, cpu: CpuId, idled: Nanos) {
        if self.server.is_none() || self.e(cpu).runtime < 0 {
            return;
        }
        let e = self.e_mut(cpu);
        e.runtime -= idled as i64;
        if e.runtime < 0 {
            (e.starving, e.runtime) = (false, 0);
        }
    }

    /// The time of zero laxity: the deadline minus the budget that is left.
    pub(super) fn zero_laxity(&self, id: super::EntityId) -> Nanos {
        self.e(id).deadline.wrapping_add_signed(-self.e(id).runtime)
    }

    /// After a replenishment, makes a server whose tasks are not starving wait for its zero laxity.
    pub(super) fn defer(&mut self, cx: &mut Core, id: super::EntityId) {
        let now = cx.now();
        let zero_laxity = self.zero_laxity(id);
        let server = self.task_of(id).is_none();
        let e = self.e_mut(id);
        if std::mem::take(&mut e.armed) || !server || e.starving || now >= zero_laxity {
            return;
        }
        (e.armed, e.throttled) = (true, true);
    }

    /// Called at a server's zero laxity or at the beginning of its next period (`dl_server_timer`).
    pub(super) fn server_timer(&mut self, cx: &mut Core, cpu: CpuId) {
        let e = *self.e(cpu);
        if !e.throttled || !e.active {
            return;
        }
        if e.armed {
            let laxity_ends = self.zero_laxity(cpu);
            if cx.now() + LEAST_WAIT < laxity_ends {
                cx.start_timer(self.budget_timer(cpu), laxity_ends);
                return;
            }
            self.e_mut(cpu).starving = true;
            cx.explain(|_| {
                Decision::new(cpu, Choice::Throttle, None, "fair tasks starve: from now on the fair server runs them")
                    .numbers([(None, "budget_ns", e.runtime), (None, "deadline_ns", e.deadline as i64)])
            });
        }
        self.replenish(cx, cpu);
        self.queue_again(cx, cpu, cpu);
        if self.preempts(cpu, cpu) {
            cx.resched(cpu);
        }
        if self.cpus > 1 {
            self.push(cx, cpu);
        }
        cx.touch(cpu);
    }
}
