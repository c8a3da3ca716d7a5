//! Linux 5.10 as in Debian 11: CFS with reworked load balancing (5.5); the last of these kernels with sysctls.
//!
//! It includes what its stable updates backported from later releases: `ALT_PERIOD` and `BASE_SLICE`, all distances
//! between nodes, and the changes listed in `balance/fair/backports.rs`.
//!
//! # Differences from the kernel
//! Debian 11 is built without `UCLAMP_TASK`; here `util_min` and `util_max` work as in a build with it. `SIS_PROP`
//! bounds the search for an idle CPU by the cost of such searches, which is estimated here.
//!
//! # Reference
//! kernel/sched of Debian's 5.10.223, and the configuration of its amd64 build.

use super::{Build, Kernel, Preemption, Run, classes, fair, numa};
use crate::balance::fair::{ENERGY_AWARE, FAST_UP, LOADS, MIGRATION_COST, NR_MIGRATE, SEARCH_5_10, WAKE_AFFINE};
use crate::classes::hrtick::{DOUBLE_TICK, HRTICK};
use crate::fair::cfs::{Cfs, Rules};
use crate::fair::groups;
use crate::tunables::{Tunable, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[1].tunable, NR_MIGRATE[0].tunable];

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &classes::RT,
    &classes::INTERRUPTS,
    &[classes::RR.tunable],
    &classes::DL,
    &fair::SYSCTL,
    &fair::FEATURES,
    &[
        fair::BASE_SLICE.tunable,
        fair::BANDWIDTH_SLICE.tunable,
        fair::AUTOGROUP.switched(false),
        fair::ALT_PERIOD.tunable,
    ],
    &BALANCE,
    &LOADS,
    &[HRTICK.tunable, DOUBLE_TICK.tunable, classes::share(false), classes::push_ipi(true)],
    &[ENERGY_AWARE.tunable],
    &WAKE_AFFINE,
    &SEARCH_5_10,
    &FAST_UP,
    &numa::SYSCTL,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-5.10",
    release: Some(v(5, 10)),
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2020, in Debian 11",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_DL,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    // `pick_next_entity` calls `clear_buddies`; from 5.14 on `set_next_entity` does.
    let rules = Rules { pick_clears_buddies: true, fixed_nr_latency: None, ..fair::rules_5(v) };
    // "sched: Cgroup SCHED_IDLE support" came with 5.15.
    let groups = groups::Rules {
        idle: false,
        by_session: v.get(&fair::AUTOGROUP),
        ..groups::Rules::last(fair::quotas(v, false))
    };
    run.fair(&classes::LINUX_5_10, Cfs::new(rules, v, fair::tunables), groups, sink)
}
