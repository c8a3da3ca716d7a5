//! When a CPU whose idle task is not seen to leave got the task that was woken onto it: as long after the wake-up as
//! CPUs take whose idle task is seen.

use super::Tracker;
use crate::tasks::{NEVER, Slot, Status, Task};
use crate::{Observer, Occupant};
use schedlab_base::{CpuId, Nanos};

/// A task that an idle CPU gets, which nobody will see.
#[derive(Clone, Copy, Debug)]
struct Coming {
    at: Nanos,
    woken: Nanos,
    cpu: CpuId,
    task: Slot,
    prio: i16,
}

/// What is known of idle CPUs that tasks are woken onto.
#[derive(Debug)]
pub(super) struct Exits {
    /// Whether some idle task has not been seen to leave its CPU. Until then nothing is learnt.
    pub hidden: bool,
    /// When the first task comes; [`NEVER`] if none does.
    pub due: Nanos,
    /// About the median time from a wake-up to the switch, of those seen; 0 while there is none.
    pub typical: Nanos,
    coming: Vec<Coming>,
}

impl Default for Exits {
    fn default() -> Self {
        Self { hidden: false, due: NEVER, typical: 0, coming: Vec::new() }
    }
}

impl Exits {
    /// A CPU took this long. The median is approached by small steps.
    fn add(&mut self, took: Nanos) {
        let step = (self.typical / 32).max(1);
        self.typical = match self.typical {
            0 => took,
            known if took > known => (known + step).min(took),
            known => known.saturating_sub(step).max(took),
        };
    }

    /// The first that comes until `now`.
    fn next(&mut self, now: Nanos) -> Option<Coming> {
        let first = (0..self.coming.len()).min_by_key(|i| self.coming[*i].at)?;
        (self.coming[first].at <= now).then(|| self.coming.remove(first))
    }
}

impl Tracker {
    /// A CPU that was idle since `since` is seen to get this occupant. If that was not woken, the switch may have been
    /// restored by the recorder, and says nothing of others.
    #[cold]
    pub(super) fn learn_exit(&mut self, number: CpuId, since: Option<Nanos>, entered: Occupant) {
        if let (Some(since), Occupant::Task(slot)) = (since, entered) {
            let task = &self.tasks[slot];
            if task.status == Status::Waiting && task.wakeup != NEVER && task.wakeup >= since {
                self.exits.add(self.now - task.wakeup);
                self.cpus[number as usize].blind = false;
            }
        }
    }

    /// The instant at which `left` probably got the CPU, which was not seen.
    pub(super) fn likely(&self, number: CpuId, left: Occupant) -> Nanos {
        let (at, believed) = (self.earliest(number, left), self.cpus[number as usize].occupant);
        match left {
            Occupant::Task(slot) if believed == Occupant::Idle && self.tasks[slot].status == Status::Waiting => {
                at + self.exits.typical.min((self.now - at) / 2)
            }
            _ => at,
        }
    }

    /// A task was woken onto an idle CPU that will not be seen to get it.
    #[cold]
    pub(super) fn comes(&mut self, cpu: CpuId, task: Slot, prio: i16, observer: &mut impl Observer) {
        if self.exits.typical == 0 {
            return self.start_unseen(cpu, task, prio, self.now, observer);
        }
        let (woken, at) = (self.now, self.now.saturating_add(self.exits.typical));
        self.exits.coming.push(Coming { at, woken, cpu, task, prio });
        self.exits.due = self.exits.due.min(at);
    }

    /// Gives idle CPUs the tasks that have come until now.
    #[cold]
    pub(super) fn arrive(&mut self, observer: &mut impl Observer) {
        let now = self.now;
        while let Some(Coming { at, woken, cpu: number, task: slot, prio }) = self.exits.next(now) {
            let cpu = &self.cpus[number as usize];
            let idle = cpu.occupant == Occupant::Idle && cpu.since <= woken;
            let waits = |task: &Task| (task.status, task.cpu, task.since) == (Status::Waiting, number, woken);
            if idle && waits(&self.tasks[slot]) {
                self.now = at;
                observer.clock(at);
                self.start_unseen(number, slot, prio, at, observer);
            }
        }
        self.now = now;
        self.exits.due = self.exits.coming.iter().map(|coming| coming.at).min().unwrap_or(NEVER);
    }
}
