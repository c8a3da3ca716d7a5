//! What the profiles with the O(1) scheduler share: its constants, with the defaults of a release.

use super::Run;
use crate::o1::{Balancing, O1, Release, Tunables};
use crate::tunables::{Tunable, Unit};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;

/// A constant in milliseconds, taken in ticks.
const fn ms(name: &'static str, base: i64, least: i64, meaning: &'static str) -> Tunable {
    Tunable::number(name, Unit::Ms, base, (least, 100_000), meaning)
}

const fn percent(name: &'static str, base: i64, meaning: &'static str) -> Tunable {
    Tunable::number(name, Unit::Number, base, (0, 100), meaning)
}

pub(super) const fn min_timeslice(base: i64, meaning: &'static str) -> Tunable {
    ms("min_timeslice", base, 1, meaning)
}

pub(super) const DEF_TIMESLICE: Tunable = ms("def_timeslice", 100, 1, "the slice at nice 0");

/// From 2.6.11 on nothing bounded slices from above.
pub(super) const NO_MAX_TIMESLICE: Tunable = ms("max_timeslice", 0, 0, "the longest slice; 0: no such bound");

pub(super) const fn max_timeslice(base: i64) -> Tunable {
    ms("max_timeslice", base, 1, "the slice at nice -20; in a line from it to the least")
}

pub(super) const PRIO_BONUS_RATIO: Tunable =
    percent("prio_bonus_ratio", 25, "the part of the nice levels' range that sleepers can win, in percent");

pub(super) const fn max_sleep_avg(base: i64) -> Tunable {
    ms("max_sleep_avg", base, 1, "the most sleep that counts")
}

pub(super) const fn starvation_limit(base: i64) -> Tunable {
    ms("starvation_limit", base, 0, "how long expired tasks bear interactive ones, for each task; 0: for ever")
}

pub(super) const GRANULARITY: Tunable =
    ms("timeslice_granularity", 10, 1, "how often the most interactive tasks of one priority take turns");

pub(super) const INTERACTIVE_DELTA: Tunable =
    Tunable::number("interactive_delta", Unit::Number, 2, (0, 40), "the bonus from which nice 0 is interactive");

pub(super) const CHILD_PENALTY: Tunable =
    percent("child_penalty", 95, "what a child inherits of its parent's bonus, in percent");

pub(super) const PARENT_PENALTY: Tunable =
    percent("parent_penalty", 100, "what the parent keeps of its bonus, in percent");

pub(super) const EXIT_WEIGHT: Tunable =
    Tunable::number("exit_weight", Unit::Number, 3, (0, 1000), "the parent's sleep against its ended child's 1");

pub(super) const ON_RUNQUEUE_WEIGHT: Tunable =
    percent("on_runqueue_weight", 30, "how much of its wait counts as sleep for a task woken by a task, in percent");

pub(super) const CREDIT_LIMIT: Tunable = Tunable::number(
    "credit_limit",
    Unit::Number,
    100,
    (0, 1_000_000),
    "the interactive credit beyond which a bonus is lasting, and the debt beyond which it stays small",
);

pub(super) const CACHE_DECAY_TICKS: Tunable = Tunable::number(
    "cache_decay_ticks",
    Unit::Ticks,
    2,
    (0, 1000),
    "who ran or was queued no longer ago than that is moved to idle CPUs only",
);

pub(super) const MIGRATION_COST: Tunable = Tunable::number(
    "migration_cost",
    Unit::Us,
    2500,
    (0, 1_000_000),
    "who left its CPU no longer ago than that is not moved between caches; four times that between nodes",
);

/// Runs a release. Before 2.6.11 the slice of nice 0 and the length of turns follow from the other constants.
pub(super) fn simulate(run: &Run<'_>, sink: &mut dyn Sink, release: Release) -> Result<Outcome> {
    let v = run.values;
    let early = release.linear_slices;
    let tunables = Tunables {
        min_timeslice: v.ns("min_timeslice"),
        def_timeslice: if early { 0 } else { v.ns("def_timeslice") },
        max_timeslice: v.ns("max_timeslice"),
        prio_bonus_ratio: v.ns("prio_bonus_ratio"),
        max_sleep_avg: v.ns("max_sleep_avg"),
        starvation_limit: v.ns("starvation_limit"),
        granularity: v.ns(if early { "min_timeslice" } else { "timeslice_granularity" }),
        interactive_delta: v.ns("interactive_delta"),
        child_penalty: v.ns("child_penalty"),
        parent_penalty: v.ns("parent_penalty"),
        exit_weight: v.ns("exit_weight"),
        on_runqueue_weight: v.ns("on_runqueue_weight"),
        credit_limit: if early { v.ns("credit_limit") } else { 0 },
        cache_decay_ticks: if early { v.ns("cache_decay_ticks") } else { 0 },
        migration_cost_us: if release.balancing == Balancing::ByWeight { v.ns("migration_cost") } else { 0 },
    };
    run.with(O1::new(run.machine, release, tunables, run.options.tick_period), sink)
}
