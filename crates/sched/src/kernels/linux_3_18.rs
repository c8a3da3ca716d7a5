//! Linux 3.18: the running task takes part when the next is picked, and weights divide by `__calc_delta`.

use super::{Kernel, Run, classes, fair, numa};
use crate::balance::fair::{BUGS, balancing};
use crate::fair::cfs::Cfs;
use crate::tunables::{Tunable, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(250);
const BALANCE: [Tunable; 2] = balancing("sched_migration_cost_ns", "sched_nr_migrate");

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-3.18",
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2014, with NUMA balancing in its kernel",
    policies: classes::WITH_DL,
    tunables: &[
        TICK[0],
        TICK[1],
        TICK[2],
        classes::RT[0],
        classes::RT[1],
        classes::RR,
        fair::SYSCTL[0],
        fair::SYSCTL[1],
        fair::SYSCTL[2],
        fair::SYSCTL[3],
        fair::SYSCTL[4],
        fair::FEATURES[0],
        fair::FEATURES[1],
        fair::FEATURES[2],
        fair::FEATURES[3],
        fair::FEATURES[4],
        fair::BANDWIDTH_SLICE,
        fair::autogroup(true),
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
    let (rules, groups) = (fair::rules_3_18(run.values), fair::groups_3(run.values, true));
    run.fair(&classes::LINUX_3_18, Cfs::new(rules, run.values, fair::tunables), groups, sink)
}
