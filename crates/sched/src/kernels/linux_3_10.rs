//! Linux 3.10, the kernel of RHEL 7: buddies on preemption, a yielding task is skipped, weights use truncated inverses.

use super::{Build, Kernel, Preemption, Run, classes, fair};
use crate::balance::fair::{BUGS, LOADS_3_10, MIGRATION_COST, NR_MIGRATE};
use crate::classes::hrtick::{DOUBLE_TICK, HRTICK};
use crate::fair::cfs::{Cfs, Rules};
use crate::fair::load::Arithmetic;
use crate::tunables::{Tunable, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(1000);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[1].tunable, NR_MIGRATE[0].tunable];

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &classes::RT,
    &classes::INTERRUPTS,
    &[classes::RR.tunable],
    &fair::SYSCTL,
    &fair::FEATURES,
    &[fair::BANDWIDTH_SLICE.tunable, fair::AUTOGROUP.switched(true)],
    &BALANCE,
    &LOADS_3_10,
    &[HRTICK.tunable, DOUBLE_TICK.tunable, classes::share(true)],
    &[BUGS[0], BUGS[1], BUGS[2]],
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-3.10",
    release: Some(v(3, 10)),
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2013, in RHEL 7 and its kin",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_RT,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let rules = Rules {
        arithmetic: Arithmetic::MineTruncated,
        slices: Arithmetic::MineTruncated,
        pick_with_current: false,
        pick_clears_buddies: false,
        ..fair::rules_3_18(run.values)
    };
    let groups = fair::groups_3(run.values, false);
    run.fair(&classes::LINUX_2_6_32, Cfs::new(rules, run.values, fair::tunables), groups, sink)
}
