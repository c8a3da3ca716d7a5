//! Forgets what is no longer known.

use super::Tracker;
use crate::tasks::{Slot, Status};
use crate::{Observer, Occupant};
use schedlab_base::{CpuId, Nanos};

impl Tracker {
    /// Handles that events were lost between the CPU's last event and now.
    #[cold]
    pub(super) fn lose(&mut self, number: CpuId, count: u64, observer: &mut impl Observer) {
        self.losses += 1;
        self.lost = self.lost.saturating_add(count);
        let cpu = &self.cpus[number as usize];
        let (occupant, since) = (cpu.occupant, cpu.since);
        let known = cpu.last_event.max(since);
        observer.span(number, occupant, since, known);
        observer.queue(number, known, None);
        observer.occupied(number, Occupant::Unknown, self.now);
        observer.forgotten(number, self.now);
        if let Occupant::Task(slot) = occupant {
            self.vanish(slot, number, known, observer);
        }
        observer.lost(number, self.now);
        let cpu = &mut self.cpus[number as usize];
        cpu.occupant = Occupant::Unknown;
        cpu.since = known;
        cpu.waiting = 0;
        cpu.epoch = cpu.epoch.wrapping_add(1);
        (cpu.fresh, cpu.aside, cpu.got) = (false, false, None);
    }

    /// Marks the task that ran on this CPU as unknown since then.
    pub(super) fn vanish(&mut self, slot: Slot, number: CpuId, since: Nanos, observer: &mut impl Observer) {
        let task = &mut self.tasks[slot];
        if task.is_on(number) {
            (task.status, task.since) = (Status::Unknown, since);
            observer.vanished(slot, number, since);
        }
    }
}
