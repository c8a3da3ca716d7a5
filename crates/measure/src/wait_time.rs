//! Wait time: runnable, but not running; after a wake-up, a fork or a preemption.

use crate::measure::{Measure, Part, Parts, us};
use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Observer, Slot};
use serde::Serialize;

/// Time waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitFigures {
    /// Time runnable but not running, unfinished waits included.
    pub wait_us: f64,
    /// The part of `wait_us` in waits that the end of the trace cut off.
    pub wait_unfinished_us: f64,
}

/// Time waited, of a task or on a CPU's queue.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    all: Nanos,
    unfinished: Nanos,
}

impl Part for Wait {
    type Figures = WaitFigures;

    #[inline]
    fn add(&mut self, other: &Self) {
        self.all = self.all.saturating_add(other.all);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
    }

    fn figures(&self) -> WaitFigures {
        WaitFigures { wait_us: us(self.all), wait_unfinished_us: us(self.unfinished) }
    }
}

/// The measure: by task, and by the CPU on whose queue it was.
#[derive(Debug, Default)]
pub(crate) struct WaitTimes(Parts<Wait>);

impl Observer for WaitTimes {
    #[inline]
    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, finished: bool) {
        let all = to.saturating_sub(from);
        let wait = Wait { all, unfinished: if finished { 0 } else { all } };
        self.0.task(task).add(&wait);
        self.0.cpu(cpu).add(&wait);
    }
}

impl Measure for WaitTimes {
    type Part = Wait;

    fn parts(&self) -> &Parts<Wait> {
        &self.0
    }
}
