//! Linux 2.0: the first goodness scheduler, with real-time policies and SMP.

use super::{Build, Kernel, Preemption, Run};
use crate::epoch::goodness::{Goodness, rules::Rules};
use crate::tunables::{HZ, Handle, Tunable, Unit, Values, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(100);

/// `DEF_PRIORITY` of 2.0 and 2.2.
pub(super) const DEF_PRIORITY: Handle<i32> =
    Handle::number("def_priority", Unit::Ticks, 0, (0, 10_000), "the slice at nice 0; 0: 20 * hz / 100");

/// `PROC_CHANGE_PENALTY` on i386.
pub(super) const PROC_CHANGE_PENALTY: Handle<i32> = Handle::number(
    "proc_change_penalty",
    Unit::Number,
    15,
    (0, 900),
    "what a task's goodness gains on the CPU where it last ran",
);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.0",
    release: Some(v(2, 0)),
    scheduler: "goodness",
    summary: "goodness of 1996: counters, FIFO and RR, one queue for all CPUs",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[TICK[0], TICK[1], TICK[2], DEF_PRIORITY.tunable, PROC_CHANGE_PENALTY.starting(20)],
    simulate,
};

/// Returns the slice at nice 0, in ticks.
pub(super) fn def_priority(v: &Values) -> i32 {
    match v.get(&DEF_PRIORITY) {
        0 => i32::try_from(20 * v.get(&HZ) / 100).expect("hz has a range").max(1),
        ticks => ticks,
    }
}

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let rules = Rules::linux_2_0(def_priority(v), v.get(&PROC_CHANGE_PENALTY));
    run.with(Goodness::new(run.machine, rules), sink)
}
