//! What differs between the releases of CFS, its features and its tunables.

use crate::fair::load::Arithmetic;
use schedlab_base::Nanos;

/// What differs between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Fixed-point arithmetic of virtual time.
    pub arithmetic: Arithmetic,
    /// The arithmetic of slices: exact division in 2.6.24.
    pub slices: Arithmetic,
    /// The weight of a SCHED_IDLE task: 2, and 3 from 2.6.29 on.
    pub idle_weight: u64,
    /// `min_vruntime` at boot.
    pub initial_min_vruntime: u64,
    /// `min_vruntime` moves only with the running task's account, and then always; later also when a task leaves,
    /// but not when no time has passed (2.6.24).
    pub min_moves_with_account: bool,
    /// The period of many tasks is `latency * nr / (latency / min granularity)` (2.6.24), later `min granularity * nr`.
    pub period_by_ratio: bool,
    /// The tick also preempts a task that is a slice ahead of the leftmost (2.6.33 on).
    pub preempt_if_ahead: bool,
    /// The running task stays in the running when the next is picked, and keeps its slice if it wins
    /// (3.15 on); before, it was put back and picked anew.
    pub pick_with_current: bool,
    /// A task that is picked is no longer a buddy, even if it was running already (until 5.13).
    pub pick_clears_buddies: bool,
    /// A slice is at least the minimum granularity (`BASE_SLICE`, 5.13 on).
    pub base_slice: bool,
    /// A new task is placed by `min_vruntime` alone and its start always reschedules (2.6.24); later it starts no
    /// earlier than its parent.
    pub new_task_from_min: bool,
    /// The wake-up granularity is scaled by the running task's weight, not the woken one's (until 2.6.27).
    pub granularity_by_current: bool,
    /// Wake-ups and forks compare virtual runtimes as plain numbers, which errs until they have passed 0: in the
    /// first millisecond (2.6.24).
    pub plain_compare: bool,
    /// SCHED_IDLE tasks give way to every other and preempt none (2.6.29 on); before, only their weight counted.
    pub idle_gives_way: bool,
    /// A wake-up that preempts makes the woken task the next buddy (2.6.38 on).
    pub buddy_on_preempt: bool,
    /// The running task becomes the last buddy at every wake-up and fork that checks for preemption, and the tick
    /// leaves it one: it is preferred once more after its slice (2.6.32-rc3; later kernels set it only when it is
    /// preempted, among many tasks, and the tick clears it).
    pub early_last_buddy: bool,
    /// A task that yields is passed over once (2.6.39 on); before, `sched_yield()` only brought the account up to date,
    /// or, for SCHED_BATCH and with `sched_compat_yield`, went behind the last.
    pub skip_on_yield: bool,
    /// A running task counts for `min_vruntime` even as it leaves its queue, to sleep or for a new nice level
    /// (until 4.9).
    pub change_moves_min: bool,
    /// A new nice level reschedules the CPU when it is better, or the task runs (until 5.7); later a waiting task
    /// must earn it as at a wake-up.
    pub nice_rescheds: bool,
    /// A new nice level gives the running task a new slice (4.10 on).
    pub change_renews_slice: bool,
    /// A task that moves keeps its distance from `min_vruntime` at the moment that it leaves (2.6.33 on); before, the
    /// distance of the two queues' `min_vruntime` was added when it had moved.
    pub moves_relative: bool,
    /// ... and is set at that distance before the account of its new queue is brought up to date (until 4.6).
    pub lands_before_account: bool,
    /// The period counts the tasks of all groups on the CPU (`ALT_PERIOD`, 5.13 on); before, the entities of one queue.
    pub alt_period: bool,
    /// Groups that wake are credited like tasks (2.6.25 on).
    pub credits_groups: bool,
    /// Idle tasks and groups are credited the minimum granularity, not the latency, and have a least slice of
    /// their own (5.16 on).
    pub idle_granularity: bool,
    /// When a task of a group sleeps, another of that group is preferred (2.6.39 on).
    pub group_goes_on: bool,
    /// A task that is picked goes to the head of the list that balancing looks at (4.15 on).
    pub heads_list: bool,
    /// The features.
    pub features: Features,
}

impl Rules {
    /// CFS in its last form; what an older release did otherwise stands in its profile.
    pub const LAST: Self = Self {
        arithmetic: Arithmetic::Calc,
        slices: Arithmetic::Calc,
        idle_weight: 3,
        initial_min_vruntime: (-(1i64 << 20)) as u64,
        min_moves_with_account: false,
        period_by_ratio: false,
        preempt_if_ahead: true,
        pick_with_current: true,
        pick_clears_buddies: false,
        base_slice: true,
        new_task_from_min: false,
        granularity_by_current: false,
        plain_compare: false,
        idle_gives_way: true,
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
            next_buddy: false,
            last_buddy: true,
        },
    };
}

/// `sched_features` that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Features {
    pub fair_sleepers: bool,
    pub gentle_fair_sleepers: bool,
    pub start_debit: bool,
    pub wakeup_preemption: bool,
    pub next_buddy: bool,
    pub last_buddy: bool,
}

/// The tunables, after scaling by the number of CPUs.
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
