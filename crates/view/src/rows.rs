//! The rows of the picture: CPUs by node and package, tasks by cgroup and process.

use crate::index::Index;
use crate::spans::State;
use schedlab_base::{CpuId, Meta, Nanos};
use schedlab_measure::Name;
use schedlab_track::Slot;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// So many tasks have rows: those that ran or waited longest.
pub const MOST_TASKS: usize = 20_000;

/// What rows stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// CPUs.
    Cpu,
    /// Tasks.
    Task,
}

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A CPU.
    Cpu(CpuId),
    /// A task.
    Task(Slot),
    /// The rows after it, so many.
    Group(usize),
}

/// A row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its place in the list.
    pub row: u32,
    kind: &'static str,
    /// What it is called.
    pub label: String,
    depth: u32,
    children: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuId>,
    #[serde(flatten)]
    task: Option<TaskRow>,
    /// What it shows.
    #[serde(skip)]
    pub of: Of,
}

/// What a task's row says of it.
#[derive(Clone, Debug, Serialize)]
struct TaskRow {
    #[serde(flatten)]
    who: TaskRef,
    #[serde(flatten)]
    more: Belongs,
    run: Nanos,
    wait: Nanos,
}

/// A task as answers name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskRef {
    /// Its number.
    pub task: Slot,
    /// Its thread id.
    pub tid: i32,
    /// Its name; empty if it has none.
    pub name: String,
}

/// What a task belongs to.
#[derive(Clone, Debug, Serialize)]
pub struct Belongs {
    /// The number of its process.
    pub tgid: Option<i32>,
    /// The name of its process.
    pub process: Option<String>,
    /// The path of its cgroup.
    pub group: Option<String>,
}

/// The rows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rows {
    /// Them.
    pub rows: Vec<Row>,
    /// Tasks without a row, because there are too many.
    pub left_out: usize,
}

/// A task as answers name it.
#[must_use]
pub fn task_ref(index: &Index, task: Slot) -> TaskRef {
    let tid = index.facts.get(task as usize).map_or(0, |facts| facts.tid);
    TaskRef { task, tid, name: index.names.of(task).comm.to_string() }
}

/// What tasks belong to, for all tasks: the name of a process is that of its first thread.
#[derive(Debug, Default)]
pub struct Processes(BTreeMap<i32, String>);

impl Processes {
    /// Of all tasks of the trace.
    #[must_use]
    pub fn new(index: &Index) -> Self {
        let mut names = BTreeMap::new();
        for (task, facts) in (0..).zip(&index.facts) {
            let Name { comm, tgid, .. } = index.names.of(task);
            if let Some(tgid) = tgid
                && (facts.tid == tgid || !names.contains_key(&tgid))
            {
                names.insert(tgid, comm.to_string());
            }
        }
        Self(names)
    }

    /// What this task belongs to.
    #[must_use]
    pub fn of(&self, index: &Index, task: Slot) -> Belongs {
        let Name { tgid, group, .. } = index.names.of(task);
        let group = group.and_then(|group| index.names.groups().get(group as usize));
        let process = tgid.and_then(|tgid| self.0.get(&tgid)).cloned();
        Belongs { tgid, process, group: group.map(|path| path.to_string()) }
    }
}

impl Rows {
    fn push(&mut self, of: Of, label: String, depth: u32, task: Option<TaskRow>) {
        let (kind, children, cpu) = match of {
            Of::Cpu(cpu) => ("cpu", 0, Some(cpu)),
            Of::Task(_) => ("task", 0, None),
            Of::Group(children) => ("group", children, None),
        };
        let row = self.rows.len() as u32;
        self.rows.push(Row { row, kind, label, depth, children, cpu, task, of });
    }

    /// A group of what `inside` adds, if it is to be shown.
    fn group(&mut self, label: Option<String>, depth: u32, inside: impl FnOnce(&mut Self, u32)) {
        let Some(label) = label else { return inside(self, depth) };
        let at = self.rows.len();
        self.push(Of::Group(0), label, depth, None);
        inside(self, depth + 1);
        let children = self.rows.len() - at - 1;
        (self.rows[at].of, self.rows[at].children) = (Of::Group(children), children);
    }

    /// A row for each CPU, grouped by node and package where there are several.
    #[must_use]
    pub fn of_cpus(meta: &Meta, cpus: &[CpuId]) -> Self {
        let mut places: BTreeMap<u32, BTreeMap<u32, BTreeSet<(u32, CpuId)>>> = BTreeMap::new();
        for &cpu in cpus {
            let place = meta.cpus.iter().find(|place| place.cpu == cpu);
            let (node, package, core) = place.map_or((0, 0, 0), |place| (place.node, place.package, place.core));
            places.entry(node).or_default().entry(package).or_default().insert((core, cpu));
        }
        let packages: BTreeSet<u32> = places.values().flat_map(BTreeMap::keys).copied().collect();
        let mut rows = Self::default();
        let several = places.len() > 1;
        for (node, inside) in places {
            rows.group(several.then(|| format!("node {node}")), 0, |rows, depth| {
                let several = inside.len() > 1 || (packages.len() > 1 && !several);
                for (package, cpus) in inside {
                    rows.group(several.then(|| format!("package {package}")), depth, |rows, depth| {
                        for (_, cpu) in cpus {
                            rows.push(Of::Cpu(cpu), format!("CPU {cpu}"), depth, None);
                        }
                    });
                }
            });
        }
        rows
    }

    /// A row for each task that did something, grouped by cgroup (where there are several) and by process (where it has
    /// several threads).
    #[must_use]
    pub fn of_tasks(index: &Index) -> Self {
        let processes = Processes::new(index);
        let mut tasks: Vec<(Slot, Nanos, Nanos)> =
            (0..).zip(&index.tasks).filter_map(|row| there(index, row)).collect();
        let left_out = tasks.len().saturating_sub(MOST_TASKS);
        if left_out > 0 {
            tasks.sort_by_key(|(slot, run, wait)| (std::cmp::Reverse(run + wait), *slot));
            tasks.truncate(MOST_TASKS);
        }
        let mut groups: BTreeMap<Option<String>, BTreeMap<i32, Vec<TaskRow>>> = BTreeMap::new();
        for (slot, run, wait) in tasks {
            let (who, more) = (task_ref(index, slot), processes.of(index, slot));
            let process = more.tgid.unwrap_or(who.tid);
            let group = groups.entry(more.group.clone()).or_default();
            group.entry(process).or_default().push(TaskRow { who, more, run, wait });
        }
        let mut rows = Self { left_out, ..Self::default() };
        let several = groups.len() > 1;
        for (group, inside) in groups {
            let label = group.unwrap_or_else(|| "no cgroup known".to_owned());
            rows.group(several.then_some(label), 0, |rows, depth| {
                for (tgid, mut tasks) in inside {
                    tasks.sort_by_key(|task| (task.who.tid, task.who.task));
                    let first = tasks.iter().find_map(|task| task.more.process.clone());
                    let several = tasks.len() > 1 && tasks[0].more.tgid.is_some();
                    let label = several.then(|| format!("{} {tgid}", first.unwrap_or_default()).trim().to_owned());
                    rows.group(label, depth, |rows, depth| {
                        for task in tasks {
                            let label = format!("{} {}", task.who.name, task.who.tid).trim().to_owned();
                            rows.push(Of::Task(task.who.task), label, depth, Some(task));
                        }
                    });
                }
            });
        }
        rows
    }

    /// The row that shows this.
    #[must_use]
    pub fn find(&self, of: Of) -> Option<&Row> {
        self.rows.iter().find(|row| row.of == of)
    }

    /// The rows below a group, or the row itself.
    #[must_use]
    pub fn below(&self, at: usize) -> &[Row] {
        match self.rows[at].of {
            Of::Group(children) => &self.rows[at + 1..=at + children],
            _ => &self.rows[at..=at],
        }
    }
}

/// A task that did something, with the time that it ran and waited.
fn there(index: &Index, (slot, spans): (Slot, &crate::spans::Spans)) -> Option<(Slot, Nanos, Nanos)> {
    if index.facts.get(slot as usize).is_none_or(|facts| facts.tid == 0) {
        return None;
    }
    let time = spans.sums(0, index.end, index.end, &mut 0).time;
    let of = |state: State| time[state as usize];
    let (run, wait) = (of(State::Running), of(State::Waiting));
    let did = run + wait + of(State::Sleeping) + of(State::Blocked) > 0 || spans.len() > 1;
    did.then_some((slot, run, wait))
}
