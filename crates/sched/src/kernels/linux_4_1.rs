//! Linux 4.1: the host of the four bugs of "A Decade of Wasted Cores"; its picks are those of 3.18.

use super::{Kernel, Run};
use crate::classes::Stack;
use crate::fair::cfs::{Cfs, Features, Rules, Tunables};
use crate::tunables::{Tunable, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(250);

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-4.1",
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2015, in which four bugs wasted cores",
    policies: &[Policy::Other, Policy::Batch, Policy::Idle],
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        Tunable::online_ns("sched_latency_ns", 6_000_000, "the period in which each task runs once"),
        Tunable::online_ns("sched_min_granularity_ns", 750_000, "the least slice when there are many tasks"),
        Tunable::online_ns("sched_wakeup_granularity_ns", 1_000_000, "how far behind a woken task must be to preempt"),
        Tunable::scaling("sched_tunable_scaling"),
        Tunable::switch("sched_child_runs_first", false, "a new child runs before its parent"),
        Tunable::switch("GENTLE_FAIR_SLEEPERS", true, "a task that slept is placed half the latency before the others"),
        Tunable::switch("START_DEBIT", true, "a new task waits one slice"),
        Tunable::switch("WAKEUP_PREEMPTION", true, "woken tasks may preempt"),
        Tunable::switch("NEXT_BUDDY", false, "prefer to run whom was woken last"),
        Tunable::switch("LAST_BUDDY", true, "prefer to go back to whom a wake-up preempted"),
    ],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let rules = Rules {
        pick_clears_buddies: true,
        base_slice: false,
        change_moves_min: true,
        nice_rescheds: true,
        change_renews_slice: false,
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
        latency: v.ns("sched_latency_ns"),
        min_granularity: v.ns("sched_min_granularity_ns"),
        wakeup_granularity: v.ns("sched_wakeup_granularity_ns"),
        child_runs_first: v.on("sched_child_runs_first"),
        compat_yield: false,
    };
    run.with(Stack::new(Cfs::new(run.machine, rules, tunables)), sink)
}
