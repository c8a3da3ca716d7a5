//! Linux 6.1: the last long-term kernel with CFS.

use super::{Build, Kernel, Preemption, Run, build, classes, fair, numa};
use crate::balance::fair::{
    ENERGY_AWARE, FAST_UP, LOADS, MIGRATION_COST, NEWIDLE, NR_MIGRATE, SEARCH, SEARCH_COST, WAKE_AFFINE,
};
use crate::classes::hrtick::{DOUBLE_TICK, HRTICK, HRTICK_DL};
use crate::fair::cfs::{Cfs, Rules, Tunables};
use crate::fair::groups;
use crate::tunables::{Handle, Tunable, Unit, Values, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[2].tunable, NR_MIGRATE[1].tunable];

const IDLE_MIN_GRANULARITY_NS: Handle<u64> = Handle::number(
    "idle_min_granularity_ns",
    Unit::Ns,
    750_000,
    (0, 10_000_000_000),
    "the least slice of idle tasks and groups beside others",
);

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &[build::DYNAMIC],
    &classes::RT,
    &classes::INTERRUPTS,
    &[classes::RR.tunable],
    &classes::DL,
    &fair::DEBUGFS,
    &fair::FEATURES,
    &[
        fair::BASE_SLICE.tunable,
        fair::BANDWIDTH_SLICE.tunable,
        fair::AUTOGROUP.switched(false),
        IDLE_MIN_GRANULARITY_NS.tunable,
        fair::ALT_PERIOD.tunable,
    ],
    &BALANCE,
    &LOADS,
    &[HRTICK.tunable, HRTICK_DL.tunable, DOUBLE_TICK.tunable, classes::share(false), classes::push_ipi(false)],
    &[ENERGY_AWARE.tunable],
    &WAKE_AFFINE,
    &FAST_UP,
    &SEARCH,
    &SEARCH_COST,
    &NEWIDLE,
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
        base_slice: v.get(&fair::BASE_SLICE),
        alt_period: v.get(&fair::ALT_PERIOD),
        features: fair::features(v),
        ..Rules::LAST
    };
    let groups = groups::Rules { by_session: v.get(&fair::AUTOGROUP), ..groups::Rules::last(fair::quotas(v, true)) };
    run.fair(&classes::LINUX_5_10, Cfs::new(rules, v, tunables), groups, sink)
}

fn tunables(v: &Values) -> Tunables {
    fair::tunables_debugfs(v, &IDLE_MIN_GRANULARITY_NS)
}
