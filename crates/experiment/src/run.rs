//! Plans the runs of experiments, runs them on all of the host's cores, and keeps what is asked of them.
//!
//! Each run depends on its request alone, and results stand in the order of the plan: the output does not depend on
//! the number of threads. What is equal is run once: points whose parameters only the metrics name share a run, and
//! where the second seed gives the same events as the first, the later ones are not run.

mod measure;
mod plan;

pub use measure::{Wanted, measure};
pub use plan::{machine, plan};

use crate::backend::{Backend, Request};
use crate::experiment::{Experiment, HeatmapPlan};
use crate::expr::{Problem, eval_list, eval_number};
use crate::figures::{MainFigures, Run};
use crate::measures::RunScope;
use crate::parallel::on_threads;
use measure::Measured;
use schedlab_base::{Error, ErrorKind, Nanos, Result};
use schedlab_machine::Machine;
use schedlab_measure::Heat;
use schedlab_workload::Workload;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run to be done, with each of the seeds.
pub struct Job<'a> {
    experiment: &'a Experiment,
    /// Index into the file's kernels.
    kernel: usize,
    /// Indices into the experiment's points: all those that this run is of.
    points: Vec<usize>,
    machine: Arc<Machine>,
    workload: Arc<Workload>,
    set: Vec<(String, String)>,
    duration: Option<Nanos>,
}

/// What is kept of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Index into the file's kernels.
    pub kernel: usize,
    /// Index into the experiment's points.
    pub point: usize,
    /// The seed.
    pub seed: u64,
    /// The metrics.
    pub metrics: BTreeMap<String, Result<f64, Problem>>,
    /// Its main figures, at the point that the report draws.
    pub main: Option<MainFigures>,
    /// All of it, for the runs that the report draws.
    pub detail: Option<Box<Run>>,
    /// The values of its tasks in the charts along a parameter, by index into the experiment's.
    pub of_tasks: Vec<(usize, Vec<f64>)>,
    /// The heat maps drawn of it, by index into the experiment's.
    pub heats: Vec<(usize, Heat)>,
    /// Remarks on the workload, and what the backend remarked.
    pub notes: Vec<String>,
    /// The events were the same with another seed.
    pub unseeded: bool,
    /// It is another result's run: that of another point, or of another seed that gives the same events.
    pub again: bool,
    /// Its trace, if it was kept.
    pub trace: Option<PathBuf>,
}

/// The results of a job for one seed, one for each of its points, and the fingerprint of the events.
type Done = (Vec<RunResult>, u64);

impl Job<'_> {
    /// The machine that it runs on.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Indices into the experiment's points: all those that it is of.
    pub fn points(&self) -> &[usize] {
        &self.points
    }

    /// How long it runs, where that does not depend on when its tasks end.
    pub fn length(&self) -> Option<Nanos> {
        self.duration.or(self.workload.global.duration)
    }

    /// Runs it with a seed, and computes its metrics.
    fn run(&self, seed: u64, backend: &dyn Backend, keep: Option<&Path>) -> Result<Done> {
        let trace = keep.map(|folder| folder.join(self.file_name(seed)));
        let plans: Vec<(usize, &HeatmapPlan)> = self.heatmaps(seed).collect();
        let (window, waste) = (self.experiment.window, self.experiment.measures_waste());
        let wanted = Wanted { window, heats: &plans, waste, keep: trace.as_deref() };
        let measured = measure(backend, &self.request(seed), &wanted);
        let Measured { mut run, fingerprint } = measured.map_err(|e| self.does_not_run(e))?;
        run.label = self.experiment.kernel_label(self.kernel).to_owned();
        let notes = [&self.workload.warnings[..], &run.notes[..]].concat();
        let mut results = Vec::new();
        for &point in &self.points {
            let shown = point == self.experiment.shown_point();
            let of_point =
                |(index, _): &&(usize, Heat)| self.is_first(seed) && self.experiment.heatmaps[*index].point == point;
            results.push(RunResult {
                kernel: self.kernel,
                point,
                seed,
                metrics: self.metrics(&run, point)?,
                main: shown.then(|| MainFigures::of(&run)),
                detail: (shown && self.is_first(seed)).then(|| Box::new(run.without_heats())),
                of_tasks: if self.is_first(seed) { self.of_tasks(&run, point) } else { Vec::new() },
                heats: run.heats.iter().filter(of_point).cloned().collect(),
                notes: notes.clone(),
                unseeded: false,
                again: point != self.points[0],
                trace: trace.clone(),
            });
        }
        Ok((results, fingerprint))
    }

    /// What a backend cannot run is a mistake in the file, unless this machine does not permit it or failed meanwhile.
    fn does_not_run(&self, why: Error) -> Error {
        if why.kind() == ErrorKind::System {
            return why;
        }
        let Experiment { file, document, .. } = self.experiment;
        // A test's kernel is in no file: the user has named it beside the test.
        let is_test = file.test.is_some();
        let what = match is_test {
            true => format!("does not run: {why}"),
            false => format!("{} does not run: {why}", self.name(self.points[0])),
        };
        if why.is_refusal() {
            return Error::new(why.kind(), format!("{}: {what}", file.id));
        }
        if is_test {
            return Error::input(what).file(&document.file);
        }
        document.error(&format!("kernels[{}]", self.kernel), what)
    }

    fn request(&self, seed: u64) -> Request {
        Request {
            kernel: self.experiment.file.kernels[self.kernel].kernel.clone(),
            machine: (*self.machine).clone(),
            workload: (*self.workload).clone(),
            set: self.set.clone(),
            duration: self.duration,
            seed,
            skip_ticks: true,
        }
    }

    fn metrics(&self, run: &Run, point: usize) -> Result<BTreeMap<String, Result<f64, Problem>>> {
        let Experiment { points, tables, .. } = self.experiment;
        let scope = RunScope { run, point: &points[point], tables, stands_in: self.experiment.stands_in() };
        let mut metrics = BTreeMap::new();
        for (name, expr) in &self.experiment.metrics {
            let value = eval_number(expr, &scope);
            if let Err(Problem::Wrong(what)) = &value {
                let path = format!("metrics.{name}.value");
                return Err(self.experiment.document.error(&path, format!("{}: {what}", self.name(point))));
            }
            metrics.insert(name.clone(), value);
        }
        Ok(metrics)
    }

    /// The values of the run's tasks in the charts along a parameter that are drawn at this point.
    fn of_tasks(&self, run: &Run, point: usize) -> Vec<(usize, Vec<f64>)> {
        let Experiment { points, tables, charts, file, .. } = self.experiment;
        let scope = RunScope { run, point: &points[point], tables, stands_in: self.experiment.stands_in() };
        let mut found = Vec::new();
        for (index, (chart, file)) in charts.iter().zip(&file.charts).enumerate() {
            let Some((expr, _)) = chart.tasks.as_ref().filter(|_| file.x.is_some()) else { continue };
            if self.experiment.draws(file, &points[point]) {
                found.push((index, eval_list(expr, &scope)));
            }
        }
        found
    }

    fn is_first(&self, seed: u64) -> bool {
        seed == self.experiment.file.seeds[0]
    }

    /// The experiment's heat maps that are made of this run, each with its index.
    fn heatmaps(&self, seed: u64) -> impl Iterator<Item = (usize, &HeatmapPlan)> {
        let drawn = self.is_first(seed) || self.experiment.measures_heat();
        let fits =
            move |plan: &HeatmapPlan| drawn && self.points.contains(&plan.point) && plan.kernels.contains(&self.kernel);
        self.experiment.heatmaps.iter().enumerate().filter(move |(_, plan)| fits(plan))
    }

    /// What its trace is called: `wc-01-cfs-n=3-seed1.arrows`.
    fn file_name(&self, seed: u64) -> String {
        let file = &self.experiment.file;
        let parts =
            [file.id.clone(), file.kernels[self.kernel].name.clone(), self.experiment.points[self.points[0]].label()];
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        trace_name(&format!("{}-seed{seed}", parts.join("-")))
    }

    /// `cfs at n=3`, for messages.
    fn name(&self, point: usize) -> String {
        let kernel = &self.experiment.file.kernels[self.kernel].name;
        match self.experiment.points[point].label() {
            label if label.is_empty() => kernel.clone(),
            label => format!("{kernel} at {label}"),
        }
    }
}

/// The name of a trace's file, with what any file system takes.
pub(crate) fn trace_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._=+-".contains(c) { c } else { '-' };
    let name: String = text.chars().map(plain).collect();
    format!("{}.arrows", name.trim_start_matches('.'))
}

/// Runs all jobs on the backend with all seeds of their experiments, up to `threads` at once, and writes their traces
/// into the folder `keep` if there is one; `done` is called with the number of runs finished. The results stand in the
/// order kernel, point, seed, the experiments in theirs.
///
/// # Errors
/// The first job's, in the order of the plan, that fails.
pub fn run_all(
    jobs: &[Job],
    backend: &dyn Backend,
    (threads, keep): (usize, Option<&Path>),
    done: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<RunResult>>> {
    let seeds = |job: usize| &jobs[job].experiment.file.seeds;
    let all = || (0..jobs.len()).flat_map(|job| (0..seeds(job).len()).map(move |k| (job, k)));
    let first: Vec<(usize, usize)> = all().filter(|(_, k)| *k < 2).collect();
    let mut results: BTreeMap<(usize, usize), Done> = BTreeMap::new();
    let threads = backend.at_once(threads);
    let run = |(job, k): (usize, usize)| jobs[job].run(seeds(job)[k], backend, keep);
    for (at, done) in first.iter().zip(on_threads(&first, threads, &run, &|| done(1))?) {
        results.insert(*at, done);
    }
    let unseeded = |results: &BTreeMap<_, Done>, job: usize| {
        backend.deterministic() && results.get(&(job, 1)).is_some_and(|(_, own)| *own == results[&(job, 0)].1)
    };
    let later: Vec<_> = all().filter(|(job, k)| *k >= 2 && !unseeded(&results, *job)).collect();
    let repeated: Vec<_> = all().filter(|(job, k)| *k >= 2 && unseeded(&results, *job)).collect();
    for (at, done) in later.iter().zip(on_threads(&later, threads, &run, &|| done(1))?) {
        results.insert(*at, done);
    }
    done(repeated.len());
    for (job, k) in repeated {
        let mut same = results[&(job, 1)].clone();
        same.0.iter_mut().for_each(|result| (result.seed, result.again) = (seeds(job)[k], true));
        results.insert((job, k), same);
    }
    let mut by_job: Vec<Vec<RunResult>> = Vec::new();
    for job in 0..jobs.len() {
        let same = unseeded(&results, job);
        let of_job = (0..seeds(job).len()).flat_map(|k| results.remove(&(job, k)).map(|(done, _)| done)).flatten();
        by_job.push(of_job.map(|result| RunResult { unseeded: same, ..result }).collect());
    }
    Ok(by_job)
}
