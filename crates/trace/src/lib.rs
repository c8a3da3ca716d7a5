//! The trace: its file format, and the readers and writers of the formats of others.
//!
//! Whoever wants the events of a file, whatever its format, calls [`open()`], [`read_into`] or [`read_all`].

pub mod arrow_file;
pub mod format;
mod input;
mod open;
pub mod perf_data;
pub mod ring_buffer;
mod source;

pub use arrow_file::{Reader, Summary, Writer};
pub use input::Input;
pub use open::{FORMATS, foreign_formats, open, open_input, read_all, read_into};
pub use source::{Cut, FileFormat, Findings, Options, Progress, ReadReport, Source, Trace};
