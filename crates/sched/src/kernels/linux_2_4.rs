//! Linux 2.4: the last goodness scheduler, known as O(n).

use super::linux_2_0::PROC_CHANGE_PENALTY;
use super::{Build, Kernel, Preemption, Run};
use crate::epoch::goodness::{Goodness, rules::Rules};
use crate::tunables::{HZ, Handle, Tunable, Unit, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(100);

const MAX_COUNTER: Handle<i32> = Handle::number(
    "max_counter",
    Unit::Ticks,
    0,
    (0, 10_000),
    "the ticks that an exiting child leaves raise its parent's counter to this at most; 0: 20 * hz / 100",
);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.4",
    release: Some(v(2, 4)),
    scheduler: "O(n)",
    summary: "goodness of 2001 to 2003: epochs, one queue for all CPUs, each choice a pass over it",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[TICK[0], TICK[1], TICK[2], PROC_CHANGE_PENALTY.tunable, MAX_COUNTER.tunable],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let hz = v.get(&HZ);
    let max_counter = match v.get(&MAX_COUNTER) {
        0 => i32::try_from(20 * hz / 100).expect("hz has a range"),
        ticks => ticks,
    };
    let rules = Rules::linux_2_4(hz, v.get(&PROC_CHANGE_PENALTY), max_counter);
    run.with(Goodness::new(run.machine, rules), sink)
}
