//! Linux 2.6.11: the O(1) scheduler with its estimate of interactivity.

use super::{Kernel, Run};
use crate::o1::{O1, Tunables};
use crate::tunables::{Tunable, Unit, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

/// A constant in ticks of 1 ms.
const fn ms(name: &'static str, base: i64, least: i64, meaning: &'static str) -> Tunable {
    Tunable::number(name, Unit::Ms, base, (least, 100_000), meaning)
}

const fn percent(name: &'static str, base: i64, meaning: &'static str) -> Tunable {
    Tunable::number(name, Unit::Number, base, (0, 100), meaning)
}

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.6.11",
    scheduler: "O(1)",
    summary: "the O(1) scheduler of 2005: two arrays of priorities, a bonus for who sleeps",
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        ms("min_timeslice", 5, 1, "the least slice"),
        ms("def_timeslice", 100, 1, "the slice at nice 0"),
        ms("max_timeslice", 0, 0, "the longest slice; 0: no such bound"),
        percent("prio_bonus_ratio", 25, "the part of the nice levels' range that sleepers can win, in percent"),
        ms("max_sleep_avg", 1000, 1, "the most sleep that counts"),
        ms("starvation_limit", 1000, 0, "how long expired tasks bear interactive ones, for each task; 0: for ever"),
        ms("timeslice_granularity", 10, 1, "how often the most interactive tasks of one priority take turns"),
        Tunable::number("interactive_delta", Unit::Number, 2, (0, 40), "the bonus from which nice 0 is interactive"),
        percent("child_penalty", 95, "what a child inherits of its parent's bonus, in percent"),
        percent("parent_penalty", 100, "what the parent keeps of its bonus, in percent"),
        Tunable::number("exit_weight", Unit::Number, 3, (0, 1000), "the parent's sleep against its ended child's 1"),
        percent(
            "on_runqueue_weight",
            30,
            "how much of its wait counts as sleep for a task woken by a task, in percent",
        ),
    ],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let tunables = Tunables {
        min_timeslice: v.ns("min_timeslice"),
        def_timeslice: v.ns("def_timeslice"),
        max_timeslice: v.ns("max_timeslice"),
        prio_bonus_ratio: v.ns("prio_bonus_ratio"),
        max_sleep_avg: v.ns("max_sleep_avg"),
        starvation_limit: v.ns("starvation_limit"),
        granularity: v.ns("timeslice_granularity"),
        interactive_delta: v.ns("interactive_delta"),
        child_penalty: v.ns("child_penalty"),
        parent_penalty: v.ns("parent_penalty"),
        exit_weight: v.ns("exit_weight"),
        on_runqueue_weight: v.ns("on_runqueue_weight"),
    };
    run.with(O1::new(run.machine, tunables, run.options.tick_period), sink)
}
