//! What a simulation runs on, by the options `--kernel` and `--machine`.

use schedlab_base::Result;
use schedlab_experiment::as_recorded::{self, Setup};
use schedlab_workload::{Recorded, Workload};

/// What a workload runs on. `recorded` (or nothing) stands for what it was recorded on, `host` for this machine.
pub fn of(kernel: Option<&str>, machine: Option<&str>, workload: &Workload) -> Result<Setup> {
    as_recorded::setup(kernel, machine, workload, || Some(Recorded::of(&schedlab_capture::host())))
}
