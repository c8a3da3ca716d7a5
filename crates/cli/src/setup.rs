//! The kernel, the machine and the settings that a simulation runs with: those named, or as recorded.

use schedlab_base::Result;
use schedlab_experiment::as_recorded;
use schedlab_machine::Machine;
use schedlab_sched::kernels;
use schedlab_workload::{Recorded, Workload};

/// What a simulation runs on.
pub struct Setup {
    /// The kernel's profile.
    pub kernel: String,
    pub machine: Machine,
    /// Tunables that are set, before those that the user sets.
    pub set: Vec<(String, String)>,
    /// What differs from what was recorded, or is taken over from it.
    pub remarks: Vec<String>,
}

/// The setup for a workload: `recorded` (or nothing) stands for what the workload was recorded on, `host` for this
/// machine and its kernel.
pub fn of(kernel: Option<&str>, machine: Option<&str>, workload: &Workload) -> Result<Setup> {
    let machine = match machine {
        None | Some("recorded") => as_recorded::machine(as_recorded::of_workload(workload, "--machine")?)?,
        Some(spec) => schedlab_machine::load(spec)?,
    };
    let host;
    let recorded: Option<&Recorded> = match kernel {
        None | Some("recorded") => Some(as_recorded::of_workload(workload, "--kernel")?),
        Some("host") => {
            host = Recorded::of(&schedlab_capture::host());
            Some(&host)
        }
        Some(_) => None,
    };
    let Some(recorded) = recorded else {
        let profile = kernels::find(kernel.unwrap_or_default())?;
        let set = as_recorded::settings_of_load(workload, profile, &machine);
        let remarks = set.iter().map(|(name, value)| format!("{name}={value}, as recorded"));
        return Ok(Setup { kernel: profile.name.to_owned(), machine, remarks: remarks.collect(), set });
    };
    let (profile, remark) = as_recorded::kernel(recorded)?;
    let (set, refused) = as_recorded::settings(recorded, profile, &machine);
    let remarks = remark.into_iter().chain(refused).collect();
    Ok(Setup { kernel: profile.name.to_owned(), machine, set, remarks })
}
