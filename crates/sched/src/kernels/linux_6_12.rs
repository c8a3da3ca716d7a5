//! Linux 6.12: EEVDF with lag preserved across sleep, custom slices and delayed dequeue.

use super::{Build, Kernel, Preemption, Run, build, classes, fair, numa};
use crate::balance::fair::{ENERGY_AWARE, LOADS, MIGRATION_COST, NEWIDLE, NR_MIGRATE, SEARCH, WAKE_AFFINE};
use crate::classes::hrtick::{HRTICK, HRTICK_DL};
use crate::fair::eevdf::{BASE_SLICE, Eevdf, Features};
use crate::fair::{bandwidth, groups};
use crate::tunables::{DEBUGFS_SCALING, Handle, Tunable, Values, count, joined, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[2].tunable, NR_MIGRATE[1].tunable];

const PLACE_LAG: Handle<bool> = Handle::switch("PLACE_LAG", true, "a task that sleeps keeps its lag");
const PLACE_DEADLINE_INITIAL: Handle<bool> =
    Handle::switch("PLACE_DEADLINE_INITIAL", true, "a new task starts with half a slice");
const PLACE_REL_DEADLINE: Handle<bool> =
    Handle::switch("PLACE_REL_DEADLINE", true, "a task that moves keeps its deadline, relative to its virtual runtime");
const RUN_TO_PARITY: Handle<bool> =
    Handle::switch("RUN_TO_PARITY", true, "the running task keeps its CPU until its slice is consumed");
const PREEMPT_SHORT: Handle<bool> =
    Handle::switch("PREEMPT_SHORT", true, "a woken task with a shorter slice may preempt at once");
const DELAY_DEQUEUE: Handle<bool> =
    Handle::switch("DELAY_DEQUEUE", true, "a task that sleeps with negative lag stays queued until it is eligible");
const DELAY_ZERO: Handle<bool> =
    Handle::switch("DELAY_ZERO", true, "a task that stayed queued (DELAY_DEQUEUE) gains no positive lag from it");
const WAKEUP_PREEMPTION: Handle<bool> = Handle::switch("WAKEUP_PREEMPTION", true, "woken tasks may preempt");
pub(super) const PICK_BUDDY: Handle<bool> =
    Handle::switch("PICK_BUDDY", true, "when a task of a group sleeps, another of that group goes on");

/// The slice and the features of EEVDF, which 6.18 has too.
pub(super) const EEVDF: [Tunable; 10] = [
    BASE_SLICE.tunable,
    DEBUGFS_SCALING.tunable,
    PLACE_LAG.tunable,
    PLACE_DEADLINE_INITIAL.tunable,
    PLACE_REL_DEADLINE.tunable,
    RUN_TO_PARITY.tunable,
    PREEMPT_SHORT.tunable,
    DELAY_DEQUEUE.tunable,
    DELAY_ZERO.tunable,
    WAKEUP_PREEMPTION.tunable,
];

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &[build::REAL_TIME],
    &classes::RT,
    &classes::INTERRUPTS,
    &[classes::RR.tunable],
    &classes::DL,
    &classes::SERVER,
    &EEVDF,
    &[fair::NEXT_BUDDY.tunable, fair::BANDWIDTH_SLICE.tunable, fair::AUTOGROUP.switched(false), PICK_BUDDY.tunable],
    &BALANCE,
    &LOADS,
    &[HRTICK.tunable, HRTICK_DL.tunable, classes::push_ipi(false)],
    &[ENERGY_AWARE.tunable],
    &WAKE_AFFINE,
    &SEARCH,
    &NEWIDLE,
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

/// What the kernel's EEVDF does; 6.18 starts from it.
pub(super) fn features(v: &Values) -> Features {
    Features {
        place_lag: v.get(&PLACE_LAG),
        place_deadline_initial: v.get(&PLACE_DEADLINE_INITIAL),
        place_rel_deadline: v.get(&PLACE_REL_DEADLINE),
        run_to_parity: v.get(&RUN_TO_PARITY),
        preempt_short: v.get(&PREEMPT_SHORT),
        delay_dequeue: v.get(&DELAY_DEQUEUE),
        delay_zero: v.get(&DELAY_ZERO),
        wakeup_preemption: v.get(&WAKEUP_PREEMPTION),
        next_buddy: v.get(&fair::NEXT_BUDDY),
        ttwu_queue: true,
        custom_slice: true,
        yield_moves_deadline: false,
        idle_loses_protection: true,
        pick_buddy: v.get(&PICK_BUDDY),
        empty_keeps_weight: true,
        picks_again: true,
        tree_by_vruntime: false,
        protects_least_slice: false,
        reweight_places: false,
        lag_by_longest: false,
    }
}

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let quotas = bandwidth::Rules { random_phase: true, ..fair::quotas(v, true) };
    let groups = groups::Rules { by_session: v.get(&fair::AUTOGROUP), ..groups::Rules::last(quotas) };
    run.fair(&classes::LINUX_6_12, Eevdf::new(features(v), v, run.options.tick_period), groups, sink)
}
