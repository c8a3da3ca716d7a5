//! How many of some tasks are runnable on each CPU.

use super::Means;
use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Chosen, Observer, Occupant, Slot, row};

/// Those tasks, and where they are.
#[derive(Debug)]
pub(super) struct Few {
    chosen: Chosen,
    cpus: Vec<Count>,
    /// The queue of each task that waits.
    queues: Vec<CpuId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// It is known what the CPU runs.
    known: bool,
    running: u32,
    waiting: u32,
}

impl Few {
    pub(super) fn new(chosen: Chosen) -> Self {
        Self { chosen, cpus: Vec::new(), queues: Vec::new() }
    }
}

/// Counts them as they come and go.
pub(super) struct Counting<'a> {
    pub(super) means: &'a mut Means,
    pub(super) few: &'a mut Few,
}

impl Counting<'_> {
    fn change(&mut self, cpu: CpuId, now: Nanos, change: impl FnOnce(&mut Count)) {
        let count = row(&mut self.few.cpus, cpu);
        change(count);
        let value = count.known.then_some((count.running + count.waiting).into());
        self.means.set(cpu, now, value);
    }
}

impl Observer for Counting<'_> {
    fn queued(&mut self, task: Slot, cpu: CpuId, now: Nanos) {
        if self.few.chosen.has(task) {
            *row(&mut self.few.queues, task) = cpu;
            self.change(cpu, now, |count| count.waiting += 1);
        }
    }

    fn unqueued(&mut self, task: Slot, now: Nanos) {
        if self.few.chosen.has(task) {
            let cpu = *row(&mut self.few.queues, task);
            self.change(cpu, now, |count| count.waiting = count.waiting.saturating_sub(1));
        }
    }

    fn forgotten(&mut self, cpu: CpuId, now: Nanos) {
        self.change(cpu, now, |count| count.waiting = 0);
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, now: Nanos) {
        let running = matches!(who, Occupant::Task(task) if self.few.chosen.has(task));
        self.change(cpu, now, |count| {
            (count.known, count.running) = (who != Occupant::Unknown, running.into());
        });
    }
}
