//! The outcome of experiments: a row for each expectation, a verdict for each experiment.

mod looks;
mod real;
mod row;

pub use real::{Where, run_parts};
pub use row::Row;

use crate::backend::Backend;
use crate::compare::Results;
use crate::experiment::Experiment;
use crate::run::{self, Job, RunResult};
use crate::side_by_side::{self, Comparison};
use crate::verdict::Verdict;
use schedlab_base::{PathText, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// An experiment, run and judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The experiment.
    pub experiment: Experiment,
    /// Its runs, in the order kernel, point, seed.
    pub runs: Vec<RunResult>,
    /// Its expectations.
    pub rows: Vec<Row>,
    /// All together.
    pub verdict: Verdict,
}

/// Several experiments, run and judged.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One each, in the order given.
    pub experiments: Vec<Judged>,
    /// The real kernel that ours is of, if it is not the simulator's.
    pub real: Option<Where>,
}

/// Runs experiments on the backend, by `threads` threads, and judges them; `progress` is called with runs done and runs
/// in all.
///
/// # Errors
/// When an experiment cannot be planned, run or judged for a mistake in its file.
pub fn run_experiments(
    experiments: Vec<Experiment>,
    backend: &dyn Backend,
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcome> {
    run_keeping(experiments, backend, (threads, None), progress)
}

/// The same by a number of threads; the trace of each run is written into the folder, if there is one.
///
/// # Errors
/// As [`run_experiments`], and when a trace cannot be written.
pub fn run_keeping(
    experiments: Vec<Experiment>,
    backend: &dyn Backend,
    by: (usize, Option<&Path>),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcome> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut sizes = Vec::new();
    let mut all = 0;
    for experiment in &experiments {
        let planned = run::plan(experiment)?;
        sizes.push(planned.len());
        all += planned.len() * experiment.file.seeds.len();
        jobs.extend(planned);
    }
    let done = std::sync::atomic::AtomicUsize::new(0);
    let tick = |more: usize| progress(more + done.fetch_add(more, std::sync::atomic::Ordering::Relaxed), all);
    let mut results = run::run_all(&jobs, backend, by, &tick)?.into_iter();
    drop(jobs);
    let experiments = experiments
        .into_iter()
        .zip(sizes)
        .map(|(experiment, size)| {
            let mut runs: Vec<RunResult> = results.by_ref().take(size).flatten().collect();
            // The seeds of one point are in order already.
            runs.sort_by_key(|r| (r.kernel, r.point));
            judged(experiment, runs, backend)
        })
        .collect::<Result<_>>()?;
    Ok(Outcome { experiments, real: None })
}

/// Judges an experiment by its runs.
///
/// # Errors
/// When its expressions make no sense with these runs.
pub(crate) fn judged(experiment: Experiment, runs: Vec<RunResult>, backend: &dyn Backend) -> Result<Judged> {
    let results = Results::new(&experiment, &runs);
    let rows = experiment
        .expectations
        .iter()
        .enumerate()
        .map(|(i, e)| Ok(row::row(e, results.judge(i, backend.deterministic())?)))
        .collect::<Result<Vec<_>>>()?;
    let verdict = Verdict::all(rows.iter().map(|r| r.verdict));
    Ok(Judged { experiment, runs, rows, verdict })
}

impl Judged {
    /// The kernels compared by every metric, at the point that reports show.
    pub(crate) fn comparisons(&self) -> Vec<Comparison> {
        side_by_side::comparisons(&self.experiment, &self.runs)
    }

    /// How many runs its results are of.
    pub(crate) fn runs_made(&self) -> usize {
        self.runs.iter().filter(|run| !run.again).count()
    }

    /// Whether no run depends on the seed.
    pub(crate) fn is_unseeded(&self) -> bool {
        self.experiment.file.seeds.len() > 1 && self.runs.iter().all(|run| run.unseeded)
    }

    /// Remarks on the workloads, and what the backend remarked on the runs (what of the load it does not model, ...),
    /// each once.
    #[must_use]
    pub fn remarks(&self) -> Vec<&str> {
        let mut remarks: Vec<&str> = Vec::new();
        for note in self.runs.iter().flat_map(|r| &r.notes) {
            if !remarks.contains(&note.as_str()) {
                remarks.push(note);
            }
        }
        remarks
    }
}

/// The values of a metric in the runs of one kernel at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricResult {
    /// The kernel's name in the experiment's file.
    pub kernel: String,
    /// The parameters' values; empty without a sweep.
    pub at: String,
    /// The metric's name.
    pub metric: String,
    /// One value for each seed, in order; `None` where it is not defined.
    pub values: Vec<Option<f64>>,
}

impl Judged {
    /// The values of every metric, for each kernel and point.
    pub(crate) fn results(&self) -> Vec<MetricResult> {
        let experiment = &self.experiment;
        let groups = self.runs.chunk_by(|a, b| (a.kernel, a.point) == (b.kernel, b.point));
        let of_group = |runs: &[RunResult]| -> Vec<MetricResult> {
            let result = |metric: &String| MetricResult {
                kernel: experiment.file.kernels[runs[0].kernel].name.clone(),
                at: experiment.points[runs[0].point].label(),
                metric: metric.clone(),
                values: runs.iter().map(|r| r.metrics[metric].as_ref().ok().copied()).collect(),
            };
            experiment.file.metrics.keys().map(result).collect()
        };
        groups.flat_map(of_group).collect()
    }
}

impl Outcome {
    /// How many runs the results are of.
    pub(crate) fn runs_made(&self) -> usize {
        self.experiments.iter().map(Judged::runs_made).sum()
    }

    /// The verdict of all experiments together.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::all(self.experiments.iter().map(|e| e.verdict))
    }

    /// Whether there are expectations, but none that was judged.
    #[must_use]
    pub fn judges_nothing(&self) -> bool {
        let mut rows = self.experiments.iter().flat_map(|e| &e.rows).peekable();
        rows.peek().is_some() && rows.all(|row| row.verdict == Verdict::Skipped)
    }

    /// The JSON that `run --json` prints.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let as_json = |c: Comparison| {
            let values: serde_json::Map<_, _> = c.values.into_iter().map(|(k, v, _)| (k, v.into())).collect();
            serde_json::json!({ "metric": c.metric, "label": c.label, "unit": c.unit, "at": c.at, "values": values })
        };
        let one = |judged: &Judged| {
            let file = &judged.experiment.file;
            serde_json::json!({
                "id": file.id,
                "title": file.title,
                "file": PathText(&judged.experiment.document.file),
                "verdict": judged.verdict,
                "runs": judged.runs_made(),
                "seeds": file.seeds,
                "remarks": judged.remarks(),
                "expectations": judged.rows,
                "comparisons": judged.comparisons().into_iter().map(as_json).collect::<Vec<_>>(),
                "results": judged.results(),
            })
        };
        let mut document = serde_json::json!({ "experiments": self.experiments.iter().map(one).collect::<Vec<_>>() });
        if let Some(real) = &self.real {
            document["real"] = serde_json::to_value(real).expect("plain data is always JSON");
        }
        document
    }
}
