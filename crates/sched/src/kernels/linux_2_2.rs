//! Linux 2.2: goodness includes the nice level, and wake-ups consider all CPUs.

use super::linux_2_0::{DEF_PRIORITY, PROC_CHANGE_PENALTY, def_priority};
use super::{Build, Kernel, Preemption, Run};
use crate::epoch::goodness::{Goodness, rules::Rules};
use crate::tunables::{Handle, Tunable, Unit, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(100);

const CACHEFLUSH_TIME: Handle<u64> = Handle::number(
    "cacheflush_time",
    Unit::Us,
    100,
    (0, 1_000_000),
    "tasks that run for less than this on average count as cooperating with those they wake (several CPUs)",
);

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
        DEF_PRIORITY.tunable,
        PROC_CHANGE_PENALTY.tunable,
        // cpu_khz / 1024 * cachesize / 5 cycles: 100 us for a cache of 512 KiB.
        CACHEFLUSH_TIME.tunable,
    ],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let related = v.get(&CACHEFLUSH_TIME) * 1000;
    let rules = Rules::linux_2_2(def_priority(v), v.get(&PROC_CHANGE_PENALTY), related);
    run.with(Goodness::new(run.machine, rules), sink)
}
