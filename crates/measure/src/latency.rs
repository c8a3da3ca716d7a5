//! Latency: from a wake-up (it is on a queue) or from its waking (somebody asked for it) to running.
//!
//! The first start of a new task is no wake-up and counts in neither; nor does a wait after preemption.

use crate::tracker::Observer;
use crate::{Histogram, Slot, row};
use schedlab_base::{CpuId, Nanos};

/// The latencies of a task, or of the tasks that started on a CPU.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// From wakeup to running.
    pub wakeup: Histogram,
    /// From waking to running.
    pub waking: Histogram,
}

impl Latencies {
    /// Adds another's.
    pub fn merge(&mut self, other: &Self) {
        self.wakeup.merge(&other.wakeup);
        self.waking.merge(&other.waking);
    }

    #[inline]
    fn record(&mut self, since_wakeup: Option<Nanos>, since_waking: Option<Nanos>) {
        if let Some(latency) = since_wakeup {
            self.wakeup.record(latency);
        }
        if let Some(latency) = since_waking {
            self.waking.record(latency);
        }
    }
}

/// The measure.
#[derive(Clone, Debug, Default)]
pub struct LatencyTimes {
    /// By task.
    pub tasks: Vec<Latencies>,
    /// By the CPU on which the task started to run.
    pub cpus: Vec<Latencies>,
}

impl Observer for LatencyTimes {
    #[inline]
    fn latency(&mut self, task: Slot, cpu: CpuId, since_wakeup: Option<Nanos>, since_waking: Option<Nanos>) {
        row(&mut self.tasks, task).record(since_wakeup, since_waking);
        row(&mut self.cpus, cpu).record(since_wakeup, since_waking);
    }
}
