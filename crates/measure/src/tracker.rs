//! What each CPU runs and what each task does, event by event; the measures watch.
//!
//! A CPU's occupant is unknown until its first switch (unless the trace's metadata tells it) and again
//! after lost events until its next switch: such spans count as neither run nor idle. A task's wait
//! begins when it becomes runnable (woken, newly forked, or switched out while runnable) and ends when
//! it is switched in.
//!
//! When a CPU is left by another task than the one that it was seen switching to, a switch between the two
//! was not recorded (some systems hide some tasks from tracing). It counts as a contradiction, and the time
//! since then that is given to the task which left is summed up as resting on a guess.

use crate::tasks::{NEVER, Slot, Status, Task, TaskTable};
use schedlab_base::{CpuId, Event, Meta, Nanos, Payload, TaskState, Tid};

/// CPUs beyond this number are not believed.
pub const MAX_CPUS: CpuId = 1 << 16;

/// Who had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Nobody can tell.
    Unknown,
    /// The idle task.
    Idle,
    /// The task in this slot.
    Task(Slot),
}

/// How long it took a task to get a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Since it became runnable, whatever made it so.
    pub wait: Nanos,
    /// Since its wakeup, if that made it so.
    pub wakeup: Option<Nanos>,
    /// Since its waking, if that led to it.
    pub waking: Option<Nanos>,
}

/// A measure: told of what happens, keeps what it needs.
pub trait Observer {
    /// The CPU was the occupant's for this span.
    fn span(&mut self, _cpu: CpuId, _who: Occupant, _from: Nanos, _to: Nanos) {}
    /// The task got the CPU.
    fn started(&mut self, _task: Slot, _cpu: CpuId) {}
    /// The task left the CPU in this state.
    fn stopped(&mut self, _task: Slot, _cpu: CpuId, _state: TaskState) {}
    /// The task waited on this CPU's queue; `finished` unless the trace ended before the wait did.
    fn waited(&mut self, _task: Slot, _cpu: CpuId, _from: Nanos, _to: Nanos, _finished: bool) {}
    /// A task that had waited got the CPU.
    fn served(&mut self, _task: Slot, _cpu: CpuId, _delay: Delay) {}
    /// The task was moved.
    fn migrated(&mut self, _task: Slot, _from: CpuId, _to: CpuId) {}
    /// From now on the CPU has so many runnable tasks, the running one included; `None`: it is unknown.
    fn queue(&mut self, _cpu: CpuId, _now: Nanos, _length: Option<u32>) {}
    /// From now on the CPU is the occupant's.
    fn occupied(&mut self, _cpu: CpuId, _who: Occupant, _now: Nanos) {}
    /// From now on the task waits on this CPU's queue.
    fn queued(&mut self, _task: Slot, _cpu: CpuId, _now: Nanos) {}
    /// From now on it waits there no more.
    fn unqueued(&mut self, _task: Slot, _now: Nanos) {}
    /// The task, which was told to wait, has had a CPU meanwhile, and nobody saw since when.
    fn doubted(&mut self, _task: Slot, _now: Nanos) {}
    /// The CPU, which was told to be idle, has run somebody meanwhile, and nobody saw since when.
    fn misjudged(&mut self, _cpu: CpuId, _now: Nanos) {}
    /// Who waits on this CPU's queue is not known any more.
    fn forgotten(&mut self, _cpu: CpuId, _now: Nanos) {}
}

#[derive(Clone, Debug)]
struct Cpu {
    occupant: Occupant,
    since: Nanos,
    last_event: Nanos,
    /// Tasks waiting, as far as known.
    waiting: u32,
    /// Raised when events are lost: what was queued before may have run unseen.
    epoch: u32,
    /// Nothing was seen of it yet, and nothing was missed.
    fresh: bool,
    /// The metadata lists it, or an event names it: not just a gap in the numbering.
    present: bool,
}

/// The state of all CPUs and tasks.
#[derive(Debug)]
pub struct Tracker {
    cpus: Vec<Cpu>,
    /// The tasks, by slot.
    pub tasks: TaskTable,
    started: bool,
    start: Nanos,
    now: Nanos,
    /// The trace holds everything from its start on, so the first switch tells who ran until then.
    complete: bool,
    span: Option<(Nanos, Nanos)>,
    running: Vec<(CpuId, Tid)>,
    idle_at_start: bool,
    /// Events taken.
    pub events: u64,
    /// Events that the recorder lost, where it told how many.
    pub lost: u64,
    /// How often it lost some.
    pub losses: u64,
    /// Events that contradict those before, or name what cannot be.
    pub contradictions: u64,
    /// Time that rests on a guess because of that.
    pub contradicted: Nanos,
}

impl Tracker {
    /// A tracker for a trace.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        let mut tracker = Self {
            cpus: Vec::new(),
            tasks: TaskTable::new(),
            started: false,
            start: 0,
            now: 0,
            complete: meta.span.is_some(),
            span: meta.span,
            running: meta.running.clone(),
            // A simulated machine boots idle.
            idle_at_start: meta.source == "sim",
            events: 0,
            lost: 0,
            losses: 0,
            contradictions: 0,
            contradicted: 0,
        };
        for place in meta.cpus.iter().filter(|place| place.cpu < MAX_CPUS) {
            tracker.grow(place.cpu);
        }
        tracker
    }

    /// The first and the last instant.
    #[must_use]
    pub fn bounds(&self) -> (Nanos, Nanos) {
        (self.start, self.now)
    }

    /// The CPUs that the metadata lists or an event names.
    pub fn present(&self) -> impl Iterator<Item = CpuId> {
        (0..).zip(&self.cpus).filter(|(_, cpu)| cpu.present).map(|(number, _)| number)
    }

    /// Takes an event.
    #[inline]
    pub fn event(&mut self, event: &Event, measures: &mut impl Observer) {
        if !self.started {
            self.begin(event.time, measures);
        }
        self.now = self.now.max(event.time);
        self.events += 1;
        if !self.knows(event.cpu) && !self.admit(event.cpu) {
            return;
        }
        let now = self.now;
        match event.what {
            Payload::Switch { prev, prev_state, next, .. } => {
                self.switch(event.cpu, prev, prev_state, next, measures);
            }
            Payload::Waking { tid, .. } => self.waking(tid),
            Payload::Wakeup { tid, target, .. } => self.woken(tid, target, true, measures),
            Payload::WakeupNew { tid, target, .. } => self.woken(tid, target, false, measures),
            Payload::Migrate { tid, from, to, .. } => self.migrate(tid, from, to, measures),
            Payload::Fork { child, .. } => {
                self.abandon(child, measures);
                self.tasks.born(child);
            }
            Payload::Exec { tid, old } => {
                if tid != old {
                    self.abandon(tid, measures);
                }
                self.tasks.rename(old, tid);
            }
            Payload::Exit { .. } | Payload::Queue { .. } | Payload::Considered { .. } | Payload::Pages { .. } => {}
            Payload::Lost { count } => self.lose(event.cpu, count, measures),
        }
        self.cpus[event.cpu as usize].last_event = now;
    }

    /// Ends the trace at `end`, if that is no earlier than the last event.
    pub fn finish(&mut self, end: Option<Nanos>, measures: &mut impl Observer) {
        if !self.started {
            self.begin(self.span.map_or(0, |(start, _)| start), measures);
        }
        let end = end.or(self.span.map(|(_, end)| end)).unwrap_or(0).max(self.now);
        self.now = end;
        for (number, cpu) in (0..).zip(&mut self.cpus).filter(|(_, cpu)| cpu.present) {
            measures.span(number, cpu.occupant, cpu.since, end);
            measures.queue(number, end, None);
            cpu.since = end;
        }
        for (slot, task) in self.tasks.iter() {
            if task.status == Status::Waiting && self.cpus[task.cpu as usize].epoch == task.epoch {
                measures.waited(slot, task.cpu, task.since, end, false);
            }
        }
    }

    fn begin(&mut self, first: Nanos, measures: &mut impl Observer) {
        self.started = true;
        self.start = self.span.map_or(first, |(start, _)| start.min(first));
        self.now = self.start;
        for (cpu, _) in self.running.clone() {
            if cpu < MAX_CPUS {
                self.grow(cpu);
            }
        }
        for cpu in &mut self.cpus {
            (cpu.since, cpu.last_event) = (self.start, self.start);
            if self.idle_at_start {
                cpu.occupant = Occupant::Idle;
            }
        }
        for (number, tid) in std::mem::take(&mut self.running) {
            let Some(occupant) = self.occupant(tid).filter(|_| number < MAX_CPUS) else { continue };
            self.cpus[number as usize].occupant = occupant;
            if let Occupant::Task(slot) = occupant {
                let task = &mut self.tasks[slot];
                (task.status, task.cpu, task.since) = (Status::Running, number, self.start);
            }
        }
        for number in self.present().collect::<Vec<_>>() {
            self.tell_queue(number, measures);
            measures.occupied(number, self.cpus[number as usize].occupant, self.now);
        }
    }

    #[inline]
    fn knows(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu as usize).is_some_and(|cpu| cpu.present)
    }

    /// Makes room for a CPU that the metadata lacks; `false` when its number cannot be.
    #[cold]
    fn admit(&mut self, cpu: CpuId) -> bool {
        if cpu >= MAX_CPUS {
            self.contradictions += 1;
            return false;
        }
        self.grow(cpu);
        true
    }

    fn grow(&mut self, number: CpuId) {
        let gap = Cpu {
            occupant: if self.started && self.idle_at_start { Occupant::Idle } else { Occupant::Unknown },
            since: self.start,
            last_event: self.start,
            waiting: 0,
            epoch: 0,
            fresh: true,
            present: false,
        };
        let at = number as usize;
        self.cpus.resize(self.cpus.len().max(at + 1), gap);
        self.cpus[at].present = true;
    }

    fn occupant(&mut self, tid: Tid) -> Option<Occupant> {
        if tid == 0 { Some(Occupant::Idle) } else { self.tasks.slot(tid).map(Occupant::Task) }
    }

    #[inline]
    fn tell_queue(&self, number: CpuId, measures: &mut impl Observer) {
        let cpu = &self.cpus[number as usize];
        let length = match cpu.occupant {
            Occupant::Unknown => None,
            Occupant::Idle => Some(cpu.waiting),
            Occupant::Task(_) => Some(cpu.waiting + 1),
        };
        measures.queue(number, self.now, length);
    }

    #[inline]
    fn switch(&mut self, number: CpuId, prev: Tid, state: TaskState, next: Tid, measures: &mut impl Observer) {
        let (Some(left), Some(entered)) = (self.occupant(prev), self.occupant(next)) else {
            self.contradictions += 1;
            return;
        };
        self.close(number, left, measures);
        if let Occupant::Task(slot) = left {
            self.leave(slot, number, state, measures);
        }
        let entered = match entered {
            Occupant::Task(slot) => Occupant::Task(self.enter(slot, number, measures)),
            other => other,
        };
        let cpu = &mut self.cpus[number as usize];
        cpu.occupant = entered;
        cpu.since = self.now;
        cpu.fresh = false;
        measures.occupied(number, entered, self.now);
        self.tell_queue(number, measures);
    }

    /// Ends the span that a switch away from `left` ends.
    #[inline]
    fn close(&mut self, number: CpuId, left: Occupant, measures: &mut impl Observer) {
        let cpu = &self.cpus[number as usize];
        let (since, now) = (cpu.since, self.now);
        match cpu.occupant {
            known if known == left => measures.span(number, known, since, now),
            Occupant::Unknown if cpu.fresh && self.complete => measures.span(number, left, since, now),
            Occupant::Unknown => measures.span(number, Occupant::Unknown, since, now),
            believed => self.close_unseen(number, believed, left, measures),
        }
    }

    /// A switch from `believed` to `left` was not seen: some tasks are hidden from some recorders. It is put
    /// at the earliest instant possible, since hidden tasks are mostly short.
    #[cold]
    fn close_unseen(&mut self, number: CpuId, believed: Occupant, left: Occupant, measures: &mut impl Observer) {
        let (since, now) = (self.cpus[number as usize].since, self.now);
        if let Occupant::Task(slot) = believed
            && self.tasks[slot].is_running_on(number)
        {
            self.tasks[slot].status = Status::Unknown;
        }
        if believed == Occupant::Idle {
            measures.misjudged(number, now);
        }
        let mut at = since;
        if let Occupant::Task(slot) = left {
            let task = &mut self.tasks[slot];
            (task.wakeup, task.waking) = (NEVER, NEVER);
            if task.status == Status::Waiting {
                at = at.max(task.since).min(now);
                measures.doubted(slot, now);
            }
            self.now = at;
            if self.tasks[slot].status != Status::Dead {
                self.enter(slot, number, measures);
            }
            self.now = now;
        }
        measures.span(number, believed, since, at);
        measures.span(number, left, at, now);
        self.contradictions += 1;
        self.contradicted = self.contradicted.saturating_add(now - at);
    }

    #[inline]
    fn leave(&mut self, slot: Slot, number: CpuId, state: TaskState, measures: &mut impl Observer) {
        measures.stopped(slot, number, state);
        let task = &self.tasks[slot];
        if task.status == Status::Running && task.cpu != number {
            // The CPUs' clocks differ a little: it was seen starting there before it was seen leaving here.
            return;
        }
        if task.status == Status::Waiting {
            self.dequeue(slot, number, measures);
        }
        match state {
            TaskState::Runnable => self.enqueue(slot, number, measures),
            TaskState::Dead | TaskState::Zombie => self.tasks[slot].status = Status::Dead,
            _ => self.tasks[slot].status = Status::Sleeping,
        }
    }

    #[inline]
    fn enter(&mut self, mut slot: Slot, number: CpuId, measures: &mut impl Observer) -> Slot {
        let now = self.now;
        let task = self.tasks[slot];
        let since = |then: Nanos| (then != NEVER).then(|| now.saturating_sub(then));
        match task.status {
            Status::Waiting => {
                let known = self.cpus[task.cpu as usize].epoch == task.epoch;
                self.dequeue(slot, number, measures);
                if known {
                    measures.waited(slot, task.cpu, task.since, now, true);
                    let wait = now.saturating_sub(task.queued);
                    let delay = Delay { wait, wakeup: since(task.wakeup), waking: since(task.waking) };
                    measures.served(slot, number, delay);
                }
            }
            // A trace without wake-ups proper: the wait is known from the waking on.
            Status::Sleeping | Status::Unknown if task.waking != NEVER => {
                measures.waited(slot, number, task.waking, now, true);
                let wait = now.saturating_sub(task.waking);
                measures.served(slot, number, Delay { wait, wakeup: None, waking: Some(wait) });
            }
            Status::Dead => slot = self.tasks.reborn(slot),
            _ => {}
        }
        let task = &mut self.tasks[slot];
        (task.status, task.cpu, task.since) = (Status::Running, number, now);
        (task.wakeup, task.waking) = (NEVER, NEVER);
        measures.started(slot, number);
        slot
    }

    /// The task waits on this CPU from now on. The caller tells the queue's length.
    #[inline]
    fn enqueue(&mut self, slot: Slot, number: CpuId, measures: &mut impl Observer) {
        let cpu = &mut self.cpus[number as usize];
        cpu.waiting += 1;
        let task = &mut self.tasks[slot];
        (task.status, task.cpu, task.epoch) = (Status::Waiting, number, cpu.epoch);
        (task.since, task.queued) = (self.now, self.now);
        (task.wakeup, task.waking) = (NEVER, NEVER);
        measures.queued(slot, number, self.now);
    }

    /// Takes a waiting task off its queue. The caller tells the length of the queue of CPU `told`.
    #[inline]
    fn dequeue(&mut self, slot: Slot, told: CpuId, measures: &mut impl Observer) {
        let Task { cpu: number, epoch, .. } = self.tasks[slot];
        let cpu = &mut self.cpus[number as usize];
        if cpu.epoch == epoch {
            cpu.waiting -= 1;
            measures.unqueued(slot, self.now);
            if number != told {
                self.tell_queue(number, measures);
            }
        }
    }

    #[inline]
    fn waking(&mut self, tid: Tid) {
        let Some(slot) = self.tasks.slot(tid).filter(|_| tid != 0) else { return };
        let task = &mut self.tasks[slot];
        // A task on its way to sleep may be woken before it is switched out: its waking counts from here.
        if matches!(task.status, Status::Sleeping | Status::Unknown | Status::Running) {
            task.waking = self.now;
        }
    }

    #[inline]
    fn woken(&mut self, tid: Tid, target: CpuId, from_sleep: bool, measures: &mut impl Observer) {
        let Some(mut slot) = self.tasks.slot(tid).filter(|_| tid != 0) else { return };
        if !self.knows(target) && !self.admit(target) {
            return;
        }
        let Task { status, waking, .. } = self.tasks[slot];
        match status {
            Status::Waiting => {
                // It ran and slept, and nobody saw it.
                measures.doubted(slot, self.now);
                return;
            }
            Status::Running => {
                // It had not got round to sleeping.
                self.tasks[slot].waking = NEVER;
                return;
            }
            Status::Dead => slot = self.tasks.reborn(slot),
            Status::Sleeping | Status::Unknown => {}
        }
        self.enqueue(slot, target, measures);
        if from_sleep {
            let task = &mut self.tasks[slot];
            (task.wakeup, task.waking) = (self.now, waking);
        }
        self.tell_queue(target, measures);
    }

    #[inline]
    fn migrate(&mut self, tid: Tid, from: CpuId, to: CpuId, measures: &mut impl Observer) {
        let Some(slot) = self.tasks.slot(tid).filter(|_| tid != 0) else { return };
        if (!self.knows(from) && !self.admit(from)) || (!self.knows(to) && !self.admit(to)) {
            return;
        }
        measures.migrated(slot, from, to);
        let task = self.tasks[slot];
        if task.status != Status::Waiting || task.cpu == to {
            return;
        }
        if self.cpus[task.cpu as usize].epoch == task.epoch {
            measures.waited(slot, task.cpu, task.since, self.now, true);
        }
        self.dequeue(slot, to, measures);
        self.enqueue(slot, to, measures);
        let moved = &mut self.tasks[slot];
        (moved.queued, moved.wakeup, moved.waking) = (task.queued, task.wakeup, task.waking);
        self.tell_queue(to, measures);
    }

    /// The present life of a thread id has ended unseen: if it waits, it does so no more.
    fn abandon(&mut self, tid: Tid, measures: &mut impl Observer) {
        let Some(slot) = self.tasks.slot(tid).filter(|_| tid != 0) else { return };
        if self.tasks[slot].status == Status::Waiting {
            measures.doubted(slot, self.now);
            let told = self.tasks[slot].cpu;
            self.dequeue(slot, told, measures);
            self.tell_queue(told, measures);
            self.tasks[slot].status = Status::Dead;
        }
    }

    /// Events were lost between the CPU's last event and now.
    #[cold]
    fn lose(&mut self, number: CpuId, count: u64, measures: &mut impl Observer) {
        self.losses += 1;
        self.lost = self.lost.saturating_add(count);
        let cpu = &mut self.cpus[number as usize];
        let known = cpu.last_event.max(cpu.since);
        measures.span(number, cpu.occupant, cpu.since, known);
        measures.queue(number, known, None);
        measures.occupied(number, Occupant::Unknown, self.now);
        measures.forgotten(number, self.now);
        if let Occupant::Task(slot) = cpu.occupant
            && self.tasks[slot].is_running_on(number)
        {
            self.tasks[slot].status = Status::Unknown;
        }
        cpu.occupant = Occupant::Unknown;
        cpu.since = known;
        cpu.waiting = 0;
        cpu.epoch = cpu.epoch.wrapping_add(1);
        cpu.fresh = false;
    }
}
