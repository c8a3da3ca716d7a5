//! CPU time: who ran how long, and how long each CPU was idle.

use crate::measure::{Measure, Part, Parts, us};
use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Observer, Occupant, row};
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

impl Part for Run {
    type Figures = RunFigures;

    #[inline]
    fn add(&mut self, other: &Self) {
        self.0 = self.0.saturating_add(other.0);
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

/// The measure.
#[derive(Debug, Default)]
pub(crate) struct RunTimes {
    run: Parts<Run>,
    off: Vec<Off>,
}

impl RunTimes {
    /// What these CPUs did not run, together.
    pub(crate) fn off(&self, cpus: &[CpuId]) -> Off {
        cpus.iter().filter_map(|cpu| self.off.get(*cpu as usize)).fold(Off::default(), |sum, off| Off {
            idle: sum.idle.saturating_add(off.idle),
            unknown: sum.unknown.saturating_add(off.unknown),
        })
    }
}

impl Observer for RunTimes {
    #[inline]
    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        let time = to.saturating_sub(from);
        match who {
            Occupant::Unknown => row(&mut self.off, cpu).unknown += time,
            Occupant::Idle => row(&mut self.off, cpu).idle += time,
            Occupant::Task(task) => {
                self.run.cpu(cpu).add(&Run(time));
                self.run.task(task).add(&Run(time));
            }
        }
    }
}

impl Measure for RunTimes {
    type Part = Run;

    fn parts(&self) -> &Parts<Run> {
        &self.run
    }
}
