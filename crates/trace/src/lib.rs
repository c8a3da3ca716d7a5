//! Traces: the project's own file format, and readers for other formats.
//!
//! To read the events of a file in any format, call [`open()`], [`read_into`] or [`read_all`].

mod arrow_file;
mod beside;
pub mod format;
mod input;
mod open;
pub mod perf_data;
pub mod ring_buffer;
mod source;

pub use arrow_file::{Reader, Summary, Writer};
pub use beside::beside;
pub use input::Input;
pub use open::{FORMATS, foreign_formats, open, open_input, read_all, read_into};
pub use source::{Cut, FileFormat, Findings, Options, Progress, ReadReport, Source, Trace};
