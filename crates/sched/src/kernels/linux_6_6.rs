//! Linux 6.6: the first kernel with EEVDF. Who sleeps leaves at once and keeps its lag; every request is for the same
//! slice.

use super::{Build, Kernel, Preemption, Run, classes, fair, numa};
use crate::balance::fair::{ENERGY_AWARE, balancing};
use crate::fair::eevdf::{Eevdf, Features};
use crate::fair::{bandwidth, groups};
use crate::tunables::{Tunable, count, joined, tick};
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
        Tunable::online_ns("base_slice_ns", 750_000, "the slice that each request asks for"),
        Tunable::scaling("tunable_scaling"),
        Tunable::switch("PLACE_LAG", true, "who sleeps keeps its lag"),
        Tunable::switch(
            "PLACE_DEADLINE_INITIAL",
            true,
            "without effect: a new task gets half a slice as it is created, and a whole one as it is queued",
        ),
        Tunable::switch("RUN_TO_PARITY", true, "the running task keeps its CPU until its slice is consumed"),
        Tunable::switch("WAKEUP_PREEMPTION", true, "woken tasks may preempt"),
        fair::BANDWIDTH_SLICE,
        fair::autogroup(true),
    ],
    &BALANCE,
    &[ENERGY_AWARE],
    &numa::DEBUGFS,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-6.6",
    release: Some(v(6, 6)),
    scheduler: "EEVDF",
    summary: "earliest eligible virtual deadline first in its first form",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_DL,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let features = Features {
        place_lag: v.on("PLACE_LAG"),
        // task_fork_fair() places with it, but enqueue_entity() places again, and wake_up_new_task() does not tell it
        // that the task is new.
        place_deadline_initial: false,
        place_rel_deadline: false,
        run_to_parity: v.on("RUN_TO_PARITY"),
        preempt_short: false,
        delay_dequeue: false,
        delay_zero: false,
        wakeup_preemption: v.on("WAKEUP_PREEMPTION"),
        custom_slice: false,
        yield_moves_deadline: true,
        idle_loses_protection: false,
        pick_buddy: false,
        empty_keeps_weight: false,
        picks_again: false,
        tree_by_vruntime: true,
    };
    let quotas = bandwidth::Rules { random_phase: true, ..fair::quotas(v, true) };
    let groups = groups::Rules { by_session: v.on("sched_autogroup_enabled"), ..groups::Rules::last(quotas) };
    run.fair(&classes::LINUX_6_6, Eevdf::new(features, v, run.options.tick_period), groups, sink)
}
