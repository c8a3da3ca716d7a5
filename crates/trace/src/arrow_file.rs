//! The project's own trace file: an Arrow IPC stream, compressed with zstd, one flat row per event.
//!
//! `docs/trace-format.md` describes every column. The file is written in batches. A file that ends early loses at most
//! its last batch, and the [`Reader`] reports it. The reader trusts nothing in the file: it bounds every size before it
//! allocates memory, and checks every index.

mod body;
mod frame;
mod gather;
#[cfg(test)]
mod hostile_tests;
mod layout;
mod plain;
mod reader;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use reader::FORMAT;
pub use reader::Reader;
pub use writer::{Summary, Writer};

/// The version of the format, `major.minor`, kept in the schema's metadata. A new minor version adds columns or kinds
/// of event, which an older reader skips. A reader refuses a newer major version.
pub(crate) const VERSION: &str = "1.9";

/// The key of the schema's metadata that holds [`VERSION`].
pub(crate) const VERSION_KEY: &str = "schedlab.version";

/// The key of the schema's metadata that holds the trace's `Meta` as JSON.
pub(crate) const META_KEY: &str = "schedlab.meta";

/// The highest thread id: the kernel's `PID_MAX_LIMIT`.
pub(crate) const MAX_TID: i32 = 1 << 22;

/// The largest number of rows in a batch.
pub(crate) const MAX_ROWS: usize = 1 << 20;

/// The longest task name and cgroup path, in bytes.
pub(crate) const MAX_NAME: usize = 4096;

/// The longest properties of a task or a cgroup, in bytes.
pub(crate) const MAX_PROPERTIES: usize = 4096;
