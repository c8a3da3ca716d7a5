//! The rules, features and tunables of CFS, which differ between releases.

use crate::fair::load::Arithmetic;
use schedlab_base::Nanos;

/// The rules of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The fixed-point arithmetic of virtual time.
    pub arithmetic: Arithmetic,
    /// The arithmetic of slices, which is exact division in 2.6.24.
    pub slices: Arithmetic,
    /// The weight of a SCHED_IDLE task: 2 until 2.6.28, and 3 from 2.6.29 on.
    pub idle_weight: u64,
    /// The value of `min_vruntime` at boot, in ns.
    pub initial_min_vruntime: u64,
    /// Whether `min_vruntime` is only updated by the accounting of the running task, even if no time has passed
    /// (2.6.24). Later it is also updated when a task leaves the queue, but not if no time has passed.
    pub min_moves_with_account: bool,
    /// Whether the period of many tasks is `latency * nr / (latency / min granularity)` (2.6.24). Later it is `min
    /// granularity * nr`.
    pub period_by_ratio: bool,
    /// How many tasks fit into the latency whatever is set (`sched_nr_latency`): from 5.13 on, a write to the files in
    /// debugfs no longer recomputes it.
    pub fixed_nr_latency: Option<u32>,
    /// Whether the tick also preempts a task that is a slice ahead of the leftmost one (2.6.32-rc6 on).
    pub preempt_if_ahead: bool,
    /// Whether a task that is behind the leftmost one counts as a slice ahead, as the difference is compared as an
    /// unsigned number (until 2.6.38). It is then picked again, with a new slice.
    pub behind_is_far_ahead: bool,
    /// Whether the running task takes part in the next pick where it is, and keeps its slice if it wins (3.15 on).
    /// Before, it was put back first.
    pub pick_with_current: bool,
    /// Whether a picked task stops being a buddy even if it was already running (until 5.13).
    pub pick_clears_buddies: bool,
    /// Whether a slice is at least the minimum granularity (`BASE_SLICE`, 5.13 on).
    pub base_slice: bool,
    /// Whether a new task is placed by `min_vruntime` alone and always causes a reschedule (2.6.24). Later it starts no
    /// earlier than its parent.
    pub new_task_from_min: bool,
    /// Whether the wake-up granularity is scaled by the running task's weight instead of the woken one's (until
    /// 2.6.26; then without `ASYM_GRAN`, until 2.6.34).
    pub granularity_by_current: bool,
    /// Whether wake-ups and forks compare virtual runtimes as plain unsigned numbers. This is wrong until they wrap
    /// past 0, in the first millisecond (2.6.24).
    pub plain_compare: bool,
    /// Whether SCHED_IDLE tasks give way to all others and preempt none (2.6.29 on). Before, only their weight
    /// mattered.
    pub idle_gives_way: bool,
    /// Whether SCHED_BATCH tasks preempt SCHED_IDLE ones (2.6.39 on). Before, they preempted nobody.
    pub idle_gives_way_to_batch: bool,
    /// Whether a wake-up that preempts makes the woken task the next buddy (2.6.38 on).
    pub buddy_on_preempt: bool,
    /// Whether the running task becomes the last buddy at every wake-up and fork that checks for preemption, and stays
    /// it at the tick, so that it is preferred again after its slice (2.6.32-rc3). Later kernels only set it when it is
    /// preempted and the queue has many tasks, and the tick clears it.
    pub early_last_buddy: bool,
    /// Whether a task that yields is passed over once (2.6.39 on). Before, `sched_yield()` only updated the accounting,
    /// or moved the task behind the last one for SCHED_BATCH and with `sched_compat_yield`.
    pub skip_on_yield: bool,
    /// Whether a running task counts towards `min_vruntime` even while it leaves its queue, to sleep or for a new nice
    /// level (until 4.9).
    pub change_moves_min: bool,
    /// Whether a new nice level reschedules the CPU if it is better or the task is running (until 5.7). Later a waiting
    /// task must qualify as for a wake-up preemption.
    pub nice_rescheds: bool,
    /// Whether a new nice level gives the running task a new slice (4.10 on).
    pub change_renews_slice: bool,
    /// Whether a task that migrates keeps its distance from `min_vruntime` as of the moment that it leaves (2.6.33 on).
    /// Before, the difference between the two queues' `min_vruntime` was added after the migration.
    pub moves_relative: bool,
    /// Whether that distance is applied before the accounting of the new queue is updated (until 4.6).
    pub lands_before_account: bool,
    /// Whether the period counts the tasks of all groups on the CPU (`ALT_PERIOD`, 5.13 on). Before, it counted the
    /// entities of one queue.
    pub alt_period: bool,
    /// Whether groups that wake get a sleeper credit like tasks (2.6.25 on).
    pub credits_groups: bool,
    /// Whether idle tasks and groups get a credit of the minimum granularity instead of the latency, and have a minimum
    /// slice of their own (5.16 on).
    pub idle_granularity: bool,
    /// Whether another task of the same group is preferred when a task sleeps (2.6.39 on).
    pub group_goes_on: bool,
    /// Whether a picked task moves to the head of the list that load balancing looks at (4.15 on).
    pub heads_list: bool,
    /// The scheduler features.
    pub features: Features,
}

impl Rules {
    /// CFS in its last form. The profiles of older releases list their differences from it.
    pub const LAST: Self = Self {
        arithmetic: Arithmetic::Calc,
        slices: Arithmetic::Calc,
        idle_weight: 3,
        initial_min_vruntime: (-(1i64 << 20)) as u64,
        min_moves_with_account: false,
        period_by_ratio: false,
        fixed_nr_latency: Some(8),
        preempt_if_ahead: true,
        behind_is_far_ahead: false,
        pick_with_current: true,
        pick_clears_buddies: false,
        base_slice: true,
        new_task_from_min: false,
        granularity_by_current: false,
        plain_compare: false,
        idle_gives_way: true,
        idle_gives_way_to_batch: true,
        buddy_on_preempt: true,
        early_last_buddy: false,
        skip_on_yield: true,
        change_moves_min: false,
        nice_rescheds: false,
        change_renews_slice: true,
        moves_relative: true,
        lands_before_account: false,
        alt_period: true,
        credits_groups: true,
        idle_granularity: true,
        group_goes_on: true,
        heads_list: true,
        features: Features {
            fair_sleepers: true,
            gentle_fair_sleepers: true,
            start_debit: true,
            wakeup_preemption: true,
            last_buddy: true,
            ..Features::NONE
        },
    };
}

/// The `sched_features` that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Features {
    pub fair_sleepers: bool,
    pub gentle_fair_sleepers: bool,
    pub normalized_sleeper: bool,
    pub tree_avg: bool,
    pub approx_avg: bool,
    pub start_debit: bool,
    pub wakeup_preemption: bool,
    pub adaptive_gran: bool,
    pub wakeup_sync: bool,
    pub wakeup_overlap: bool,
    pub wakeup_running: bool,
    pub next_buddy: bool,
    pub last_buddy: bool,
}

impl Features {
    /// None of them.
    pub const NONE: Self = Self {
        fair_sleepers: false,
        gentle_fair_sleepers: false,
        normalized_sleeper: false,
        tree_avg: false,
        approx_avg: false,
        start_debit: false,
        wakeup_preemption: false,
        adaptive_gran: false,
        wakeup_sync: false,
        wakeup_overlap: false,
        wakeup_running: false,
        next_buddy: false,
        last_buddy: false,
    };
}

/// The tunables in ns, after scaling by the number of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// `sched_latency_ns`.
    pub latency: Nanos,
    /// `sched_min_granularity_ns`.
    pub min_granularity: Nanos,
    /// `sched_idle_min_granularity_ns` (5.16 on).
    pub idle_min_granularity: Nanos,
    /// `sched_wakeup_granularity_ns`.
    pub wakeup_granularity: Nanos,
    /// `sched_child_runs_first`.
    pub child_runs_first: bool,
    /// `sched_compat_yield` (until 2.6.38).
    pub compat_yield: bool,
}
