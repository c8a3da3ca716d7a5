//! Plans the runs of experiments, runs them on all of the host's cores, and keeps what is asked of them.
//!
//! Each run depends on its request alone, and results stand in the order of the plan: the output does not depend on
//! the number of threads.

mod measure;
mod plan;

pub use plan::plan;

use crate::backend::{Backend, Request};
use crate::experiment::{Experiment, HeatmapPlan};
use crate::expr::{Problem, eval_number};
use crate::figures::Run;
use crate::measures::RunScope;
use measure::measure;
use schedlab_base::{Nanos, Result};
use schedlab_machine::Machine;
use schedlab_measure::Heat;
use schedlab_workload::Workload;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One run to be done.
pub struct Job<'a> {
    experiment: &'a Experiment,
    /// Index into the file's kernels.
    kernel: usize,
    /// Index into the experiment's points.
    point: usize,
    seed: u64,
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
    /// All of it, for the runs that the report draws.
    pub detail: Option<Box<Run>>,
    /// The heat maps drawn of it, by index into the experiment's.
    pub heats: Vec<(usize, Heat)>,
    /// Remarks on the workload, and what the backend remarked.
    pub notes: Vec<String>,
}

impl Job<'_> {
    /// Runs it, and computes its metrics.
    fn run(&self, backend: &dyn Backend) -> Result<RunResult> {
        let plans: Vec<(usize, &HeatmapPlan)> = self.heatmaps().collect();
        let measured = measure(backend, &self.request(), self.experiment.window, &plans);
        let mut run = measured.map_err(|e| {
            let path = format!("kernels[{}]", self.kernel);
            self.experiment.document.error(&path, format!("{} does not run: {e}", self.name()))
        })?;
        run.label = self.experiment.kernel_label(self.kernel).to_owned();
        let metrics = self.metrics(&run)?;
        let shown = self.point == self.experiment.shown_point() && self.is_first_seed();
        let notes = [&self.workload.warnings[..], &run.notes[..]].concat();
        let heats = std::mem::take(&mut run.heats);
        let detail = shown.then(|| Box::new(run));
        Ok(RunResult { kernel: self.kernel, point: self.point, seed: self.seed, metrics, detail, heats, notes })
    }

    fn request(&self) -> Request {
        Request {
            kernel: self.experiment.file.kernels[self.kernel].kernel.clone(),
            machine: (*self.machine).clone(),
            workload: (*self.workload).clone(),
            set: self.set.clone(),
            duration: self.duration,
            seed: self.seed,
            skip_ticks: true,
        }
    }

    fn metrics(&self, run: &Run) -> Result<BTreeMap<String, Result<f64, Problem>>> {
        let point = &self.experiment.points[self.point];
        let scope = RunScope { run, point, tables: &self.experiment.tables };
        let mut metrics = BTreeMap::new();
        for (name, expr) in &self.experiment.metrics {
            let value = eval_number(expr, &scope);
            if let Err(Problem::Wrong(what)) = &value {
                let path = format!("metrics.{name}.value");
                return Err(self.experiment.document.error(&path, format!("{}: {what}", self.name())));
            }
            metrics.insert(name.clone(), value);
        }
        Ok(metrics)
    }

    fn is_first_seed(&self) -> bool {
        self.seed == self.experiment.file.seeds[0]
    }

    /// The experiment's heat maps that are drawn of this run, each with its index.
    fn heatmaps(&self) -> impl Iterator<Item = (usize, &HeatmapPlan)> {
        let fits = |plan: &HeatmapPlan| {
            self.is_first_seed() && plan.point == self.point && plan.kernels.contains(&self.kernel)
        };
        self.experiment.heatmaps.iter().enumerate().filter(move |(_, plan)| fits(plan))
    }

    /// `cfs at n=3`, for messages.
    fn name(&self) -> String {
        let kernel = &self.experiment.file.kernels[self.kernel].name;
        match self.experiment.points[self.point].label() {
            label if label.is_empty() => kernel.clone(),
            label => format!("{kernel} at {label}"),
        }
    }
}

/// Runs all jobs on the backend, by `threads` threads; `done` is called after each.
///
/// # Errors
/// The first job's, in the order of the plan, that fails.
pub fn run_all(
    jobs: &[Job],
    backend: &dyn Backend,
    threads: usize,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<RunResult>> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Result<RunResult>>>> = Mutex::new((0..jobs.len()).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let result = job.run(backend);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    results.lock().expect("no thread panics while it holds the lock")[index] = Some(result);
                    done();
                }
            });
        }
    });
    // Jobs are taken in order: before the first that failed there is no gap.
    results.into_inner().expect("all threads are done").into_iter().flatten().collect()
}
