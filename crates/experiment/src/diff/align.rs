//! Which rows of one run are those of another.

use super::run::{By, Earlier, Run};
use crate::roles::role;
use schedlab_base::{Tid, listed};
use schedlab_measure::TaskStats;
use std::collections::{BTreeMap, BTreeSet};

/// A row of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// All tasks.
    All,
    /// All that have this name.
    Team(String),
    /// One of those, by order.
    Member(String, usize),
}

impl Key {
    /// What it is called.
    pub(super) fn label(&self) -> String {
        match self {
            Self::All => "all tasks".to_owned(),
            Self::Team(name) if name.is_empty() => "(no name)".to_owned(),
            Self::Team(name) => name.clone(),
            Self::Member(name, at) => format!("{name} #{}", at + 1),
        }
    }
}

/// The rows of a run, and which tasks belong to each.
pub(super) fn teams(tasks: &[TaskStats], by: By, earlier: &Earlier) -> BTreeMap<Key, Vec<usize>> {
    let mut teams: BTreeMap<Key, Vec<usize>> = BTreeMap::from([(Key::All, (0..tasks.len()).collect())]);
    // By name, the members in order: a task, or a process.
    let mut members: BTreeMap<String, BTreeMap<(Tid, usize), Vec<usize>>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let (name, tid) = called(task, earlier);
        let (name, order) = match by {
            By::Task => (name, (tid, at)),
            By::Name => (name, (0, 0)),
            By::Role => (role(&name), (0, 0)),
            By::Group => (task.group.clone().unwrap_or_else(|| "(no group)".to_owned()), (0, 0)),
            By::Process => {
                let tgid = task.tgid.unwrap_or(task.tid);
                let leader = tasks.iter().find(|other| other.tid == tgid).unwrap_or(task);
                (called(leader, earlier).0, (tgid, 0))
            }
        };
        members.entry(name).or_default().entry(order).or_default().push(at);
    }
    let single = matches!(by, By::Task | By::Process);
    for (name, members) in members {
        if single {
            for (number, own) in members.values().enumerate() {
                teams.insert(Key::Member(name.clone(), number), own.clone());
            }
        }
        teams.insert(Key::Team(name), members.into_values().flatten().collect());
    }
    teams
}

/// The name and the thread id of a task. A model's task is called after the recorded one: `rustc-4711`, or
/// `rustc-4711-0` for one that was forked.
fn called(task: &TaskStats, earlier: &Earlier) -> (String, Tid) {
    let named = |name: &str| {
        let (name, tid) = name.rsplit_once('-')?;
        let found = (name.to_owned(), tid.split('.').next()?.parse().ok()?);
        earlier.contains(&found).then_some(found)
    };
    let without_instance = || named(task.name.rsplit_once('-')?.0);
    named(&task.name).or_else(without_instance).unwrap_or_else(|| (task.name.to_string(), task.tid))
}

/// What could be aligned.
pub(super) struct Aligned {
    /// The rows; all tasks first.
    pub rows: Vec<Key>,
    pub remarks: Vec<String>,
    pub only_a: Vec<String>,
    pub only_b: Vec<String>,
}

/// Aligns the rows of all runs. A name that not every run has is not aligned; one whose number of tasks differs is
/// compared as a whole.
pub(super) fn align(a: &[Run], b: &[Run], by: By) -> Aligned {
    let names = |runs: &[Run]| -> BTreeSet<String> {
        let keys = runs.iter().flat_map(|run| run.lines.keys());
        keys.filter_map(|key| if let Key::Team(name) = key { Some(name.clone()) } else { None }).collect()
    };
    let count = |run: &Run, name: &str| {
        let from = Key::Member(name.to_owned(), 0);
        run.lines.range(from..).take_while(|(key, _)| matches!(key, Key::Member(own, _) if own == name)).count()
    };
    let (of_a, of_b) = (names(a), names(b));
    let (mut rows, mut together, mut rare) = (vec![Key::All], Vec::new(), Vec::new());
    for name in of_a.intersection(&of_b) {
        let team = Key::Team(name.clone());
        if !a.iter().chain(b).all(|run| run.lines.contains_key(&team)) {
            rare.push(name.clone());
            continue;
        }
        let counts: BTreeSet<usize> = a.iter().chain(b).map(|run| count(run, name)).collect();
        match counts.iter().collect::<Vec<_>>()[..] {
            [0 | 1] => rows.push(team),
            [several] => rows.extend((0..*several).map(|at| Key::Member(name.clone(), at))),
            _ => {
                let (few, many) = (counts.first().copied().unwrap_or(0), counts.last().copied().unwrap_or(0));
                together.push(format!("{name} ({few} to {many})"));
                rows.push(team);
            }
        }
    }
    let mut remarks = Vec::new();
    let what = if by == By::Process { "processes" } else { "tasks" };
    if !together.is_empty() {
        let names = listed(&together);
        remarks.push(format!("compared as one row, because the number of {what} differs: {names}"));
    }
    if !rare.is_empty() {
        remarks.push(format!("not compared, because not every run has them: {}", listed(&rare)));
    }
    let only = |own: &BTreeSet<String>, other: &BTreeSet<String>| own.difference(other).cloned().collect();
    Aligned { rows, remarks, only_a: only(&of_a, &of_b), only_b: only(&of_b, &of_a) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str, tid: Tid) -> TaskStats {
        TaskStats { name: name.into(), tid, ..TaskStats::default() }
    }

    #[test]
    fn tasks_of_one_name_are_told_apart_by_order() {
        let tasks = [task("cc1", 30), task("make", 10), task("cc1", 20)];
        let rows = teams(&tasks, By::Task, &Earlier::new());
        assert_eq!(rows[&Key::Member("cc1".into(), 0)], [2]);
        assert_eq!(rows[&Key::Member("cc1".into(), 1)], [0]);
        assert_eq!(rows[&Key::Team("cc1".into())], [2, 0]);
        assert_eq!(rows[&Key::All].len(), 3);
    }

    #[test]
    fn tasks_of_a_model_have_the_recorded_names() {
        let earlier = Earlier::from([("cc1".to_owned(), 20), ("cc1".to_owned(), 30), ("kworker/0:1".to_owned(), 5)]);
        let tasks = [task("cc1-30-0", 1), task("cc1-20", 2), task("kworker/0:1-5.2", 3), task("other-7", 4)];
        let rows = teams(&tasks, By::Task, &earlier);
        assert_eq!(rows[&Key::Member("cc1".into(), 0)], [1]);
        assert!(rows.contains_key(&Key::Team("kworker/0:1".into())) && rows.contains_key(&Key::Team("other-7".into())));
        assert!(teams(&tasks, By::Role, &earlier).contains_key(&Key::Team("other".into())));
    }
}
