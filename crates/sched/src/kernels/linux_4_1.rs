//! Linux 4.1: the host of the four bugs of "A Decade of Wasted Cores"; its picks are those of 3.18.

use super::{Kernel, Run, classes, numa};
use crate::balance::fair::{BUGS, balancing};
use crate::fair::cfs::{Cfs, Features, Rules, Tunables};
use crate::fair::shares::Shares;
use crate::fair::{bandwidth, groups};
use crate::tunables::{Tunable, Unit, Values, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = balancing("sched_migration_cost_ns", "sched_nr_migrate");

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-4.1",
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2015, in which four bugs wasted cores",
    policies: classes::WITH_DL,
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        classes::RT[0],
        classes::RT[1],
        classes::RR,
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
        Tunable::number(
            "sched_cfs_bandwidth_slice_us",
            Unit::Us,
            5_000,
            (1, 1_000_000),
            "how much of its quota a group takes to a CPU at once",
        ),
        Tunable::switch("sched_autogroup_enabled", true, "the tasks of one session share as a group"),
        BALANCE[0],
        BALANCE[1],
        BUGS[0],
        BUGS[1],
        BUGS[2],
        BUGS[3],
        numa::SYSCTL[0],
        numa::SYSCTL[1],
        numa::SYSCTL[2],
        numa::SYSCTL[3],
        numa::SYSCTL[4],
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
        lands_before_account: true,
        alt_period: false,
        idle_granularity: false,
        heads_list: false,
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
    let quotas = bandwidth::Rules {
        slice: v.ns("sched_cfs_bandwidth_slice_us") * 1000,
        expires: true,
        burst: false,
        random_phase: false,
        fills_at_start: true,
        newest_first: true,
    };
    let groups = groups::Rules {
        idle: false,
        by_session: v.on("sched_autogroup_enabled"),
        shares: Shares::ByWeight,
        ..groups::Rules::last(quotas)
    };
    run.fair(&classes::LINUX_4_1, Cfs::new(rules, v, tunables), groups, sink)
}

fn tunables(v: &Values) -> Tunables {
    Tunables {
        latency: v.ns("sched_latency_ns"),
        min_granularity: v.ns("sched_min_granularity_ns"),
        idle_min_granularity: v.ns("sched_min_granularity_ns"),
        wakeup_granularity: v.ns("sched_wakeup_granularity_ns"),
        child_runs_first: v.on("sched_child_runs_first"),
        compat_yield: false,
    }
}
