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
    summary: "the O(1) scheduler of 2005: two arrays of priorities, a bonus for who sleeps",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other, Policy::Fifo, Policy::Rr],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        min_timeslice(5, "the least slice"),
        DEF_TIMESLICE,
        NO_MAX_TIMESLICE,
        PRIO_BONUS_RATIO,
        max_sleep_avg(1000),
        starvation_limit(1000),
        GRANULARITY,
        INTERACTIVE_DELTA,
        CHILD_PENALTY,
        PARENT_PENALTY,
        EXIT_WEIGHT,
        ON_RUNQUEUE_WEIGHT,
    ],
    simulate: |run, sink| o1::simulate(run, sink, Release::V2_6_11),
};
