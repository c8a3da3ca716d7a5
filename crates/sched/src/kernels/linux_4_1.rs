//! Linux 4.1, the kernel with the four bugs of "A Decade of Wasted Cores". It picks like 3.18.

use super::{Build, Kernel, Preemption, Run, classes, fair, linux_3_18};
use crate::fair::cfs::Cfs;
use crate::tunables::{Tunable, count, joined};
use schedlab_base::{Result, Sink, v};
use schedlab_sim::Outcome;

const TUNABLES: &[&[Tunable]] =
    &[&joined::<{ count(linux_3_18::TUNABLES) }>(linux_3_18::TUNABLES), &[classes::push_ipi(true)]];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-4.1",
    release: Some(v(4, 1)),
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2015, in which four bugs wasted cores",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_DL,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let (rules, groups) = (fair::rules_3_18(run.values), fair::groups_3(run.values, true));
    run.fair(&classes::LINUX_4_1, Cfs::new(rules, run.values, fair::tunables), groups, sink)
}
