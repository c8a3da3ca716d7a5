//! Linux 3.18: the running task is a candidate when the next one is picked, and weights divide by `__calc_delta`.

use super::{Build, Kernel, Preemption, Run, classes, fair, numa};
use crate::balance::fair::{BUGS, LOADS_3_18, MIGRATION_COST, NR_MIGRATE};
use crate::classes::hrtick::{DOUBLE_TICK, HRTICK};
use crate::fair::cfs::Cfs;
use crate::tunables::{Tunable, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[1].tunable, NR_MIGRATE[0].tunable];

/// The tunables, which 4.1 shares.
pub(super) const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &classes::RT,
    &classes::INTERRUPTS,
    &[classes::RR.tunable],
    &fair::SYSCTL,
    &fair::FEATURES,
    &[fair::BANDWIDTH_SLICE.tunable, fair::AUTOGROUP.switched(true)],
    &BALANCE,
    &LOADS_3_18,
    &[HRTICK.tunable, DOUBLE_TICK.tunable, classes::share(true)],
    &BUGS,
    &numa::SYSCTL,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-3.18",
    release: Some(v(3, 18)),
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2014, with NUMA balancing in its kernel",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_DL,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let (rules, groups) = (fair::rules_3_18(run.values), fair::groups_3(run.values, true));
    run.fair(&classes::LINUX_3_18, Cfs::new(rules, run.values, fair::tunables), groups, sink)
}
