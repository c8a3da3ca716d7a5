//! CPU time: who ran how long, in how many slices, and how each slice ended.
//!
//! A switch is voluntary when the task left in any state but runnable, as the kernel's
//! `nvcsw` and `nivcsw` count.

use crate::tracker::{Observer, Occupant};
use crate::{Slot, row};
use schedlab_base::{CpuId, Nanos, TaskState};

/// Time run and switches, of a task or of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTime {
    /// Time run.
    pub run: Nanos,
    /// Times switched in.
    pub slices: u64,
    /// Times switched out in a sleeping (or final) state.
    pub voluntary: u64,
    /// Times switched out while runnable.
    pub involuntary: u64,
}

impl RunTime {
    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.run = self.run.saturating_add(other.run);
        self.slices += other.slices;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
    }

    fn stopped(&mut self, state: TaskState) {
        let involuntary = state == TaskState::Runnable;
        self.involuntary += u64::from(involuntary);
        self.voluntary += u64::from(!involuntary);
    }
}

/// A CPU's time beyond what it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffTime {
    /// The idle task had it.
    pub idle: Nanos,
    /// Nobody can tell who had it.
    pub unknown: Nanos,
}

/// The measure.
#[derive(Clone, Debug, Default)]
pub struct RunTimes {
    /// By task.
    pub tasks: Vec<RunTime>,
    /// By CPU.
    pub cpus: Vec<(RunTime, OffTime)>,
}

impl Observer for RunTimes {
    #[inline]
    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        let time = to.saturating_sub(from);
        let (run, off) = row(&mut self.cpus, cpu);
        match who {
            Occupant::Unknown => off.unknown += time,
            Occupant::Idle => off.idle += time,
            Occupant::Task(task) => {
                run.run += time;
                let task = row(&mut self.tasks, task);
                task.run = task.run.saturating_add(time);
            }
        }
    }

    #[inline]
    fn started(&mut self, task: Slot, cpu: CpuId) {
        row(&mut self.tasks, task).slices += 1;
        row(&mut self.cpus, cpu).0.slices += 1;
    }

    #[inline]
    fn stopped(&mut self, task: Slot, cpu: CpuId, state: TaskState) {
        row(&mut self.tasks, task).stopped(state);
        row(&mut self.cpus, cpu).0.stopped(state);
    }
}
