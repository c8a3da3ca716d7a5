//! Linux 5.15, a long-term kernel: CFS with its tunables in debugfs, burstable quotas and idle groups.
//!
//! It includes what its stable updates backported from later releases: `SIS_UTIL` bounds the search for an idle CPU,
//! and the changes listed in `balance/fair/backports.rs`.
//!
//! # Differences from the kernel
//! Core scheduling, which is off unless tasks ask for it, is missing.
//!
//! # Reference
//! kernel/sched of 5.15.100 and 5.15.135.

use super::{Build, Kernel, Preemption, Run, build, classes, fair, numa};
use crate::balance::fair::{
    ENERGY_AWARE, FAST_UP, LOADS, MIGRATION_COST, NR_MIGRATE, SEARCH, SEARCH_COST, WAKE_AFFINE,
};
use crate::classes::hrtick::{DOUBLE_TICK, HRTICK, HRTICK_DL};
use crate::fair::cfs::{Cfs, Tunables};
use crate::fair::groups;
use crate::tunables::{Tunable, Values, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[2].tunable, NR_MIGRATE[1].tunable];

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
        fair::AUTOGROUP.switched(true),
        fair::ALT_PERIOD.tunable,
    ],
    &BALANCE,
    &LOADS,
    &[HRTICK.tunable, HRTICK_DL.tunable, DOUBLE_TICK.tunable, classes::share(false), classes::push_ipi(true)],
    &[ENERGY_AWARE.tunable],
    &WAKE_AFFINE,
    &FAST_UP,
    &SEARCH,
    &SEARCH_COST,
    &numa::DEBUGFS,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-5.15",
    release: Some(v(5, 15)),
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2021, with bursts and idle groups",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_DL,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let by_session = v.get(&fair::AUTOGROUP);
    let groups = groups::Rules { by_session, ..groups::Rules::last(fair::quotas(v, true)) };
    run.fair(&classes::LINUX_5_10, Cfs::new(fair::rules_5(v), v, tunables), groups, sink)
}

fn tunables(v: &Values) -> Tunables {
    fair::tunables_debugfs(v, &fair::MIN_GRANULARITY_NS)
}
