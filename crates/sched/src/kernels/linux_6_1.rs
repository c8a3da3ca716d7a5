//! Linux 6.1: the last long-term kernel with CFS.

use super::{Build, Kernel, Preemption, Run, classes, fair, numa};
use crate::balance::fair::{ENERGY_AWARE, balancing};
use crate::fair::cfs::{Cfs, Rules, Tunables};
use crate::fair::{bandwidth, groups};
use crate::tunables::{Tunable, Unit, Values, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = balancing("migration_cost_ns", "nr_migrate");

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &classes::RT,
    &[classes::RR],
    &classes::DL,
    &[
        Tunable::online_ns("latency_ns", 6_000_000, "the period in which each task runs once"),
        Tunable::online_ns("min_granularity_ns", 750_000, "the least slice"),
        Tunable::online_ns("wakeup_granularity_ns", 1_000_000, "how far behind a woken task must be to preempt"),
        Tunable::scaling("tunable_scaling"),
        Tunable::switch("sched_child_runs_first", false, "a new child runs before its parent"),
    ],
    &fair::FEATURES,
    &[
        Tunable::switch("BASE_SLICE", true, "no slice is less than the minimum granularity"),
        fair::BANDWIDTH_SLICE,
        fair::autogroup(false),
        Tunable::number(
            "idle_min_granularity_ns",
            Unit::Ns,
            750_000,
            (0, 10_000_000_000),
            "the least slice of idle tasks and groups beside others",
        ),
        Tunable::switch("ALT_PERIOD", true, "the period counts the tasks of all groups"),
    ],
    &BALANCE,
    &[ENERGY_AWARE],
    &numa::DEBUGFS,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-6.1",
    release: Some(v(6, 1)),
    scheduler: "CFS",
    summary: "the completely fair scheduler in its last form, in Debian 12",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_DL,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let rules = Rules {
        base_slice: v.on("BASE_SLICE"),
        alt_period: v.on("ALT_PERIOD"),
        features: fair::features(v),
        ..Rules::LAST
    };
    let quotas = bandwidth::Rules {
        slice: v.ns("sched_cfs_bandwidth_slice_us") * 1000,
        expires: false,
        burst: true,
        random_phase: false,
        fills_at_start: false,
        newest_first: false,
    };
    let groups = groups::Rules { by_session: v.on("sched_autogroup_enabled"), ..groups::Rules::last(quotas) };
    run.fair(&classes::LINUX_6_1, Cfs::new(rules, v, tunables), groups, sink)
}

fn tunables(v: &Values) -> Tunables {
    Tunables {
        latency: v.ns("latency_ns"),
        min_granularity: v.ns("min_granularity_ns"),
        idle_min_granularity: v.ns("idle_min_granularity_ns"),
        wakeup_granularity: v.ns("wakeup_granularity_ns"),
        child_runs_first: v.on("sched_child_runs_first"),
        compat_yield: false,
    }
}
