//! A multi-level feedback queue, as the experiment cfs-19 compares one with O(1).

use super::{Build, Feature, Kernel, Preemption, Run};
use crate::classes::simple;
use crate::mlfq::{MOST_LEVELS, Mlfq, Tunables};
use crate::tunables::{Tunable, Unit, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

pub(super) static KERNEL: Kernel = Kernel {
    name: "mlfq",
    release: None,
    scheduler: "MLFQ",
    summary: "a multi-level feedback queue: down a level for each whole slice, up for each sleep",
    build: Build { preemption: Preemption::Voluntary, no_hz: false },
    lacks: &[Feature::Clamps, Feature::Groups],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        Tunable::number("levels", Unit::Number, 8, (1, MOST_LEVELS as i64), "how many levels there are"),
        Tunable::number(
            "base_slice",
            Unit::Ms,
            10,
            (1, 10_000),
            "the slice at the top; the second level has twice, the third three times it",
        ),
        Tunable::number(
            "start_level",
            Unit::Number,
            0,
            (0, MOST_LEVELS as i64 - 1),
            "where a new task begins; 0: the top",
        ),
        Tunable::number("boost", Unit::Ms, 1000, (0, 1_000_000), "how often all tasks come back to the top; 0: never"),
    ],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let tunables = Tunables {
        levels: v.ns("levels") as u8,
        base_slice: v.ns("base_slice") * 1_000_000,
        start_level: v.ns("start_level") as u8,
        boost: v.ns("boost") * 1_000_000,
    };
    let tick = run.options.tick_period;
    run.with(simple(run.machine, Mlfq::new(run.machine, tunables, tick), tick), sink)
}
