//! SD, the Staircase Deadline scheduler 1.00, as a patch to 2.6.21.

use super::{Build, Feature, Kernel, Preemption, Run};
use crate::classes::Balanced;
use crate::staircase::{Staircase, sd::Sd};
use crate::tunables::{Handle, Scaling, Tunable, Unit, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

/// The announcement says: "Double that for 2 cpus."
const RR_INTERVAL: Handle<u64> =
    Handle::number("rr_interval", Unit::Ms, 10, (1, 1000), "the quota of a slot at nice 0")
        .scaled(Scaling::AtBoot { limit: 0 });

const INTERACTIVE: Handle<bool> =
    Handle::switch("interactive", true, "a task that sleeps into a later rotation keeps the rest of its quota");

pub(super) static KERNEL: Kernel = Kernel {
    name: "sd",
    release: None,
    scheduler: "SD",
    summary: "the Staircase Deadline scheduler 1.00 of 2007: slots spread over a rotation by nice level",
    build: Build { preemption: Preemption::Voluntary, no_hz: false },
    lacks: &[Feature::Clamps, Feature::Groups, Feature::Inheritance],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[TICK[0], TICK[1], TICK[2], RR_INTERVAL.tunable, INTERACTIVE.tunable],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let sd = Sd::new(v.get(&RR_INTERVAL) * 1_000_000, v.get(&INTERACTIVE));
    run.with(Balanced::new(run.machine, Staircase::new(run.machine, sd)), sink)
}
