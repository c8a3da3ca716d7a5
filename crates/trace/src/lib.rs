//! The trace: its file format, and the readers and writers of the formats of others.
//!
//! Whoever wants the events of a file, whatever its format, calls [`open()`], [`read_into`] or [`read_all`].

pub mod arrow_file;
pub mod format;
mod open;
pub mod perf_data;
pub mod ring_buffer;

pub use arrow_file::{Reader, Summary, Writer};
pub use open::{Cut, ReadReport, Source, Trace, open, read_all, read_into};
