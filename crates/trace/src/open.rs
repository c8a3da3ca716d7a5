//! Opening a trace of whichever known format, told by its first bytes.

use crate::arrow_file;
use crate::perf_data::{self, PerfData};
use schedlab_base::{AffinityRecord, Event, Meta, NameRecord, Result, Sink};
use serde::Serialize;
use std::path::Path;

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
    /// Set when the file was cut off.
    pub cut: Option<Cut>,
}

/// An opened trace: its metadata is known, its events are still to be read.
pub trait Source {
    /// What is known of the trace as a whole.
    fn meta(&self) -> &Meta;

    /// Reads to the end, handing names and events to the sink in the order of their times.
    /// A second call finds nothing more.
    ///
    /// # Errors
    /// When the file is damaged (other than cut off, which the report tells) or cannot be read.
    fn run(&mut self, sink: &mut dyn Sink) -> Result<ReadReport>;
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
}

/// Opens a trace of any format that schedlab reads.
///
/// # Errors
/// When the file cannot be opened or is none of the known formats.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Source>> {
    let path = path.as_ref();
    if perf_data::is_perf_data_file(path) {
        return Ok(Box::new(PerfData::open(path)?));
    }
    Ok(Box::new(arrow_file::Reader::open(path)?))
}

/// Opens a trace of any format and hands its names and events to the sink.
///
/// # Errors
/// As [`open`] and [`Source::run`].
pub fn read_into(path: impl AsRef<Path>, sink: &mut dyn Sink) -> Result<(Meta, ReadReport)> {
    let mut source = open(path)?;
    let report = source.run(sink)?;
    Ok((source.meta().clone(), report))
}

/// Reads a whole trace into memory (40 bytes an event).
///
/// # Errors
/// As [`open`] and [`Source::run`].
pub fn read_all(path: impl AsRef<Path>) -> Result<Trace> {
    let mut source = open(path)?;
    let mut trace = Trace::default();
    trace.report = source.run(&mut trace)?;
    trace.meta = source.meta().clone();
    Ok(trace)
}
