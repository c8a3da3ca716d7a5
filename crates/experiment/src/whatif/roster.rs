//! The rows of an answer, and which tasks of a recording and of a simulation belong to each.

use crate::roles::role;
use schedlab_base::{Tid, counted};
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

/// What a task is known by in recordings and simulations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    /// One that was recorded: its thread id.
    Tid(Tid),
    /// One that was written: its name in simulations.
    Name(String),
}

/// A task of the model.
struct Member {
    id: Id,
    name: String,
    group: Option<String>,
}

/// The rows, the first of which is all tasks.
pub struct Roster {
    /// The rows.
    pub rows: Vec<Row>,
    /// The rows that each task belongs to.
    of: BTreeMap<Id, Vec<usize>>,
    /// The names of the workload's tasks, and the thread ids in which those of recorded ones end.
    keys: BTreeMap<String, Option<Tid>>,
}

impl Roster {
    /// The rows of a workload, with the names and groups of the tasks in the recording that it is the model of, if that
    /// is there. Tasks that were written, or added to the model, have their own.
    #[must_use]
    pub fn new(tasks: &[TaskStats], workload: &Workload) -> Self {
        let own: BTreeSet<&str> = workload.tasks.iter().map(|task| task.name.as_str()).collect();
        // A written name may end in a number that is no thread id.
        let named: BTreeSet<String> = tasks.iter().map(|task| format!("{}-{}", &*task.name, task.tid)).collect();
        let tid = |key: &str| recorded_tid(key, &own).filter(|_| workload.recorded.is_some() || named.contains(key));
        let keys: BTreeMap<String, Option<Tid>> = own.iter().map(|key| ((*key).to_owned(), tid(key))).collect();
        let modelled: BTreeSet<Tid> = keys.values().flatten().copied().collect();
        let mut members: BTreeMap<Id, Member> = BTreeMap::new();
        let mut add = |id: Id, name: String, group: Option<String>| {
            members.entry(id.clone()).or_insert(Member { id, name, group });
        };
        // Of several lives of a thread id the longest comes first.
        for task in tasks.iter().filter(|task| modelled.contains(&task.tid)) {
            add(Id::Tid(task.tid), task.name.to_string(), task.group.clone());
        }
        for task in &workload.tasks {
            let (key, group) = (&task.name, &task.props.taskgroup);
            match (keys[key], task.instances) {
                (Some(tid), _) => {
                    let name = key.rsplit_once('-').map_or("", |(name, _)| name);
                    add(Id::Tid(tid), name.to_owned(), group.clone());
                }
                (None, 0 | 1) => add(Id::Name(key.clone()), key.clone(), group.clone()),
                (None, instances) => (0..instances).for_each(|n| {
                    let name = format!("{key}-{n}");
                    add(Id::Name(name.clone()), name, group.clone());
                }),
            }
        }
        Self::of_members(members.into_values().collect(), keys)
    }

    fn of_members(members: Vec<Member>, keys: BTreeMap<String, Option<Tid>>) -> Self {
        let all = Row {
            kind: Kind::All,
            name: String::new(),
            tid: None,
            tasks: members.len(),
            label: "all tasks".to_owned(),
        };
        let mut roster = Self { rows: vec![all], of: BTreeMap::new(), keys };
        roster.put(0, members.iter().map(|member| &member.id));
        let mut groups: BTreeMap<&str, Vec<&Id>> = BTreeMap::new();
        let mut roles: BTreeMap<String, Vec<&Id>> = BTreeMap::new();
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for member in &members {
            if let Some(group) = &member.group {
                groups.entry(group).or_default().push(&member.id);
            }
            roles.entry(role(&member.name)).or_default().push(&member.id);
            *names.entry(&member.name).or_default() += 1;
        }
        if groups.len() > 1 {
            groups.into_iter().for_each(|(path, ids)| roster.add_team(Kind::Group, path, &ids));
        }
        roles.iter().filter(|(_, ids)| ids.len() > 1).for_each(|(role, ids)| {
            roster.add_team(Kind::Role, role, ids);
        });
        for Member { id, name, .. } in &members {
            let tid = if let Id::Tid(tid) = id { Some(*tid) } else { None };
            let label = match tid {
                Some(tid) if names[name.as_str()] > 1 => format!("{name}-{tid}"),
                _ => name.clone(),
            };
            roster.rows.push(Row { kind: Kind::Task, name: name.clone(), tid, tasks: 1, label });
            roster.put(roster.rows.len() - 1, std::iter::once(id));
        }
        roster
    }

    fn add_team(&mut self, kind: Kind, name: &str, ids: &[&Id]) {
        let label = match kind {
            Kind::Group => format!("group {name}"),
            _ => format!("{name} ({})", counted(ids.len() as u64, "task")),
        };
        self.rows.push(Row { kind, name: name.to_owned(), tid: None, tasks: ids.len(), label });
        self.put(self.rows.len() - 1, ids.iter().copied());
    }

    fn put<'a>(&mut self, row: usize, ids: impl Iterator<Item = &'a Id>) {
        ids.for_each(|id| self.of.entry(id.clone()).or_default().push(row));
    }

    /// The tasks of each row in the report of the recording.
    #[must_use]
    pub fn of_recorded(&self, tasks: &[TaskStats]) -> Vec<Vec<usize>> {
        let named = |task: &TaskStats| self.of.get(&Id::Name(task.name.to_string()));
        Self::sorted(self.rows.len(), tasks, |task| self.of.get(&Id::Tid(task.tid)).or_else(|| named(task)))
    }

    /// The tasks of each row in the report of a simulation.
    pub(super) fn of_simulated(&self, tasks: &[TaskStats]) -> Vec<Vec<usize>> {
        Self::sorted(self.rows.len(), tasks, |task| self.of_name(&task.name))
    }

    /// The rows about single tasks, and tasks alike, of which some are left out: they are others then.
    pub(super) fn without(&self, left_out: &BTreeSet<String>) -> BTreeSet<usize> {
        let rows = left_out.iter().filter_map(|key| self.of_name(key)).flatten().copied();
        rows.filter(|row| matches!(self.rows[*row].kind, Kind::Role | Kind::Task)).collect()
    }

    /// The rows of a simulated task, or of that of which it is forked.
    fn of_name(&self, name: &str) -> Option<&Vec<usize>> {
        let key = if self.keys.contains_key(name) { name } else { name.rsplit_once('-')?.0 };
        let named = |name: &str| self.of.get(&Id::Name(name.to_owned()));
        match self.keys.get(key)? {
            Some(tid) => self.of.get(&Id::Tid(*tid)),
            None => named(name).or_else(|| named(key)),
        }
    }

    fn sorted<'a>(
        count: usize,
        tasks: &[TaskStats],
        of: impl Fn(&TaskStats) -> Option<&'a Vec<usize>>,
    ) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); count];
        for (at, task) in tasks.iter().enumerate() {
            of(task).into_iter().flatten().for_each(|row| rows[*row].push(at));
        }
        rows
    }
}
