//! Linux 2.6.0: the first O(1) scheduler of a stable kernel, as i386 ran it (HZ 1000).

use super::o1::*;
use super::{Build, Kernel, Preemption, o1};
use crate::o1::Release;
use crate::tunables::{Tunable, tick};
use schedlab_base::v2_6;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.6.0",
    release: Some(v2_6(0)),
    scheduler: "O(1)",
    summary: "the O(1) scheduler of 2003: slices of 10 to 200 ms, a credit for tasks that prove interactive",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        min_timeslice(10, "the slice at nice 19, and how often the most interactive tasks of one priority take turns"),
        max_timeslice(200),
        PRIO_BONUS_RATIO.tunable,
        MAX_SLEEP_AVG.starting(1020),
        STARVATION_LIMIT.starting(1020),
        INTERACTIVE_DELTA.tunable,
        CHILD_PENALTY.tunable,
        PARENT_PENALTY.tunable,
        EXIT_WEIGHT.tunable,
        ON_RUNQUEUE_WEIGHT.tunable,
        CREDIT_LIMIT.tunable,
        CACHE_DECAY_TICKS.tunable,
    ],
    simulate: |run, sink| o1::simulate(run, sink, Release::V2_6_0),
};
