//! The backends: each takes a request, runs it, and yields the events of a trace.
//!
//! A backend knows nothing of experiments: `schedlab sim`, the Python package and experiments hand it a [`Request`] and
//! a [`Sink`], which writes a trace or measures.

pub mod again;
mod from_zero;
pub mod live;
mod recording;
mod sim;
pub mod vm;

pub use live::Live;
pub use recording::{Real, Recording, replay};
pub use sim::{Sim, check_settings, head, meta, simulate};

use crate::fitted::{Fitted, fitted};
use crate::lower::lower;
use schedlab_base::{Error, Meta, Nanos, Result, Sink, Tid};
use schedlab_machine::Machine;
use schedlab_sim::program::Load;
use schedlab_workload::{TaskDef, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kernel's profile.
    pub kernel: String,
    /// The machine, costs included.
    pub machine: Machine,
    /// The workload.
    pub workload: Workload,
    /// Tunables: name and value.
    pub set: Vec<(String, String)>,
    /// How long; the workload's own duration where `None`, and until every task has ended where that has none.
    pub duration: Option<Nanos>,
    /// For every random draw.
    pub seed: u64,
    /// The simulator skips ticks that can change nothing; the events are the same.
    pub skip_ticks: bool,
}

impl Request {
    /// How long it runs; `None` is until every task has ended.
    ///
    /// # Errors
    /// When it would never end, or is over at once.
    pub fn length(&self) -> Result<Option<Nanos>> {
        let duration = self.duration.or(self.workload.global.duration);
        if duration.is_none() && self.is_endless() {
            return Err(Error::input("the workload never ends").mend("give a duration"));
        }
        if duration == Some(0) {
            return Err(Error::input("a duration of 0").mend("give a longer one"));
        }
        Ok(duration)
    }

    /// Whether a task that starts, or may be forked, loops for ever.
    fn is_endless(&self) -> bool {
        self.workload.tasks.iter().any(TaskDef::is_endless)
    }

    /// The load on the machine, and what is not in it that the workload has.
    ///
    /// # Errors
    /// When the workload does not fit the machine.
    fn load(&self) -> Result<(Load, Vec<String>)> {
        let Fitted { workload, remarks, .. } = fitted(&self.workload, &self.kernel, &self.machine);
        let load = lower(&workload, &self.machine).map_err(|e| self.in_file(e))?;
        Ok((load, remarks))
    }

    /// An error of the workload, with its file.
    pub(crate) fn in_file(&self, error: Error) -> Error {
        match &self.workload.file {
            Some(file) => error.file(file),
            None => error,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How long it took, by the trace's clock.
    pub end: Nanos,
    /// Tasks that were there.
    pub tasks: u32,
    /// Every tunable of the kernel, as it was at the end.
    pub tunables: BTreeMap<&'static str, i64>,
    /// Remarks: what was not modelled, why it ended early.
    pub notes: Vec<String>,
    /// The tasks of the workload, where the events are about others too.
    pub own: Option<BTreeSet<Tid>>,
    /// The part of the time that a host took from the CPUs, where it may.
    pub taken: Option<f64>,
}

/// Something that runs requests. Several threads may ask it for runs at the same time.
pub trait Backend: Sync {
    /// As the command line writes it.
    fn name(&self) -> &str;

    /// Whether equal requests give equal events, so that one run decides an expectation.
    fn deterministic(&self) -> bool;

    /// The release of the real kernel that it has in place of the profiles; the simulator has none.
    fn real_kernel(&self) -> Option<&str> {
        None
    }

    /// Whether the tunables of its real kernel can be set for a run.
    fn can_set(&self) -> bool {
        false
    }

    /// Whether its SMT threads lose nothing to each other, as those of a guest, which are CPUs by themselves.
    fn smt_is_free(&self) -> bool {
        false
    }

    /// How many runs go on at once if so many are wanted. Where one would disturb the other, that is one.
    fn at_once(&self, wanted: usize) -> usize {
        if self.deterministic() { wanted } else { 1 }
    }

    /// What of a machine it does not have, as a fragment of a sentence about an experiment.
    fn lacks(&self, machine: &Machine) -> Option<String> {
        let _ = machine;
        None
    }

    /// The metadata of the trace that a request makes.
    fn meta(&self, request: &Request) -> Meta;

    /// The same of a trace that is kept. Where it can carry what made it, it does, which takes longer.
    fn head(&self, request: &Request) -> Meta {
        self.meta(request)
    }

    /// The first tick and the time between two, where the kernel's tick comes to idle CPUs too and its times are known.
    ///
    /// # Errors
    /// When the kernel or a tunable is unknown.
    fn idle_ticks(&self, request: &Request) -> Result<Option<(Nanos, Nanos)>>;

    /// Runs the request; the events go to `sink`.
    ///
    /// # Errors
    /// When the request cannot be run: a kernel, a tunable or a workload that the backend cannot have, or a run that
    /// would never end.
    fn run(&self, request: &Request, sink: &mut dyn Sink) -> Result<Outcome>;
}

/// The backend that `--on` names: `sim`, `live` or `vm:KERNEL`. Guests are `deterministic` where that is asked.
///
/// # Errors
/// When it is none of them, the kernel is not here, or the backend is never or always deterministic.
pub fn parse(on: &str, deterministic: bool) -> Result<Box<dyn Backend>> {
    if on != "sim" {
        return real(on, deterministic).map(|real| real as Box<dyn Backend>);
    }
    refuse_deterministic(deterministic)?;
    Ok(Box::new(Sim))
}

/// The backend that `--on` names, with a real kernel: `live` or `vm:KERNEL`.
///
/// # Errors
/// As [`parse`].
pub fn real(on: &str, deterministic: bool) -> Result<Box<dyn Real>> {
    if let Some(kernel) = on.strip_prefix("vm:") {
        let mut vm = vm::Vm::new(kernel)?;
        vm.deterministic = deterministic;
        return Ok(Box::new(vm));
    }
    refuse_deterministic(deterministic)?;
    match on {
        "live" => Ok(Box::new(Live::new()?)),
        "sim" => Err(Error::input("--on sim: this needs a real kernel").mend("write --on live or --on vm:debian-6.12")),
        _ => Err(Error::input(format!("--on {on}: no such backend"))
            .mend("write --on sim, --on live or --on vm:debian-6.12")),
    }
}

fn refuse_deterministic(deterministic: bool) -> Result<()> {
    if deterministic {
        let mend = "add --on vm:debian-6.12, or leave it out: the simulator always is";
        return Err(Error::input("is for guests").key("--deterministic").mend(mend));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_go_by_their_names() {
        assert_eq!(parse("sim", false).map(|backend| backend.name().to_owned()).unwrap(), "sim");
        let message = |on: &str, deterministic| parse(on, deterministic).err().expect(on).to_string();
        assert!(message("vm:linux-6.12", false).contains("is no kernel"));
        assert!(message("vm", false).contains("no such backend"));
        assert!(message("smi", false).contains("no such backend"));
        assert!(message("sim:1", false).contains("no such backend"));
        assert!(message("sim", true).contains("--deterministic: is for guests"));
    }
}
