//! Switches: in how many slices a task ran, and how each slice ended.
//!
//! A switch is voluntary when the task left in any state but runnable, as the kernel's `nvcsw` and `nivcsw` count.

use crate::measure::Measure;
use schedlab_base::TaskState;
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

impl Measure for SwitchFigures {
    type Figures = Self;

    #[inline]
    fn started(&mut self) {
        self.slices += 1;
    }

    #[inline]
    fn stopped(&mut self, state: TaskState) {
        let involuntary = state == TaskState::Runnable;
        self.involuntary += u64::from(involuntary);
        self.voluntary += u64::from(!involuntary);
    }

    fn add(&mut self, other: &Self) {
        self.slices += other.slices;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
    }

    fn figures(&self) -> Self {
        *self
    }
}
