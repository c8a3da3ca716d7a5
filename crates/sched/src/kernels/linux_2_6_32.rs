//! Linux 2.6.32: CFS as it came to the enterprise distributions.

use super::{Build, Kernel, Preemption, Run, classes};
use crate::balance::fair::balancing;
use crate::fair::cfs::{Cfs, Features, Rules, Tunables};
use crate::fair::groups;
use crate::fair::load::Arithmetic;
use crate::fair::shares::Shares;
use crate::tunables::{Tunable, Unit, Values, count, joined, tick};
use schedlab_base::{Result, Sink, v2_6};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(1000);
const BALANCE: [Tunable; 2] = balancing("sched_migration_cost", "sched_nr_migrate");

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &classes::RT,
    &[
        Tunable::at_boot_ns("sched_latency_ns", 5_000_000, 200_000_000, "the period in which each task runs once"),
        Tunable::at_boot_ns(
            "sched_min_granularity_ns",
            1_000_000,
            200_000_000,
            "the least slice when there are many tasks",
        ),
        Tunable::at_boot_ns(
            "sched_wakeup_granularity_ns",
            1_000_000,
            0,
            "how far behind a woken task must be to preempt",
        ),
        Tunable::switch("sched_child_runs_first", false, "a new child runs before its parent"),
        Tunable::switch("sched_compat_yield", false, "who yields goes behind the last, as before CFS"),
        Tunable::switch("FAIR_SLEEPERS", true, "a task that slept is placed a little before the others"),
        Tunable::switch("GENTLE_FAIR_SLEEPERS", true, "... by half the latency only"),
        Tunable::switch("START_DEBIT", true, "a new task waits one slice"),
        Tunable::switch("WAKEUP_PREEMPT", true, "woken tasks may preempt"),
        Tunable::switch("NEXT_BUDDY", false, "prefer to run whom was woken last"),
        Tunable::switch("LAST_BUDDY", true, "prefer to go back to whom a wake-up preempted"),
        Tunable::switch("group_by_user", false, "each user's tasks share as a group (CONFIG_USER_SCHED)"),
        Tunable::at_boot_ns("sched_shares_ratelimit", 250_000, 0, "how often groups' shares are spread over the CPUs"),
        Tunable::number(
            "sched_shares_thresh",
            Unit::Number,
            4,
            (0, 1 << 18),
            "... if the weight on a CPU changes by more than this",
        ),
    ],
    &BALANCE,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.6.32",
    release: Some(v2_6(32)),
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2009, in RHEL 6 and its kin",
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
        slices: Arithmetic::Mine,
        preempt_if_ahead: false,
        pick_with_current: false,
        base_slice: false,
        buddy_on_preempt: false,
        early_last_buddy: true,
        skip_on_yield: false,
        change_moves_min: true,
        nice_rescheds: true,
        change_renews_slice: false,
        moves_relative: false,
        alt_period: false,
        idle_granularity: false,
        group_goes_on: false,
        heads_list: false,
        features: Features {
            fair_sleepers: v.on("FAIR_SLEEPERS"),
            gentle_fair_sleepers: v.on("GENTLE_FAIR_SLEEPERS"),
            start_debit: v.on("START_DEBIT"),
            wakeup_preemption: v.on("WAKEUP_PREEMPT"),
            next_buddy: v.on("NEXT_BUDDY"),
            last_buddy: v.on("LAST_BUDDY"),
        },
        ..Rules::LAST
    };
    let groups = groups::Rules {
        nested: true,
        root_is_group: false,
        idle: false,
        by_user: v.on("group_by_user"),
        by_session: false,
        shares: Shares::Sampled { every: v.ns("sched_shares_ratelimit"), threshold: v.ns("sched_shares_thresh") },
        bandwidth: None,
    };
    run.fair(&classes::LINUX_2_6_32, Cfs::new(rules, v, tunables), groups, sink)
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
