//! RSDL, the Rotating Staircase Deadline scheduler, as a patch to 2.6.20.

use super::{Build, Feature, Kernel, Preemption, Run};
use crate::classes::Balanced;
use crate::staircase::{Staircase, rsdl::Rsdl};
use crate::tunables::{Handle, Tunable, Unit, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

const RR_INTERVAL: Handle<u64> =
    Handle::number("rr_interval", Unit::Ms, 6, (1, 1000), "the quota at each level, for nice 0 to 19");

pub(super) static KERNEL: Kernel = Kernel {
    name: "rsdl",
    release: None,
    scheduler: "RSDL",
    summary: "the Rotating Staircase Deadline scheduler of 2007: a quota at each level, nothing guessed",
    build: Build { preemption: Preemption::Voluntary, no_hz: false },
    lacks: &[Feature::Clamps, Feature::Groups, Feature::Inheritance],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[TICK[0], TICK[1], TICK[2], RR_INTERVAL.tunable],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let rr_interval = run.values.get(&RR_INTERVAL) * 1_000_000;
    let staircase = Staircase::new(run.machine, Rsdl { rr_interval });
    run.with(Balanced::new(run.machine, staircase), sink)
}
