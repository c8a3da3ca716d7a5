//! Linux 6.18: EEVDF that protects the running task for the least slice of its queue, and throttles the tasks of a
//! group without quota one by one. The source is 6.18.26.

use super::linux_6_12::{self, EEVDF, PICK_BUDDY};
use super::{Build, Kernel, Preemption, Run, build, classes, fair, numa};
use crate::balance::fair::{ENERGY_AWARE, LOADS, MIGRATION_COST, NEWIDLE, NR_MIGRATE, SEARCH, VCPU_PACK, WAKE_AFFINE};
use crate::classes::hrtick::{HRTICK, HRTICK_DL};
use crate::fair::eevdf::{Eevdf, Features};
use crate::fair::{bandwidth, groups};
use crate::tunables::{Handle, Tunable, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[2].tunable, NR_MIGRATE[1].tunable];

const TTWU_QUEUE: Handle<bool> = Handle::switch(
    "TTWU_QUEUE",
    true,
    "a wake-up on a CPU with another last-level cache is handed over to that CPU, which matters with preempt=lazy",
);

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &[build::LAZY.tunable],
    &classes::RT,
    &classes::INTERRUPTS,
    &[classes::RR.tunable],
    &classes::DL,
    &classes::SERVER,
    &EEVDF,
    &[fair::BANDWIDTH_SLICE.tunable, fair::AUTOGROUP.switched(true), PICK_BUDDY.tunable, fair::NEXT_BUDDY.tunable],
    &WAKE_AFFINE,
    &SEARCH,
    &NEWIDLE,
    &BALANCE,
    &LOADS,
    &[HRTICK.tunable, HRTICK_DL.tunable, TTWU_QUEUE.tunable, classes::push_ipi(true)],
    &[ENERGY_AWARE.tunable, VCPU_PACK.tunable],
    &numa::DEBUGFS,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-6.18",
    release: Some(v(6, 18)),
    scheduler: "EEVDF",
    summary: "earliest eligible virtual deadline first, protected for the least slice",
    build: Build { preemption: Preemption::None, no_hz: true },
    lacks: &[],
    policies: classes::WITH_DL,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let features = Features {
        ttwu_queue: v.get(&TTWU_QUEUE),
        protects_least_slice: true,
        reweight_places: true,
        lag_by_longest: true,
        ..linux_6_12::features(v)
    };
    let quotas = bandwidth::Rules { random_phase: true, by_task: true, ..fair::quotas(v, true) };
    let groups = groups::Rules { by_session: v.get(&fair::AUTOGROUP), ..groups::Rules::last(quotas) };
    run.fair(&classes::LINUX_6_12, Eevdf::new(features, v, run.options.tick_period), groups, sink)
}
