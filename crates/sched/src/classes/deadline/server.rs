//! The fair server of 6.12: a deadline entity of each CPU that runs fair tasks where real-time tasks starve them.
//!
//! It replaces real-time throttling: 50 ms of each 1000 ms, and only if they are needed. While fair tasks run anyway,
//! their time is taken off the server's budget, and when that is used up a new period begins. Time in which the CPU
//! idles counts too. A server that has a budget left a budget's length before its deadline (*zero laxity*) knows that
//! they starve: it goes onto the queue by deadline like a task, and runs fair tasks ahead of real-time ones. When its
//! budget is used up before its deadline, it runs again from there on, until fair tasks use its budget up without it. When
//! it is used up at the tick after the deadline, as is the rule where it began at zero laxity, a new period begins then, and
//! it waits for its zero laxity again: real-time tasks have 950 ms each time, fair ones 50 ms and what is left of a tick.
//! (The last is how Debian's 6.12.117 behaves; the oracles show it.)

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
        let e = *self.e(cpu);
        if !e.active || ran == 0 {
            return;
        }
        if !e.throttled || e.runtime > ran as i64 {
            if e.throttled {
                self.e_mut(cpu).runtime -= ran as i64;
            } else {
                self.charge(cx, cpu, cpu, ran);
            }
            return;
        }
        // They had their time without it: it is not needed in this period.
        self.e_mut(cpu).starving = false;
        cx.cancel_timer(self.budget_timer(cpu));
        self.new_period(cx.now(), cpu);
        self.start_timer(cx, cpu);
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

    /// When a waiting server's timer comes: a budget's length before its deadline, and the way of an interrupt later.
    /// That matters: a budget of whole ticks that began no later would end right at a tick, and it does not.
    pub(super) fn zero_laxity(&self, cx: &Core, id: super::EntityId) -> Nanos {
        self.e(id).deadline.wrapping_add_signed(-self.e(id).runtime) + cx.machine().costs.tick_to_switch_ns
    }

    /// After a replenishment, a server whose tasks do not starve waits for its zero laxity.
    pub(super) fn defer(&mut self, cx: &mut Core, id: super::EntityId) {
        if self.task_of(id).is_some() {
            return;
        }
        let now = cx.now();
        let e = self.e_mut(id);
        if std::mem::take(&mut e.armed) || e.starving || now >= e.deadline.wrapping_add_signed(-e.runtime) {
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
            let laxity_ends = self.zero_laxity(cx, cpu);
            if cx.now() + LEAST_WAIT < laxity_ends {
                cx.start_timer(self.budget_timer(cpu), laxity_ends);
                return;
            }
            self.e_mut(cpu).starving = true;
            cx.explain(|_| Decision {
                time: 0,
                cpu,
                choice: Choice::Throttle,
                who: None,
                over: Vec::new(),
                rule: "fair tasks starve: from now on the fair server runs them",
                numbers: vec![(None, "budget_ns", e.runtime), (None, "deadline_ns", e.deadline as i64)],
            });
        }
        self.replenish(cx, cpu);
        self.queue_again(cx, cpu, cpu);
        if self.preempts(cpu, cpu) {
            cx.resched(cpu);
        }
        cx.touch(cpu);
    }
}
