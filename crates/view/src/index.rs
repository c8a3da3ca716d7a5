//! A trace as rows of spans: one for each CPU and one for each task, with the lengths of the run queues and the marks.
//!
//! [`Indexer`] is a sink that is read while it is filled, so that a trace can be looked at before it has ended. Times
//! run and waited are those that the statistics count. All times are from the trace's start.

use crate::marks::{Mark, Marks, NOBODY};
use crate::spans::{NONE, Spans, State};
use crate::steps::{Step, Steps, UNKNOWN};
use schedlab_base::{
    AffinityRecord, CpuId, CpuList, Event, Interrupt, Meta, NameRecord, Nanos, Payload, Sink, TaskProperties,
    TaskRecord, TaskState, Tid,
};
use schedlab_measure::Names;
use schedlab_track::{Delay, Move, Observer, Occupant, Slot, Start, Stop, Tracker, Wake, row};

/// What is known of a task at present.
#[derive(Debug, Default)]
struct Here {
    /// How it sleeps, since when, and the CPU that it had last.
    asleep: Option<State>,
    since: Nanos,
    cpu: CpuId,
    /// What it was before anything was told of it, and is where nothing is told.
    gap: State,
    /// The mark of a waking that is not complete.
    waking: Option<usize>,
}

/// A task beside its spans.
#[derive(Clone, Debug, Default)]
pub struct TaskFacts {
    /// Its thread id; 0 for an idle task.
    pub tid: Tid,
    /// Where it may run, from when on; nothing if that is unknown.
    pub allowed: Vec<(Nanos, CpuList)>,
    /// How it is scheduled, as far as is known.
    pub properties: TaskProperties,
}

/// A trace as rows.
#[derive(Debug, Default)]
pub struct Index {
    /// The trace's start on its own clock, once it is known.
    start: Option<Nanos>,
    /// How far it goes.
    pub end: Nanos,
    /// Nothing follows any more.
    pub complete: bool,
    /// What each CPU did, by its number.
    pub cpus: Vec<Spans>,
    /// What each task did.
    pub tasks: Vec<Spans>,
    /// Runnable tasks of each CPU.
    pub queues: Vec<Steps>,
    /// The load of each CPU's queue; nothing unless the scheduler itself recorded it.
    pub loads: Vec<Steps>,
    /// The frequency of each CPU in kHz; nothing unless it was recorded.
    pub frequencies: Vec<Steps>,
    /// The tasks beside their spans.
    pub facts: Vec<TaskFacts>,
    /// Their names.
    pub names: Names,
    /// Wake-ups.
    pub wakes: Marks,
    /// Migrations.
    pub moves: Marks,
    /// Losses.
    pub losses: Marks,
    /// Interrupts.
    pub interrupts: Marks,
    /// When tasks got a CPU after a wake-up, and how long that took in ns.
    pub served: (Vec<Nanos>, Vec<f32>),
    /// The trace has the CPUs that the scheduler looked at, and where memory is.
    pub considered: bool,
    /// The trace has where the memory is.
    pub memory: bool,
    here: Vec<Here>,
    occupied: Vec<bool>,
    whole: bool,
}

impl Index {
    /// The bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let rows = self.cpus.iter().chain(&self.tasks).map(|row| row.bytes() + size_of::<Spans>()).sum::<usize>();
        let steps = self.queues.iter().chain(&self.loads).chain(&self.frequencies);
        let steps = steps.map(|row| row.bytes() + size_of::<Steps>()).sum::<usize>();
        let marks = [&self.wakes, &self.moves, &self.losses, &self.interrupts];
        rows + steps
            + marks.iter().map(|marks| marks.bytes()).sum::<usize>()
            + self.served.0.capacity() * 12
            + (self.facts.len() * size_of::<TaskFacts>() + self.here.len() * size_of::<Here>())
    }

    /// How many spans its rows have.
    #[must_use]
    pub fn spans(&self) -> usize {
        self.cpus.iter().chain(&self.tasks).map(Spans::len).sum()
    }

    /// Where the task may run at this instant; none if that is unknown.
    #[must_use]
    pub fn allowed(&self, task: Slot, time: Nanos) -> Option<&CpuList> {
        let allowed = &self.facts.get(task as usize)?.allowed;
        let at = allowed.partition_point(|(from, _)| *from <= time);
        allowed.get(at.saturating_sub(1)).map(|(_, cpus)| cpus)
    }

    /// What is told before the first event holds from the start on.
    fn since_start(&self, time: Nanos) -> Nanos {
        self.start.map_or(0, |start| time.saturating_sub(start))
    }

    fn put(&mut self, task: Slot, state: State, cpu: CpuId, (from, to): (Nanos, Nanos)) {
        let (from, to) = (self.since_start(from), self.since_start(to));
        let gap = row(&mut self.here, task).gap;
        row(&mut self.tasks, task).push(from, to, (state, cpu), gap);
        if state != State::Absent {
            // From here on, what is not told is not known.
            self.here[task as usize].gap = State::Unknown;
        }
    }

    /// If the task sleeps, it does so until `now` at most.
    fn wake(&mut self, task: Slot, now: Nanos) {
        let here = row(&mut self.here, task);
        let (asleep, since, cpu) = (here.asleep.take(), here.since, here.cpu);
        if let Some(state) = asleep.filter(|_| since < now) {
            self.put(task, state, cpu, (since, now));
        }
    }

    /// The task does this from now on.
    fn tail(&mut self, task: Slot, tail: Option<(State, u32)>) {
        row(&mut self.tasks, task).set_tail(tail);
    }

    fn runs_or_waits(&self, task: Slot) -> bool {
        let tail = self.tasks.get(task as usize).and_then(Spans::tail);
        matches!(tail, Some((State::Running | State::Waiting, _)))
    }

    /// A wake-up was requested of a task that is not known to be awake.
    fn rouse(&mut self, task: Slot, wake: &Wake) -> usize {
        let mark = Mark {
            time: self.since_start(wake.now),
            duration: 0,
            from_cpu: wake.cpu,
            to_cpu: wake.target,
            from_task: wake.by.unwrap_or(NOBODY),
            to_task: task,
        };
        let at = self.wakes.push(mark);
        // Whoever is woken has slept; since the start, if nothing else is known and nothing was lost.
        let fresh = self.tasks.get(task as usize).is_none_or(Spans::is_empty);
        let certain = fresh && !wake.new && self.whole && self.losses.is_empty();
        let here = row(&mut self.here, task);
        if certain && here.asleep.is_none() && here.gap == State::Unknown {
            here.gap = State::Sleeping;
        }
        at
    }

    fn measure(&mut self, cpu: CpuId, length: Option<u32>, time: Nanos) {
        let time = self.since_start(time);
        let busy = self.occupied.get(cpu as usize).copied().unwrap_or(false);
        let step = match length {
            Some(length) => Step { value: length.into(), waiting: length > u32::from(busy) },
            None => Step { value: UNKNOWN, waiting: false },
        };
        row(&mut self.queues, cpu).push(time, step);
    }
}

impl Observer for Index {
    fn begins(&mut self, now: Nanos) {
        self.start = Some(now);
    }

    fn clock(&mut self, now: Nanos) {
        self.end = self.end.max(self.since_start(now));
    }

    fn ends(&mut self, end: Nanos) {
        for task in 0..self.here.len() as Slot {
            self.wake(task, end);
            let gap = self.here[task as usize].gap;
            let end = self.since_start(end);
            row(&mut self.tasks, task).push(end, end, (gap, NONE), gap);
        }
        self.end = self.since_start(end);
        self.complete = true;
        self.cpus.iter_mut().chain(&mut self.tasks).for_each(Spans::close);
        let steps = self.queues.iter_mut().chain(&mut self.loads).chain(&mut self.frequencies);
        steps.for_each(Steps::close);
        [&mut self.wakes, &mut self.moves, &mut self.losses, &mut self.interrupts].into_iter().for_each(Marks::close);
    }

    fn appears(&mut self, task: Slot, tid: Tid, again: bool) {
        row(&mut self.facts, task).tid = tid;
        row(&mut self.tasks, task);
        let here = row(&mut self.here, task);
        if again {
            *here = Here { gap: State::Absent, ..Here::default() };
        }
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        self.names.named(task, record);
    }

    fn allowed(&mut self, task: Slot, record: &AffinityRecord) {
        let time = self.since_start(record.time);
        row(&mut self.facts, task).allowed.push((time, record.cpus.clone()));
    }

    fn described(&mut self, task: Slot, record: &TaskRecord) {
        row(&mut self.facts, task).properties = record.properties.clone();
    }

    fn forked(&mut self, parent: Option<Slot>, child: Slot, sure: bool, now: Nanos) {
        self.names.forked(parent, child, sure, now);
        let here = row(&mut self.here, child);
        if self.tasks.get(child as usize).is_none_or(Spans::is_empty) {
            here.gap = State::Absent;
        }
        if let Some(parent) = parent.and_then(|parent| self.facts.get(parent as usize)).cloned() {
            let facts = row(&mut self.facts, child);
            if facts.allowed.is_empty() {
                facts.allowed.extend(parent.allowed.last().cloned());
            }
            if facts.properties == TaskProperties::default() {
                facts.properties = parent.properties.of_child();
            }
        }
    }

    fn replaced(&mut self, task: Slot, now: Nanos) {
        self.wake(task, now);
        row(&mut self.here, task).gap = State::Absent;
        self.tail(task, Some((State::Absent, NONE)));
    }

    fn waking(&mut self, task: Slot, wake: Wake) {
        if !self.runs_or_waits(task) {
            let at = self.rouse(task, &wake);
            row(&mut self.here, task).waking = Some(at);
        }
    }

    fn woken(&mut self, task: Slot, wake: Wake) {
        match row(&mut self.here, task).waking.take() {
            Some(at) => self.wakes.redirect(at, wake.target),
            None if self.runs_or_waits(task) => {}
            None => {
                if wake.new && self.tasks.get(task as usize).is_none_or(Spans::is_empty) {
                    row(&mut self.here, task).gap = State::Absent;
                }
                self.rouse(task, &wake);
            }
        }
    }

    fn queued(&mut self, task: Slot, cpu: CpuId, now: Nanos) {
        self.wake(task, now);
        self.tail(task, Some((State::Waiting, cpu)));
    }

    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, _: bool) {
        self.wake(task, from);
        if from < to {
            self.put(task, State::Waiting, cpu, (from, to));
        }
    }

    fn served(&mut self, _: Slot, _: CpuId, delay: Delay) {
        if let Some(latency) = delay.wakeup {
            self.served.0.push(self.since_start(delay.end));
            self.served.1.push(latency as f32);
        }
    }

    fn started(&mut self, task: Slot, cpu: CpuId, start: Start) {
        self.wake(task, start.now);
        row(&mut self.here, task).waking = None;
        self.tail(task, Some((State::Running, cpu)));
    }

    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        let to = to.max(from);
        let what = match who {
            Occupant::Unknown => (State::Unknown, NONE),
            Occupant::Idle => (State::Idle, NONE),
            Occupant::Task(task) => {
                self.put(task, State::Running, cpu, (from, to));
                (State::Running, task)
            }
        };
        let (from, to) = (self.since_start(from), self.since_start(to));
        row(&mut self.cpus, cpu).push(from, to, what, State::Unknown);
    }

    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        if stop.late {
            return;
        }
        let asleep = match stop.state {
            TaskState::Runnable => return,
            TaskState::Dead | TaskState::Zombie => {
                row(&mut self.here, task).gap = State::Absent;
                return self.tail(task, Some((State::Absent, NONE)));
            }
            TaskState::Uninterruptible => State::Blocked,
            _ => State::Sleeping,
        };
        let here = row(&mut self.here, task);
        (here.asleep, here.since, here.cpu) = (Some(asleep), stop.now, cpu);
        self.tail(task, Some((asleep, cpu)));
    }

    fn migrated(&mut self, task: Slot, moved: Move) {
        let time = self.since_start(moved.now);
        let (from_cpu, to_cpu) = (moved.from, moved.to);
        self.moves.push(Mark { time, duration: 0, from_cpu, to_cpu, from_task: task, to_task: task });
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, _: Nanos) {
        let tail = match who {
            Occupant::Unknown => None,
            Occupant::Idle => Some((State::Idle, NONE)),
            Occupant::Task(task) => Some((State::Running, task)),
        };
        *row(&mut self.occupied, cpu) = matches!(who, Occupant::Task(_));
        row(&mut self.cpus, cpu).set_tail(tail);
    }

    fn queue(&mut self, cpu: CpuId, now: Nanos, length: Option<u32>) {
        self.measure(cpu, length, now);
    }

    fn lost(&mut self, cpu: CpuId, now: Nanos) {
        let now = self.since_start(now);
        let from = self.cpus.get(cpu as usize).map_or(0, Spans::end).min(now);
        let (from_task, to_task) = (NOBODY, NOBODY);
        self.losses.push(Mark { time: from, duration: now - from, from_cpu: NOBODY, to_cpu: cpu, from_task, to_task });
    }

    fn vanished(&mut self, task: Slot, _: CpuId, _: Nanos) {
        row(&mut self.here, task).asleep = None;
        self.tail(task, None);
    }

    fn interrupted(&mut self, cpu: CpuId, (_, number): (Interrupt, u16), took: Nanos, now: Nanos) {
        let now = self.since_start(now);
        let time = now.saturating_sub(took);
        let from_task = number.into();
        let mark = Mark { time, duration: now - time, from_cpu: NOBODY, to_cpu: cpu, from_task, to_task: NOBODY };
        self.interrupts.push(mark);
    }
}

/// Makes an [`Index`] of a trace: feed it the trace, then [`Indexer::finish`].
#[derive(Debug)]
pub struct Indexer {
    tracker: Tracker,
    /// What is there so far.
    pub index: Index,
}

impl Indexer {
    /// For a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        let index = Index {
            losses: Marks::lasting(),
            interrupts: Marks::lasting(),
            whole: meta.span.is_some() && meta.partial.is_none(),
            ..Index::default()
        };
        let mut indexer = Self { tracker: Tracker::new(meta), index };
        for cpu in indexer.tracker.present().collect::<Vec<_>>() {
            row(&mut indexer.index.cpus, cpu);
            row(&mut indexer.index.queues, cpu);
        }
        indexer
    }

    /// The CPUs that the metadata lists or an event names.
    #[must_use]
    pub fn cpus(&self) -> Vec<CpuId> {
        self.tracker.present().collect()
    }

    /// Events, losses, and events that contradict others.
    #[must_use]
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.tracker.events, self.tracker.losses, self.tracker.contradictions)
    }

    /// Ends what still lasts.
    pub fn finish(&mut self) {
        if !self.index.complete {
            self.tracker.finish(None, &mut self.index);
        }
    }

    /// Ends with the last event: what follows cannot be read.
    pub fn stop(&mut self) {
        if !self.index.complete {
            let (_, last) = self.tracker.bounds();
            self.tracker.finish(Some(last), &mut self.index);
        }
    }
}

impl Sink for Indexer {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            self.tracker.event(event, &mut self.index);
            match event.what {
                Payload::Queue { load, .. } => {
                    let time = self.index.since_start(event.time);
                    row(&mut self.index.loads, event.cpu).push(time, Step { value: load, waiting: false });
                }
                Payload::Frequency { target, khz } => {
                    let time = self.index.since_start(event.time);
                    row(&mut self.index.frequencies, target).push(time, Step { value: khz.into(), waiting: false });
                }
                Payload::Considered { .. } => self.index.considered = true,
                Payload::Pages { .. } => self.index.memory = true,
                _ => {}
            }
        }
    }

    fn name(&mut self, record: &NameRecord) {
        self.tracker.name(record, &mut self.index);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.tracker.affinity(record, &mut self.index);
    }

    fn task(&mut self, record: &TaskRecord) {
        self.tracker.describe(record, &mut self.index);
    }

    fn lasts(&mut self, until: Nanos) {
        self.tracker.lasts(until);
    }
}
