//! What a scheduler did: statistics of a trace, one measure a file.
//!
//! [`Stats`] is a sink for events. Its [`Tracker`] works out what each CPU and each task does, and tells the
//! measures, each an [`Observer`]: run time, wait time, latency, migrations, run-queue length. At the end
//! they are summed by task, CPU, node and group into a [`Report`].

pub mod conserve;
pub mod fairness;
pub mod heatmap;
pub mod histogram;
pub mod lanes;
pub mod latency;
pub mod memory;
pub mod migrations;
mod names;
mod report;
pub mod run_queue;
pub mod run_time;
pub mod schedstat;
mod stats;
mod summing;
pub mod tasks;
pub mod tracker;
pub mod wait_time;

pub use conserve::{Bounds, Check, CheckReport, Level, Verdict, Violation, WaitingTask};
pub use fairness::Fairness;
pub use heatmap::{Heat, Heatmap};
pub use histogram::{Histogram, Latency};
pub use memory::{MemoryStats, Places};
pub use report::{CpuStats, GroupStats, NodeStats, Report, Sums, TaskStats, TotalStats};
pub use run_queue::QueueLength;
pub use stats::Stats;
pub use tasks::Slot;
pub use tracker::{Delay, Observer, Occupant, Tracker};

/// The entry of a table that grows as far as it is asked for.
#[inline]
pub(crate) fn row<T: Default>(table: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if index >= table.len() {
        grow(table, index);
    }
    &mut table[index]
}

#[cold]
fn grow<T: Default>(table: &mut Vec<T>, index: usize) {
    table.resize_with(index + 1, T::default);
}
