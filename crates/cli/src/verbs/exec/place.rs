//! Where `exec` runs: on this kernel, or in a guest.

use crate::verbs::vm::GuestArgs;
use schedlab_base::{Error, Result};
use schedlab_experiment::backend::live;
use schedlab_experiment::backend::vm::Vm;
use schedlab_machine::Machine;

/// What `--on` names.
pub enum Place {
    /// This kernel.
    Live,
    /// A guest.
    Guest(Box<Vm>),
}

impl Place {
    /// What `--on` names, with the options that are for guests.
    pub fn new(on: &str, options: &GuestArgs) -> Result<Self> {
        if let Some(kernel) = on.strip_prefix("vm:") {
            return Ok(Self::Guest(Box::new(options.vm(kernel)?)));
        }
        if on != "live" {
            let mend = "write --on live, or --on vm:debian-6.12 (`schedlab sim` simulates)";
            return Err(Error::input(format!("--on {on}: a workload cannot be run there")).mend(mend));
        }
        match options.given() {
            Some(option) => {
                Err(Error::input("is for guests").key(option).mend("add --on vm:debian-6.12, or leave it out"))
            }
            None => Ok(Self::Live),
        }
    }

    /// The kernel's release.
    pub fn kernel(&self) -> String {
        match self {
            Self::Live => live::kernel(),
            Self::Guest(vm) => vm.kernel.release.clone(),
        }
    }

    /// The machine to run on.
    pub fn machine(&self, options: &GuestArgs) -> Result<Machine> {
        match self {
            Self::Live => schedlab_machine::host(),
            Self::Guest(_) => options.machine(),
        }
    }

    /// Refuses an option that a guest does not have.
    pub fn refuse_guest(&self, option: &str) -> Result<()> {
        match self {
            Self::Live => Ok(()),
            Self::Guest(_) => Err(Error::input("is not for guests").key(option).mend("leave it out")),
        }
    }
}
