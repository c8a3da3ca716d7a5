//! Experiments on a real kernel: what it does, beside what the simulation of the same does.

use super::{Judged, Outcome, judged, run_keeping};
use crate::backend::{Backend, Sim};
use crate::experiment::Experiment;
use crate::part::Part;
use crate::run::RunResult;
use crate::verdict::Verdict;
use schedlab_base::{Error, Release, Result};
use schedlab_sched::kernels;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the names of the simulated kernels begin with.
const SIMULATED: &str = "sim_";

/// A real kernel, and what is simulated beside it.
#[derive(Clone, Debug, Serialize)]
pub struct Where {
    /// The backend, as `--on` names it.
    pub on: String,
    /// The real kernel's release.
    pub kernel: String,
    /// The profile that is simulated.
    pub simulated: String,
}

impl Where {
    fn new(backend: &dyn Backend) -> Self {
        let kernel = backend.real_kernel().unwrap_or_default().to_owned();
        let profile = kernel.parse::<Release>().map(|release| kernels::not_newer_than(release).name);
        Self { on: backend.name().to_owned(), simulated: profile.unwrap_or_default().to_owned(), kernel }
    }
}

/// Simulates parts of experiments, runs them on the backend's real kernel by a number of threads, and judges the real
/// kernel. What it cannot run is skipped with the reason; of an experiment in which a guest fails nothing is decided.
/// `progress` is called with runs done and runs in all.
///
/// # Errors
/// When an experiment is wrong, the simulator cannot run it, or the real kernel can run nothing of any.
pub fn run_parts(
    parts: Vec<Part>,
    backend: &dyn Backend,
    by: (usize, Option<&Path>),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcome> {
    let mut all = 0;
    for part in &parts {
        all += 2 * part.length()?.0;
    }
    let done = AtomicUsize::new(0);
    let count_from = |before: usize| {
        let done = &done;
        move |own: usize, _: usize| {
            done.store(before + own, Ordering::Relaxed);
            progress(before + own, all);
        }
    };
    let mut experiments = Vec::new();
    let mut failures = Vec::new();
    for Part { real, simulated, .. } in parts {
        let Some(simulated) = simulated else {
            experiments.push(judged(real, Vec::new(), backend)?);
            continue;
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // What is wrong with the file shows here, before the real kernel runs for long.
        let simulated = one(simulated, &Sim, (cores, None), &count_from(done.load(Ordering::Relaxed)))?;
        match one(real.clone(), backend, by, &count_from(done.load(Ordering::Relaxed))) {
            Ok(real) => experiments.push(beside(real, simulated)),
            Err(error) => {
                let Some(verdict) = instead(&error, backend) else { return Err(error) };
                experiments.push(judged(real.unrun(verdict, &error.to_string()), Vec::new(), backend)?);
                failures.push(error);
            }
        }
    }
    match failures.into_iter().next() {
        Some(error) if experiments.iter().all(|judged| judged.runs.is_empty()) => Err(error),
        _ => Ok(Outcome { experiments, real: Some(Where::new(backend)) }),
    }
}

fn one(
    experiment: Experiment,
    backend: &dyn Backend,
    by: (usize, Option<&Path>),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Judged> {
    let mut outcome = run_keeping(vec![experiment], backend, by, progress)?;
    Ok(outcome.experiments.pop().expect("one experiment was given"))
}

/// The verdict on an experiment that was ended by an error which says nothing of the others.
fn instead(error: &Error, backend: &dyn Backend) -> Option<Verdict> {
    if error.is_refusal() {
        return Some(Verdict::Skipped);
    }
    // A guest that failed is gone, and the next one is another.
    backend.can_set().then_some(Verdict::Undecided)
}

/// The real kernel's outcome with the simulation's beside it.
fn beside(real: Judged, simulated: Judged) -> Judged {
    let Judged { experiment, mut runs, mut rows, verdict } = real;
    rows.iter_mut().zip(&simulated.rows).for_each(|(row, simulated)| row.set_beside(simulated));
    let own = experiment.file.kernels.len();
    runs.extend(simulated.runs.into_iter().map(|run| RunResult { kernel: own + run.kernel, ..run }));
    Judged { experiment: experiment.beside(&simulated.experiment, SIMULATED), runs, rows, verdict }
}
