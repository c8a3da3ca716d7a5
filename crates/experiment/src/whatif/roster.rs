//! The rows of an answer, and which tasks of a recording and of a simulation belong to each.

use crate::roles::role;
use schedlab_base::Tid;
use schedlab_measure::TaskStats;
use schedlab_measure::validation::recorded_tid;
use schedlab_workload::Workload;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All tasks of the model.
    All,
    /// Those of a cgroup.
    Group,
    /// Those whose names differ by numbers only.
    Role,
    /// One task.
    Task,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What it stands for.
    pub kind: Kind,
    /// The cgroup's path, the role, or the name of the task; empty for all.
    pub name: String,
    /// The thread id of a single task, as recorded.
    pub tid: Option<Tid>,
    /// How many tasks.
    pub tasks: usize,
    /// What it is called in a sentence.
    pub label: String,
}

/// A task of the model.
struct Member {
    tid: Tid,
    name: String,
    group: Option<String>,
}

/// The rows, the first of which is all tasks.
pub struct Roster {
    /// The rows.
    pub rows: Vec<Row>,
    /// The rows that each task belongs to.
    of_tid: BTreeMap<Tid, Vec<usize>>,
    /// The names of the model's tasks.
    keys: BTreeSet<String>,
}

impl Roster {
    /// The rows of a recording's model: the tasks have the names and groups that were recorded.
    #[must_use]
    pub fn of_recording(tasks: &[TaskStats], workload: &Workload) -> Self {
        let keys = keys(workload);
        let own: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
        let modelled: BTreeSet<Tid> = keys.iter().filter_map(|key| recorded_tid(key, &own)).collect();
        let mut members: BTreeMap<Tid, Member> = BTreeMap::new();
        // Of several lives of a thread id the longest comes first.
        for task in tasks.iter().filter(|task| modelled.contains(&task.tid)) {
            let member = || Member { tid: task.tid, name: task.name.to_string(), group: task.group.clone() };
            members.entry(task.tid).or_insert_with(member);
        }
        Self::new(members.into_values().collect(), keys)
    }

    /// The rows of a model without its recording: the names are those of its tasks, without the thread ids.
    #[must_use]
    pub fn of_model(workload: &Workload) -> Self {
        let keys = keys(workload);
        let own: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
        let mut members: BTreeMap<Tid, Member> = BTreeMap::new();
        for key in &keys {
            let Some(tid) = recorded_tid(key, &own) else { continue };
            let name = key.rsplit_once('-').map_or("", |(name, _)| name).to_owned();
            members.entry(tid).or_insert(Member { tid, name, group: None });
        }
        Self::new(members.into_values().collect(), keys)
    }

    fn new(members: Vec<Member>, keys: BTreeSet<String>) -> Self {
        let all = Row {
            kind: Kind::All,
            name: String::new(),
            tid: None,
            tasks: members.len(),
            label: "all tasks".to_owned(),
        };
        let mut roster = Self { rows: vec![all], of_tid: BTreeMap::new(), keys };
        roster.put(0, members.iter().map(|member| member.tid));
        let mut groups: BTreeMap<&str, Vec<Tid>> = BTreeMap::new();
        let mut roles: BTreeMap<String, Vec<Tid>> = BTreeMap::new();
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for member in &members {
            if let Some(group) = &member.group {
                groups.entry(group).or_default().push(member.tid);
            }
            roles.entry(role(&member.name)).or_default().push(member.tid);
            *names.entry(&member.name).or_default() += 1;
        }
        if groups.len() > 1 {
            groups.into_iter().for_each(|(path, tids)| roster.add_team(Kind::Group, path, &tids));
        }
        roles.iter().filter(|(_, tids)| tids.len() > 1).for_each(|(role, tids)| {
            roster.add_team(Kind::Role, role, tids);
        });
        for Member { tid, name, .. } in &members {
            let label = if names[name.as_str()] > 1 { format!("{name}-{tid}") } else { name.clone() };
            let row = Row { kind: Kind::Task, name: name.clone(), tid: Some(*tid), tasks: 1, label };
            roster.rows.push(row);
            roster.put(roster.rows.len() - 1, std::iter::once(*tid));
        }
        roster
    }

    fn add_team(&mut self, kind: Kind, name: &str, tids: &[Tid]) {
        let label = match kind {
            Kind::Group => format!("group {name}"),
            _ => format!("{name} ({} tasks)", tids.len()),
        };
        self.rows.push(Row { kind, name: name.to_owned(), tid: None, tasks: tids.len(), label });
        self.put(self.rows.len() - 1, tids.iter().copied());
    }

    fn put(&mut self, row: usize, tids: impl Iterator<Item = Tid>) {
        tids.for_each(|tid| self.of_tid.entry(tid).or_default().push(row));
    }

    /// The tasks of each row in the report of the recording.
    #[must_use]
    pub fn of_recorded(&self, tasks: &[TaskStats]) -> Vec<Vec<usize>> {
        self.sorted(tasks, |task| Some(task.tid))
    }

    /// The tasks of each row in the report of a simulation.
    pub(super) fn of_simulated(&self, tasks: &[TaskStats]) -> Vec<Vec<usize>> {
        let keys: BTreeSet<&str> = self.keys.iter().map(String::as_str).collect();
        self.sorted(tasks, |task| recorded_tid(&task.name, &keys))
    }

    /// The rows about single tasks, and tasks alike, of which some are left out: they are others then.
    pub(super) fn without(&self, left_out: &BTreeSet<String>) -> BTreeSet<usize> {
        let keys: BTreeSet<&str> = self.keys.iter().map(String::as_str).collect();
        let tids = left_out.iter().filter_map(|key| recorded_tid(key, &keys));
        let rows = tids.filter_map(|tid| self.of_tid.get(&tid)).flatten().copied();
        rows.filter(|row| matches!(self.rows[*row].kind, Kind::Role | Kind::Task)).collect()
    }

    fn sorted(&self, tasks: &[TaskStats], tid: impl Fn(&TaskStats) -> Option<Tid>) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.rows.len()];
        for (at, task) in tasks.iter().enumerate() {
            for row in tid(task).and_then(|tid| self.of_tid.get(&tid)).into_iter().flatten() {
                rows[*row].push(at);
            }
        }
        rows
    }
}

fn keys(workload: &Workload) -> BTreeSet<String> {
    workload.tasks.iter().map(|task| task.name.clone()).collect()
}
