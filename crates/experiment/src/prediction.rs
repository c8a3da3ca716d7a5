//! Simulations of a model: as recorded, or under another kernel, on another machine, with other settings.

mod doubts;
mod validated;

pub use doubts::{Doubts, doubts};
pub use validated::{Validated, amount, kept_errors, trust};

use crate::as_recorded::Setup;
use crate::backend::{Outcome, Request, head, meta, simulate};
use crate::parallel::on_threads;
use schedlab_base::{Nanos, Result};
use schedlab_measure::{Report, Stats, TaskStats, TeamStats};
use schedlab_trace::Writer;
use schedlab_workload::{Action, Amount, Workload};
use std::path::PathBuf;

/// By which part of itself each burst and each sleep varies in all simulations but the first, as a standard deviation.
/// The model's loops stand for rounds that differed by as much.
const VARIATION: f64 = 0.02;

/// A simulation, measured.
pub struct Simulated {
    /// The statistics.
    pub report: Report,
    /// The teams that were asked for.
    pub teams: Vec<TeamStats>,
    /// When the last task was done.
    pub end: Nanos,
    /// What the backend remarked.
    pub notes: Vec<String>,
    /// Its trace, if it was written.
    pub trace: Option<PathBuf>,
}

/// Which tasks of a simulation are summed up together, a list for each team.
pub type Choose<'a> = &'a (dyn Fn(&[TaskStats]) -> Vec<Vec<usize>> + Sync);

/// What is to be simulated.
pub struct Series<'a> {
    /// The model.
    pub workload: &'a Workload,
    /// Where.
    pub setups: &'a [Setup],
    /// How often each; the first simulation runs the model as it is, in the others bursts and sleeps vary a little.
    pub seeds: u64,
    /// How long; until all is done where `None`.
    pub duration: Option<Nanos>,
    /// The teams.
    pub choose: Choose<'a>,
    /// For each place a file for the trace of the first simulation there; empty to write none.
    pub traces: &'a [PathBuf],
}

/// Simulates the model in each place, by several threads; `done` is called after each simulation. The results stand in
/// the order of the places, for each by seed.
///
/// # Errors
/// When it cannot be simulated, or a trace cannot be written.
pub fn simulate_all(series: &Series, threads: usize, done: &(dyn Fn() + Sync)) -> Result<Vec<Vec<Simulated>>> {
    let varied = varied(series.workload);
    let work: Vec<(usize, u64)> =
        (0..series.setups.len()).flat_map(|setup| (1..=series.seeds).map(move |seed| (setup, seed))).collect();
    let run = |(setup, seed): (usize, u64)| {
        let trace = series.traces.get(setup).filter(|_| seed == 1).cloned();
        let Setup { kernel, machine, set } = series.setups[setup].clone();
        let workload = if seed == 1 { series.workload.clone() } else { varied.clone() };
        let duration = series.duration;
        let request = Request { kernel, machine, workload, set, duration, seed, skip_ticks: true };
        let mut stats = Stats::new(&meta(&request));
        let writer = trace.as_ref().map(|path| Writer::create(path, &head(&request))).transpose()?;
        let mut writers: Vec<_> = writer.into_iter().collect();
        let Outcome { end, notes, .. } = simulate(&request, &mut (&mut stats, &mut writers[..]), None)?;
        writers.into_iter().try_for_each(|writer| writer.finish().map(drop))?;
        let (report, teams) = stats.finish_with_teams(Some(end), series.choose);
        Ok(Simulated { report, teams, end, notes, trace })
    };
    let mut results = on_threads(&work, threads, &run, done)?.into_iter();
    Ok(series.setups.iter().map(|_| results.by_ref().take(series.seeds as usize).collect()).collect())
}

/// The workload with bursts and sleeps that vary.
fn varied(workload: &Workload) -> Workload {
    let mut varied = workload.clone();
    for phase in varied.tasks.iter_mut().flat_map(|task| &mut task.phases) {
        for step in &mut phase.events {
            if let Action::Run(Amount { mean, sd: sd @ 0 }) | Action::Sleep(Amount { mean, sd: sd @ 0 }) =
                &mut step.what
            {
                *sd = (*mean as f64 * VARIATION) as Nanos;
            }
        }
    }
    varied
}
