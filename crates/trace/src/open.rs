//! Opening a trace of whichever known format: its first bytes say which.

use crate::input::Input;
use crate::source::{FileFormat, Options, ReadReport, Source, Trace, mistaken};
use crate::{arrow_file, perf_data};
use schedlab_base::{Error, Meta, Result, Sink};
use std::path::Path;

/// Every format that is read. A new one is its own folder, and its line here.
pub static FORMATS: &[&FileFormat] = &[&arrow_file::FORMAT, &perf_data::FORMAT];

/// The formats of other tools, as help and messages list them.
#[must_use]
pub fn foreign_formats() -> String {
    let foreign = FORMATS.iter().filter(|format| !format.own);
    foreign.map(|format| format!("{} ({})", format.name, format.written_by)).collect::<Vec<_>>().join(", ")
}

/// Opens a trace of any format that schedlab reads.
///
/// # Errors
/// When the file cannot be opened or is of none of the known formats.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Source>> {
    open_input(Input::open(path)?, &Options::default())
}

/// Opens what was made ready to be read, with options.
///
/// # Errors
/// As [`open`].
pub fn open_input(input: Input, options: &Options) -> Result<Box<dyn Source>> {
    match FORMATS.iter().find(|format| (format.begins)(input.head())) {
        Some(format) => (format.open)(input, options),
        None => Err(mistaken(input.head()).unwrap_or_else(|| unknown(input.is_pipe())).file(input.name())),
    }
}

fn unknown(pipe: bool) -> Error {
    if pipe {
        let mend = "give a pipe from its beginning; if it was, this verb reads its trace twice: save it to a file";
        return Error::input("no trace of a known format comes out").mend(mend);
    }
    let mend = format!("give a file that schedlab wrote, or a recording: {}", foreign_formats());
    Error::input("no trace of a known format").mend(mend)
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
