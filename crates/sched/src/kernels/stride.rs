//! Stride scheduling, as its authors describe it.

use super::{Build, Feature, Kernel, Preemption, Run};
use crate::classes::simple;
use crate::stride::{Stride, Tunables};
use crate::tunables::{Handle, Tunable, Unit, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

const QUANTUM: Handle<u64> = Handle::number("quantum", Unit::Ms, 10, (1, 10_000), "how long a turn lasts");

pub(super) static KERNEL: Kernel = Kernel {
    name: "stride",
    release: None,
    scheduler: "Stride",
    summary: "stride scheduling of 1995: shares by tickets, exact to a quantum",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[Feature::Clamps, Feature::Groups, Feature::Inheritance],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[TICK[0], TICK[1], TICK[2], QUANTUM.tunable],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let tunables = Tunables { quantum: run.values.get(&QUANTUM) * 1_000_000 };
    run.with(simple(run.machine, Stride::new(run.machine, tunables), run.options.tick_period), sink)
}
