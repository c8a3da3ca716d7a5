//! What a user asks of a trace: a stretch of time, and tasks by name, id or group. Every verb takes the same.

use crate::names::{Name, Names};
use schedlab_base::{AffinityRecord, Error, Event, Meta, NameRecord, Nanos, Result, Sink, Tid, fits, nearest};
use schedlab_track::{Chosen, Part, Replay, Seen, Slot, observers};
use std::collections::BTreeSet;

/// A selection. What is left empty selects everything; what is given must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The first instant, counted from the trace's start.
    pub from: Option<Nanos>,
    /// The end, which is not part of it.
    pub to: Option<Nanos>,
    /// Tasks whose last name fits one of these patterns (`*` and `?`).
    pub names: Vec<String>,
    /// Threads with one of these ids, and all threads of the processes with one of them.
    pub pids: Vec<Tid>,
    /// Tasks whose cgroup, or one above it, fits one of these patterns.
    pub groups: Vec<String>,
}

impl Selection {
    /// Whether it selects the whole trace.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it leaves tasks out, so that a [`Chooser`] must see the trace first.
    #[must_use]
    pub fn chooses_tasks(&self) -> bool {
        !(self.names.is_empty() && self.pids.is_empty() && self.groups.is_empty())
    }

    /// The part of a trace that this is, once its tasks are known.
    ///
    /// # Errors
    /// When the window ends before it begins.
    pub fn part(&self, tasks: Option<Chosen>) -> Result<Part> {
        let (from, to) = (self.from.unwrap_or(0), self.to.unwrap_or(Nanos::MAX));
        if to <= from {
            return Err(Error::input("the window ends before it begins").key("--to").mend("give a --to after --from"));
        }
        Ok(Part { from, to, tasks })
    }

    fn chooses(&self, tid: Tid, name: &Name, groups: &[std::sync::Arc<str>]) -> bool {
        let named = self.names.is_empty() || self.names.iter().any(|pattern| fits(pattern, &name.comm));
        let numbered = self.pids.is_empty() || self.pids.iter().any(|pid| *pid == tid || Some(*pid) == name.tgid);
        let group = || name.group.and_then(|group| groups.get(group as usize));
        let grouped = self.groups.is_empty()
            || group().is_some_and(|path| self.groups.iter().any(|pattern| holds(pattern, path)));
        named && numbered && grouped
    }
}

/// Whether a cgroup's path, or that of a cgroup above it, fits the pattern.
fn holds(pattern: &str, path: &str) -> bool {
    let pattern = if pattern.len() > 1 { pattern.trim_end_matches('/') } else { pattern };
    let above = path.match_indices('/').map(|(at, _)| &path[..at.max(1)]);
    std::iter::once(path).chain(above).any(|path| fits(pattern, path))
}

/// A first reading of a trace, which finds the tasks of a selection: feed it the trace, then [`Chooser::finish`].
///
/// A task is chosen by what is known of it at the end, as the statistics show it. So a trace is read twice when tasks
/// are selected.
#[derive(Debug)]
pub struct Chooser {
    replay: Replay<Who>,
}

#[derive(Debug)]
struct Who {
    names: Names,
    seen: Seen,
}

observers!(Who: names, seen);

impl Chooser {
    /// A chooser for a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self { replay: Replay::new(meta, Who { names: Names::default(), seen: Seen::new(meta) }) }
    }

    /// The tasks that took part, with their thread ids.
    fn all(&mut self) -> Vec<(Slot, Tid)> {
        self.replay.finish(None);
        let Replay { tracker, observer: Who { seen, .. } } = &self.replay;
        tracker.tasks().filter(|(slot, tid)| *tid != 0 && seen.has(*slot)).collect()
    }

    /// The tasks without these thread ids.
    #[must_use]
    pub fn all_but(mut self, tids: &BTreeSet<Tid>) -> Chosen {
        self.all().into_iter().filter(|(_, tid)| !tids.contains(tid)).map(|(slot, _)| slot).collect()
    }

    /// The tasks of the selection.
    ///
    /// # Errors
    /// When there are none.
    pub fn finish(mut self, selection: &Selection) -> Result<Chosen> {
        let all = self.all();
        let names = &self.replay.observer.names;
        let fitting = |(slot, tid): &(Slot, Tid)| selection.chooses(*tid, &names.of(*slot), names.groups());
        let chosen: Vec<Slot> = all.iter().filter(|task| fitting(task)).map(|(slot, _)| *slot).collect();
        if chosen.is_empty() {
            return Err(nothing(selection, &all, names));
        }
        Ok(chosen.into_iter().collect())
    }
}

/// The error for a selection without tasks: it names the part that nothing fits, and what is near.
fn nothing(selection: &Selection, all: &[(Slot, Tid)], names: &Names) -> Error {
    let alone = |only: Selection| all.iter().any(|(slot, tid)| only.chooses(*tid, &names.of(*slot), names.groups()));
    let Selection { names: patterns, pids, groups, .. } = selection;
    if !patterns.is_empty() && !alone(Selection { names: patterns.clone(), ..Selection::default() }) {
        let comms: Vec<_> = all.iter().map(|(slot, _)| names.of(*slot).comm).collect();
        let mend = match nearest(&patterns[0], comms.iter().map(|comm| &**comm)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "give a whole name, or a pattern with * and ?".to_owned(),
        };
        return Error::input(format!("no task is named \"{}\"", patterns.join("\" or \""))).key("--task").mend(mend);
    }
    if !pids.is_empty() && !alone(Selection { pids: pids.clone(), ..Selection::default() }) {
        let pids: Vec<String> = pids.iter().map(Tid::to_string).collect();
        let what = format!("no task of the trace has the thread or process id {}", pids.join(" or "));
        return Error::input(what).key("--pid").mend("`schedlab stats` lists the tasks");
    }
    if !groups.is_empty() && !alone(Selection { groups: groups.clone(), ..Selection::default() }) {
        let left = |path: &std::sync::Arc<str>| groups.iter().any(|pattern| holds(pattern, path));
        let groups_listed = "`schedlab stats --by group` lists the cgroups";
        let mend = match names.groups() {
            known if known.iter().any(left) => {
                format!("tasks were in it and left it, and a task counts where it was last: {groups_listed}")
            }
            [] => "the trace does not say in which cgroup its tasks are".to_owned(),
            known => match nearest(&groups[0], known.iter().map(|path| &**path)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => groups_listed.to_owned(),
            },
        };
        let what = format!("no task is in the cgroup \"{}\" at the end", groups.join("\" or \""));
        return Error::input(what).key("--group").mend(mend);
    }
    Error::input("no task fits all of --task, --pid and --group").mend("leave one of them out")
}

impl Sink for Chooser {
    fn events(&mut self, batch: &[Event]) {
        self.replay.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.replay.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.replay.affinity(record);
    }
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn a_group_holds_the_groups_below_it() {
        for (pattern, path, fit) in [
            ("/a", "/a", true),
            ("/a", "/a/b/c", true),
            ("/a/", "/a/b", true),
            ("/a", "/ab", false),
            ("/a/b", "/a", false),
            ("*.slice", "/system.slice/ssh.service", true),
            ("/", "/a", true),
            ("ssh.service", "/system.slice/ssh.service", false),
            ("*ssh.service", "/system.slice/ssh.service", true),
        ] {
            assert_eq!(holds(pattern, path), fit, "{pattern} {path}");
        }
    }
}
