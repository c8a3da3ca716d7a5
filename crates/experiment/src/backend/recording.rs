//! What a real kernel did, recorded: the trace, in a file without a name.

use super::from_zero::FromZero;
use super::{Backend, Outcome, Request};
use schedlab_base::{Error, Nanos, Result, Sink, Tid};
use schedlab_capture::Recorded;
use schedlab_live::Execution;
use schedlab_trace::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A backend with a real kernel.
pub trait Real: Backend {
    /// Runs the request and records it.
    ///
    /// # Errors
    /// As [`Backend::run`].
    fn recording(&self, request: &Request) -> Result<Recording>;
}

/// A file without a name, which is gone when it is closed.
pub(super) struct Unnamed(pub(super) File);

impl Unnamed {
    pub(super) fn new() -> Result<Self> {
        let file = rustix::fs::memfd_create("schedlab-trace", rustix::fs::MemfdFlags::CLOEXEC);
        file.map(|file| Self(file.into())).map_err(|e| Error::system("cannot make room for the trace", &e))
    }

    pub(super) fn open(&self) -> Result<Box<dyn Source>> {
        schedlab_trace::open(PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd())))
    }
}

/// A run of a real kernel.
pub struct Recording {
    file: Unnamed,
    /// The tasks of the workload; the recording has all tasks of the machine.
    pub own: BTreeSet<Tid>,
    /// How long it took.
    pub end: Nanos,
    /// Remarks.
    pub notes: Vec<String>,
}

impl Recording {
    pub(super) fn new(file: Unnamed, recorded: &Recorded, execution: &Execution, mut notes: Vec<String>) -> Self {
        if recorded.lost > 0 {
            notes.push(format!("{} events were lost at {} places", recorded.lost, recorded.gaps));
        }
        let own = execution.tasks.iter().map(|task| task.tid).collect();
        Self { file, own, end: recorded.duration_ns, notes }
    }

    /// The trace, to be read.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(&self) -> Result<Box<dyn Source>> {
        self.file.open()
    }

    /// Hands the events to `sink`, with times that count from the start of the run.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn replay(self, sink: &mut dyn Sink) -> Result<Outcome> {
        let mut source = self.open()?;
        let start = source.meta().span.map_or(0, |(start, _)| start);
        source.run(&mut FromZero { sink, start })?;
        let tasks = self.own.len() as u32;
        Ok(Outcome { end: self.end, tasks, tunables: BTreeMap::new(), notes: self.notes, own: Some(self.own) })
    }
}
