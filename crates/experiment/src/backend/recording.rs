//! What a real kernel did, recorded: the trace, in a file without a name.

use super::from_zero::FromZero;
use super::{Backend, Outcome, Request};
use schedlab_base::{Error, Nanos, Result, Sink, Tid, counted};
use schedlab_capture::Recorded;
use schedlab_live::{Bursts, Execution};
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
    /// What each task of the workload says that it computed; the recording has all tasks of the machine.
    pub bursts: BTreeMap<Tid, Bursts>,
    /// How long it took.
    pub end: Nanos,
    /// Remarks.
    pub notes: Vec<String>,
    /// The kernel's tunables at the end, by their names in its profile, where they are known.
    pub tunables: BTreeMap<&'static str, i64>,
    /// The part of the time that a host took from the CPUs, where it may.
    pub taken: Option<f64>,
}

impl Recording {
    pub(super) fn new(file: Unnamed, recorded: &Recorded, execution: &Execution, mut notes: Vec<String>) -> Self {
        if recorded.lost > 0 {
            notes.push(format!("lost: {} at {}", counted(recorded.lost, "event"), counted(recorded.gaps, "place")));
        }
        let bursts = execution.tasks.iter().map(|task| (task.tid, task.bursts.clone())).collect();
        Self { file, bursts, end: recorded.duration_ns, notes, tunables: BTreeMap::new(), taken: None }
    }

    /// The tasks of the workload.
    pub fn own(&self) -> BTreeSet<Tid> {
        self.bursts.keys().copied().collect()
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
        replay(&mut *self.open()?, sink)?;
        let own = self.own();
        let tasks = own.len() as u32;
        let Self { end, notes, tunables, taken, .. } = self;
        Ok(Outcome { end, tasks, tunables, notes, own: Some(own), taken })
    }
}

/// Hands the events of a recording to `sink`, with times that count from its start.
///
/// # Errors
/// When the trace cannot be read.
pub fn replay(source: &mut dyn Source, sink: &mut dyn Sink) -> Result<()> {
    let start = source.meta().span.map_or(0, |(start, _)| start);
    source.run(&mut FromZero { sink, start }).map(drop)
}
