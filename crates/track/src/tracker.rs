//! Keeps what each CPU runs and what each task does, event by event.
//!
//! A CPU's occupant is unknown until its first switch (unless the trace's metadata names it), and again after lost
//! events until its next switch; such spans count as neither run nor idle. A task's wait begins when it becomes
//! runnable (woken, newly forked, or switched out while runnable) and ends when it is switched in.

mod exits;
mod losses;
mod members;
mod switch;
#[cfg(test)]
mod tests;
mod wake;

use crate::tasks::{NEVER, Slot, Status, TaskTable};
use crate::{Observer, Occupant};
use exits::Exits;
use members::Members;
use schedlab_base::{AffinityRecord, CpuId, Event, Ignored, Meta, NameRecord, Nanos, Payload, TaskRecord, Tid};

/// CPU numbers from this one on are rejected.
pub const MAX_CPUS: CpuId = 1 << 16;

#[derive(Clone, Debug)]
struct Cpu {
    occupant: Occupant,
    since: Nanos,
    last_event: Nanos,
    /// The number of waiting tasks, as far as known.
    waiting: u32,
    /// Incremented when events are lost: tasks that were queued before may have run unseen.
    epoch: u32,
    /// Whether nothing has been seen of this CPU yet, and nothing was lost.
    fresh: bool,
    /// Whether the CPU was last seen to be given to a task that a partial recording does not follow.
    aside: bool,
    /// Whether the last switch away from its idle task was not seen.
    blind: bool,
    /// The task that slept here and whose wake-up another CPU asked for last, and when.
    asked: Option<(Slot, Nanos)>,
    /// When it was seen to leave idle for a task of which nothing more has been seen.
    got: Option<Nanos>,
    /// Whether the metadata lists the CPU or an event names it; otherwise it is only a gap in the numbering.
    present: bool,
}

/// The state of all CPUs and tasks.
#[derive(Debug)]
pub struct Tracker {
    cpus: Vec<Cpu>,
    tasks: TaskTable,
    members: Members,
    exits: Exits,
    started: bool,
    start: Nanos,
    now: Nanos,
    /// Whether the trace contains everything from its start on, so that the first switch shows what ran until then.
    complete: bool,
    span: Option<(Nanos, Nanos)>,
    /// A row of the trace says that it goes on until then.
    until: Nanos,
    running: Vec<(CpuId, Tid)>,
    idle_at_start: bool,
    /// Whether switches from idle tasks may be missing: those of a simulation are not, nor those of a recording that
    /// looked and found none.
    may_hide: bool,
    /// The number of events processed.
    pub events: u64,
    /// The number of events that the recorder reported as lost, where it knew the number.
    pub lost: u64,
    /// How often events were lost.
    pub losses: u64,
    /// The number of events that contradict earlier ones or name something impossible.
    pub contradictions: u64,
    /// The time that rests on a guess because of such events.
    pub contradicted: Nanos,
}

impl Tracker {
    /// Creates a tracker for a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        let mut tracker = Self {
            cpus: Vec::new(),
            tasks: TaskTable::new(),
            members: Members::new(meta),
            exits: Exits::default(),
            started: false,
            start: 0,
            now: 0,
            complete: meta.span.is_some(),
            span: meta.told(),
            until: 0,
            running: meta.running.clone(),
            // A simulated machine boots idle.
            idle_at_start: meta.source == "sim",
            may_hide: match meta.source.as_str() {
                "sim" => false,
                "record" => meta.partial.is_some() || meta.notes.contains_key("idle_tasks"),
                _ => true,
            },
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

    /// Returns the first and the last instant.
    #[must_use]
    pub fn bounds(&self) -> (Nanos, Nanos) {
        (self.start, self.now)
    }

    /// Iterates over the CPUs that the metadata lists or an event names.
    pub fn present(&self) -> impl Iterator<Item = CpuId> {
        (0..).zip(&self.cpus).filter(|(_, cpu)| cpu.present).map(|(number, _)| number)
    }

    /// Iterates over every task that was named or seen, with its thread id.
    pub fn tasks(&self) -> impl Iterator<Item = (Slot, Tid)> {
        self.tasks.iter().map(|(slot, task)| (slot, task.tid))
    }

    /// What of the events says nothing to the tracker. A waker is on its CPU, which matters only where the switch to it
    /// may not have been seen.
    #[must_use]
    pub fn ignores(&self) -> Ignored {
        Ignored { priorities: true, wakers: !self.may_hide }
    }

    /// Returns the thread id of a task; if it had several, the last one.
    #[must_use]
    pub fn tid(&self, task: Slot) -> Tid {
        self.tasks[task].tid
    }

    /// Returns whether it is known what the task does.
    #[must_use]
    pub fn knows(&self, task: Slot) -> bool {
        self.tasks[task].status != Status::Unknown
    }

    /// Processes an event.
    #[inline]
    pub fn event(&mut self, event: &Event, observer: &mut impl Observer) {
        if !self.started {
            self.begin(event.time, observer);
        }
        self.now = self.now.max(event.time);
        self.events += 1;
        if self.now >= self.exits.due {
            self.arrive(self.now, observer);
        }
        if !self.has(event.cpu) && !self.admit(event.cpu) {
            return;
        }
        let (now, cpu) = (self.now, event.cpu);
        observer.clock(now);
        match event.what {
            Payload::Switch { prev, prev_prio, prev_state, next, next_prio } => {
                self.switch(cpu, (prev, prev_prio, prev_state), (next, next_prio), observer);
            }
            Payload::Waking { tid, prio, target, waker, context } => {
                self.waking(cpu, (tid, prio), target, (waker, context), observer);
            }
            Payload::Wakeup { tid, prio, target } => self.woken(cpu, (tid, prio), target, false, observer),
            Payload::WakeupNew { tid, prio, target } => self.woken(cpu, (tid, prio), target, true, observer),
            Payload::Migrate { tid, from, to, .. } => self.migrate(tid, from, to, observer),
            Payload::Fork { parent, child } => {
                self.is_on(cpu, parent, observer);
                self.fork(cpu, parent, child, observer);
            }
            Payload::Exec { tid, old } => self.exec(tid, old, observer),
            Payload::Exit { tid, .. } => {
                self.is_on(cpu, tid, observer);
                if let Some(slot) = self.task(tid, observer) {
                    observer.exits(slot, now);
                }
            }
            Payload::Lost { count } => self.lose(cpu, count, observer),
            Payload::Pages { tgid, from, to, pages } => observer.pages(tgid, from, to, pages, now),
            Payload::Considered { why, word, mask, .. } => observer.looked(cpu, why, word, mask),
            Payload::Interrupt { kind, number, took } => observer.interrupted(cpu, (kind, number), took, now),
            Payload::Sleeps { tid, why } => {
                self.is_on(cpu, tid, observer);
                if let Some(slot) = self.task(tid, observer) {
                    observer.sleeps(slot, why);
                }
            }
            Payload::Killed { tid, signal } => {
                if let Some(slot) = self.task(tid, observer) {
                    observer.killed(slot, signal, now);
                }
            }
            Payload::Queue { .. } | Payload::Frequency { .. } => {}
        }
        self.cpus[cpu as usize].last_event = now;
    }

    /// Processes a name. A name for a dead thread's id belongs to the id's next life.
    pub fn name(&mut self, record: &NameRecord, observer: &mut impl Observer) {
        if let Some(slot) = self.living(record.tid, observer) {
            observer.named(slot, record);
        }
    }

    /// Processes a task's affinity.
    pub fn affinity(&mut self, record: &AffinityRecord, observer: &mut impl Observer) {
        if let Some(slot) = self.living(record.tid, observer) {
            observer.allowed(slot, record);
        }
    }

    /// Processes how a task is scheduled. A task that has neither a name nor an event yet is not there.
    pub fn describe(&mut self, record: &TaskRecord, observer: &mut impl Observer) {
        if let Some(slot) = self.tasks.seen(record.tid) {
            observer.described(slot, record);
        }
    }

    /// The recording went on until this time.
    pub fn lasts(&mut self, until: Nanos) {
        self.until = self.until.max(until);
    }

    /// Ends the trace: at `end`, otherwise at the end of the metadata's span, but never before the last event.
    pub fn finish(&mut self, end: Option<Nanos>, observer: &mut impl Observer) {
        if !self.started {
            self.begin(self.span.map_or(self.until, |(start, _)| start), observer);
        }
        let end = end.or(self.span.map(|(_, end)| end.max(self.until))).unwrap_or(self.until).max(self.now);
        self.now = end;
        self.arrive(NEVER, observer);
        for (number, cpu) in (0..).zip(&mut self.cpus).filter(|(_, cpu)| cpu.present) {
            observer.span(number, cpu.occupant, cpu.since, end);
            observer.queue(number, end, None);
            cpu.since = end;
        }
        for (slot, task) in self.tasks.iter() {
            if task.status == Status::Waiting && self.cpus[task.cpu as usize].epoch == task.epoch {
                observer.waited(slot, task.cpu, task.since, end, false);
            }
        }
        observer.ends(end);
    }

    fn begin(&mut self, first: Nanos, observer: &mut impl Observer) {
        self.started = true;
        self.start = self.span.map_or(first, |(start, _)| start.min(first));
        self.now = self.start;
        observer.begins(self.start);
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
            let Some(occupant) = self.occupant(tid, observer).filter(|_| number < MAX_CPUS) else { continue };
            let occupant = self.followed(occupant);
            self.cpus[number as usize].occupant = occupant;
            if let Occupant::Task(slot) = occupant {
                let task = &mut self.tasks[slot];
                (task.status, task.cpu, task.since) = (Status::Running, number, self.start);
            }
        }
        for number in self.present().collect::<Vec<_>>() {
            self.tell_queue(number, observer);
            observer.occupied(number, self.cpus[number as usize].occupant, self.now);
        }
    }

    #[inline]
    fn has(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu as usize).is_some_and(|cpu| cpu.present)
    }

    /// Makes room for a CPU that the metadata does not list. Returns `false` if its number is impossible.
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
            aside: false,
            blind: false,
            asked: None,
            got: None,
            present: false,
        };
        let at = number as usize;
        self.cpus.resize(self.cpus.len().max(at + 1), gap);
        self.cpus[at].present = true;
    }

    /// Returns the slot of the thread's present life, also for idle tasks. `None` if the id is impossible.
    #[inline]
    fn slot(&mut self, tid: Tid, observer: &mut impl Observer) -> Option<Slot> {
        match self.tasks.seen(tid) {
            Some(slot) => Some(slot),
            None => {
                let slot = self.tasks.add(tid)?;
                self.members.appears(slot, tid);
                observer.appears(slot, tid, false);
                Some(slot)
            }
        }
    }

    /// Returns the slot of a thread, unless it is an idle task.
    #[inline]
    fn task(&mut self, tid: Tid, observer: &mut impl Observer) -> Option<Slot> {
        if tid == 0 { None } else { self.slot(tid, observer) }
    }

    /// Returns the slot of a thread, unless it is an idle task; that of its next life if the present one has ended.
    #[inline]
    fn living(&mut self, tid: Tid, observer: &mut impl Observer) -> Option<Slot> {
        let slot = self.task(tid, observer)?;
        Some(if self.tasks[slot].status == Status::Dead { self.reborn(slot, observer) } else { slot })
    }

    /// Begins the next life of a task's thread id.
    #[cold]
    fn reborn(&mut self, slot: Slot, observer: &mut impl Observer) -> Slot {
        let tid = self.tasks[slot].tid;
        let next = self.tasks.reborn(slot);
        observer.appears(next, tid, true);
        next
    }

    #[inline]
    fn occupant(&mut self, tid: Tid, observer: &mut impl Observer) -> Option<Occupant> {
        if tid == 0 { Some(Occupant::Idle) } else { self.slot(tid, observer).map(Occupant::Task) }
    }

    #[inline]
    fn tell_queue(&self, number: CpuId, observer: &mut impl Observer) {
        let cpu = &self.cpus[number as usize];
        let length = match cpu.occupant {
            _ if !self.knows_queues() => None,
            Occupant::Unknown => None,
            Occupant::Idle => Some(cpu.waiting),
            Occupant::Task(_) => Some(cpu.waiting + 1),
        };
        observer.queue(number, self.now, length);
    }
}
