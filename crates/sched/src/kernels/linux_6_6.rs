//! Linux 6.6: the first kernel with EEVDF. Who sleeps leaves at once and keeps its lag; every request is for the same
//! slice.

use super::{Kernel, Run};
use crate::classes::Stack;
use crate::fair::eevdf::{Eevdf, Features};
use crate::tunables::{Tunable, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(250);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-6.6",
    scheduler: "EEVDF",
    summary: "earliest eligible virtual deadline first in its first form",
    policies: &[Policy::Other, Policy::Batch, Policy::Idle],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        Tunable::online_ns("base_slice_ns", 750_000, "the slice that each request asks for"),
        Tunable::scaling("tunable_scaling"),
        Tunable::switch("PLACE_LAG", true, "who sleeps keeps its lag"),
        Tunable::switch(
            "PLACE_DEADLINE_INITIAL",
            true,
            "without effect: a new task gets half a slice as it is created, and a whole one as it is queued",
        ),
        Tunable::switch("RUN_TO_PARITY", true, "the running task keeps its CPU until its slice is consumed"),
        Tunable::switch("WAKEUP_PREEMPTION", true, "woken tasks may preempt"),
    ],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let features = Features {
        place_lag: v.on("PLACE_LAG"),
        // task_fork_fair() places with it, but enqueue_entity() places again, and wake_up_new_task() does not tell it
        // that the task is new.
        place_deadline_initial: false,
        place_rel_deadline: false,
        run_to_parity: v.on("RUN_TO_PARITY"),
        preempt_short: false,
        delay_dequeue: false,
        delay_zero: false,
        wakeup_preemption: v.on("WAKEUP_PREEMPTION"),
        custom_slice: false,
        yield_moves_deadline: true,
        idle_loses_protection: false,
        tree_by_vruntime: true,
    };
    run.with(Stack::new(Eevdf::new(run.machine, features, v.ns("base_slice_ns"), run.options.tick_period)), sink)
}
