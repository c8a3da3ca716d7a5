//! Linux 6.1: the last long-term kernel with CFS.

use super::{Kernel, Run};
use crate::classes::Stack;
use crate::fair::cfs::{Cfs, Features, Rules, Tunables};
use crate::tunables::{Tunable, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(250);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-6.1",
    scheduler: "CFS",
    summary: "the completely fair scheduler in its last form, in Debian 12",
    policies: &[Policy::Other, Policy::Batch, Policy::Idle],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        Tunable::online_ns("latency_ns", 6_000_000, "the period in which each task runs once"),
        Tunable::online_ns("min_granularity_ns", 750_000, "the least slice"),
        Tunable::online_ns("wakeup_granularity_ns", 1_000_000, "how far behind a woken task must be to preempt"),
        Tunable::scaling("tunable_scaling"),
        Tunable::switch("sched_child_runs_first", false, "a new child runs before its parent"),
        Tunable::switch("GENTLE_FAIR_SLEEPERS", true, "a task that slept is placed half the latency before the others"),
        Tunable::switch("START_DEBIT", true, "a new task waits one slice"),
        Tunable::switch("WAKEUP_PREEMPTION", true, "woken tasks may preempt"),
        Tunable::switch("NEXT_BUDDY", false, "prefer to run whom was woken last"),
        Tunable::switch("LAST_BUDDY", true, "prefer to go back to whom a wake-up preempted"),
        Tunable::switch("BASE_SLICE", true, "no slice is less than the minimum granularity"),
    ],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let rules = Rules {
        base_slice: v.on("BASE_SLICE"),
        features: Features {
            fair_sleepers: true,
            gentle_fair_sleepers: v.on("GENTLE_FAIR_SLEEPERS"),
            start_debit: v.on("START_DEBIT"),
            wakeup_preemption: v.on("WAKEUP_PREEMPTION"),
            next_buddy: v.on("NEXT_BUDDY"),
            last_buddy: v.on("LAST_BUDDY"),
        },
        ..Rules::LAST
    };
    let tunables = Tunables {
        latency: v.ns("latency_ns"),
        min_granularity: v.ns("min_granularity_ns"),
        wakeup_granularity: v.ns("wakeup_granularity_ns"),
        child_runs_first: v.on("sched_child_runs_first"),
        compat_yield: false,
    };
    run.with(Stack::new(Cfs::new(run.machine, rules, tunables)), sink)
}
