//! Linux 6.12: EEVDF with lag kept over sleep, custom slices and delayed dequeue.

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
    &classes::SERVER,
    &[
        Tunable::online_ns("base_slice_ns", 700_000, "the slice that each request asks for"),
        Tunable::scaling("tunable_scaling"),
        Tunable::switch("PLACE_LAG", true, "who sleeps keeps its lag"),
        Tunable::switch("PLACE_DEADLINE_INITIAL", true, "a new task starts with half a slice"),
        Tunable::switch("PLACE_REL_DEADLINE", true, "who moves keeps its deadline, relative to its virtual runtime"),
        Tunable::switch("RUN_TO_PARITY", true, "the running task keeps its CPU until its slice is consumed"),
        Tunable::switch("PREEMPT_SHORT", true, "a woken task with a shorter slice may preempt at once"),
        Tunable::switch(
            "DELAY_DEQUEUE",
            true,
            "a task that sleeps with negative lag stays queued until it is eligible",
        ),
        Tunable::switch("DELAY_ZERO", true, "... and does not gain positive lag by that"),
        Tunable::switch("WAKEUP_PREEMPTION", true, "woken tasks may preempt"),
        fair::BANDWIDTH_SLICE,
        fair::autogroup(false),
        Tunable::switch("PICK_BUDDY", true, "when a task of a group sleeps, another of that group goes on"),
    ],
    &BALANCE,
    &[ENERGY_AWARE],
    &numa::DEBUGFS,
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-6.12",
    release: Some(v(6, 12)),
    scheduler: "EEVDF",
    summary: "earliest eligible virtual deadline first, in Debian 13",
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
        place_deadline_initial: v.on("PLACE_DEADLINE_INITIAL"),
        place_rel_deadline: v.on("PLACE_REL_DEADLINE"),
        run_to_parity: v.on("RUN_TO_PARITY"),
        preempt_short: v.on("PREEMPT_SHORT"),
        delay_dequeue: v.on("DELAY_DEQUEUE"),
        delay_zero: v.on("DELAY_ZERO"),
        wakeup_preemption: v.on("WAKEUP_PREEMPTION"),
        custom_slice: true,
        yield_moves_deadline: false,
        idle_loses_protection: true,
        pick_buddy: v.on("PICK_BUDDY"),
        empty_keeps_weight: true,
        picks_again: true,
        tree_by_vruntime: false,
    };
    let quotas = bandwidth::Rules { random_phase: true, ..fair::quotas(v, true) };
    let groups = groups::Rules { by_session: v.on("sched_autogroup_enabled"), ..groups::Rules::last(quotas) };
    run.fair(&classes::LINUX_6_12, Eevdf::new(features, v, run.options.tick_period), groups, sink)
}
