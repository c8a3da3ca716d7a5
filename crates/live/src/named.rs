//! The recording of a run: tasks and groups have the names that the workload gives them.

use crate::runner::Runner;
use schedlab_base::{AffinityRecord, Event, NameRecord, Nanos, Result, Sink};
use schedlab_capture::Output;
use std::cell::RefCell;

/// An output that receives names as the workload has them. The kernel cuts names after 15 bytes, and the groups' paths
/// begin with a mark.
pub(crate) struct Named<'a, O> {
    inner: O,
    run: &'a RefCell<Runner>,
    prefix: Option<String>,
}

impl<'a, O> Named<'a, O> {
    /// Names the tasks of this run.
    pub(crate) fn new(inner: O, run: &'a RefCell<Runner>) -> Self {
        let prefix = run.borrow().group_prefix();
        Self { inner, run, prefix }
    }
}

impl<O: Sink> Sink for Named<'_, O> {
    fn events(&mut self, batch: &[Event]) {
        self.inner.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        let full = self.run.borrow().name_of(record.tid);
        let named = full.filter(|full| !record.comm.is_empty() && full.starts_with(&record.comm));
        let inside = |path: &String| Some(format!("/{}", path.strip_prefix(self.prefix.as_deref()?)?));
        let cgroup = record.cgroup.as_ref().map(|path| inside(path).unwrap_or_else(|| path.clone()));
        self.inner.name(&NameRecord { comm: named.unwrap_or_else(|| record.comm.clone()), cgroup, ..record.clone() });
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.inner.affinity(record);
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
