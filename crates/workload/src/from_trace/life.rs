//! What is known of a task: how it begins, where it is, and what it did.

use super::cause::Wakes;
use super::endings::{Ending, Nap};
use super::habits::Habit;
use super::handoffs::Turn;
use super::identity::Identity;
use super::joins::Family;
use super::past::Past;
use super::rooms::Progress;
use super::sequence::{TaskIx, Token};
use super::timeouts::Phases;
use super::unseen::Receiver;
use schedlab_base::{Context, CpuId, NameRecord, Nanos, Sleep, Tid};
use schedlab_track::Slot;
use std::sync::Arc;

/// Work of at least so much CPU time is long, and so is such a wait for a CPU.
const LONG: Nanos = 10_000_000;

/// How far a task's sequence is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On a CPU, its time counted up to `since`.
    Running { cpu: CpuId, since: Nanos },
    /// Waiting for a CPU.
    Ready,
    /// Blocked since then; not `sure` when it vanished and may have been elsewhere.
    Blocked { since: Nanos, sure: bool },
    /// Ended.
    Dead,
}

/// How a task begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// This long after the start of the trace.
    After(Nanos),
    /// When its parent forks it, `after` the start of the trace.
    Forked { by: TaskIx, after: Nanos },
}

/// A task of the trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Seat {
    pub tid: Tid,
    /// Its process, where known.
    pub tgid: Option<Tid>,
    /// Its place among the tasks that are modelled.
    pub ix: Option<TaskIx>,
    /// What it is to the scheduler, as far as that is known by now.
    pub identity: Option<Arc<Identity>>,
    /// Whether it handles soft interrupts as a task.
    pub softirqd: bool,
    /// Whether it is a CPU's stopper, by which the recorded scheduler moved running tasks.
    pub stopper: bool,
    /// The CPU where it is, or last was.
    pub cpu: Option<CpuId>,
}

impl Seat {
    /// The task has this name, and belongs to this process, from now on.
    pub fn is_named(&mut self, record: &NameRecord) {
        self.tgid = record.tgid.or(self.tgid);
        self.softirqd = record.comm.starts_with("ksoftirqd/");
        self.stopper = record.comm.starts_with("migration/");
    }
}

/// What is known of one task.
#[derive(Debug)]
pub(super) struct Task {
    /// The task in the trace.
    pub slot: Slot,
    pub tid: Tid,
    pub begin: Begin,
    pub sequence: Vec<Token>,
    /// CPU time as recorded.
    pub run: Nanos,
    /// The work in the sequence: CPU time in units of the biggest CPU.
    pub work: Nanos,
    /// Its latest turn: the number of its stay on a CPU, among those of all tasks in the order in which they begin.
    pub turn: u64,
    /// Its latest wake-up and its latest time on a CPU.
    pub shown: Turn,
    pub wakes: Wakes,
    pub phases: Phases,
    pub receiver: Receiver,
    pub habit: Habit,
    pub family: Family,
    /// How often it seems to have yielded its CPU.
    pub yields: u64,
    /// CPU time at each priority it had, the first eight.
    pub prios: Vec<(i16, Nanos)>,
    /// What it was to the scheduler, first and after each change, and its CPU time as that.
    pub identities: Vec<(Arc<Identity>, Nanos)>,
    /// Changes of its identity beyond those.
    pub unsaid: u64,
    /// The CPU where it was at first.
    pub home: Option<CpuId>,
    /// The one CPU it was seen on; `None` when there were several or none.
    pub only_cpu: Option<CpuId>,
    /// Wake-ups by tasks count as an interrupt's: its sequence had grown too long.
    pub cut: bool,
    pub place: Place,
    pub prio: i16,
    pub past: Past,
    pub progress: Progress,
    pub moved: bool,
    /// A wake-up asked for while it was not yet off its CPU.
    pub asked: Option<(TaskIx, Context)>,
    /// Those whose wake-ups it has asked for, and which another CPU has not done yet.
    pub owes: Vec<TaskIx>,
    /// Its CPU time since it asked for the first of these, or since the last was done.
    pub sending: Nanos,
    /// Who has asked for its wake-up, which its CPU has not done yet.
    pub owed_by: Option<TaskIx>,
    /// What it sleeps for, if the trace says so.
    pub sleeps: Option<Sleep>,
    /// Its CPU time since it last slept, or began.
    pub burst: Nanos,
    /// Since when it is awake, if it slept before.
    pub awake: Option<Nanos>,
    /// What it does since it was last seen to run is unknown.
    pub doubted: bool,
    /// It was in the middle of long work when the trace ended.
    pub goes_on: bool,
    /// How it ended.
    pub ending: Option<Ending>,
    /// Its last long sleeps that no task ended.
    pub naps: Vec<Nap>,
    /// How long it had slept when the trace ended, 0 if it was awake; none if it had ended.
    pub asleep: Option<Nanos>,
}

impl Task {
    /// A task that has done nothing yet.
    pub fn new(slot: Slot, tid: Tid, identity: Arc<Identity>, begin: Begin, place: Place) -> Self {
        Self {
            slot,
            tid,
            begin,
            sequence: Vec::new(),
            run: 0,
            work: 0,
            turn: 0,
            shown: Turn::default(),
            wakes: Wakes::default(),
            phases: Phases::default(),
            receiver: Receiver::default(),
            habit: Habit::default(),
            family: Family::default(),
            yields: 0,
            prios: Vec::new(),
            identities: vec![(identity, 0)],
            unsaid: 0,
            home: None,
            only_cpu: None,
            cut: false,
            place,
            prio: 120,
            past: Past::default(),
            progress: Progress::default(),
            moved: false,
            asked: None,
            owes: Vec::new(),
            sending: 0,
            owed_by: None,
            sleeps: None,
            burst: 0,
            awake: None,
            doubted: false,
            goes_on: false,
            ending: None,
            naps: Vec::new(),
            asleep: None,
        }
    }

    /// It ends now, by a signal or by itself, in a trace that began at `start`.
    pub fn exits(&mut self, signal: Option<u16>, start: Nanos, now: Nanos) {
        if self.ending.is_none() {
            self.ending = match signal {
                Some(signal) => Ending::by_signal(self, signal, start, now),
                None => Some(Ending::of(self, start, now)),
            };
        }
    }

    /// When it began, in a trace that began at `start`.
    pub fn began(&self, start: Nanos) -> Nanos {
        match self.begin {
            Begin::After(after) | Begin::Forked { after, .. } => start.saturating_add(after),
        }
    }

    /// When it ended, in a trace that did at `end`.
    pub fn ended(&self, end: Nanos) -> Nanos {
        self.ending.map_or(end, |ending| ending.at)
    }

    /// A sleep that no task ended is over.
    pub fn slept(&mut self, length: Nanos, woken: Nanos) {
        if length >= Nap::LEAST {
            if self.naps.len() == Nap::KEPT {
                self.naps.remove(0);
            }
            self.naps.push(Nap { woken, length });
        }
    }

    /// The trace, which began at `start`, ends.
    pub fn leaves(&mut self, start: Nanos, end: Nanos) {
        self.past.rests(end);
        // One that has ended was perhaps preempted on its way out, and not seen to get a CPU once more.
        let ended = self.ending.is_some();
        self.goes_on = !ended && !self.doubted && self.is_amid_work(start, end);
        self.asleep = match self.place {
            Place::Dead => None,
            Place::Running { .. } | Place::Ready if ended => None,
            Place::Blocked { since, .. } => Some(end.saturating_sub(since)),
            Place::Running { .. } | Place::Ready => Some(0),
        };
    }

    /// Whether it is in the middle of long work at the `end` of a trace that begins at `start`: awake for a tenth of
    /// that time, and on a CPU for a hundredth, at least 10 ms; or waiting for a CPU for a tenth of it, at least 10 ms,
    /// even if it did not run at all. How much more of this work there was, nobody knows.
    pub fn is_amid_work(&self, start: Nanos, end: Nanos) -> bool {
        let span = end.saturating_sub(start);
        let waited = self.awake_for(start, end).saturating_sub(self.burst);
        self.has_computed(start, start, end) || self.is_at_work() && waited >= (span / 10).max(LONG)
    }

    /// Whether it is awake, and has been for a tenth of the time `since` then, and on a CPU for a hundredth, at least
    /// 10 ms.
    pub fn has_computed(&self, since: Nanos, start: Nanos, end: Nanos) -> bool {
        let span = end.saturating_sub(since);
        let long = self.awake_for(start, end) >= span / 10 && self.burst >= (span / 100).max(LONG);
        self.is_at_work() && long
    }

    fn awake_for(&self, start: Nanos, end: Nanos) -> Nanos {
        end.saturating_sub(self.awake.unwrap_or(self.began(start)))
    }

    fn is_at_work(&self) -> bool {
        matches!(self.place, Place::Running { .. } | Place::Ready)
    }
}
