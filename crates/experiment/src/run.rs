//! Plans the runs of experiments, runs them on all of the host's cores, and keeps what is asked of them.
//!
//! Each run depends on its request alone, and results stand in the order of the plan: the output does not depend on
//! the number of threads.

use crate::backend::sim::{self, SimRequest};
use crate::experiment::{Experiment, HeatmapPlan};
use crate::expr::{Problem, eval_number};
use crate::file::CostsChoice;
use crate::measures::{RunScope, TaskFigures};
use schedlab_base::{Error, Nanos, Result, parse_duration};
use schedlab_machine::{Costs, Machine};
use schedlab_measure::{Heat, Report, Series, TaskStats};
use schedlab_workload::Workload;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One run's figures and series.
#[derive(Clone, Debug)]
pub struct Run {
    /// The kernel's label.
    pub label: String,
    /// The statistics.
    pub report: Report,
    /// The tasks' figures.
    pub tasks: Vec<TaskFigures>,
    /// What went on over time; its tasks stand in the order of `tasks`.
    pub series: Series,
    /// The kernel's tunables at the end, where they are known.
    pub tunables: BTreeMap<&'static str, i64>,
    /// The heat maps that were asked of it, each with its number.
    pub heats: Vec<(usize, Heat)>,
    /// What the backend remarked.
    pub note: Option<String>,
}

impl Run {
    /// A run out of its statistics and its series, which have heard the same tracker.
    #[must_use]
    pub fn new(label: String, report: Report, series: Series) -> Self {
        let by_tid: HashMap<_, _> = report.tasks.iter().map(|t| (t.tid, t)).collect();
        let none = TaskStats::default();
        let tasks = series
            .tasks
            .iter()
            .map(|track| TaskFigures::new(track, by_tid.get(&track.tid).copied().unwrap_or(&none)))
            .collect();
        Self { label, report, tasks, series, tunables: BTreeMap::new(), heats: Vec::new(), note: None }
    }
}

/// One run to be done.
pub struct Job<'a> {
    experiment: &'a Experiment,
    /// Index into the file's kernels.
    pub kernel: usize,
    /// Index into the experiment's points.
    pub point: usize,
    /// The seed.
    pub seed: u64,
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
    /// What the backend remarked.
    pub note: Option<String>,
}

/// The runs of an experiment, in the order kernel, point, seed.
///
/// # Errors
/// When a machine, a workload or a duration is wrong at any point.
pub fn plan(experiment: &Experiment) -> Result<Vec<Job<'_>>> {
    let mut machines: HashMap<String, Arc<Machine>> = HashMap::new();
    let mut workloads: HashMap<String, Arc<Workload>> = HashMap::new();
    let file = &experiment.file;
    let mut jobs = Vec::new();
    for (kernel, described) in file.kernels.iter().enumerate() {
        for (point, values) in experiment.points.iter().enumerate() {
            let machine = cached(&mut machines, values.fill(&file.machine), |spec| machine(experiment, spec))?;
            let spec = values.fill(workload_text(experiment));
            let workload = cached(&mut workloads, spec, |spec| workload(experiment, spec))?;
            let duration = file
                .duration
                .as_deref()
                .map(|text| parse_duration(&values.fill(text)))
                .transpose()
                .map_err(|e| experiment.document.error("duration", e.to_string()))?;
            let set: Vec<(String, String)> =
                described.set.iter().map(|(name, value)| (name.clone(), values.fill(&value.to_string()))).collect();
            jobs.extend(file.seeds.iter().map(|seed| Job {
                experiment,
                kernel,
                point,
                seed: *seed,
                machine: Arc::clone(&machine),
                workload: Arc::clone(&workload),
                set: set.clone(),
                duration,
            }));
        }
    }
    Ok(jobs)
}

fn cached<T>(
    known: &mut HashMap<String, Arc<T>>,
    spec: String,
    make: impl FnOnce(&str) -> Result<T>,
) -> Result<Arc<T>> {
    if let Some(found) = known.get(&spec) {
        return Ok(Arc::clone(found));
    }
    let made = Arc::new(make(&spec)?);
    known.insert(spec, Arc::clone(&made));
    Ok(made)
}

fn beside(experiment: &Experiment, name: &str) -> std::path::PathBuf {
    experiment.document.file.parent().unwrap_or(Path::new("")).join(name)
}

fn machine(experiment: &Experiment, spec: &str) -> Result<Machine> {
    let file = beside(experiment, spec);
    let found = if Path::new(spec).extension().is_some_and(|e| e == "toml") {
        schedlab_machine::MachineFile::open(&file)
    } else {
        schedlab_machine::load(spec)
    };
    let mut machine = found.map_err(|e| experiment.document.error("machine", e.to_string()))?;
    if experiment.file.costs == CostsChoice::None {
        machine.costs = Costs::none();
    }
    Ok(machine)
}

/// The one of the workload's keys that is given.
fn workload_text(experiment: &Experiment) -> &str {
    let given = &experiment.file.workload;
    [&given.preset, &given.file, &given.inline].into_iter().flatten().next().map_or("", String::as_str)
}

fn workload(experiment: &Experiment, spec: &str) -> Result<Workload> {
    let given = &experiment.file.workload;
    let document = &experiment.document;
    if given.preset.is_some() {
        schedlab_workload::presets::build(spec).map_err(|e| document.error("workload.preset", e.to_string()))
    } else if given.file.is_some() {
        let path = beside(experiment, spec);
        if !path.is_file() {
            return Err(document.error("workload.file", format!("there is no file {}", path.display())));
        }
        schedlab_workload::load(&path.to_string_lossy())
    } else {
        schedlab_workload::parse(spec.as_bytes(), Path::new("inline"))
            .map_err(|e| document.error("workload.inline", e.to_string()))
    }
}

impl Job<'_> {
    /// Runs it.
    fn run(&self) -> Result<RunResult> {
        let kernel = &self.experiment.file.kernels[self.kernel];
        let request = SimRequest {
            kernel: kernel.kernel.clone(),
            machine: (*self.machine).clone(),
            workload: (*self.workload).clone(),
            set: self.set.clone(),
            duration: self.duration,
            seed: self.seed,
            skip_ticks: true,
        };
        let place = |e: Error| {
            let path = format!("kernels[{}]", self.kernel);
            self.experiment.document.error(&path, format!("{} does not run: {e}", self.name()))
        };
        let plans: Vec<(usize, &HeatmapPlan)> = self.heatmaps().collect();
        let mut run = sim::measure(&request, self.experiment.window, &plans).map_err(place)?;
        run.label = self.experiment.kernel_label(self.kernel).to_owned();
        let point = &self.experiment.points[self.point];
        let scope = RunScope { run: &run, point, tables: &self.experiment.tables };
        let mut metrics = BTreeMap::new();
        for (name, expr) in &self.experiment.metrics {
            let value = eval_number(expr, &scope);
            if let Err(Problem::Wrong(what)) = &value {
                let path = format!("metrics.{name}.value");
                return Err(self.experiment.document.error(&path, format!("{}: {what}", self.name())));
            }
            metrics.insert(name.clone(), value);
        }
        let shown = self.point == self.experiment.shown_point() && self.is_first_seed();
        let note = run.note.clone();
        let heats = std::mem::take(&mut run.heats);
        let detail = shown.then(|| Box::new(run));
        Ok(RunResult { kernel: self.kernel, point: self.point, seed: self.seed, metrics, detail, heats, note })
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

/// Runs all jobs on `threads` threads; `done` is called after each.
///
/// # Errors
/// The first job's, in the order of the plan, that fails.
pub fn run_all(jobs: &[Job], threads: usize, done: &(dyn Fn() + Sync)) -> Result<Vec<RunResult>> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Result<RunResult>>>> = Mutex::new((0..jobs.len()).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let result = job.run();
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
