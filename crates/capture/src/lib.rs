//! Records on a live kernel. One loop drains a tracefs instance of our own by splice(), decodes the events, sorts them
//! by time and passes them to a sink.

mod asked;
mod bpf;
mod btf;
pub mod busy;
mod calls;
mod cgroups;
mod changes;
mod cpustat;
mod debugfs;
pub mod doctor;
mod drain;
mod facts;
mod frequencies;
mod host;
mod instance;
mod load;
mod mask;
mod merge;
mod newidle;
pub mod owner;
mod prepare;
mod procfs;
mod promotion;
mod recorded;
mod recorder;
mod restore;
mod runnable;
mod sched_attr;
mod sys;
mod tasks;
mod tracefs;
#[cfg(test)]
mod tree;

pub use cpustat::stolen;
pub use debugfs::Debugfs;
pub use host::host;
pub use load::CommandStatus;
pub use mask::Mask;
pub use prepare::{Options, buffer_in_range};
pub use procfs::available_kib;
pub use recorded::{Ending, Output, Progress, Recorded};
pub use recorder::Recorder;
pub use runnable::{Runnable, RunnableTask, online};
pub use sched_attr::SchedAttr;
pub use sys::{Signal, Signals, tick};
pub use tracefs::Tracefs;
