//! Wait time: runnable, but not running; after a wake-up, a fork or a preemption.

use crate::tracker::Observer;
use crate::{Slot, row};
use schedlab_base::{CpuId, Nanos};

/// Time waited, of a task or on a CPU's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTime {
    /// All of it.
    pub wait: Nanos,
    /// The part of it in waits that the end of the trace cut off.
    pub unfinished: Nanos,
}

impl WaitTime {
    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.wait = self.wait.saturating_add(other.wait);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
    }
}

/// The measure.
#[derive(Clone, Debug, Default)]
pub struct WaitTimes {
    /// By task.
    pub tasks: Vec<WaitTime>,
    /// By the CPU on whose queue it was.
    pub cpus: Vec<WaitTime>,
}

impl Observer for WaitTimes {
    #[inline]
    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, finished: bool) {
        let wait = to.saturating_sub(from);
        let time = WaitTime { wait, unfinished: if finished { 0 } else { wait } };
        row(&mut self.tasks, task).add(&time);
        row(&mut self.cpus, cpu).add(&time);
    }
}
