//! What every format gives: the events of a trace, and what was found beside them.

use crate::input::Input;
use schedlab_base::{AffinityRecord, Error, Event, GroupRecord, Meta, NameRecord, Nanos, Result, Sink, TaskRecord};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file ended before it was finished: the recorder was killed, or the copy is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Where the unreadable rest starts, in bytes from the start of the file.
    pub offset: u64,
    /// A sentence for the user: what was lost.
    pub what: String,
}

/// What was found while reading a trace to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// Events given to the sink.
    pub events: u64,
    /// Names given to the sink.
    pub names: u64,
    /// Rows or records passed over because this version does not know their kind of event.
    pub skipped: u64,
    /// The names of the events passed over, where they are known, and how often each was.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, u64>,
    /// Set when the file was cut off.
    pub cut: Option<Cut>,
}

impl ReadReport {
    /// Refuses a trace that was cut off before its first event: an answer from it would look as if nothing had
    /// happened. One that is whole may have no events.
    ///
    /// # Errors
    /// When it was.
    pub fn refuse_if_nothing_is_left(&self, path: impl AsRef<Path>) -> Result<()> {
        match &self.cut {
            Some(cut) if self.events == 0 => {
                let error = Error::input(format!("nothing is left of the trace: {}", cut.what));
                Err(error.mend("give one that is whole").file(path.as_ref()))
            }
            _ => Ok(()),
        }
    }
}

/// What another tool's recording held beside the events that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Samples of events that say nothing of scheduling, or that hold statistics only.
    pub other: u64,
    /// Samples that are damaged.
    pub malformed: u64,
    /// Records that were lost while the recording was made.
    pub lost: u64,
    /// Records that came too late to be put in order, and were left out.
    pub late: u64,
}

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A folder laid out as `/sys/kernel/tracing/events`, with the formats of the kernel that the
    /// trace comes from, in case the file has lost its own.
    pub formats: Option<PathBuf>,
}

/// Called with the bytes read so far and the bytes in all (0 where that is not known).
pub type Progress = Box<dyn FnMut(u64, u64) + Send>;

/// A format of trace files: what every reader says of itself.
#[derive(Debug)]
pub struct FileFormat {
    /// Its name: `perf.data`.
    pub name: &'static str,
    /// What writes it, in words for a user who brings something else.
    pub written_by: &'static str,
    /// Whether it is the format that schedlab itself writes.
    pub own: bool,
    /// Whether a file that begins with these bytes (16, or all that there are) is of this format.
    pub(crate) begins: fn(&[u8]) -> bool,
    pub(crate) open: fn(Input, &Options) -> Result<Box<dyn Source>>,
}

/// What to say of a file that is easily mistaken for a trace, by its first bytes.
pub(crate) fn mistaken(head: &[u8]) -> Option<Error> {
    let (what, mend) = match head {
        [] => ("the file is empty", "a recording that was killed at once leaves nothing"),
        m if m.starts_with(b"ARROW1") => {
            ("an Arrow IPC file, not a stream", "write it as a stream (pyarrow.ipc.new_stream)")
        }
        m if m.starts_with(b"PERFILE2") => ("a perf.data file, not a trace of schedlab's", "use `schedlab import`"),
        m if m.starts_with(b"PAR1") => ("a Parquet file, not a trace", "give the Arrow stream that it was made from"),
        _ => return None,
    };
    Some(Error::input(what).mend(mend))
}

/// An opened trace: its metadata is known, its events are still to be read.
pub trait Source {
    /// The format of the file.
    fn format(&self) -> &'static FileFormat;

    /// What is known of the trace as a whole.
    fn meta(&self) -> &Meta;

    /// Reads to the end, handing names and events to the sink in the order of their times.
    /// A second call finds nothing more.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read. A file that was cut off is not an error: the report says so.
    fn run(&mut self, sink: &mut dyn Sink) -> Result<ReadReport>;

    /// Has `progress` called from time to time while [`Source::run`] reads. A reader that does not know how far
    /// it is never calls it.
    fn on_progress(&mut self, progress: Progress) {
        let _ = progress;
    }

    /// What was found beside the events so far; nothing in a format that holds nothing else.
    fn findings(&self) -> Findings {
        Findings::default()
    }

    /// The folder of [`Options::formats`], if the events were read by it because the file has lost its own formats.
    fn foreign_formats(&self) -> Option<&Path> {
        None
    }
}

/// A whole trace in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What is known of it as a whole.
    pub meta: Meta,
    /// The events, ordered by time.
    pub events: Vec<Event>,
    /// The names, in the order of the file.
    pub names: Vec<NameRecord>,
    /// Where tasks may run, in the order of the file.
    pub affinities: Vec<AffinityRecord>,
    /// How tasks are scheduled, in the order of the file.
    pub tasks: Vec<TaskRecord>,
    /// Properties of cgroups, in the order of the file.
    pub groups: Vec<GroupRecord>,
    /// When the recording ended, if the file has a row that says so.
    pub end: Option<Nanos>,
    /// What was found while reading.
    pub report: ReadReport,
}

impl Sink for Trace {
    fn events(&mut self, batch: &[Event]) {
        self.events.extend_from_slice(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.names.push(record.clone());
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.affinities.push(record.clone());
    }

    fn task(&mut self, record: &TaskRecord) {
        self.tasks.push(record.clone());
    }

    fn group(&mut self, record: &GroupRecord) {
        self.groups.push(record.clone());
    }

    fn lasts(&mut self, until: Nanos) {
        self.end = Some(until);
    }
}
