//! The names and groups of tasks.

use schedlab_base::{NameRecord, Nanos, Tid};
use schedlab_track::{Observer, Slot, row};
use std::collections::HashMap;
use std::sync::Arc;

/// More cgroups than this are not told apart: memory stays bounded.
const MAX_GROUPS: usize = 1 << 16;

/// What is known of a task beyond its events.
#[derive(Clone, Debug, Default)]
pub struct Name {
    /// Its name; empty if it has none.
    pub comm: Arc<str>,
    /// The process that it belongs to, if known.
    pub tgid: Option<Tid>,
    /// The index of its cgroup.
    pub group: Option<u32>,
}

/// The latest name of each task.
#[derive(Debug, Default)]
pub struct Names {
    tasks: Vec<Name>,
    groups: Vec<Arc<str>>,
    index: HashMap<Arc<str>, u32>,
}

impl Names {
    /// What is known of a task.
    #[must_use]
    pub fn of(&self, slot: Slot) -> Name {
        self.tasks.get(slot as usize).cloned().unwrap_or_default()
    }

    /// The cgroups' paths, in the order of first sight.
    #[must_use]
    pub fn groups(&self) -> &[Arc<str>] {
        &self.groups
    }

    fn group(&mut self, path: &str) -> Option<u32> {
        if let Some(&group) = self.index.get(path) {
            return Some(group);
        }
        if self.groups.len() >= MAX_GROUPS {
            return None;
        }
        let (path, group): (Arc<str>, u32) = (path.into(), self.groups.len() as u32);
        self.groups.push(Arc::clone(&path));
        self.index.insert(path, group);
        Some(group)
    }
}

impl Observer for Names {
    fn named(&mut self, task: Slot, record: &NameRecord) {
        let group = record.cgroup.as_deref().map(|path| self.group(path));
        let name = row(&mut self.tasks, task);
        if *name.comm != *record.comm {
            name.comm = record.comm.as_str().into();
        }
        name.tgid = record.tgid.or(name.tgid);
        name.group = group.flatten().or(name.group);
    }

    /// A task is born with its parent's name and group, where nothing else was said of it.
    fn forked(&mut self, parent: Option<Slot>, child: Slot, _: bool, _: Nanos) {
        let Some(parent) = parent.map(|parent| self.of(parent)) else { return };
        let name = row(&mut self.tasks, child);
        if name.comm.is_empty() {
            name.comm = parent.comm;
        }
        name.group = name.group.or(parent.group);
    }
}
