//! CPU time: who ran how long, and how long each CPU was idle.

use crate::measure::{Measure, us};
use schedlab_base::Nanos;
use serde::Serialize;

/// CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RunFigures {
    /// CPU time run.
    pub run_us: f64,
}

/// Time run, of a task or of a CPU.
#[derive(Debug, Default)]
pub(crate) struct Run(Nanos);

impl Measure for Run {
    type Figures = RunFigures;

    #[inline]
    fn ran(&mut self, time: Nanos) {
        self.0 = self.0.saturating_add(time);
    }

    fn add(&mut self, other: &Self) {
        self.ran(other.0);
    }

    fn figures(&self) -> RunFigures {
        RunFigures { run_us: us(self.0) }
    }
}

/// A CPU's time beyond what it ran.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Off {
    /// The idle task had it.
    pub(crate) idle: Nanos,
    /// Nobody can tell who had it.
    pub(crate) unknown: Nanos,
}

impl Off {
    /// This and the other.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { idle: self.idle.saturating_add(other.idle), unknown: self.unknown.saturating_add(other.unknown) }
    }
}
