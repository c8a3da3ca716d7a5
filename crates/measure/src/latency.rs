//! Latency: from a wake-up (it is on a queue) or from its waking (somebody asked for it) to running.
//!
//! The first start of a new task is no wake-up and counts in neither; nor does a wait after preemption.
//! These two count in the delay, which is any wait that ended.

use crate::tracker::{Delay, Observer};
use crate::{Histogram, Slot, row};
use schedlab_base::CpuId;

/// The latencies of a task, or of the tasks that started on a CPU.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// From wakeup to running.
    pub wakeup: Histogram,
    /// From waking to running.
    pub waking: Histogram,
    /// From becoming runnable to running.
    pub delay: Histogram,
}

impl Latencies {
    /// Adds another's.
    pub fn merge(&mut self, other: &Self) {
        self.wakeup.merge(&other.wakeup);
        self.waking.merge(&other.waking);
        self.delay.merge(&other.delay);
    }

    #[inline]
    fn record(&mut self, delay: Delay) {
        self.delay.record(delay.wait);
        if let Some(latency) = delay.wakeup {
            self.wakeup.record(latency);
        }
        if let Some(latency) = delay.waking {
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
    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        row(&mut self.tasks, task).record(delay);
        row(&mut self.cpus, cpu).record(delay);
    }
}
