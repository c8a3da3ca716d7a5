//! When a CPU whose idle task is not seen to leave got the task that was woken onto it: as long after the wake-up as
//! CPUs take whose idle task is seen. Where the idle CPU itself does the wake-up, which another one asked for, that is
//! not seen either, and the time counts from when it was asked for.
//!
//! The first event of the task there says that it has come. If that is soon, so was the switch: the time since the
//! wake-up is divided as where both are seen.

use super::Tracker;
use crate::tasks::{NEVER, Slot, Status, Task};
use crate::{Observer, Occupant};
use schedlab_base::{CpuId, Nanos};

/// A CPU that is not seen to leave idle for so many times the usual time has left it unseen, but not before this time.
const PATIENCE: Nanos = 4;
const LEAST_PATIENCE: Nanos = 20_000;

/// A task that an idle CPU gets, which nobody may see.
#[derive(Clone, Copy, Debug)]
struct Coming {
    due: Nanos,
    woken: Nanos,
    cpu: CpuId,
    task: Slot,
}

/// About the median of the times that idle CPUs took; 0 while there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Typical(pub Nanos);

impl Typical {
    /// A CPU took this long. The median is approached by small steps.
    fn add(&mut self, took: Nanos) {
        let step = (self.0 / 32).max(1);
        self.0 = match self.0 {
            0 => took,
            known if took > known => (known + step).min(took),
            known => known.saturating_sub(step).max(took),
        };
    }
}

/// What is known of idle CPUs that tasks are woken onto.
#[derive(Debug)]
pub(super) struct Exits {
    /// Whether some idle task has not been seen to leave its CPU. Until then nothing is learnt.
    pub hidden: bool,
    /// When the first task is known to have come; [`NEVER`] if none does.
    pub due: Nanos,
    /// From a wake-up to the switch, of those seen.
    pub woken: Typical,
    /// The same from when another CPU asked for the wake-up.
    pub asked: Typical,
    /// From such a switch to the first event of the task there, of those that take no longer than `woken`.
    pub acts: Typical,
    coming: Vec<Coming>,
}

impl Default for Exits {
    fn default() -> Self {
        let unknown = Typical::default();
        Self { hidden: false, due: NEVER, woken: unknown, asked: unknown, acts: unknown, coming: Vec::new() }
    }
}

impl Exits {
    /// How much of the time from a wake-up to the task's first event the CPU took to get it; `typical` is how long that
    /// takes where it is seen.
    fn part_of(&self, whole: Nanos, typical: Nanos) -> Nanos {
        let [part, rest, whole] = [typical, self.acts.0, whole].map(u128::from);
        let shared = if rest == 0 { whole / 2 } else { whole * part / (part + rest) };
        shared.min(part) as Nanos
    }

    /// A task was first seen this long after the CPU got it.
    #[cold]
    fn acted(&mut self, after: Nanos) {
        if after <= self.woken.0 {
            self.acts.add(after);
        }
    }

    /// The first that is due by `now`.
    fn next(&mut self, now: Nanos) -> Option<Coming> {
        let first = (0..self.coming.len()).min_by_key(|i| self.coming[*i].due)?;
        (self.coming[first].due <= now).then(|| self.coming.remove(first))
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
                self.exits.woken.add(self.now - task.wakeup);
                let cpu = &mut self.cpus[number as usize];
                (cpu.blind, cpu.got) = (false, Some(self.now));
                if let Some((_, at)) = cpu.asked.take().filter(|(asked, at)| *asked == slot && *at == task.waking) {
                    self.exits.asked.add(self.now - at);
                }
            }
        }
    }

    /// The task on the CPU is seen there: its first event since it was woken onto the idle CPU is learnt from.
    #[inline]
    pub(super) fn learn_act(&mut self, number: CpuId) {
        if let Some(got) = self.cpus[number as usize].got.take() {
            self.exits.acted(self.now - got);
        }
    }

    /// CPU `by` asks for a wake-up of a task that slept on another CPU.
    #[inline]
    pub(super) fn asks(&mut self, by: CpuId, slot: Slot) {
        let number = self.tasks[slot].cpu;
        if self.exits.hidden && number != by {
            self.cpus[number as usize].asked = Some((slot, self.now));
        }
    }

    /// Since when `left`, which was woken, can have been on an idle CPU, and how long it usually takes from there.
    pub(super) fn woken_onto(&self, left: Occupant) -> Option<(Nanos, Nanos)> {
        let Occupant::Task(slot) = left else { return None };
        let Task { status, since, waking, .. } = self.tasks[slot];
        match status {
            Status::Waiting => Some((since, self.exits.woken.0)),
            // It may have been asked for when the task was about to sleep.
            Status::Sleeping | Status::Unknown if waking != NEVER => Some((since.max(waking), self.exits.asked.0)),
            _ => None,
        }
    }

    /// The instant at which `left` probably got the CPU, which was not seen.
    pub(super) fn likely(&self, number: CpuId, left: Occupant) -> Nanos {
        let (at, believed) = (self.earliest(number, left), self.cpus[number as usize].occupant);
        match self.woken_onto(left) {
            Some((_, typical)) if believed == Occupant::Idle => at + self.exits.part_of(self.now - at, typical),
            _ => at,
        }
    }

    /// A task was woken onto an idle CPU that will probably not be seen to get it.
    #[cold]
    pub(super) fn comes(&mut self, cpu: CpuId, task: Slot) {
        let patience = (PATIENCE * self.exits.woken.0).max(LEAST_PATIENCE);
        let coming = Coming { due: self.now.saturating_add(patience), woken: self.now, cpu, task };
        self.exits.coming.push(coming);
        self.exits.due = self.exits.due.min(coming.due);
    }

    /// Gives idle CPUs the tasks that came unseen, of which nothing has been seen by now.
    #[cold]
    pub(super) fn arrive(&mut self, by: Nanos, observer: &mut impl Observer) {
        while let Some(Coming { woken, cpu: number, task: slot, .. }) = self.exits.next(by) {
            let cpu = &self.cpus[number as usize];
            let idle = cpu.occupant == Occupant::Idle && cpu.since <= woken;
            let waits = |task: &Task| (task.status, task.cpu, task.since) == (Status::Waiting, number, woken);
            if idle && waits(&self.tasks[slot]) {
                let at = woken.saturating_add(self.exits.woken.0).min(self.now);
                self.start_unseen(number, slot, at, observer);
            }
        }
        self.exits.due = self.exits.coming.iter().map(|coming| coming.due).min().unwrap_or(NEVER);
    }
}
