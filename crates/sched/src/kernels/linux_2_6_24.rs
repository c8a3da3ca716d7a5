//! Linux 2.6.24: CFS in its first year. Sleepers are credited a whole latency, wake-ups preempt past 10 ms of the
//! running task's weight, a child runs before its parent, and there are no buddies.

use super::{Build, Kernel, Preemption, Run, classes};
use crate::balance::fair::balancing;
use crate::fair::cfs::{Cfs, Features, Rules, Tunables};
use crate::fair::groups;
use crate::fair::load::Arithmetic;
use crate::fair::shares::Shares;
use crate::tunables::{Tunable, Values, count, joined, tick};
use schedlab_base::{Result, Sink, v2_6};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = balancing("sched_migration_cost", "sched_nr_migrate");

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &[
        Tunable::at_boot_ns("sched_latency_ns", 20_000_000, 200_000_000, "the period in which each task runs once"),
        Tunable::at_boot_ns(
            "sched_min_granularity_ns",
            4_000_000,
            200_000_000,
            "how the period grows when there are many tasks",
        ),
        Tunable::at_boot_ns(
            "sched_wakeup_granularity_ns",
            10_000_000,
            0,
            "how far behind a woken task must be to preempt",
        ),
        Tunable::at_boot_ns(
            "sched_batch_wakeup_granularity_ns",
            10_000_000,
            0,
            "without effect: nothing in that kernel reads it, batch tasks never preempt",
        ),
        Tunable::switch("sched_child_runs_first", true, "a new child runs before its parent"),
        Tunable::switch("sched_compat_yield", false, "who yields goes behind the last, as before CFS"),
        Tunable::switch("NEW_FAIR_SLEEPERS", true, "a task that slept is placed a latency before the others"),
        Tunable::switch("WAKEUP_PREEMPT", true, "woken tasks may preempt"),
        Tunable::switch("START_DEBIT", true, "a new task waits one slice"),
        Tunable::switch("group_by_user", false, "each user's tasks share as a group (CONFIG_USER_SCHED)"),
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
            fair_sleepers: v.on("NEW_FAIR_SLEEPERS"),
            gentle_fair_sleepers: false,
            start_debit: v.on("START_DEBIT"),
            wakeup_preemption: v.on("WAKEUP_PREEMPT"),
            next_buddy: false,
            last_buddy: false,
        },
        ..Rules::LAST
    };
    let groups = groups::Rules {
        nested: false,
        root_is_group: true,
        idle: false,
        by_user: v.on("group_by_user"),
        by_session: false,
        shares: Shares::Whole,
        bandwidth: None,
    };
    run.fair(&classes::LINUX_2_6_24, Cfs::new(rules, v, tunables), groups, sink)
}

fn tunables(v: &Values) -> Tunables {
    Tunables {
        latency: v.ns("sched_latency_ns"),
        min_granularity: v.ns("sched_min_granularity_ns"),
        idle_min_granularity: v.ns("sched_min_granularity_ns"),
        wakeup_granularity: v.ns("sched_wakeup_granularity_ns"),
        child_runs_first: v.on("sched_child_runs_first"),
        compat_yield: v.on("sched_compat_yield"),
    }
}
