//! The fair server of 6.12: a deadline entity of each CPU that runs fair tasks where real-time tasks starve them.
//!
//! It replaces real-time throttling: 50 ms of each 1000 ms, and only if they are needed. While fair tasks run anyway,
//! their time is taken off the server's budget (`dl_server_update`), and when that is used up a new period begins. Time
//! in which the CPU idles counts too, but begins no period. A server that has a budget left a budget's length before
//! its deadline (*zero laxity*) knows that they starve: with a new period from then on (what is left of the old one is
//! more than its share of the time to the deadline, `dl_entity_overflow`) it goes onto the queue by deadline like a
//! task, and runs fair tasks ahead of real-time ones.
//!
//! Its budget is seen to be used up at a tick, and it is to wait for its next period then. But until the CPU has
//! switched the fair task runs on for some microseconds, and these are taken off the budget of a server that waits and
//! has none: to the kernel that is fair tasks running without it, so a new period begins there and then, with zero
//! laxity 950 ms away. So real-time tasks have 950 ms each time, fair ones 50 ms and what is left of a tick. (Debian's
//! 6.12.117 does: the oracles show it.) Where switches are without cost, a nanosecond counts as that time.

use super::Deadline;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Choice, Core, Decision};

/// A timer is not moved for less (`dl_server_min_res`).
const LEAST_WAIT: Nanos = 1_000_000;

impl Deadline {
    /// As this class, with a fair server of this runtime each period on every CPU; a runtime of 0 is none.
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

    /// Whether the server of `cpu` should be started: there are fair tasks to run.
    pub(crate) fn wants_start(&self, cpu: CpuId) -> bool {
        self.server.is_some() && !self.e(cpu).active
    }

    /// The server's bandwidth, if it is in use.
    pub(super) fn server_running(&self, cpu: CpuId) -> u64 {
        if self.e(cpu).active { self.server_bw() } else { 0 }
    }

    /// A CPU has fair tasks to run (`dl_server_start`).
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

    /// There are no fair tasks to run (`dl_server_stop`).
    pub(crate) fn stop_server(&mut self, cx: &mut Core, cpu: CpuId) {
        self.remove(cpu, cpu);
        cx.cancel_timer(self.budget_timer(cpu));
        let e = self.e_mut(cpu);
        (e.active, e.armed, e.throttled) = (false, false, false);
    }

    /// Fair tasks ran on `cpu`, by the server or without it (`dl_server_update`).
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
        // They had their time without it: it is not needed in this period.
        e.starving = false;
        cx.cancel_timer(self.budget_timer(cpu));
        self.new_period(cx.now(), cpu);
        self.start_timer(cx, cpu);
    }

    /// Whether the server of `cpu` has no budget left and waits for its next period.
    pub(crate) fn server_spent(&self, cpu: CpuId) -> bool {
        let e = self.e(cpu);
        e.active && e.throttled && e.runtime <= 0
    }

    /// When the server's budget will be used up by the fair task that has run on `cpu` since `since`.
    pub(crate) fn server_spent_at(&self, cpu: CpuId, since: Nanos) -> Nanos {
        let e = self.e(cpu);
        if e.active { since.saturating_add(e.runtime.max(0) as Nanos) } else { Nanos::MAX }
    }

    /// `cpu` idled: fair tasks could have had that time (`dl_server_update_idle_time`).
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

    /// When a waiting server's timer comes: a budget's length before its deadline.
    pub(super) fn zero_laxity(&self, id: super::EntityId) -> Nanos {
        self.e(id).deadline.wrapping_add_signed(-self.e(id).runtime)
    }

    /// After a replenishment, a server whose tasks do not starve waits for its zero laxity.
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

    /// Zero laxity, or the beginning of the next period (`dl_server_timer`).
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
