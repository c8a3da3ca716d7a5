//! What one run yields: its statistics, the figures of its tasks, and what went on over time.

use schedlab_base::{Nanos, Tid};
use schedlab_measure::series::Track;
use schedlab_measure::{CheckReport, Heat, Latency, MemoryStats, Report, Series, TaskStats};
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// What was found of CPU time that was wasted, if a measure asks for it.
    pub check: Option<CheckReport>,
    /// What the backend remarked.
    pub notes: Vec<String>,
    /// It is a recording of a real kernel.
    pub recorded: bool,
}

impl Run {
    /// A run out of its statistics and its series, which have heard the same tracker.
    #[must_use]
    pub fn new(label: String, report: Report, series: Series) -> Self {
        Self::of_tasks(None, label, report, series)
    }

    /// The same with the figures of these tasks alone. What is said of CPUs and of the whole run is about all tasks.
    #[must_use]
    pub fn of_tasks(own: Option<&BTreeSet<Tid>>, label: String, report: Report, mut series: Series) -> Self {
        series.tasks.retain(|track| own.is_none_or(|own| own.contains(&track.tid)));
        let by_tid: HashMap<_, _> = report.tasks.iter().map(|t| (t.tid, t)).collect();
        let none = TaskStats::default();
        let tasks = series
            .tasks
            .iter()
            .map(|track| TaskFigures::new(track, by_tid.get(&track.tid).copied().unwrap_or(&none)))
            .collect();
        Self {
            label,
            report,
            tasks,
            series,
            tunables: BTreeMap::new(),
            heats: Vec::new(),
            check: None,
            notes: Vec::new(),
            recorded: false,
        }
    }
}

impl Run {
    /// The same without its heat maps.
    #[must_use]
    pub fn without_heats(&self) -> Self {
        Self { heats: Vec::new(), ..self.clone() }
    }
}

/// The figures of a whole run that reports compare in any case; a time is in ns. None where a run has no such figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MainFigures {
    /// From wake-up to running, mean.
    pub latency_mean: Option<f64>,
    /// The same, 99th percentile.
    pub latency_p99: Option<f64>,
    /// Times that a CPU was taken from a task.
    pub involuntary: Option<f64>,
    /// Moves between CPUs.
    pub moves: Option<f64>,
    /// CPU time of all tasks.
    pub run: Option<f64>,
    /// Time that all tasks waited for a CPU.
    pub wait: Option<f64>,
}

impl MainFigures {
    /// Those of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let sums = &run.report.total.sums;
        let latency = |get: fn(&Latency) -> f64| {
            let latency = &sums.latency.latency_us;
            (latency.count > 0).then(|| get(latency) * 1e3)
        };
        Self {
            latency_mean: latency(|l| l.mean),
            latency_p99: latency(|l| l.p99),
            involuntary: Some(sums.switches.involuntary as f64),
            moves: Some(sums.moves.migrations as f64),
            run: Some(sums.run.run_us * 1e3),
            wait: Some(sums.wait.wait_us * 1e3),
        }
    }
}

/// The figures of one task in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFigures {
    /// Its name.
    pub name: String,
    /// When it became runnable first.
    pub start: Option<Nanos>,
    /// When it ended, if it did.
    pub end: Option<Nanos>,
    /// Time on a CPU.
    pub run: Nanos,
    /// Time in wait for a CPU.
    pub wait: Nanos,
    /// Times that it got a CPU.
    pub slices: u64,
    /// Times that it gave the CPU up of itself.
    pub voluntary: u64,
    /// Times that the CPU was taken from it.
    pub involuntary: u64,
    /// Moves between CPUs.
    pub migrations: u64,
    /// Moves between nodes.
    pub node_migrations: u64,
    /// When it was last moved between nodes, or most of its memory was.
    pub settled: Option<Nanos>,
    /// Its memory at the end.
    pub memory: Option<MemoryStats>,
    /// From wake-up to running, in us: mean, p50, p90, p99, p999, max; none where it was never woken, or where no
    /// wake-up shows when it got a CPU.
    pub latency_us: Option<[f64; 6]>,
}

impl TaskFigures {
    /// The figures of a task out of its track and its statistics.
    #[must_use]
    pub fn new(track: &Track, stats: &TaskStats) -> Self {
        let sums = &stats.sums;
        let l = &sums.latency.latency_us;
        Self {
            name: track.name.clone(),
            start: track.start,
            end: track.end,
            run: (sums.run.run_us * 1e3).round() as Nanos,
            wait: (sums.wait.wait_us * 1e3).round() as Nanos,
            slices: sums.switches.slices,
            voluntary: sums.switches.voluntary,
            involuntary: sums.switches.involuntary,
            migrations: sums.moves.migrations,
            node_migrations: stats.node_migrations,
            settled: stats.settled_us.map(|us| (us * 1e3).round() as Nanos),
            memory: stats.memory.as_deref().cloned(),
            latency_us: (l.count > 0).then_some([l.mean, l.p50, l.p90, l.p99, l.p999, l.max]),
        }
    }
}
