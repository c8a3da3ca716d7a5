//! Which tasks take part in a trace: the definition of "the number of tasks" that every count goes by.

use crate::{Delay, Move, Observer, Occupant, Slot, Start, row};
use schedlab_base::{CpuId, Nanos};

/// The tasks that ran, waited for a CPU, or were moved to another CPU's queue. A task that is only named, or that
/// sleeps throughout, does not count. Each life of a thread id is a task of its own.
#[derive(Clone, Debug, Default)]
pub struct Seen(Vec<bool>);

impl Seen {
    /// Whether the task takes part.
    #[must_use]
    pub fn has(&self, task: Slot) -> bool {
        self.0.get(task as usize).copied().unwrap_or(false)
    }

    /// How many tasks take part.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().filter(|seen| **seen).count()
    }

    #[inline]
    fn mark(&mut self, task: Slot) {
        *row(&mut self.0, task) = true;
    }
}

impl Observer for Seen {
    #[inline]
    fn span(&mut self, _: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        if let Occupant::Task(task) = who
            && from < to
        {
            self.mark(task);
        }
    }

    #[inline]
    fn waited(&mut self, task: Slot, _: CpuId, from: Nanos, to: Nanos, _: bool) {
        if from < to {
            self.mark(task);
        }
    }

    #[inline]
    fn served(&mut self, task: Slot, _: CpuId, _: Delay) {
        self.mark(task);
    }

    #[inline]
    fn started(&mut self, task: Slot, _: CpuId, _: Start) {
        self.mark(task);
    }

    #[inline]
    fn migrated(&mut self, task: Slot, _: Move) {
        self.mark(task);
    }
}
