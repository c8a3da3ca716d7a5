//! What wake-ups and ticks cost on this machine, measured by a recording of tasks that do little else.

use crate::backend::Request;
use crate::backend::live::{self, plan};
use schedlab_base::{CpuId, Error, Meta, Nanos, Result};
use schedlab_live::Recording;
use schedlab_machine::{Costs, Machine};
use schedlab_trace::Writer;
use schedlab_workload::from_trace::{CostsOf, SeenCost};
use std::fs::File;
use std::io::BufWriter;
use std::os::fd::AsRawFd;
use std::path::Path;

/// How long it takes.
const DURATION: Nanos = 2_000_000_000;

/// What was measured, and the machine with it.
pub struct Calibrated {
    /// This machine, with the costs.
    pub machine: Machine,
    /// The kernel that runs on it.
    pub kernel: String,
    /// Each cost, with its scatter. One that too few events show is missing, and keeps its default.
    pub found: Vec<SeenCost>,
}

/// The tasks. In the first half, each of both CPUs has a task that sleeps and wakes alone, and one on the first CPU
/// wakes one on the other, which is idle. In the second, both are busy as well: timers wake real-time tasks there, a
/// task on the first CPU wakes one on the other and one on its own, and two tasks share the first CPU by ticks.
fn load(near: CpuId, far: CpuId) -> String {
    let fifo = r#""policy": "SCHED_FIFO", "priority": 40, "loop": -1"#;
    format!(
        r#"{{"tasks": {{
            "alone": {{{fifo}, "cpus": [{near}], "run": 20, "sleep": 1900}},
            "alone-too": {{{fifo}, "cpus": [{far}], "run": 20, "sleep": 2100}},
            "asks": {{{fifo}, "cpus": [{near}], "run": 20, "sem_post": "asked", "sleep": 1300}},
            "asked": {{{fifo}, "cpus": [{far}], "sem_wait": "asked", "run": 10}},
            "busy": {{"cpus": [{far}], "delay": 1000000, "run": 100000000}},
            "poster": {{"instance": 2, "cpus": [{near}], "delay": 1000000, "loop": -1,
                       "run": 300, "sem_post": "far", "run2": 400, "sem_post2": "near"}},
            "far": {{{fifo}, "cpus": [{far}], "sem_wait": "far", "run": 10}},
            "near": {{{fifo}, "cpus": [{near}], "sem_wait": "near", "run": 10}}
        }}}}"#
    )
}

/// Measures for two seconds, on the first two of this machine's CPUs.
///
/// # Errors
/// When this machine does not let us record, or run real-time tasks.
pub fn calibrate() -> Result<Calibrated> {
    let mut machine = schedlab_machine::host()?;
    let cpus: Vec<CpuId> = machine.cpus.iter().map(|cpu| cpu.place.cpu).take(2).collect();
    let near = *cpus.first().ok_or_else(|| Error::input("this machine shows no CPU"))?;
    let far = cpus.last().copied().unwrap_or(near);
    let workload = schedlab_workload::parse(load(near, far).as_bytes(), Path::new("the calibration"))?;
    let kernel = live::kernel();
    let request = Request {
        kernel: kernel.clone(),
        machine: machine.clone(),
        workload,
        set: Vec::new(),
        duration: Some(DURATION),
        seed: 1,
        skip_ticks: true,
    };
    let file = rustix::fs::memfd_create("schedlab-calibration", rustix::fs::MemfdFlags::CLOEXEC);
    let file = file.map(File::from).map_err(|e| Error::system("cannot make room for the recording", &e))?;
    let written = file.try_clone().map_err(|e| Error::system("cannot make room for the recording", &e))?;
    let open = |meta: &Meta| Writer::new(BufWriter::with_capacity(1 << 20, written), meta);
    let recording = Recording { label: "calibration".to_owned(), irq: true, ..Recording::default() };
    schedlab_live::record(plan(&request)?.0, recording, open, |_| {})?;
    let mut source = schedlab_trace::open(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?;
    let mut costs = CostsOf::new(source.meta());
    source.run(&mut costs)?;
    let found = costs.found();
    found.iter().for_each(|cost| apply(&mut machine.costs, cost));
    Ok(Calibrated { machine, kernel, found })
}

/// Sets a cost of the machine to what was measured.
fn apply(costs: &mut Costs, found: &SeenCost) {
    if found.name == "idle_exit_ns" {
        costs.remote_idle_exit_ns = found.cost;
    }
    let cost = match found.name {
        "idle_exit_ns" => &mut costs.idle_exit_ns,
        "remote_idle_exit_ns" => &mut costs.remote_idle_exit_ns,
        "wakeup_to_switch_ns" => &mut costs.wakeup_to_switch_ns,
        "timer_to_switch_ns" => &mut costs.timer_to_switch_ns,
        "own_wakeup_to_switch_ns" => &mut costs.own_wakeup_to_switch_ns,
        _ => &mut costs.tick_to_switch_ns,
    };
    *cost = found.cost;
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Cost;

    #[test]
    fn the_load_is_one_for_any_two_cpus_and_for_one() {
        for (near, far) in [(0, 1), (3, 7), (2, 2)] {
            let load = schedlab_workload::parse(load(near, far).as_bytes(), Path::new("x")).unwrap();
            assert_eq!((load.tasks.len(), load.warnings.len()), (8, 0));
        }
    }

    #[test]
    fn costs_vary_as_they_did() {
        let cost = Cost::Varying([1_000, 1_500, 1_700, 2_000, 3_000, 9_000, 9_500, 40_000, 70_000]);
        let found = SeenCost { name: "idle_exit_ns", count: 100, p10_ns: 1_500, median_ns: 2_000, p90_ns: 9_000, cost };
        let mut costs = Costs::none();
        apply(&mut costs, &found);
        assert_eq!((costs.idle_exit_ns, costs.wakeup_to_switch_ns), (cost, Cost::Fixed(0)));
        assert_eq!(costs.remote_idle_exit_ns, cost, "nothing else is known");
        apply(&mut costs, &SeenCost { name: "remote_idle_exit_ns", cost: 900.into(), ..found });
        assert_eq!((costs.idle_exit_ns, costs.remote_idle_exit_ns), (cost, Cost::Fixed(900)));
    }
}
