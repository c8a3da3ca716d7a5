//! Intervals: what each task did, from when until when, as a table with a row for each.
//!
//! Times run and waited are those that the statistics count, so the rows of a task add up to its `run_us` and
//! `wait_us`. What is not known has no row.

#[cfg(test)]
mod tests;

use crate::lanes::Doing;
use crate::names::{Name, Names};
use schedlab_base::{AffinityRecord, CpuId, Event, Meta, NameRecord, Nanos, Sink, TaskState};
use schedlab_track::{Delay, Observer, Occupant, Replay, Slot, Start, Stop, row};
use std::sync::Arc;

/// "Not known".
const UNKNOWN: Nanos = Nanos::MAX;

/// A task did one thing for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The first instant, on the trace's clock.
    pub start: Nanos,
    /// The end.
    pub end: Nanos,
    wait: Nanos,
    /// The task, as an index of [`Table::tasks`].
    pub task: Slot,
    /// The CPU that it ran on or waited for; if it slept, the one that it had last.
    pub cpu: CpuId,
    /// What it did.
    pub doing: Doing,
}

impl Interval {
    /// While running: how long the task had waited just before. `None` if that is not known, and in other states.
    #[must_use]
    pub fn wait(&self) -> Option<Nanos> {
        (self.wait != UNKNOWN).then_some(self.wait)
    }
}

/// A task of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its thread id.
    pub tid: i32,
    /// The process that it belongs to, if known.
    pub tgid: Option<i32>,
    /// Its last known name; empty if it has none.
    pub name: Arc<str>,
}

/// All intervals of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// In the order of their starts.
    pub rows: Vec<Interval>,
    /// The tasks, one for each life of a thread id.
    pub tasks: Vec<Task>,
}

/// Collects the intervals of a trace: feed it the trace, then [`Intervals::finish`].
#[derive(Debug)]
pub struct Intervals(Replay<(Following, Names)>);

impl Intervals {
    /// Intervals of a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self(Replay::new(meta, (Following::default(), Names::default())))
    }

    /// Ends what still lasts, and sorts the rows.
    #[must_use]
    pub fn finish(mut self) -> Table {
        self.0.finish(None);
        let Replay { tracker, observer: (Following { mut rows, .. }, names) } = self.0;
        rows.sort_unstable();
        let task = |(slot, tid)| {
            let Name { comm, tgid, .. } = names.of(slot);
            Task { tid, tgid, name: (*comm).into() }
        };
        Table { rows, tasks: tracker.tasks().map(task).collect() }
    }
}

impl Sink for Intervals {
    fn events(&mut self, batch: &[Event]) {
        self.0.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.0.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.0.affinity(record);
    }

    fn lasts(&mut self, until: Nanos) {
        self.0.lasts(until);
    }
}

/// The observer.
#[derive(Debug, Default)]
struct Following {
    rows: Vec<Interval>,
    tasks: Vec<Here>,
}

/// What a task does beside running and waiting.
#[derive(Clone, Copy, Debug)]
struct Here {
    /// How it sleeps.
    asleep: Option<Doing>,
    since: Nanos,
    cpu: CpuId,
    /// How long it waited for the CPU that it has.
    waited: Nanos,
}

impl Default for Here {
    fn default() -> Self {
        Self { asleep: None, since: 0, cpu: 0, waited: UNKNOWN }
    }
}

impl Following {
    fn push(&mut self, task: Slot, doing: Doing, cpu: CpuId, (start, end): (Nanos, Nanos), wait: Nanos) {
        self.rows.push(Interval { start, end, wait, task, cpu, doing });
    }

    /// If the task sleeps, it does so until `now` at most.
    #[inline]
    fn wake(&mut self, task: Slot, now: Nanos) {
        let here = row(&mut self.tasks, task);
        let (asleep, since, cpu) = (here.asleep.take(), here.since, here.cpu);
        if let Some(doing) = asleep.filter(|_| since < now) {
            self.push(task, doing, cpu, (since, now), UNKNOWN);
        }
    }
}

impl Observer for Following {
    fn appears(&mut self, task: Slot, _: i32, again: bool) {
        if again {
            *row(&mut self.tasks, task) = Here::default();
        }
    }

    fn replaced(&mut self, task: Slot, now: Nanos) {
        self.wake(task, now);
    }

    fn queued(&mut self, task: Slot, _: CpuId, now: Nanos) {
        self.wake(task, now);
    }

    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, _: bool) {
        self.wake(task, from);
        if from < to {
            self.push(task, Doing::Waiting, cpu, (from, to), UNKNOWN);
        }
    }

    fn served(&mut self, task: Slot, _: CpuId, delay: Delay) {
        row(&mut self.tasks, task).waited = delay.wait;
    }

    fn started(&mut self, task: Slot, _: CpuId, start: Start) {
        self.wake(task, start.now);
    }

    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        if let Occupant::Task(task) = who {
            let waited = std::mem::replace(&mut row(&mut self.tasks, task).waited, UNKNOWN);
            self.push(task, Doing::Running, cpu, (from, to.max(from)), waited);
        }
    }

    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        if stop.late {
            return;
        }
        let asleep = match stop.state {
            TaskState::Runnable | TaskState::Dead | TaskState::Zombie => None,
            TaskState::Uninterruptible => Some(Doing::Blocked),
            _ => Some(Doing::Sleeping),
        };
        let here = row(&mut self.tasks, task);
        (here.asleep, here.since, here.cpu) = (asleep, stop.now, cpu);
    }

    fn vanished(&mut self, task: Slot, _: CpuId, _: Nanos) {
        row(&mut self.tasks, task).asleep = None;
    }

    fn ends(&mut self, end: Nanos) {
        for task in 0..self.tasks.len() as Slot {
            self.wake(task, end);
        }
    }
}
