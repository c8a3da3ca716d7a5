//! Linux 2.2: goodness with nice levels in it, and wake-ups that look over all CPUs.

use super::linux_2_0::{DEF_PRIORITY, def_priority, proc_change_penalty};
use super::{Build, Kernel, Preemption, Run};
use crate::epoch::goodness::{Goodness, rules::Rules};
use crate::tunables::{Tunable, Unit, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(100);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.2",
    release: Some(v(2, 2)),
    scheduler: "goodness",
    summary: "goodness of 1999: nice counts in it, wake-ups look over all CPUs",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        DEF_PRIORITY,
        proc_change_penalty(15),
        // cpu_khz / 1024 * cachesize / 5 cycles: 100 us for a cache of 512 KiB.
        Tunable::number(
            "cacheflush_time",
            Unit::Us,
            100,
            (0, 1_000_000),
            "who runs for less on average works hand in hand with whom it wakes (several CPUs)",
        ),
    ],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let related = v.ns("cacheflush_time") * 1000;
    let rules = Rules::linux_2_2(def_priority(v), v.get("proc_change_penalty") as i32, related);
    run.with(Goodness::new(run.machine, rules), sink)
}
