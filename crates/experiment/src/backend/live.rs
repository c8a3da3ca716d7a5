//! This kernel as a backend: real threads run the workload while the kernel's scheduling is recorded.

mod backend;

pub use backend::Live;

use super::Request;
use schedlab_base::{Error, Meta, Result};
use schedlab_capture::{Output, Progress, Recorded};
use schedlab_live::{Execution, Options, Recording};
use schedlab_sim::program::{Op, TaskSpec};
use std::fs;
use std::path::PathBuf;

/// The release of the running kernel, as `uname -r` prints it.
#[must_use]
pub fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// A request as this machine runs it: the same programs as the simulator's.
///
/// # Errors
/// When the workload does not fit the machine, would never end, or asks for what is not done on a live kernel.
pub fn plan(request: &Request) -> Result<(Options, Vec<String>)> {
    let workload = &request.workload;
    let duration = request.length()?;
    if !workload.hotplug.is_empty() && !schedlab_guest::agent::is_inside() {
        return Err(request.in_file(
            Error::not_permitted("CPUs of a live machine are not taken offline: that would change it for everybody")
                .key("x-hotplug")
                .mend("leave x-hotplug out, simulate the workload, or run it in a guest (--on vm:KERNEL)"),
        ));
    }
    let (load, mut notes) = request.load()?;
    let load = load.spread();
    if !workload.interrupts.is_empty() {
        notes.push("x-irq is not run: a live machine has its own interrupts".to_owned());
    }
    if workload.global.until.is_some() {
        notes.push("x-until is not obeyed: the run goes on until its duration is over".to_owned());
    }
    let some = |such: fn(&TaskSpec) -> bool| load.tasks.iter().chain(&load.templates).any(such);
    if some(|spec| spec.lifetime.is_some()) {
        notes.push(
            "x-lifetime does not end a wait: a task that waits for another one then ends when that one comes"
                .to_owned(),
        );
    }
    if some(|spec| spec.program.contains(&Op::Exec)) {
        notes.push("x-exec is not run: the task goes on as it is".to_owned());
    }
    let options = Options {
        load,
        capacities: request.machine.cpus.iter().map(|cpu| cpu.place.capacity).collect(),
        cpus: None,
        duration,
        seed: request.seed,
        io_device: workload.global.io_device.as_ref().map(PathBuf::from),
        priority_inheritance: workload.global.pi_enabled,
    };
    Ok((options, notes))
}

/// Runs what [`plan`] made of a request on this kernel, and records it. `open` creates the output when the metadata is
/// known. If `quiet`, a killed run leaves nothing.
///
/// # Errors
/// When a right is missing, the output fails or the run ends early.
pub fn record<O: Output>(
    request: &Request,
    options: Options,
    buffer_kib: Option<u64>,
    quiet: bool,
    open: impl FnOnce(&Meta) -> Result<O>,
    progress: impl FnMut(Progress),
) -> Result<(O::Done, Recorded, Execution)> {
    let notes = [("workload", request.workload.name.clone()), ("seed", request.seed.to_string())];
    let notes = notes.map(|(key, value)| (key.to_owned(), value)).into();
    let recording = Recording { label: request.workload.name.clone(), buffer_kib, irq: false, notes, quiet };
    schedlab_live::record(options, recording, open, progress).map_err(|e| request.in_file(e))
}
