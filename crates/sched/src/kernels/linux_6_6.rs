//! Linux 6.6: the first kernel with EEVDF. A task that sleeps is dequeued at once and keeps its lag, and every request
//! is for the same slice.

use super::{Build, Kernel, Preemption, Run, build, classes, fair, numa};
use crate::balance::fair::{
    ENERGY_AWARE, FAST_UP, LOADS, MIGRATION_COST, NR_MIGRATE, SEARCH, SEARCH_COST, WAKE_AFFINE,
};
use crate::classes::hrtick::{HRTICK, HRTICK_DL};
use crate::fair::eevdf::{BASE_SLICE, Eevdf, Features};
use crate::fair::{bandwidth, groups};
use crate::tunables::{DEBUGFS_SCALING, Handle, Tunable, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[2].tunable, NR_MIGRATE[1].tunable];

const PLACE_LAG: Handle<bool> = Handle::switch("PLACE_LAG", true, "a task that sleeps keeps its lag");
const PLACE_DEADLINE_INITIAL: Handle<bool> = Handle::switch(
    "PLACE_DEADLINE_INITIAL",
    true,
    "without effect: a new task gets half a slice as it is created, and a whole one as it is queued",
);
const RUN_TO_PARITY: Handle<bool> =
    Handle::switch("RUN_TO_PARITY", true, "the running task keeps its CPU until its slice is consumed");
const WAKEUP_PREEMPTION: Handle<bool> = Handle::switch("WAKEUP_PREEMPTION", true, "woken tasks may preempt");

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &[build::DYNAMIC],
    &classes::RT,
    &classes::INTERRUPTS,
    &[classes::RR.tunable],
    &classes::DL,
    &[
        BASE_SLICE.starting(750_000),
        DEBUGFS_SCALING.tunable,
        PLACE_LAG.tunable,
        PLACE_DEADLINE_INITIAL.tunable,
        RUN_TO_PARITY.tunable,
        WAKEUP_PREEMPTION.tunable,
        fair::NEXT_BUDDY.tunable,
        fair::BANDWIDTH_SLICE.tunable,
        fair::AUTOGROUP.switched(true),
    ],
    &BALANCE,
    &LOADS,
    &[HRTICK.tunable, HRTICK_DL.tunable, classes::share(false), classes::push_ipi(true)],
    &[ENERGY_AWARE.tunable],
    &WAKE_AFFINE,
    &FAST_UP,
    &SEARCH,
    &SEARCH_COST,
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
        place_lag: v.get(&PLACE_LAG),
        // task_fork_fair() places the new task with it, but enqueue_entity() places the task again, and
        // wake_up_new_task() does not pass on that the task is new.
        place_deadline_initial: false,
        place_rel_deadline: false,
        run_to_parity: v.get(&RUN_TO_PARITY),
        preempt_short: false,
        delay_dequeue: false,
        delay_zero: false,
        wakeup_preemption: v.get(&WAKEUP_PREEMPTION),
        next_buddy: v.get(&fair::NEXT_BUDDY),
        ttwu_queue: true,
        custom_slice: false,
        yield_moves_deadline: true,
        idle_loses_protection: false,
        // pick_next_entity() looks at the buddies only with NEXT_BUDDY.
        pick_buddy: v.get(&fair::NEXT_BUDDY),
        empty_keeps_weight: false,
        picks_again: false,
        tree_by_vruntime: true,
        protects_least_slice: false,
        reweight_places: false,
        lag_by_longest: false,
    };
    let quotas = bandwidth::Rules { random_phase: true, ..fair::quotas(v, true) };
    let groups = groups::Rules { by_session: v.get(&fair::AUTOGROUP), ..groups::Rules::last(quotas) };
    run.fair(&classes::LINUX_6_6, Eevdf::new(features, v, run.options.tick_period), groups, sink)
}
