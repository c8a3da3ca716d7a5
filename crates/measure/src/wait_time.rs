//! Wait time: runnable, but not running; after a wake-up, a fork or a preemption.

use crate::measure::{Measure, us};
use schedlab_base::Nanos;
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

impl Measure for Wait {
    type Figures = WaitFigures;

    #[inline]
    fn waited(&mut self, time: Nanos, finished: bool) {
        self.add(&Self { all: time, unfinished: if finished { 0 } else { time } });
    }

    #[inline]
    fn add(&mut self, other: &Self) {
        self.all = self.all.saturating_add(other.all);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
    }

    fn figures(&self) -> WaitFigures {
        WaitFigures { wait_us: us(self.all), wait_unfinished_us: us(self.unfinished) }
    }
}
