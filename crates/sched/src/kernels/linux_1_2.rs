//! Linux 1.2: round robin by counters, on one CPU.

use super::{Build, Kernel, Preemption, Run};
use crate::epoch::counting::Counting;
use crate::tunables::{Tunable, tick};
use schedlab_base::{CpuId, Error, Result, Sink, v};
use schedlab_sim::Outcome;
use schedlab_sim::program::{Load, Policy};

const TICK: [Tunable; 3] = tick(100);
/// The boot CPU, the only one that this kernel uses.
const BOOT: CpuId = 0;

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-1.2",
    release: Some(v(1, 2)),
    scheduler: "counters",
    summary: "round robin of 1995: the task with the most ticks left runs; one CPU",
    build: Build { preemption: Preemption::None, no_hz: false },
    lacks: &[],
    policies: &[Policy::Other],
    tunables: &[TICK[0], TICK[1], TICK[2]],
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    if run.machine.cpus.len() == 1 {
        return run.with(Counting::default(), sink);
    }
    run.with_load(&on_the_boot_cpu(run.load)?, Counting::default(), sink)
}

/// Restricts a load to the boot CPU.
fn on_the_boot_cpu(load: &Load) -> Result<Load> {
    let elsewhere = |who: &str| {
        Error::input(format!("{who} may not use CPU {BOOT}, and linux-1.2 uses no other"))
            .mend(format!("let it use CPU {BOOT}, or take a kernel for several CPUs: linux-2.0 or later"))
    };
    let mut load = load.clone();
    for spec in load.tasks.iter_mut().chain(&mut load.templates) {
        if spec.initial.cpus.replace(vec![BOOT]).is_some_and(|cpus| !cpus.contains(&BOOT)) {
            return Err(elsewhere(&spec.name));
        }
    }
    for setting in &mut load.settings {
        if setting.cpus.take().is_some_and(|cpus| !cpus.contains(&BOOT)) {
            return Err(elsewhere("a task, as it goes on,"));
        }
    }
    if load.hotplug.iter().any(|change| change.cpu == BOOT && !change.online) {
        return Err(Error::input(format!("CPU {BOOT} goes offline, and linux-1.2 uses no other"))
            .mend("take a kernel for several CPUs: linux-2.0 or later"));
    }
    load.hotplug.clear();
    Ok(load)
}
