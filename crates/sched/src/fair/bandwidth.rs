//! CFS bandwidth control (3.2 on): quotas of CPU time per period for groups, over all CPUs.
//!
//! # Idea
//! A group has a pool that is refilled with its quota once per period. Each of its queues takes a slice from the pool
//! when it runs, and another when that is used up. A queue that finds the pool empty is throttled: its entity is
//! dequeued from the parent's queue until the pool is refilled. From 6.18 on the group stays queued, and each of its
//! tasks leaves when it would return to user mode, so that no task is stopped while it holds a lock in the kernel.
//!
//! # Rule
//! A queue that has no runtime left is throttled in the reschedule that follows the accounting of its running task
//! (usually at the tick), or when a task is enqueued on it while it is empty. What it overran is deducted later. A
//! queue that becomes empty returns all but 1 ms; if other queues are throttled, they get it 5 ms later. Unused quota
//! can be accumulated up to the burst.
//!
//! # State
//! One [`Pool`] per group; the rest of each queue's slice is in [`Queue`](super::entity::Queue).
//!
//! # Tunables
//! `sched_cfs_bandwidth_slice_us`.
//!
//! # Differences from the kernel
//! A period that is too short for its timer is not lengthened. Distributing runtime to other CPUs takes no time. Tasks
//! run in user mode only, so from 6.18 on a task that is picked from a throttled group leaves as soon as it runs.
//!
//! # Reference
//! kernel/sched/fair.c of 3.10, 3.18, 4.1, 6.1, 6.6, 6.12 and 6.18.

mod by_task;
mod throttle;

use super::entity::{EntityId, QueueId};
use super::rqs::Runqueues;
use crate::classes::ClassId;
use schedlab_base::{CpuId, Nanos, Rng};
use schedlab_sim::{Core, TimerId};

/// The runtime that a queue keeps when it becomes empty, in ns (`min_cfs_rq_runtime`).
const KEPT: i64 = 1_000_000;
/// How long returned runtime is collected before it is distributed, in ns (`cfs_bandwidth_slack_period`).
const SLACK: Nanos = 5_000_000;
/// This close to the end of the period, distributing returned runtime is not worth it, in ns
/// (`min_bandwidth_expiration`).
const NEAR: Nanos = 2_000_000;

/// The rules of bandwidth control that differ between releases.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How much runtime a queue takes from the pool at once, in ns (`sched_cfs_bandwidth_slice`).
    pub slice: Nanos,
    /// Whether the runtime that a queue has taken expires at the end of the period (until 5.3).
    pub expires: bool,
    /// Whether unused quota can be accumulated (5.14 on).
    pub burst: bool,
    /// Whether each group's periods begin at a random phase (6.6 on). Before, they begin at multiples of the period,
    /// which is just before a tick.
    pub random_phase: bool,
    /// Whether the pool is refilled when its timer starts, after the group was idle (until 4.2).
    pub fills_at_start: bool,
    /// Whether the queue that was throttled last is unthrottled first (3.18 to 4.17).
    pub newest_first: bool,
    /// Whether the tasks of a throttled group are put aside one by one (6.18 on).
    pub by_task: bool,
}

/// The pool of a group's quota (`struct cfs_bandwidth`).
#[derive(Clone, Debug)]
pub struct Pool {
    quota: i64,
    period: Nanos,
    burst: i64,
    runtime: i64,
    expires: Nanos,
    /// Whether nothing has been taken in this period.
    idle: bool,
    /// Whether the period timer is running.
    active: bool,
    slack_started: bool,
    /// The phase of the periods, in ns.
    phase: Nanos,
    /// The throttled queues of the group, in the order in which they are unthrottled.
    throttled: Vec<QueueId>,
}

impl Pool {
    /// Creates a pool with `quota` ns per `period` ns, of which up to `burst` ns can be accumulated.
    pub(super) fn new(quota: Nanos, period: Nanos, burst: Nanos, rules: &Rules) -> Self {
        Self {
            quota: quota as i64,
            period: period.max(1),
            burst: if rules.burst { burst as i64 } else { 0 },
            runtime: if rules.fills_at_start { 0 } else { quota as i64 },
            expires: 0,
            idle: false,
            active: false,
            slack_started: false,
            phase: 0,
            throttled: Vec::new(),
        }
    }

    /// Refills the pool for a new period (`__refill_cfs_bandwidth_runtime`).
    fn refill(&mut self, now: Nanos, rules: &Rules) {
        if rules.fills_at_start {
            self.runtime = self.quota;
            self.expires = now + self.period;
        } else {
            self.runtime = (self.runtime + self.quota).min(self.quota + self.burst);
        }
    }

    /// The end of the period that contains `now`.
    fn period_end(&self, now: Nanos) -> Nanos {
        let since = (now + self.period - self.phase) % self.period;
        now + self.period - since
    }
}

/// The timer of a group's periods. The timer for distributing its slack has the next number.
fn period_timer(g: usize) -> TimerId {
    ClassId::Fair.timer(2 * g as u32)
}

fn slack_timer(g: usize) -> TimerId {
    ClassId::Fair.timer(2 * g as u32 + 1)
}

impl Runqueues {
    /// The pool of group `g`, which must have a quota.
    pub(super) fn pool(&mut self, g: usize) -> &mut Pool {
        self.groups.all[g].pool.as_mut().expect("only groups with a quota are limited")
    }

    /// The rules of bandwidth control. The kernel must have it.
    pub(super) fn quota_rules(&self) -> Rules {
        self.rules.bandwidth.expect("only kernels with quotas limit groups")
    }

    fn start_period(&mut self, cx: &mut Core, g: usize) {
        let pool = self.pool(g);
        if !pool.active {
            pool.active = true;
            let at = pool.period_end(cx.now());
            cx.start_timer(period_timer(g), at);
        }
    }

    /// Charges a queue, and takes more runtime from the pool when nothing is left (`account_cfs_rq_runtime`).
    pub(super) fn account_runtime(&mut self, cx: &mut Core, q: QueueId, delta: Nanos) {
        let rules = self.quota_rules();
        self.queues[q as usize].runtime -= delta as i64;
        if rules.expires {
            self.expire(cx, q);
        }
        let queue = &self.queues[q as usize];
        if queue.runtime > 0 || queue.throttled {
            return;
        }
        if !self.assign(cx, q, rules.slice as i64) && self.queues[q as usize].curr.is_some() {
            cx.resched(self.cpu_of(q));
        }
    }

    /// Expires the runtime that a queue took in an earlier period (`expire_cfs_rq_runtime`, until 5.3).
    fn expire(&mut self, cx: &Core, q: QueueId) {
        let g = self.group_of(q);
        let pool_expires = self.pool(g).expires;
        let queue = &mut self.queues[q as usize];
        if cx.now() < queue.runtime_expires || queue.runtime < 0 {
            return;
        }
        if queue.runtime_expires == pool_expires {
            // The period timer is late, so the queue's expiry is extended by a tick.
            queue.runtime_expires += cx.tick_period();
        } else {
            queue.runtime = 0;
        }
    }

    /// Takes runtime from the pool to fill the queue up to `target` (`__assign_cfs_rq_runtime`). Returns whether it has
    /// any now.
    fn assign(&mut self, cx: &mut Core, q: QueueId, target: i64) -> bool {
        let rules = self.quota_rules();
        let g = self.group_of(q);
        let wanted = target - self.queues[q as usize].runtime;
        if rules.fills_at_start && !self.pool(g).active {
            self.pool(g).refill(cx.now(), &rules);
        }
        self.start_period(cx, g);
        let pool = self.pool(g);
        let mut amount = 0;
        if pool.runtime > 0 {
            amount = pool.runtime.min(wanted);
            pool.runtime -= amount;
            pool.idle = false;
        }
        let expires = pool.expires;
        let queue = &mut self.queues[q as usize];
        queue.runtime += amount;
        queue.runtime_expires = queue.runtime_expires.max(expires);
        queue.runtime > 0
    }

    /// Appends a group's queue on a CPU, and the queues of its descendants there, to `all`.
    fn below(&self, q: QueueId, all: &mut Vec<QueueId>) {
        all.push(q);
        for child in &self.groups.all[self.group_of(q)].children {
            self.below((child + 1) * self.cpus + self.cpu_of(q), all);
        }
    }

    /// Returns the runtime that an empty queue does not need to the pool (`return_cfs_rq_runtime`).
    pub(super) fn return_runtime(&mut self, cx: &mut Core, q: QueueId) {
        let rules = self.quota_rules();
        let g = self.group_of(q);
        let Self { queues, groups, .. } = self;
        let queue = &mut queues[q as usize];
        let slack = queue.runtime - KEPT;
        if queue.nr_queued > 0 || slack <= 0 {
            return;
        }
        let pool = groups.all[g].pool.as_mut().expect("only groups with a quota are limited");
        if !rules.expires || queue.runtime_expires == pool.expires {
            pool.runtime += slack;
            let worth = pool.runtime > rules.slice as i64 && !pool.throttled.is_empty();
            if worth && !pool.slack_started && cx.timer_due(period_timer(g)) >= cx.now() + SLACK + NEAR {
                pool.slack_started = true;
                cx.start_timer(slack_timer(g), cx.now() + SLACK);
            }
        }
        queue.runtime -= slack;
    }

    /// The earliest time at which charging the running entity of a queue can need more runtime.
    pub(super) fn runs_out(&self, cx: &Core, q: QueueId, e: EntityId) -> Nanos {
        let queue = &self.queues[q as usize];
        if queue.throttled {
            return Nanos::MAX;
        }
        let since = self.entities[e as usize].exec_start;
        let out = since.saturating_add(queue.runtime.max(0) as Nanos);
        let expires = if self.quota_rules().expires { queue.runtime_expires } else { Nanos::MAX };
        out.min(expires.max(cx.now()))
    }

    /// Enables or disables bandwidth control for the queues of a CPU that comes online or goes offline.
    pub(super) fn limit(&mut self, cpu: CpuId, limited: bool) {
        for g in 0..self.groups.all.len() {
            if self.groups.all[g].pool.is_some() {
                self.queues[(g as u32 + 1) as usize * self.cpus as usize + cpu as usize].limited = limited;
            }
        }
    }

    /// Chooses the phases and starts the periods of all groups with a quota.
    pub(super) fn start_pools(&mut self, cx: &mut Core, seed: u64) {
        let Some(rules) = self.rules.bandwidth else { return };
        let mut rng = Rng::new(seed ^ 0x5eed_ba5e);
        for g in 0..self.groups.all.len() {
            let tick_phase = cx.tick_time(1) % cx.tick_period();
            let Some(pool) = &mut self.groups.all[g].pool else { continue };
            pool.phase = if rules.random_phase {
                rng.below(pool.period)
            } else {
                // The timer interrupt coincides with a tick, and is handled before it.
                (tick_phase + pool.period - 1) % pool.period
            };
            if !rules.fills_at_start {
                self.start_period(cx, g);
            }
        }
    }
}
