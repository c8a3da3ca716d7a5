//! Traces: the project's own file format, and readers for other formats.
//!
//! To read the events of a file in any format, call [`open()`], [`read_into`] or [`read_all`].

mod arrow_file;
pub mod format;
mod open;
pub mod perf_data;
pub mod ring_buffer;

pub use arrow_file::{Reader, Summary, Writer};
pub use open::{Cut, ReadReport, Source, Trace, open, read_all, read_into};
