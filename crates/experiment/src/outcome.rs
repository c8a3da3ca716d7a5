//! What experiments come to: a row for each expectation, a verdict for each experiment.

use crate::backend::Backend;
use crate::compare::{Case, Results};
use crate::experiment::Experiment;
use crate::file::{ExpectationFile, Kind};
use crate::run::{self, Job, RunResult};
use crate::side_by_side::{self, Comparison};
use crate::verdict::Verdict;
use schedlab_base::Result;
use serde::Serialize;

/// An expectation, judged over all its cases.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The source's figure or table.
    pub figure: String,
    /// What it says.
    pub claim: Option<String>,
    /// How firm it is.
    pub kind: Kind,
    /// What was published.
    pub published: Option<serde_json::Value>,
    /// Ours, in the case that lies nearest to (or farthest beyond) its bound.
    pub measured: Option<f64>,
    /// The bound in that case.
    pub bound: Option<f64>,
    /// The metric, the relation, the bound and the margin as written.
    pub expected: String,
    /// That case's kernel.
    pub kernel: Option<String>,
    /// That case's parameters.
    pub at: String,
    /// What the expectation comes to.
    pub verdict: Verdict,
    /// Why, where that does not show.
    pub reason: Option<String>,
    /// Every case.
    pub cases: Vec<Case>,
}

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
}

/// Runs experiments on the backend, by `threads` threads, and judges them; `progress` is called with runs done and runs in all.
///
/// # Errors
/// When an experiment cannot be planned, run or judged for a mistake in its file.
pub fn run_experiments(
    experiments: Vec<Experiment>,
    backend: &dyn Backend,
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcome> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut sizes = Vec::new();
    for experiment in &experiments {
        let planned = run::plan(experiment)?;
        sizes.push(planned.len());
        jobs.extend(planned);
    }
    let all = jobs.len();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let tick = || progress(1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed), all);
    let mut results = run::run_all(&jobs, backend, threads, &tick)?.into_iter();
    drop(jobs);
    let experiments = experiments
        .into_iter()
        .zip(sizes)
        .map(|(experiment, size)| judged(experiment, results.by_ref().take(size).collect(), backend))
        .collect::<Result<_>>()?;
    Ok(Outcome { experiments })
}

fn judged(experiment: Experiment, runs: Vec<RunResult>, backend: &dyn Backend) -> Result<Judged> {
    let results = Results::new(&experiment, &runs);
    let rows = experiment
        .expectations
        .iter()
        .enumerate()
        .map(|(i, e)| Ok(row(&e.file, results.judge(i, backend.deterministic())?)))
        .collect::<Result<Vec<_>>>()?;
    let verdict = Verdict::all(rows.iter().map(|r| r.verdict));
    Ok(Judged { experiment, runs, rows, verdict })
}

fn row(file: &ExpectationFile, cases: Vec<Case>) -> Row {
    let verdict = if cases.is_empty() { Verdict::Skipped } else { over_cases(file, &cases) };
    let worst = cases
        .iter()
        .filter(|c| c.verdict == verdict)
        .min_by(|a, b| a.slack.total_cmp(&b.slack))
        .or_else(|| cases.first());
    let margin = file.margin.as_ref().map_or_else(String::new, |m| format!(" within {m}"));
    let passed_at_last = file.known_difference.is_some() && verdict == Verdict::Fail;
    let reason = match (&file.skip, &file.known_difference) {
        (Some(why), _) => Some(why.clone()),
        (None, Some(cause)) if verdict == Verdict::KnownDifference => Some(cause.clone()),
        (None, Some(_)) if passed_at_last => {
            Some("the known difference is no more: take known_difference out of the file".to_owned())
        }
        _ => worst.and_then(|c| c.reason.clone()),
    };
    Row {
        figure: file.figure.clone(),
        claim: file.claim.clone(),
        kind: file.kind,
        published: worst.and_then(|c| c.published.clone()).or_else(|| plain_published(file)),
        measured: worst.and_then(|c| c.measured),
        bound: worst.and_then(|c| c.bound),
        expected: format!("{} {} {}{margin}", file.metric, file.relation.sign(), file.bound),
        kernel: worst.and_then(|c| c.kernel.clone()),
        at: worst.map_or_else(String::new, |c| c.at.clone()),
        verdict,
        reason,
        cases,
    }
}

/// A known difference is there as long as any case shows it; else every case counts.
fn over_cases(file: &ExpectationFile, cases: &[Case]) -> Verdict {
    let verdicts = || cases.iter().map(|c| c.verdict);
    if file.known_difference.is_some() && verdicts().any(|v| v == Verdict::KnownDifference) {
        return Verdict::KnownDifference;
    }
    Verdict::all(verdicts())
}

fn plain_published(file: &ExpectationFile) -> Option<serde_json::Value> {
    let published = file.published.as_ref()?;
    serde_json::to_value(published).ok().filter(|v| !v.as_str().is_some_and(|s| s.starts_with('=')))
}

impl Judged {
    /// The kernels compared by every metric, at the point that reports show.
    #[must_use]
    pub fn comparisons(&self) -> Vec<Comparison> {
        side_by_side::comparisons(&self.experiment, &self.runs)
    }

    /// What the backend remarked on the runs (what of the load it does not model, ...), each remark once.
    #[must_use]
    pub fn remarks(&self) -> Vec<&str> {
        let mut remarks: Vec<&str> = Vec::new();
        for note in self.runs.iter().filter_map(|r| r.note.as_deref()) {
            if !remarks.contains(&note) {
                remarks.push(note);
            }
        }
        remarks
    }
}

impl Outcome {
    /// The verdict of all experiments together.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::all(self.experiments.iter().map(|e| e.verdict))
    }

    /// The JSON that `run --json` prints.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let as_json = |c: Comparison| {
            let values: serde_json::Map<_, _> = c.values.into_iter().map(|(k, v)| (k, v.into())).collect();
            serde_json::json!({ "metric": c.metric, "label": c.label, "unit": c.unit, "at": c.at, "values": values })
        };
        let one = |judged: &Judged| {
            let file = &judged.experiment.file;
            serde_json::json!({
                "id": file.id,
                "title": file.title,
                "file": judged.experiment.document.file,
                "verdict": judged.verdict,
                "runs": judged.runs.len(),
                "seeds": file.seeds,
                "remarks": judged.remarks(),
                "expectations": judged.rows,
                "comparisons": judged.comparisons().into_iter().map(as_json).collect::<Vec<_>>(),
            })
        };
        serde_json::json!({ "experiments": self.experiments.iter().map(one).collect::<Vec<_>>() })
    }
}
