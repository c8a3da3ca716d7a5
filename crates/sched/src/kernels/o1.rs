//! What the profiles with the O(1) scheduler share: its constants, with the defaults of a release.

use super::Run;
use crate::o1::{Balancing, O1, Release, Tunables};
use crate::tunables::{Handle, Tunable, Unit};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;

/// A constant in milliseconds, converted to ticks.
const fn ms(name: &'static str, base: i64, least: i64, meaning: &'static str) -> Handle<u64> {
    Handle::number(name, Unit::Ms, base, (least, 100_000), meaning)
}

const fn percent(name: &'static str, base: i64, meaning: &'static str) -> Handle<u64> {
    Handle::number(name, Unit::Number, base, (0, 100), meaning)
}

const MIN_TIMESLICE: Handle<u64> = ms("min_timeslice", 5, 1, "the least slice");

pub(super) const fn min_timeslice(base: i64, meaning: &'static str) -> Tunable {
    Tunable { meaning, ..MIN_TIMESLICE.starting(base) }
}

pub(super) const DEF_TIMESLICE: Handle<u64> = ms("def_timeslice", 100, 1, "the slice at nice 0");

/// From 2.6.11 on slices have no upper limit.
pub(super) const MAX_TIMESLICE: Handle<u64> = ms("max_timeslice", 0, 0, "the longest slice; 0: no limit");

pub(super) const fn max_timeslice(base: i64) -> Tunable {
    ms("max_timeslice", base, 1, "the slice at nice -20; slices fall linearly from it to the shortest").tunable
}

pub(super) const PRIO_BONUS_RATIO: Handle<u64> =
    percent("prio_bonus_ratio", 25, "how much of the range of nice levels sleepers can gain, in percent");

pub(super) const MAX_SLEEP_AVG: Handle<u64> =
    ms("max_sleep_avg", 1000, 1, "the greatest sleep average that a task can have");

pub(super) const STARVATION_LIMIT: Handle<u64> = ms(
    "starvation_limit",
    1000,
    0,
    "how long expired tasks wait for interactive ones, for each runnable task; 0: no limit",
);

pub(super) const GRANULARITY: Handle<u64> =
    ms("timeslice_granularity", 10, 1, "how often the most interactive tasks of one priority take turns");

pub(super) const INTERACTIVE_DELTA: Handle<u64> =
    Handle::number("interactive_delta", Unit::Number, 2, (0, 40), "the bonus from which nice 0 is interactive");

pub(super) const CHILD_PENALTY: Handle<u64> =
    percent("child_penalty", 95, "how much of its parent's bonus a child inherits, in percent");

pub(super) const PARENT_PENALTY: Handle<u64> =
    percent("parent_penalty", 100, "how much of its bonus the parent keeps, in percent");

pub(super) const EXIT_WEIGHT: Handle<u64> = Handle::number(
    "exit_weight",
    Unit::Number,
    3,
    (0, 1000),
    "the weight of the parent's sleep average when a child exits; the child's has weight 1",
);

pub(super) const ON_RUNQUEUE_WEIGHT: Handle<u64> =
    percent("on_runqueue_weight", 30, "how much of its wait counts as sleep for a task woken by a task, in percent");

pub(super) const CREDIT_LIMIT: Handle<u64> = Handle::number(
    "credit_limit",
    Unit::Number,
    100,
    (0, 1_000_000),
    "the interactive credit above which a bonus lasts, and the debt beyond which it stays small",
);

pub(super) const CACHE_DECAY_TICKS: Handle<u64> = Handle::number(
    "cache_decay_ticks",
    Unit::Ticks,
    2,
    (0, 1000),
    "a task that ran or was queued within this time is moved only to idle CPUs",
);

pub(super) const MIGRATION_COST: Handle<u64> = Handle::number(
    "migration_cost",
    Unit::Us,
    2500,
    (0, 1_000_000),
    "a task that left its CPU within this time is not moved to another cache; four times as long between nodes",
);

/// Runs a release. Before 2.6.11 the slice at nice 0 and the length of turns follow from the other constants.
pub(super) fn simulate(run: &Run<'_>, sink: &mut dyn Sink, release: Release) -> Result<Outcome> {
    let v = run.values;
    let early = release.linear_slices;
    let tunables = Tunables {
        min_timeslice: v.get(&MIN_TIMESLICE),
        def_timeslice: if early { 0 } else { v.get(&DEF_TIMESLICE) },
        max_timeslice: v.get(&MAX_TIMESLICE),
        prio_bonus_ratio: v.get(&PRIO_BONUS_RATIO),
        max_sleep_avg: v.get(&MAX_SLEEP_AVG),
        starvation_limit: v.get(&STARVATION_LIMIT),
        granularity: v.get(if early { &MIN_TIMESLICE } else { &GRANULARITY }),
        interactive_delta: v.get(&INTERACTIVE_DELTA),
        child_penalty: v.get(&CHILD_PENALTY),
        parent_penalty: v.get(&PARENT_PENALTY),
        exit_weight: v.get(&EXIT_WEIGHT),
        on_runqueue_weight: v.get(&ON_RUNQUEUE_WEIGHT),
        credit_limit: if early { v.get(&CREDIT_LIMIT) } else { 0 },
        cache_decay_ticks: if early { v.get(&CACHE_DECAY_TICKS) } else { 0 },
        migration_cost_us: if release.balancing == Balancing::ByWeight { v.get(&MIGRATION_COST) } else { 0 },
    };
    run.with(O1::new(run.machine, release, tunables, run.options.tick_period), sink)
}
