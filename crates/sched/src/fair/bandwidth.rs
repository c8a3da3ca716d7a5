//! Quotas of groups: CPU time in each period, over all CPUs (CFS bandwidth control, 3.2 on).
//!
//! # Idea
//! A group has a pool that is filled with its quota once a period. Each of its queues takes a slice out of it when it
//! runs, and more when that is used up. A queue that finds the pool empty is throttled: its entity leaves the queue
//! above until the pool is filled again.
//!
//! # Rule
//! A queue is throttled when its running task is accounted for (at the tick, mostly) with nothing left, at the
//! rescheduling that follows, or when a task joins it while it is empty. What it overran is taken off later. A queue
//! that becomes empty gives back all but 1 ms; if others are throttled, they get it 5 ms later. What is not used may be
//! saved, up to the burst.
//!
//! # State
//! [`Pool`], one a group; what is left of each queue's slice, in [`Queue`](super::entity::Queue).
//!
//! # Tunables
//! `sched_cfs_bandwidth_slice_us`.
//!
//! # Differences from the kernel
//! A period that is too short for its timer is not lengthened. Distribution to other CPUs takes no time.
//!
//! # Reference
//! kernel/sched/fair.c of 3.10, 3.18, 4.1, 6.1, 6.6 and 6.12.

mod throttle;

use super::entity::{EntityId, QueueId};
use super::rqs::Runqueues;
use crate::classes::ClassId;
use schedlab_base::{CpuId, Nanos, Rng};
use schedlab_sim::{Core, TimerId};

/// What a queue keeps when it becomes empty (`min_cfs_rq_runtime`).
const KEPT: i64 = 1_000_000;
/// How long what was given back is gathered (`cfs_bandwidth_slack_period`).
const SLACK: Nanos = 5_000_000;
/// So near to the end of the period it is not worth it (`min_bandwidth_expiration`).
const NEAR: Nanos = 2_000_000;

/// What differs between releases.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// What a queue takes out of the pool at once, in ns (`sched_cfs_bandwidth_slice`).
    pub slice: Nanos,
    /// What a queue has taken expires with the period (until 5.3).
    pub expires: bool,
    /// Quota can be saved (5.14 on).
    pub burst: bool,
    /// Each group's periods begin at a random phase (6.6 on); before, at multiples of the period, and so just before a
    /// tick.
    pub random_phase: bool,
    /// The pool is filled when its timer starts, after the group was idle (until 4.2).
    pub fills_at_start: bool,
    /// The queue that was throttled last goes on first (3.18 to 4.17).
    pub newest_first: bool,
}

/// A group's quota (`struct cfs_bandwidth`).
#[derive(Clone, Debug)]
pub struct Pool {
    quota: i64,
    period: Nanos,
    burst: i64,
    runtime: i64,
    expires: Nanos,
    /// Nothing was taken in this period.
    idle: bool,
    /// The period's timer runs.
    active: bool,
    slack_started: bool,
    /// The phase of the periods, in ns.
    phase: Nanos,
    /// Its queues that are throttled, in order.
    throttled: Vec<QueueId>,
}

impl Pool {
    /// A pool that is full: `quota` ns each `period`, of which `burst` may be saved.
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

    /// `__refill_cfs_bandwidth_runtime`.
    fn refill(&mut self, now: Nanos, rules: &Rules) {
        if rules.fills_at_start {
            self.runtime = self.quota;
            self.expires = now + self.period;
        } else {
            self.runtime = (self.runtime + self.quota).min(self.quota + self.burst);
        }
    }

    /// The end of the period that `now` is in.
    fn period_end(&self, now: Nanos) -> Nanos {
        let since = (now + self.period - self.phase) % self.period;
        now + self.period - since
    }
}

/// The timer of a group's periods; that of its slack is the next.
fn period_timer(g: usize) -> TimerId {
    ClassId::Fair.timer(2 * g as u32)
}

fn slack_timer(g: usize) -> TimerId {
    ClassId::Fair.timer(2 * g as u32 + 1)
}

impl Runqueues {
    pub(super) fn pool(&mut self, g: usize) -> &mut Pool {
        self.groups.all[g].pool.as_mut().expect("only groups with a quota are limited")
    }

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

    /// Charges a queue, and takes more out of the pool when nothing is left (`account_cfs_rq_runtime`).
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

    /// `expire_cfs_rq_runtime`, before 5.4.
    fn expire(&mut self, cx: &Core, q: QueueId) {
        let g = self.group_of(q);
        let pool_expires = self.pool(g).expires;
        let queue = &mut self.queues[q as usize];
        if cx.now() < queue.runtime_expires || queue.runtime < 0 {
            return;
        }
        if queue.runtime_expires == pool_expires {
            // The timer is late by as much: the queue's clock runs ahead.
            queue.runtime_expires += cx.tick_period();
        } else {
            queue.runtime = 0;
        }
    }

    /// Takes as much out of the pool as makes `target` (`__assign_cfs_rq_runtime`); whether there is any now.
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

    /// A group's queue on a CPU, and those of the groups below it there.
    fn below(&self, q: QueueId, all: &mut Vec<QueueId>) {
        all.push(q);
        for child in &self.groups.all[self.group_of(q)].children {
            self.below((child + 1) * self.cpus + self.cpu_of(q), all);
        }
    }

    /// A queue became empty: gives back what it does not need (`return_cfs_rq_runtime`).
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

    /// When the account of the running entity of a queue could first ask for more.
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

    /// A CPU comes: its queues are limited again.
    pub(super) fn limit(&mut self, cpu: CpuId, limited: bool) {
        for g in 0..self.groups.all.len() {
            if self.groups.all[g].pool.is_some() {
                self.queues[(g as u32 + 1) as usize * self.cpus as usize + cpu as usize].limited = limited;
            }
        }
    }

    /// Draws the phases, and starts the periods of all groups that have a quota.
    pub(super) fn start_pools(&mut self, cx: &mut Core, seed: u64) {
        let Some(rules) = self.rules.bandwidth else { return };
        let mut rng = Rng::new(seed ^ 0x5eed_ba5e);
        for g in 0..self.groups.all.len() {
            let tick_phase = cx.tick_time(1) % cx.tick_period();
            let Some(pool) = &mut self.groups.all[g].pool else { continue };
            pool.phase = if rules.random_phase {
                rng.below(pool.period)
            } else {
                // The timer's interrupt comes with a tick's, and goes before it.
                (tick_phase + pool.period - 1) % pool.period
            };
            if !rules.fills_at_start {
                self.start_period(cx, g);
            }
        }
    }
}
