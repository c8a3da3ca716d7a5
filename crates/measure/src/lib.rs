//! What a scheduler did: statistics of a trace, one measure a file.
//!
//! [`Stats`] is a sink for events. The tracker (`schedlab_track`) works out what each CPU and each task does, and tells
//! the measures, each an observer: run time, wait time, latency, migrations, run-queue length. At the end they are
//! summed by task, CPU, node and group into a [`Report`]. Other observers of the tracker stand beside the statistics:
//! [`Series`] over time, the check for work conservation, lanes, heat maps, `/proc/schedstat`.

mod affinity;
pub mod compared;
mod conserve;
pub mod delays;
mod energy;
mod fairness;
mod fingerprint;
pub mod heatmap;
mod histogram;
mod idle;
mod interrupts;
pub mod intervals;
mod kept;
pub mod lanes;
mod latency;
mod measure;
mod measures;
mod memory;
mod migrations;
mod names;
mod noted;
pub mod partial;
mod report;
mod run_queue;
mod run_time;
mod sampled;
pub mod schedstat;
mod selection;
pub mod series;
mod sleeps;
mod stats;
mod summing;
mod switches;
mod task_cpu;
pub mod validation;
mod wait_time;

pub use conserve::{
    BoundTask, BoundWaiting, Bounds, Check, CheckReport, Level, MOST_DOUBTFUL, THRESHOLD, Verdict, Violation,
    WaitingTask, Wasted,
};
pub use energy::Energy;
pub use fairness::Fairness;
pub use fingerprint::Fingerprint;
pub use heatmap::{Heat, Heatmap};
pub use histogram::{Histogram, Latency};
pub use idle::{Idle, IdlePeriods};
pub use interrupts::InterruptStats;
pub use measures::Sums;
pub use memory::MemoryStats;
pub use names::{Name, Names};
pub use report::{CpuStats, GroupStats, NameStats, NodeStats, ProcessStats, Report, TaskStats, TeamStats, TotalStats};
pub use run_queue::QueueLength;
pub use sampled::{
    CpuNow, Finding, Looked, SAMPLES, SampledCheck, SampledReport, Sampler, Timing, WaitingNow, WaitingThere, Work,
};
pub use schedlab_track::{Chosen, Part, Slot};
pub use selection::{Chooser, Selection};
pub use series::Series;
pub use sleeps::SleepStats;
pub use stats::{Stats, StatsOfParts, StatsOverTime};
pub use task_cpu::TaskCpuStats;
