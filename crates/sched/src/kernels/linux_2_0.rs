//! Linux 2.0: the first scheduler by goodness, with real-time policies and several CPUs.

use super::{Build, Kernel, Preemption, Run};
use crate::epoch::goodness::{Goodness, rules::Rules};
use crate::tunables::{Tunable, Unit, Values, tick};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(100);

/// `DEF_PRIORITY`, of 2.0 and 2.2.
pub(super) const DEF_PRIORITY: Tunable =
    Tunable::number("def_priority", Unit::Ticks, 0, (0, 10_000), "the slice at nice 0; 0: 20 * hz / 100");

/// `PROC_CHANGE_PENALTY` as i386 had it.
pub(super) const fn proc_change_penalty(base: i64) -> Tunable {
    let meaning = "what the CPU where a task last ran counts in its goodness";
    Tunable::number("proc_change_penalty", Unit::Number, base, (0, 900), meaning)
}

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.0",
    release: Some(v(2, 0)),
    scheduler: "goodness",
    summary: "goodness of 1996: counters, FIFO and RR, one queue for all CPUs",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[TICK[0], TICK[1], TICK[2], DEF_PRIORITY, proc_change_penalty(20)],
    simulate,
};

/// The slice at nice 0, in ticks.
pub(super) fn def_priority(v: &Values) -> i32 {
    match v.get("def_priority") {
        0 => (20 * v.get("hz") / 100).max(1) as i32,
        ticks => ticks as i32,
    }
}

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let rules = Rules::linux_2_0(def_priority(v), v.get("proc_change_penalty") as i32);
    run.with(Goodness::new(run.machine, rules), sink)
}
