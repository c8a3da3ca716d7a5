//! Runs a workload with real threads and processes on this kernel.
//!
//! What is run are the programs that the engine simulates ([`schedlab_sim::program`]): a workload has one meaning, and
//! two backends. A [`Runner`] sets everything up, so that all tasks exist and sleep; [`Runner::start`] releases them
//! together.
//!
//! ```text
//! schedlab ── supervisor (highest priority) ─┬─ launcher (session 0) ── tasks: threads, or processes
//!    │            ends the run in time       └─ launcher (session 1) ── ...
//!    └─ records meanwhile
//! ```
//!
//! Each of these dies with the one before it, and what was made (cgroups) is removed by the supervisor when the command
//! is killed, and by the next run when both are. All words that tasks wait on are in memory that every process of the
//! run shares, so that it makes no difference whether a task is a thread or a process.

mod attributes;
mod children;
mod computing;
mod figures;
mod groups;
mod hotplug;
mod launch;
mod memory;
mod named;
mod record;
mod region;
mod runner;
mod supervise;
mod sync;
mod sys;
mod task;
mod work;
mod world;

pub use figures::{Bursts, Computed, ErrorFigures, Execution, Reported};
pub use groups::Controller;
pub use record::{Recording, record};
pub use runner::Runner;
pub use work::Calibration;
pub use world::Options;
