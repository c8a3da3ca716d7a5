//! Recording on a live kernel: our own tracefs instance, drained by splice() in one loop, decoded,
//! put in the order of time and handed to whoever takes events.

pub mod doctor;
mod drain;
mod instance;
mod load;
mod merge;
mod procfs;
mod recorder;
mod sys;
mod tasks;
mod tracefs;

pub use instance::remove_stale;
pub use load::CommandStatus;
pub use recorder::{Ending, Options, Output, Progress, Recorded, Recorder};
pub use tracefs::Tracefs;
