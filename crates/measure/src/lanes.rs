//! Lanes: what each task and each CPU did over time, as spans and as the cells of a picture.
//!
//! [`Follow`] turns events into [`Span`]s and hands them to a [`Lanes`]: a [`Census`] sums them up, [`CpuCells`]
//! and [`TaskCells`] reduce them to the cells of a drawing, [`Spans`] keeps them. All times are in nanoseconds
//! from the start of the trace.

mod cells;
mod follow;
#[cfg(test)]
mod tests;

pub use cells::{CpuCell, CpuCells, TaskCell, TaskCells};
pub use follow::{Follow, Followed};

use schedlab_base::{CpuId, Nanos, Tid};
use schedlab_track::Slot;
use std::collections::BTreeMap;

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// On a CPU.
    Running,
    /// Runnable, waiting for a CPU.
    Waiting,
    /// Asleep, and a signal may wake it.
    Sleeping,
    /// Asleep for a device or the like: uninterruptible.
    Blocked,
}

impl Doing {
    /// A word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Sleeping => "sleeping",
            Self::Blocked => "blocked",
        }
    }
}

/// A task did one thing for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The task.
    pub task: Slot,
    /// Its thread id.
    pub tid: Tid,
    /// What it did.
    pub doing: Doing,
    /// The CPU that it ran on; otherwise the one where it was last seen.
    pub cpu: CpuId,
    /// From then on.
    pub from: Nanos,
    /// Until then.
    pub to: Nanos,
}

/// A stretch of time, from its first instant up to, but without, its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first instant.
    pub from: Nanos,
    /// The end.
    pub to: Nanos,
}

impl Window {
    /// The part of a span that lies in the window, if any does.
    #[must_use]
    pub fn clip(&self, span: &Span) -> Option<Span> {
        let (from, to) = (span.from.max(self.from), span.to.min(self.to));
        (from < to).then_some(Span { from, to, ..*span })
    }

    /// Whether the instant lies in the window.
    #[must_use]
    pub fn contains(&self, time: Nanos) -> bool {
        (self.from..self.to).contains(&time)
    }
}

/// Takes spans. Those of one task come in the order of time; so do the running ones of one CPU.
pub trait Lanes {
    /// A task did one thing for some time; it does another now, or the trace is over.
    fn span(&mut self, span: &Span);
    /// A sleeping task was woken, to run on `cpu`.
    fn wakeup(&mut self, _time: Nanos, _task: Slot, _cpu: CpuId) {}
    /// Events of this CPU were lost before this time.
    fn lost(&mut self, _time: Nanos, _cpu: CpuId) {}
}

/// What a task did in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Time on a CPU.
    pub run: Nanos,
    /// Time runnable, waiting for a CPU.
    pub wait: Nanos,
}

/// Sums up a window: who ran and waited for how long, and on which CPUs.
#[derive(Clone, Debug)]
pub struct Census {
    /// The window that is looked at.
    pub window: Window,
    /// Each task that ran or waited in it.
    pub tasks: BTreeMap<Slot, Sum>,
    /// How long each CPU was busy in it; every CPU on which a task ran in the trace is there.
    pub busy: BTreeMap<CpuId, Nanos>,
}

impl Census {
    /// A census of this window.
    #[must_use]
    pub fn new(window: Window) -> Self {
        Self { window, tasks: BTreeMap::new(), busy: BTreeMap::new() }
    }
}

impl Lanes for Census {
    fn span(&mut self, span: &Span) {
        if span.doing == Doing::Running {
            self.busy.entry(span.cpu).or_default();
        }
        let Some(part) = self.window.clip(span) else { return };
        let length = part.to - part.from;
        match span.doing {
            Doing::Running => {
                self.tasks.entry(span.task).or_default().run += length;
                *self.busy.entry(span.cpu).or_default() += length;
            }
            Doing::Waiting => self.tasks.entry(span.task).or_default().wait += length,
            Doing::Sleeping | Doing::Blocked => {}
        }
    }
}

/// Keeps the spans of a window that are wanted, up to a limit.
#[derive(Clone, Debug)]
pub struct Spans<F> {
    window: Window,
    wanted: F,
    most: usize,
    /// What was kept.
    pub kept: Vec<Span>,
    /// How many were wanted but not kept.
    pub left_out: u64,
}

impl<F: Fn(&Span) -> bool> Spans<F> {
    /// Keeps at most `most` of the spans for which `wanted` is true.
    #[must_use]
    pub fn new(window: Window, most: usize, wanted: F) -> Self {
        Self { window, wanted, most, kept: Vec::new(), left_out: 0 }
    }
}

impl<F: Fn(&Span) -> bool> Lanes for Spans<F> {
    fn span(&mut self, span: &Span) {
        match self.window.clip(span).filter(|part| (self.wanted)(part)) {
            Some(part) if self.kept.len() < self.most => self.kept.push(part),
            Some(_) => self.left_out += 1,
            None => {}
        }
    }
}
