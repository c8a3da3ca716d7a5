//! The names and groups of tasks.

use schedlab_base::{NameRecord, Nanos, Tid};
use schedlab_track::{Observer, Slot, row};
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// More cgroups than this are not told apart: memory stays bounded.
const MAX_GROUPS: usize = 1 << 16;

/// What is known of a task beyond its events.
#[derive(Clone, Debug, Default)]
pub struct Name {
    /// Its name; empty if it has none.
    pub comm: Comm,
    /// The process that it belongs to, if known.
    pub tgid: Option<Tid>,
    /// The index of its cgroup.
    pub group: Option<u32>,
}

/// A task's name. Most are short, and need no memory of their own.
#[derive(Clone, Debug)]
pub enum Comm {
    /// How many bytes of these it has.
    Short(u8, [u8; Comm::SHORT]),
    /// A longer one.
    Long(Arc<String>),
}

impl Comm {
    const SHORT: usize = 14;
}

impl Default for Comm {
    fn default() -> Self {
        Self::Short(0, [0; Self::SHORT])
    }
}

impl From<&str> for Comm {
    fn from(name: &str) -> Self {
        let mut bytes = [0; Self::SHORT];
        match bytes.get_mut(..name.len()) {
            Some(place) => {
                place.copy_from_slice(name.as_bytes());
                Self::Short(name.len() as u8, bytes)
            }
            None => Self::Long(Arc::new(name.to_owned())),
        }
    }
}

impl PartialEq for Comm {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Serialize for Comm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl Deref for Comm {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Short(len, bytes) => std::str::from_utf8(&bytes[..usize::from(*len)]).expect("it was a string"),
            Self::Long(name) => name,
        }
    }
}

/// A name as it is kept: a million of them take no more than they must.
#[derive(Clone, Debug)]
struct Row {
    comm: Comm,
    /// [`NONE`] if it is not known.
    tgid: Tid,
    /// [`NO_GROUP`] if it has none.
    group: u32,
}

const NONE: Tid = -1;
const NO_GROUP: u32 = u32::MAX;

impl Default for Row {
    fn default() -> Self {
        Self { comm: Comm::default(), tgid: NONE, group: NO_GROUP }
    }
}

/// The latest name of each task.
#[derive(Debug, Default)]
pub struct Names {
    tasks: Vec<Row>,
    groups: Vec<Arc<str>>,
    index: HashMap<Arc<str>, u32>,
}

impl Names {
    /// What is known of a task.
    #[must_use]
    pub fn of(&self, slot: Slot) -> Name {
        let Row { comm, tgid, group } = self.tasks.get(slot as usize).cloned().unwrap_or_default();
        Name { comm, tgid: (tgid != NONE).then_some(tgid), group: (group != NO_GROUP).then_some(group) }
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
        name.tgid = record.tgid.unwrap_or(name.tgid);
        name.group = group.flatten().unwrap_or(name.group);
    }

    /// A task is born with its parent's name and group, where nothing else was said of it.
    fn forked(&mut self, parent: Option<Slot>, child: Slot, _: bool, _: Nanos) {
        let Some(parent) = parent.map(|parent| self.of(parent)) else { return };
        let name = row(&mut self.tasks, child);
        if name.comm.is_empty() {
            name.comm = parent.comm;
        }
        if name.group == NO_GROUP {
            name.group = parent.group.unwrap_or(NO_GROUP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Comm;

    #[test]
    fn a_name_is_what_it_was_made_of() {
        let names =
            ["", "t", "kworker/u8:2-e", "0123456789abcde", "größer-als-kurz", "a longer name than the kernel's"];
        for name in names {
            assert_eq!(&*Comm::from(name), name);
        }
        assert_eq!((&*Comm::default(), size_of::<Comm>()), ("", 16));
    }
}
