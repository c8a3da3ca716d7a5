//! The recording of a run: tasks and groups have the names that the workload gives them.

use crate::runner::Runner;
use schedlab_base::{AffinityRecord, Event, GroupRecord, NameRecord, Nanos, Result, Sink, TaskRecord, Tid};
use schedlab_capture::Output;
use std::cell::RefCell;
use std::collections::HashSet;

/// An output that receives names as the workload has them. The kernel cuts names after 15 bytes, and the groups' paths
/// begin with a mark.
pub(crate) struct Named<'a, O> {
    inner: O,
    run: &'a RefCell<Runner>,
    prefix: Option<String>,
    /// The tasks that were named so far.
    known: HashSet<Tid>,
}

impl<'a, O> Named<'a, O> {
    /// Names the tasks of this run.
    pub(crate) fn new(inner: O, run: &'a RefCell<Runner>) -> Self {
        let prefix = run.borrow().group_prefix();
        Self { inner, run, prefix, known: HashSet::new() }
    }

    /// The workload's name of a group of this run.
    fn inside(&self, path: &str) -> Option<String> {
        Some(format!("/{}", path.strip_prefix(self.prefix.as_deref()?)?))
    }
}

impl<O: Sink> Sink for Named<'_, O> {
    fn events(&mut self, batch: &[Event]) {
        self.inner.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        let mut record = record.clone();
        if let Some(path) = record.cgroup.as_ref().and_then(|path| self.inside(path)) {
            record.cgroup = Some(path);
        }
        let run = self.run.borrow();
        if let Some((name, group)) = run.task(record.tid) {
            if !record.comm.is_empty() && name.starts_with(&record.comm) {
                record.comm = name;
            }
            // What exists when recording begins is found in /proc, where threads have their process's group.
            if let (true, Some(group)) = (self.known.insert(record.tid), group) {
                record.cgroup = Some(group.to_owned());
            }
        }
        self.inner.name(&record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.inner.affinity(record);
    }

    fn task(&mut self, record: &TaskRecord) {
        self.inner.task(record);
    }

    fn group(&mut self, record: &GroupRecord) {
        match self.inside(&record.path) {
            Some(path) => self.inner.group(&GroupRecord { path, ..record.clone() }),
            None => self.inner.group(record),
        }
    }

    fn lasts(&mut self, end: Nanos) {
        self.inner.lasts(end);
    }
}

impl<O: Output> Output for Named<'_, O> {
    type Done = O::Done;

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    fn finish(self) -> Result<Self::Done> {
        self.inner.finish()
    }
}
