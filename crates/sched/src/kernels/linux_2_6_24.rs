//! Linux 2.6.24: CFS in its first year. Sleepers are credited a whole latency, a woken task preempts if it is more than
//! 10 ms (scaled by the running task's weight) behind, a child runs before its parent, and there are no buddies.

use super::{Build, Kernel, Preemption, Run, classes};
use crate::balance::fair::{MIGRATION_COST, NR_MIGRATE};
use crate::fair::cfs::{Cfs, Features, Rules, Tunables};
use crate::fair::groups;
use crate::fair::load::Arithmetic;
use crate::fair::shares::Shares;
use crate::tunables::{GRANULARITY, Handle, Tunable, Values, count, joined, tick};
use schedlab_base::{Result, Sink, v2_6};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[0].tunable, NR_MIGRATE[0].tunable];

const SCHED_LATENCY_NS: Handle<u64> =
    Handle::at_boot_ns("sched_latency_ns", 20_000_000, 200_000_000, "the period in which each task runs once")
        .within(GRANULARITY);
const SCHED_MIN_GRANULARITY_NS: Handle<u64> = Handle::at_boot_ns(
    "sched_min_granularity_ns",
    4_000_000,
    200_000_000,
    "the least slice: with many tasks the period grows to keep it",
)
.within(GRANULARITY);
const SCHED_WAKEUP_GRANULARITY_NS: Handle<u64> =
    Handle::at_boot_ns("sched_wakeup_granularity_ns", 10_000_000, 0, "how far behind a woken task must be to preempt");
const SCHED_BATCH_WAKEUP_GRANULARITY_NS: Handle<u64> = Handle::at_boot_ns(
    "sched_batch_wakeup_granularity_ns",
    10_000_000,
    0,
    "no effect: nothing in that kernel reads it, as batch tasks never preempt",
);
const SCHED_CHILD_RUNS_FIRST: Handle<bool> =
    Handle::switch("sched_child_runs_first", true, "a new child runs before its parent");
const SCHED_COMPAT_YIELD: Handle<bool> =
    Handle::switch("sched_compat_yield", false, "a task that yields goes behind the last one, as before CFS");
const NEW_FAIR_SLEEPERS: Handle<bool> =
    Handle::switch("NEW_FAIR_SLEEPERS", true, "a task that slept is placed a latency before the others");
const WAKEUP_PREEMPT: Handle<bool> = Handle::switch("WAKEUP_PREEMPT", true, "woken tasks may preempt");
const START_DEBIT: Handle<bool> = Handle::switch("START_DEBIT", true, "a new task waits one slice");
const TREE_AVG: Handle<bool> = Handle::switch(
    "TREE_AVG",
    false,
    "tasks are placed in the middle between the first and the last, and not at the first",
);
const APPROX_AVG: Handle<bool> =
    Handle::switch("APPROX_AVG", false, "tasks are placed half a slice after the first, if TREE_AVG is off");
const GROUP_BY_USER: Handle<bool> =
    Handle::switch("group_by_user", false, "each user's tasks form a group (CONFIG_USER_SCHED)");

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &[
        SCHED_LATENCY_NS.tunable,
        SCHED_MIN_GRANULARITY_NS.tunable,
        SCHED_WAKEUP_GRANULARITY_NS.tunable,
        SCHED_BATCH_WAKEUP_GRANULARITY_NS.tunable,
        SCHED_CHILD_RUNS_FIRST.tunable,
        SCHED_COMPAT_YIELD.tunable,
        NEW_FAIR_SLEEPERS.tunable,
        WAKEUP_PREEMPT.tunable,
        START_DEBIT.tunable,
        TREE_AVG.tunable,
        APPROX_AVG.tunable,
        GROUP_BY_USER.tunable,
    ],
    &BALANCE,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.6.24",
    release: Some(v2_6(24)),
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2008, its second release",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_RT,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let rules = Rules {
        arithmetic: Arithmetic::Mine,
        slices: Arithmetic::Divide,
        idle_weight: 2,
        min_moves_with_account: true,
        period_by_ratio: true,
        preempt_if_ahead: false,
        pick_with_current: false,
        base_slice: false,
        fixed_nr_latency: None,
        new_task_from_min: true,
        granularity_by_current: true,
        plain_compare: true,
        idle_gives_way: false,
        buddy_on_preempt: false,
        skip_on_yield: false,
        nice_rescheds: true,
        change_renews_slice: false,
        moves_relative: false,
        alt_period: false,
        idle_granularity: false,
        credits_groups: false,
        group_goes_on: false,
        heads_list: false,
        features: Features {
            fair_sleepers: v.get(&NEW_FAIR_SLEEPERS),
            start_debit: v.get(&START_DEBIT),
            tree_avg: v.get(&TREE_AVG),
            approx_avg: v.get(&APPROX_AVG),
            wakeup_preemption: v.get(&WAKEUP_PREEMPT),
            ..Features::NONE
        },
        ..Rules::LAST
    };
    let groups = groups::Rules {
        nested: false,
        root_is_group: true,
        idle: false,
        by_user: v.get(&GROUP_BY_USER),
        by_session: false,
        shares: Shares::Whole,
        bandwidth: None,
    };
    run.fair(&classes::LINUX_2_6_24, Cfs::new(rules, v, tunables), groups, sink)
}

fn tunables(v: &Values) -> Tunables {
    Tunables {
        latency: v.get(&SCHED_LATENCY_NS),
        min_granularity: v.get(&SCHED_MIN_GRANULARITY_NS),
        idle_min_granularity: v.get(&SCHED_MIN_GRANULARITY_NS),
        wakeup_granularity: v.get(&SCHED_WAKEUP_GRANULARITY_NS),
        child_runs_first: v.get(&SCHED_CHILD_RUNS_FIRST),
        compat_yield: v.get(&SCHED_COMPAT_YIELD),
    }
}
