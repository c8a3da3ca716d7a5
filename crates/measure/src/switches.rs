//! Switches: in how many slices a task ran, and how each slice ended.
//!
//! A switch is voluntary when the task left in any state but runnable, as the kernel's `nvcsw` and `nivcsw` count.

use crate::measure::{Measure, Part, Parts};
use schedlab_base::{CpuId, TaskState};
use schedlab_track::{Observer, Slot, Start, Stop};
use serde::Serialize;

/// Switches in and out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SwitchFigures {
    /// Times switched in.
    pub slices: u64,
    /// Times switched out asleep.
    pub voluntary: u64,
    /// Times switched out while runnable.
    pub involuntary: u64,
}

impl SwitchFigures {
    #[inline]
    fn stopped(&mut self, state: TaskState) {
        let involuntary = state == TaskState::Runnable;
        self.involuntary += u64::from(involuntary);
        self.voluntary += u64::from(!involuntary);
    }
}

impl Part for SwitchFigures {
    type Figures = Self;

    fn add(&mut self, other: &Self) {
        self.slices += other.slices;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
    }

    fn figures(&self) -> Self {
        *self
    }
}

/// The measure.
#[derive(Debug, Default)]
pub(crate) struct Switches(Parts<SwitchFigures>);

impl Observer for Switches {
    #[inline]
    fn started(&mut self, task: Slot, cpu: CpuId, _: Start) {
        self.0.task(task).slices += 1;
        self.0.cpu(cpu).slices += 1;
    }

    #[inline]
    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        self.0.task(task).stopped(stop.state);
        self.0.cpu(cpu).stopped(stop.state);
    }
}

impl Measure for Switches {
    type Part = SwitchFigures;

    fn parts(&self) -> &Parts<SwitchFigures> {
        &self.0
    }
}
