//! Which tasks take part in a trace: the definition of "the number of tasks" that every count goes by.

use crate::{Delay, Move, Observer, Occupant, Slot, Start, Stop, row};
use schedlab_base::{CpuId, Meta, Nanos};

/// The tasks that ran, waited for a CPU, or were moved to another CPU's queue. A task that is only named, or that
/// sleeps throughout, does not count. A partial recording may show no more of a task than that it left a CPU; there it
/// counts. Each life of a thread id is a task of its own.
#[derive(Clone, Debug)]
pub struct Seen {
    /// By slot.
    seen: Vec<bool>,
    partial: bool,
}

impl Seen {
    /// Nobody yet, of a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self { seen: Vec::new(), partial: meta.partial.is_some() }
    }

    /// Whether the task takes part.
    #[must_use]
    pub fn has(&self, task: Slot) -> bool {
        self.seen.get(task as usize).copied().unwrap_or(false)
    }

    /// How many tasks take part.
    #[must_use]
    pub fn count(&self) -> usize {
        self.seen.iter().filter(|seen| **seen).count()
    }

    #[inline]
    fn mark(&mut self, task: Slot) {
        *row(&mut self.seen, task) = true;
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
    fn stopped(&mut self, task: Slot, _: CpuId, _: Stop) {
        if self.partial {
            self.mark(task);
        }
    }

    #[inline]
    fn migrated(&mut self, task: Slot, _: Move) {
        self.mark(task);
    }
}
