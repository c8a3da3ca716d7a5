//! A multi-level feedback queue, as compared with O(1) in the experiment cfs-19.

use super::{Build, Feature, Kernel, Preemption, Run};
use crate::classes::simple;
use crate::mlfq::{MOST_LEVELS, Mlfq, Tunables};
use crate::tunables::{Handle, Tunable, Unit, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

const LEVELS: Handle<u8> = Handle::number("levels", Unit::Number, 8, (1, MOST_LEVELS as i64), "the number of levels");
const BASE_SLICE: Handle<u64> = Handle::number(
    "base_slice",
    Unit::Ms,
    10,
    (1, 10_000),
    "the slice at the top; the second level has twice as much, the third three times",
);
const START_LEVEL: Handle<u8> = Handle::number(
    "start_level",
    Unit::Number,
    0,
    (0, MOST_LEVELS as i64 - 1),
    "the level where a new task begins; 0: the top",
);
const BOOST: Handle<u64> =
    Handle::number("boost", Unit::Ms, 1000, (0, 1_000_000), "how often all tasks return to the top; 0: never");

pub(super) static KERNEL: Kernel = Kernel {
    name: "mlfq",
    release: None,
    scheduler: "MLFQ",
    summary: "a multi-level feedback queue: down a level for each whole slice, up for each sleep",
    build: Build { preemption: Preemption::Voluntary, no_hz: false },
    lacks: &[Feature::Clamps, Feature::Groups, Feature::Inheritance],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[TICK[0], TICK[1], TICK[2], LEVELS.tunable, BASE_SLICE.tunable, START_LEVEL.tunable, BOOST.tunable],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let tunables = Tunables {
        levels: v.get(&LEVELS),
        base_slice: v.get(&BASE_SLICE) * 1_000_000,
        start_level: v.get(&START_LEVEL),
        boost: v.get(&BOOST) * 1_000_000,
    };
    let tick = run.options.tick_period;
    run.with(simple(run.machine, Mlfq::new(run.machine, tunables, tick), tick), sink)
}
