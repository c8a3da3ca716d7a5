//! Linux 2.4: the last scheduler by goodness, known as O(n).

use super::linux_2_0::proc_change_penalty;
use super::{Build, Kernel, Preemption, Run};
use crate::epoch::goodness::{Goodness, rules::Rules};
use crate::tunables::{Tunable, Unit, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(100);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.4",
    release: Some(v(2, 4)),
    scheduler: "O(n)",
    summary: "goodness of 2001 to 2003: epochs, one queue for all CPUs, each choice a pass over it",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        proc_change_penalty(15),
        Tunable::number(
            "max_counter",
            Unit::Ticks,
            0,
            (0, 10_000),
            "what an ended child leaves brings its parent's counter no higher; 0: 20 * hz / 100",
        ),
    ],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let hz = v.ns("hz");
    let max_counter = match v.get("max_counter") {
        0 => 20 * hz as i64 / 100,
        ticks => ticks,
    };
    let rules = Rules::linux_2_4(hz, v.get("proc_change_penalty") as i32, max_counter as i32);
    run.with(Goodness::new(run.machine, rules), sink)
}
