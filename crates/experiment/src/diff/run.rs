//! A run, measured: of each row its figures, over all of it and in blocks of time.

use super::align::{Key, teams};
use schedlab_base::{Nanos, Partial, Result, Tid};
use schedlab_measure::compared::Compared;
use schedlab_measure::{Part, Report, Stats, StatsOfParts, TaskStats, TeamStats};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How tasks are aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// By name, and among those of one name by order.
    #[default]
    Task,
    /// By name, all of one name together.
    Name,
    /// By name without its numbers.
    Role,
    /// By the process's name, and among processes of one name by order.
    Process,
    /// By cgroup.
    Group,
}

/// The tasks of a run that was read before, by name and thread id: a model's tasks are called after them.
pub type Earlier = BTreeSet<(String, Tid)>;

/// A run, measured.
#[derive(Clone, Debug)]
pub struct Run {
    /// The file.
    pub(super) file: String,
    /// How long it lasts.
    pub(super) span_us: f64,
    /// The rows: their figures, and how many tasks they have.
    pub(super) lines: BTreeMap<Key, (Compared, usize)>,
    /// The figures of the rows in each block of time.
    pub(super) blocks: Vec<BTreeMap<Key, Compared>>,
    /// What to bear in mind.
    pub(super) remarks: Vec<String>,
    /// Set if it does not cover the whole machine.
    pub(super) partial: Option<Partial>,
    /// Its tasks.
    tasks: Earlier,
}

/// Reads and measures a run. With `blocks`, the trace is read twice, and its time is cut into so many.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path, part: Option<&Part>, by: By, blocks: usize, earlier: &Earlier) -> Result<Run> {
    let choose = |tasks: &[TaskStats]| teams(tasks, by, earlier).into_values().collect::<Vec<_>>();
    let mut source = schedlab_trace::open(path)?;
    let mut stats = Stats::of_part(source.meta(), part.cloned());
    let found = source.run(&mut stats)?;
    found.refuse_if_nothing_is_left(path)?;
    let (report, sums) = stats.finish_with_teams(None, &choose);
    let rows = teams(&report.tasks, by, earlier);
    let lines = rows.into_iter().zip(&sums).map(|((key, own), sum)| (key, (Compared::of(&sum.sums), own.len())));
    let mut run = Run {
        file: path.display().to_string(),
        span_us: report.total.span_us,
        lines: lines.collect(),
        blocks: Vec::new(),
        remarks: remarks(&report),
        partial: source.meta().partial.clone(),
        tasks: report.tasks.iter().map(|task| (task.name.to_string(), task.tid)).collect(),
    };
    run.remarks.extend(found.cut.map(|cut| cut.what));
    if blocks > 1 {
        run.blocks = in_blocks(path, part, &report, blocks, &|tasks| teams(tasks, by, earlier))?;
    }
    Ok(run)
}

/// What the trace does not show for certain.
fn remarks(report: &Report) -> Vec<String> {
    let total = &report.total;
    let share = |us: f64| us * 100.0 / (total.span_us * total.cpus as f64).max(1.0);
    let mut remarks = Vec::new();
    if total.losses > 0 {
        let unknown = share(total.unknown_us);
        remarks.push(format!("events were lost at {} places: {unknown:.1}% of the CPU time is unknown", total.losses));
    }
    if share(total.contradicted_us) > 1.0 {
        remarks.push(format!("{:.1}% of the CPU time is assigned by guess", share(total.contradicted_us)));
    }
    remarks
}

type Teams<'a> = &'a dyn Fn(&[TaskStats]) -> BTreeMap<Key, Vec<usize>>;

/// The figures of each block. Tasks of one name have other numbers in a block if some were not there: a block knows
/// single tasks by their thread ids.
fn in_blocks(
    path: &Path,
    part: Option<&Part>,
    whole: &Report,
    blocks: usize,
    teams: Teams,
) -> Result<Vec<BTreeMap<Key, Compared>>> {
    let rows = teams(&whole.tasks);
    let mut of_task: BTreeMap<(&str, Tid), Vec<usize>> = BTreeMap::new();
    for (row, members) in rows.values().enumerate() {
        for task in members.iter().map(|at| &whole.tasks[*at]) {
            of_task.entry((&task.name, task.tid)).or_default().push(row);
        }
    }
    let choose = |tasks: &[TaskStats]| {
        let mut chosen = vec![Vec::new(); rows.len()];
        for (at, task) in tasks.iter().enumerate() {
            for row in of_task.get(&(&*task.name, task.tid)).into_iter().flatten() {
                chosen[*row].push(at);
            }
        }
        chosen
    };
    let mut source = schedlab_trace::open(path)?;
    let start = part.map_or(0, |part| part.from);
    let length = (whole.total.span_us * 1e3) as Nanos;
    let edge = |block: usize| start + length / blocks as Nanos * block as Nanos;
    let window = |block: usize| Part {
        from: edge(block),
        to: edge(block + 1).max(edge(block) + 1),
        tasks: part.and_then(|part| part.tasks.clone()),
    };
    let meta = source.meta().clone();
    let mut stats = StatsOfParts::new(&meta, (0..blocks).map(window));
    source.run(&mut stats)?;
    let measured = stats.finish_with_teams(None, &choose).into_iter();
    let figures = |sum: TeamStats| Compared::of(&sum.sums);
    Ok(measured.map(|(_, sums)| rows.keys().cloned().zip(sums.into_iter().map(figures)).collect()).collect())
}

impl Run {
    /// Its tasks, for runs of a model of it.
    #[must_use]
    pub fn names(&self) -> &Earlier {
        &self.tasks
    }

    /// How long it lasts, in us.
    #[must_use]
    pub fn span_us(&self) -> f64 {
        self.span_us
    }

    pub(super) fn figures(&self, key: &Key) -> Compared {
        self.lines.get(key).map(|(figures, _)| *figures).unwrap_or_default()
    }

    pub(super) fn tasks(&self, key: &Key) -> usize {
        self.lines.get(key).map_or(0, |(_, tasks)| *tasks)
    }
}
