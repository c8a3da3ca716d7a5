//! The trace's own file: an Arrow IPC stream, zstd-compressed, one flat row for each event.
//!
//! `docs/trace-format.md` describes every column. The file is written in batches; a file that ends
//! early loses its last batch at most, and the [`Reader`] says so. The reader takes nothing on trust:
//! sizes are bounded before memory is taken for them, and every index is checked.

mod body;
mod frame;
mod gather;
#[cfg(test)]
mod hostile_tests;
mod layout;
mod reader;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use reader::FORMAT;
pub use reader::Reader;
pub use writer::{BATCH_ROWS, Summary, Writer};

/// The version of the format, `major.minor`, kept in the schema's metadata. A new minor version adds
/// columns or kinds of event, which an older reader passes over; a new major version is refused by it.
pub const VERSION: &str = "1.2";

/// The key of the schema's metadata that holds [`VERSION`].
pub const VERSION_KEY: &str = "schedlab.version";

/// The key of the schema's metadata that holds the trace's `Meta` as JSON.
pub const META_KEY: &str = "schedlab.meta";

/// The highest thread id: the kernel's `PID_MAX_LIMIT`.
pub const MAX_TID: i32 = 1 << 22;

/// The most rows in a batch.
pub const MAX_ROWS: usize = 1 << 20;

/// The longest name of a task, and the longest path of a cgroup, in bytes.
pub const MAX_NAME: usize = 4096;
