//! What a simulation runs on, by the options `--kernel` and `--machine`.

use schedlab_base::{Meta, Result};
use schedlab_experiment::as_recorded::{self, Setup};
use schedlab_workload::{Recorded, Workload};

/// What a workload runs on, with remarks. `recorded` (or nothing) stands for what it was recorded on, `host` for this
/// machine.
pub fn of(kernel: Option<&str>, machine: Option<&str>, workload: &Workload) -> Result<(Setup, Vec<String>)> {
    as_recorded::setup(kernel, machine, workload, host)
}

/// What a model is simulated on as recorded, with remarks; the trace's metadata, if there is one, say more of it.
pub fn as_recorded(
    meta: Option<&Meta>,
    kernel: Option<&str>,
    machine: Option<&str>,
    model: &Workload,
) -> Result<(Setup, Vec<String>)> {
    as_recorded::of_trace(meta, (kernel, machine), model, host)
}

fn host() -> Option<Recorded> {
    Some(Recorded::of(&schedlab_capture::host()))
}
