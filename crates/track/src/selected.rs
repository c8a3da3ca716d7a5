//! A part of a trace: a stretch of time, and some of its tasks.
//!
//! [`Selected`] stands between the tracker and an observer. The whole trace is replayed, so that what holds at the
//! start of the window is known: a task that runs or waits then does so from the window's start on, one that still
//! does at its end does so until then. What only a later event tells of the time before it counts as well.

use crate::{Delay, Move, Observer, Occupant, Slot, Start, Stop, Wake, row};
use schedlab_base::{AffinityRecord, CpuId, Interrupt, Looking, NameRecord, Nanos, Sleep, TaskRecord, Tid};

/// The tasks that were chosen. Slots are those of a tracker that is fed everything: events, names and affinities.
#[derive(Clone, Debug, Default)]
pub struct Chosen(Vec<bool>);

impl Chosen {
    /// Whether the task was chosen.
    #[inline]
    #[must_use]
    pub fn has(&self, task: Slot) -> bool {
        self.0.get(task as usize).copied().unwrap_or(false)
    }
}

impl FromIterator<Slot> for Chosen {
    fn from_iter<T: IntoIterator<Item = Slot>>(slots: T) -> Self {
        let mut chosen = Vec::new();
        slots.into_iter().for_each(|slot| *row(&mut chosen, slot) = true);
        Self(chosen)
    }
}

/// A part of a trace.
#[derive(Clone, Debug)]
pub struct Part {
    /// The first instant, counted from the trace's start.
    pub from: Nanos,
    /// The end, which is not part of it; [`Nanos::MAX`] for that of the trace.
    pub to: Nanos,
    /// Its tasks; all when none are given.
    pub tasks: Option<Chosen>,
}

impl Default for Part {
    fn default() -> Self {
        Self { from: 0, to: Nanos::MAX, tasks: None }
    }
}

/// What is left out for an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Everything that other tasks do, and what happens outside of the window. What holds at its start is told.
    Figures,
    /// What happens outside of the window; of other tasks their waits alone.
    Waits,
    /// Nothing: times outside of the window become its start or its end. The observer learns from
    /// [`Observer::opens`] and [`Observer::closes`] where it is, and knows by itself which tasks count.
    Story,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    After,
}

/// Shows an observer a part of a trace.
#[derive(Debug)]
pub struct Selected<O> {
    /// The observer.
    pub inner: O,
    /// Events in the window.
    pub events: u64,
    part: Part,
    kept: Kept,
    place: Place,
    /// The window on the trace's clock.
    from: Nanos,
    to: Nanos,
    /// The runnable tasks of each CPU that was told before the window opened.
    lengths: Vec<Option<Option<u32>>>,
}

impl<O: Observer> Selected<O> {
    /// Shows `inner` this part.
    pub fn new(part: Part, kept: Kept, inner: O) -> Self {
        let (from, to) = (0, Nanos::MAX);
        Self { inner, events: 0, part, kept, place: Place::Before, from, to, lengths: Vec::new() }
    }

    /// The window on the trace's clock. Its end is known when the trace has ended.
    pub fn bounds(&self) -> (Nanos, Nanos) {
        (self.from, self.to)
    }

    #[inline]
    fn clamp(&self, time: Nanos) -> Nanos {
        time.clamp(self.from, self.to)
    }

    /// Whether what a task does is told at this place.
    #[inline]
    fn tells(&self, task: Slot) -> bool {
        match self.kept {
            Kept::Story => true,
            Kept::Waits => self.place == Place::Inside,
            Kept::Figures => self.place == Place::Inside && self.chosen(task),
        }
    }

    /// Whether the state of a task is told at this place.
    #[inline]
    fn tells_state(&self, task: Slot) -> bool {
        self.kept == Kept::Story || (self.place != Place::After && self.chosen(task))
    }

    #[inline]
    fn chosen(&self, task: Slot) -> bool {
        self.part.tasks.as_ref().is_none_or(|tasks| tasks.has(task))
    }

    #[inline]
    fn here(&self) -> bool {
        self.kept == Kept::Story || self.place == Place::Inside
    }

    #[inline]
    fn not_over(&self) -> bool {
        self.kept == Kept::Story || self.place != Place::After
    }

    #[cold]
    fn open(&mut self) {
        self.place = Place::Inside;
        self.inner.clock(self.from);
        if self.part.from > 0 {
            self.inner.opens(self.from);
        }
        for (cpu, length) in (0..).zip(std::mem::take(&mut self.lengths)) {
            if let Some(length) = length {
                self.inner.queue(cpu, self.from, length);
            }
            // To be told unknown when the window closes.
            *row(&mut self.lengths, cpu) = length.map(|_| None);
        }
    }

    #[cold]
    fn close(&mut self) {
        self.place = Place::After;
        self.inner.clock(self.to);
        for (cpu, length) in (0..).zip(std::mem::take(&mut self.lengths)) {
            if length.is_some() {
                self.inner.queue(cpu, self.to, None);
            }
        }
        self.inner.closes(self.to);
        if self.kept != Kept::Story {
            self.inner.ends(self.to);
        }
    }
}

impl<O: Observer> Observer for Selected<O> {
    fn begins(&mut self, now: Nanos) {
        (self.from, self.to) = (now.saturating_add(self.part.from), now.saturating_add(self.part.to));
        self.inner.begins(self.from);
    }

    #[inline]
    fn clock(&mut self, now: Nanos) {
        if self.place == Place::Before && now >= self.from {
            self.open();
        }
        if self.place == Place::Inside && now >= self.to {
            self.close();
        }
        self.events += u64::from(self.place == Place::Inside);
        if self.not_over() {
            self.inner.clock(self.clamp(now));
        }
    }

    fn ends(&mut self, now: Nanos) {
        if self.place == Place::Before {
            self.open();
        }
        if self.place == Place::Inside {
            self.to = self.to.min(now).max(self.from);
            self.inner.ends(self.to);
        } else if self.kept == Kept::Story {
            self.inner.ends(self.to);
        }
    }

    fn appears(&mut self, task: Slot, tid: Tid, again: bool) {
        self.inner.appears(task, tid, again);
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        self.inner.named(task, record);
    }

    fn allowed(&mut self, task: Slot, record: &AffinityRecord) {
        if self.not_over() {
            let time = self.clamp(record.time);
            self.inner.allowed(task, &AffinityRecord { time, ..record.clone() });
        }
    }

    fn described(&mut self, task: Slot, record: &TaskRecord) {
        if self.not_over() {
            let time = self.clamp(record.time);
            self.inner.described(task, &TaskRecord { time, ..record.clone() });
        }
    }

    fn forked(&mut self, parent: Option<Slot>, child: Slot, sure: bool, now: Nanos) {
        self.inner.forked(parent, child, sure, self.clamp(now));
    }

    fn replaced(&mut self, task: Slot, now: Nanos) {
        if self.not_over() {
            self.inner.replaced(task, self.clamp(now));
        }
    }

    fn execs(&mut self, task: Slot, now: Nanos) {
        if self.tells(task) {
            self.inner.execs(task, self.clamp(now));
        }
    }

    fn exits(&mut self, task: Slot, now: Nanos) {
        if self.tells(task) {
            self.inner.exits(task, self.clamp(now));
        }
    }

    #[inline]
    fn waking(&mut self, task: Slot, wake: Wake) {
        if self.tells(task) {
            self.inner.waking(task, Wake { now: self.clamp(wake.now), ..wake });
        }
    }

    #[inline]
    fn woken(&mut self, task: Slot, wake: Wake) {
        if self.tells(task) {
            self.inner.woken(task, Wake { now: self.clamp(wake.now), ..wake });
        }
    }

    #[inline]
    fn queued(&mut self, task: Slot, cpu: CpuId, now: Nanos) {
        if self.tells_state(task) {
            self.inner.queued(task, cpu, self.clamp(now));
        }
    }

    #[inline]
    fn unqueued(&mut self, task: Slot, now: Nanos) {
        if self.tells_state(task) {
            self.inner.unqueued(task, self.clamp(now));
        }
    }

    #[inline]
    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, finished: bool) {
        let (start, end) = (self.clamp(from), self.clamp(to));
        let inside = self.place == Place::Inside;
        let other = self.kept == Kept::Figures && !self.chosen(task);
        if self.kept == Kept::Story || (!other && (start < end || inside)) {
            self.inner.waited(task, cpu, start, end, finished && inside);
        }
    }

    #[inline]
    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        if self.tells(task) {
            self.inner.served(task, cpu, delay);
        }
    }

    #[inline]
    fn started(&mut self, task: Slot, cpu: CpuId, start: Start) {
        if self.tells(task) {
            self.inner.started(task, cpu, Start { now: self.clamp(start.now), ..start });
        }
    }

    #[inline]
    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        if self.tells(task) {
            let (now, last) = (self.clamp(stop.now), self.clamp(stop.last));
            let since = stop.since.map(|since| self.clamp(since));
            self.inner.stopped(task, cpu, Stop { now, last, since, ..stop });
        }
    }

    #[inline]
    fn migrated(&mut self, task: Slot, moved: Move) {
        if self.tells(task) {
            self.inner.migrated(task, Move { now: self.clamp(moved.now), ..moved });
        }
    }

    #[inline]
    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        let (start, end) = (self.clamp(from), self.clamp(to));
        let other = match who {
            Occupant::Task(task) => self.kept == Kept::Figures && !self.chosen(task),
            Occupant::Unknown | Occupant::Idle => false,
        };
        if start < end && !other {
            self.inner.span(cpu, who, start, end);
        }
    }

    #[inline]
    fn occupied(&mut self, cpu: CpuId, who: Occupant, now: Nanos) {
        if self.not_over() {
            self.inner.occupied(cpu, who, self.clamp(now));
        }
    }

    #[inline]
    fn queue(&mut self, cpu: CpuId, now: Nanos, length: Option<u32>) {
        match self.place {
            Place::Before => *row(&mut self.lengths, cpu) = Some(length),
            Place::Inside => {
                *row(&mut self.lengths, cpu) = Some(None);
                self.inner.queue(cpu, now.min(self.to), length);
            }
            Place::After => {}
        }
    }

    fn lost(&mut self, cpu: CpuId, now: Nanos) {
        if self.here() {
            self.inner.lost(cpu, self.clamp(now));
        }
    }

    fn forgotten(&mut self, cpu: CpuId, now: Nanos) {
        if self.not_over() {
            self.inner.forgotten(cpu, self.clamp(now));
        }
    }

    fn vanished(&mut self, task: Slot, cpu: CpuId, since: Nanos) {
        if self.not_over() {
            self.inner.vanished(task, cpu, self.clamp(since));
        }
    }

    fn doubted(&mut self, task: Slot, now: Nanos) {
        if self.not_over() {
            self.inner.doubted(task, self.clamp(now));
        }
    }

    fn misjudged(&mut self, cpu: CpuId, since: Option<Nanos>, now: Nanos) {
        if self.not_over() {
            self.inner.misjudged(cpu, since.map(|since| self.clamp(since)), self.clamp(now));
        }
    }

    fn pages(&mut self, tgid: Tid, from: u16, to: u16, pages: u32, now: Nanos) {
        if self.not_over() {
            self.inner.pages(tgid, from, to, pages, self.clamp(now));
        }
    }

    fn looked(&mut self, cpu: CpuId, why: Looking, word: u16, mask: u64) {
        if self.here() {
            self.inner.looked(cpu, why, word, mask);
        }
    }

    fn interrupted(&mut self, cpu: CpuId, what: (Interrupt, u16), took: Nanos, now: Nanos) {
        if self.here() {
            self.inner.interrupted(cpu, what, took, now);
        }
    }

    fn sleeps(&mut self, task: Slot, why: Sleep) {
        if self.tells(task) {
            self.inner.sleeps(task, why);
        }
    }

    fn killed(&mut self, task: Slot, signal: u16, now: Nanos) {
        if self.tells(task) {
            self.inner.killed(task, signal, now);
        }
    }
}
