//! BFS 0.440, a patch to Linux 3.10 and 3.11.

use super::{Build, Feature, Kernel, Preemption, Run};
use crate::bfs::{Bfs, Tunables};
use crate::tunables::{Handle, Tunable, Unit, tick};
use schedlab_base::{Result, Sink};
use schedlab_sim::Outcome;
use schedlab_sim::program::Policy;

const TICK: [Tunable; 3] = tick(1000);

const RR_INTERVAL: Handle<u64> = Handle::number(
    "rr_interval",
    Unit::Ms,
    6,
    (1, 1000),
    "the slice of all tasks, and how far ahead nice -20's deadline is (each ms is 2^20 ns)",
);
const ISO_CPU: Handle<u64> = Handle::number(
    "iso_cpu",
    Unit::Number,
    70,
    (0, 100),
    "the share of all CPUs' time that ISO tasks may take before all others, in percent",
);
const CAP_SYS_NICE: Handle<bool> =
    Handle::switch("cap_sys_nice", true, "FIFO and RR are granted; off: tasks that ask for them get SCHED_ISO");
const UPTIME: Handle<u64> = Handle::number(
    "uptime",
    Unit::Ms,
    300_000,
    (0, 10_000_000_000),
    "how long the machine has been up at the start; scales how much later another CPU's last task counts",
);

pub(super) static KERNEL: Kernel = Kernel {
    name: "bfs",
    release: None,
    scheduler: "BFS",
    summary: "Con Kolivas' Brain Fuck Scheduler 0.440 of 2013: one queue, virtual deadlines",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[Feature::Clamps, Feature::Groups, Feature::Inheritance],
    policies: &[Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo, Policy::Rr],
    tunables: &[TICK[0], TICK[1], TICK[2], RR_INTERVAL.tunable, ISO_CPU.tunable, CAP_SYS_NICE.tunable, UPTIME.tunable],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let tunables = Tunables {
        rr_interval: v.get(&RR_INTERVAL),
        iso_cpu: v.get(&ISO_CPU),
        privileged: v.get(&CAP_SYS_NICE),
        uptime: v.get(&UPTIME) * 1_000_000,
    };
    run.with(Bfs::new(run.machine, tunables, run.options.tick_period), sink)
}
