//! Linux 2.6.11: the O(1) scheduler with its estimate of interactivity.

use super::o1::*;
use super::{Build, Kernel, Preemption, o1};
use crate::o1::Release;
use crate::tunables::{Tunable, tick};
use schedlab_base::v2_6;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.6.11",
    release: Some(v2_6(11)),
    scheduler: "O(1)",
    summary: "the O(1) scheduler of 2005: two arrays of priorities, a bonus for tasks that sleep",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        min_timeslice(5, "the least slice"),
        DEF_TIMESLICE.tunable,
        MAX_TIMESLICE.tunable,
        PRIO_BONUS_RATIO.tunable,
        MAX_SLEEP_AVG.starting(1000),
        STARVATION_LIMIT.starting(1000),
        GRANULARITY.tunable,
        INTERACTIVE_DELTA.tunable,
        CHILD_PENALTY.tunable,
        PARENT_PENALTY.tunable,
        EXIT_WEIGHT.tunable,
        ON_RUNQUEUE_WEIGHT.tunable,
    ],
    simulate: |run, sink| o1::simulate(run, sink, Release::V2_6_11),
};
