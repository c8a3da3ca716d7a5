//! Turns what the tracker says into spans.

use super::{Doing, Lanes, Span, Window};
use crate::names::Names;
use schedlab_base::{AffinityRecord, CpuId, Event, Meta, NameRecord, Nanos, Sink, TaskState, Tid};
use schedlab_track::{Kept, Observer, Occupant, Part, Replay, Seen, Selected, Slot, Start, Stop, Wake, observers, row};
use std::collections::BTreeMap;

/// What a task does.
#[derive(Clone, Copy, Debug, Default)]
struct Here {
    tid: Tid,
    /// Something was told of it.
    seen: bool,
    /// `None`: it has ended, or nobody knows.
    doing: Option<Doing>,
    since: Nanos,
    cpu: CpuId,
}

/// Follows tasks and CPUs along a trace and hands their spans on.
///
/// What was true before the first event of a task follows from that event: a task that leaves a CPU of which nothing
/// was seen ran there from the start, one that comes onto a CPU unwoken waited from the start, one that is woken slept.
/// A wait is drawn from the waking on, which the statistics count as latency only.
#[derive(Debug)]
pub struct Follow<L> {
    replay: Replay<(Following<L>, Taking)>,
}

/// Which tasks take part in the window, and their names.
#[derive(Debug)]
struct Taking {
    seen: Selected<Seen>,
    names: Names,
}

observers!(Taking: seen, names);

/// The observer.
#[derive(Debug)]
struct Following<L> {
    lanes: L,
    start: Nanos,
    now: Nanos,
    tasks: Vec<Here>,
    /// Since when nobody knows what a CPU runs: from the start, or from its last loss of events.
    unknown_since: Vec<Nanos>,
    /// Up to when it was told what ran on a CPU.
    ran_until: Vec<Nanos>,
}

/// What is left when the trace is over.
#[derive(Clone, Debug)]
pub struct Followed<L> {
    /// Took the spans.
    pub lanes: L,
    /// The length of the trace.
    pub length: Nanos,
    /// The CPUs that the trace lists or an event names.
    pub cpus: Vec<CpuId>,
    /// The tasks that ran, waited or were moved in the window, with their thread ids and last names.
    pub tasks: BTreeMap<Slot, (Tid, String)>,
}

impl<L: Lanes> Follow<L> {
    /// Follows a trace with this head. The window decides which tasks take part; the lanes get all spans.
    pub fn new(meta: &Meta, lanes: L, window: Window) -> Self {
        let (tasks, unknown_since, ran_until) = (Vec::new(), Vec::new(), Vec::new());
        let following = Following { lanes, start: 0, now: 0, tasks, unknown_since, ran_until };
        let part = Part { from: window.from, to: window.to, tasks: None };
        let seen = Selected::new(part, Kept::Figures, Seen::new(meta));
        Self { replay: Replay::new(meta, (following, Taking { seen, names: Names::default() })) }
    }

    /// Ends what still lasts.
    pub fn finish(mut self) -> Followed<L> {
        self.replay.finish(None);
        let Replay { tracker, observer: (following, Taking { seen, names }) } = self.replay;
        let (start, end) = tracker.bounds();
        let there = tracker.tasks().filter(|(slot, tid)| *tid != 0 && seen.inner.has(*slot));
        let tasks = there.map(|(slot, tid)| (slot, (tid, names.of(slot).comm.to_string()))).collect();
        let cpus = tracker.present().collect();
        Followed { lanes: following.lanes, length: end - start, cpus, tasks }
    }
}

impl<L: Lanes> Following<L> {
    fn hand_on(&mut self, task: Slot, here: Here, to: Nanos) {
        let Here { tid, doing, since, cpu, .. } = here;
        if let Some(doing) = doing.filter(|_| since < to) {
            if doing == Doing::Running {
                *row(&mut self.ran_until, cpu) = to;
            }
            self.lanes.span(&Span { task, tid, doing, cpu, from: since, to });
        }
    }

    /// The task does something else from `now` on; before anything was told of it, it did `before`.
    fn turn(&mut self, task: Slot, now: Nanos, before: Option<Doing>, doing: Option<Doing>, cpu: CpuId) {
        let here = row(&mut self.tasks, task);
        let old = if here.seen { *here } else { Here { doing: before, since: 0, cpu, ..*here } };
        // A guess may lie before what is known of the task since, or before the end of what ran on the CPU: a task that
        // was seen on another CPU, and not to leave this one, is told to have run here until then.
        let taken = if doing == Some(Doing::Running) { *row(&mut self.ran_until, cpu) } else { 0 };
        let now = old.since.max(now).max(taken);
        *here = Here { seen: true, doing, since: now, cpu, ..old };
        self.hand_on(task, old, now);
    }

    fn runs_on(&mut self, task: Slot, cpu: CpuId) -> bool {
        let here = row(&mut self.tasks, task);
        here.doing == Some(Doing::Running) && here.cpu == cpu
    }

    fn wake(&mut self, task: Slot, wake: Wake) {
        let doing = row(&mut self.tasks, task).doing;
        let asleep = matches!(doing, None | Some(Doing::Sleeping | Doing::Blocked));
        if asleep || wake.new {
            let now = wake.now - self.start;
            // A new task begins here: nothing is known of before.
            let before = if wake.new { None } else { Some(Doing::Sleeping) };
            self.turn(task, now, before, Some(Doing::Waiting), wake.target);
            self.lanes.wakeup(now, task, wake.target);
        }
    }
}

impl<L: Lanes> Observer for Following<L> {
    fn begins(&mut self, now: Nanos) {
        self.start = now;
    }

    fn ends(&mut self, end: Nanos) {
        let mut tasks: Vec<(Slot, Here)> = (0..).zip(std::mem::take(&mut self.tasks)).collect();
        tasks.sort_by_key(|(_, here)| here.tid);
        for (task, here) in tasks {
            self.hand_on(task, here, end - self.start);
        }
    }

    fn clock(&mut self, now: Nanos) {
        self.now = now - self.start;
    }

    fn appears(&mut self, task: Slot, tid: Tid, again: bool) {
        let (now, here) = (self.now, row(&mut self.tasks, task));
        let old = *here;
        here.tid = tid;
        if again {
            // It did nothing before the other task had ended.
            (here.seen, here.since) = (true, now);
        } else if old.seen {
            // Until now it had another id.
            here.since = old.since.max(now);
            self.hand_on(task, old, now);
        }
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, now: Nanos) {
        let now = now - self.start;
        match who {
            Occupant::Unknown => *row(&mut self.unknown_since, cpu) = now,
            Occupant::Idle => {}
            Occupant::Task(task) => {
                if !self.runs_on(task, cpu) {
                    self.turn(task, now, Some(Doing::Waiting), Some(Doing::Running), cpu);
                }
            }
        }
    }

    /// A switch that was not seen may have been earlier.
    fn started(&mut self, task: Slot, cpu: CpuId, start: Start) {
        if start.unseen && !self.runs_on(task, cpu) {
            self.turn(task, start.now - self.start, Some(Doing::Waiting), Some(Doing::Running), cpu);
        }
    }

    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        if stop.late {
            return;
        }
        if !self.runs_on(task, cpu) {
            let first = !row(&mut self.tasks, task).seen;
            let since = match stop.since {
                Some(since) => since - self.start,
                None if first => *row(&mut self.unknown_since, cpu),
                None => stop.last - self.start,
            };
            self.turn(task, since, None, Some(Doing::Running), cpu);
        }
        let doing = match stop.state {
            TaskState::Runnable => Some(Doing::Waiting),
            TaskState::Uninterruptible => Some(Doing::Blocked),
            TaskState::Dead | TaskState::Zombie => None,
            _ => Some(Doing::Sleeping),
        };
        self.turn(task, stop.now - self.start, None, doing, cpu);
    }

    fn waking(&mut self, task: Slot, wake: Wake) {
        self.wake(task, wake);
    }

    fn woken(&mut self, task: Slot, wake: Wake) {
        self.wake(task, wake);
    }

    fn vanished(&mut self, task: Slot, cpu: CpuId, since: Nanos) {
        self.turn(task, since - self.start, None, None, cpu);
    }

    fn replaced(&mut self, task: Slot, now: Nanos) {
        let cpu = row(&mut self.tasks, task).cpu;
        self.turn(task, now - self.start, None, None, cpu);
    }

    fn lost(&mut self, cpu: CpuId, now: Nanos) {
        self.lanes.lost(now - self.start, cpu);
    }
}

impl<L: Lanes> Sink for Follow<L> {
    fn events(&mut self, batch: &[Event]) {
        self.replay.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.replay.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.replay.affinity(record);
    }

    fn lasts(&mut self, until: Nanos) {
        self.replay.lasts(until);
    }
}
