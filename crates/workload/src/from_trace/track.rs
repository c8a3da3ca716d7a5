//! Follows the events of a trace: who is on which CPU, who is blocked since when, and what each task did.

use super::cause::{Pairs, Wakes};
use super::sequence::{NOBODY, TaskIx, Token, push};
use schedlab_base::{CpuId, Event, Nanos, Payload, TaskState, Tid};
use std::collections::HashMap;

/// Tasks beyond this number are not modelled.
pub(super) const MOST_TASKS: usize = 1 << 16;

/// Events of CPUs beyond this number are not read.
pub(super) const MOST_CPUS: u32 = 1 << 16;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On a CPU, its time counted up to `since`.
    Running { cpu: CpuId, since: Nanos },
    /// Waiting for a CPU since then.
    Ready { since: Nanos },
    /// Blocked since then; not `sure` when events were lost and it may have been elsewhere.
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

/// What is known of one task.
#[derive(Debug)]
pub(super) struct Task {
    pub tid: Tid,
    pub begin: Begin,
    pub sequence: Vec<Token>,
    /// CPU time as recorded.
    pub run: Nanos,
    pub wakes: Wakes,
    /// CPU time at each priority it had, the first eight.
    pub prios: Vec<(i16, Nanos)>,
    /// The one CPU it was seen on; `None` when there were several or none.
    pub only_cpu: Option<CpuId>,
    /// Wake-ups by tasks count as an interrupt's: its sequence had grown too long.
    pub cut: bool,
    place: Place,
    prio: i16,
    moved: bool,
    /// A wake-up asked for while it was not yet off its CPU.
    asked: Option<TaskIx>,
}

/// How it is known who is on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sight {
    /// Not yet: no switch was seen.
    #[default]
    Fresh,
    /// By the last switch, or it was said at the start.
    Known,
    /// Not any more: events were lost.
    Lost,
}

/// What is known of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Who is on it; `None` is the idle task.
    current: Option<TaskIx>,
    sight: Sight,
    /// Since when.
    since: Nanos,
    /// Its last event.
    last: Nanos,
}

/// The state of a machine along its trace.
#[derive(Debug)]
pub(super) struct Track {
    pub tasks: Vec<Task>,
    pub pairs: Pairs,
    /// Tokens in all sequences.
    pub tokens: usize,
    pub start: Option<Nanos>,
    pub end: Nanos,
    pub lost_events: u64,
    pub losses: u64,
    /// Switches away from a task that was not known to be on the CPU.
    pub contradictions: u64,
    /// Events of tasks or CPUs beyond the limits.
    pub beyond: u64,
    by_tid: HashMap<Tid, TaskIx>,
    cpus: Vec<Cpu>,
    capacity: Vec<u32>,
    running: Vec<(CpuId, Tid)>,
    begun: bool,
    wakings: bool,
    /// The trace has everything from its start on, so the first switch of a CPU tells who ran until then.
    complete: bool,
}

impl Track {
    /// `capacity`: of each CPU, 1024 (or 0, unknown) for the biggest; `running`: who is known to run at the start.
    pub(super) fn new(start: Option<Nanos>, capacity: Vec<u32>, running: Vec<(CpuId, Tid)>) -> Self {
        Self {
            tasks: Vec::new(),
            pairs: Pairs::default(),
            tokens: 0,
            start,
            end: start.unwrap_or(0),
            lost_events: 0,
            losses: 0,
            contradictions: 0,
            beyond: 0,
            by_tid: HashMap::new(),
            cpus: Vec::new(),
            capacity,
            running,
            begun: false,
            wakings: false,
            complete: start.is_some(),
        }
    }

    /// The trace begins: puts those who are known to run on their CPUs.
    fn begin(&mut self, now: Nanos) -> Nanos {
        (self.start, self.begun) = (Some(now), true);
        for (cpu, tid) in std::mem::take(&mut self.running).into_iter().filter(|(cpu, _)| *cpu < MOST_CPUS) {
            let ix = self.lookup(tid, Begin::After(0), Place::Running { cpu, since: now });
            let slot = self.cpu(cpu);
            (slot.current, slot.sight, slot.since, slot.last) = (ix, Sight::Known, now, now);
            if let Some(ix) = ix {
                self.seen_on(ix, cpu);
            }
        }
        now
    }

    /// Takes one event.
    pub(super) fn event(&mut self, event: &Event) {
        let start = match self.start {
            Some(start) if self.begun => start,
            start => self.begin(start.unwrap_or(event.time)),
        };
        let now = event.time.max(start);
        self.end = self.end.max(now);
        if event.cpu >= MOST_CPUS {
            self.beyond += 1;
            return;
        }
        match event.what {
            Payload::Switch { prev, prev_prio, prev_state, next, next_prio } => {
                self.leave(event.cpu, now, prev, prev_prio, prev_state);
                self.enter(event.cpu, now, next, next_prio);
            }
            Payload::Waking { tid, prio, waker, .. } => self.waking(event.cpu, now, tid, prio, waker),
            Payload::Wakeup { tid, prio, .. } => self.wakeup(event.cpu, now, tid, prio),
            Payload::WakeupNew { tid, prio, .. } => {
                let begin = Begin::After(now - start);
                if let Some(ix) = self.lookup(tid, begin, Place::Ready { since: now }) {
                    self.tasks[ix as usize].prio = prio;
                    self.wake(ix, now, NOBODY);
                }
            }
            Payload::Fork { parent, child } => self.fork(event.cpu, now, parent, child),
            Payload::Exec { tid, old } if tid != old => {
                if let Some(ix) = self.by_tid.remove(&old) {
                    self.by_tid.insert(tid, ix);
                    self.tasks[ix as usize].tid = tid;
                }
            }
            Payload::Exec { .. }
            | Payload::Exit { .. }
            | Payload::Migrate { .. }
            | Payload::Queue { .. }
            | Payload::Considered { .. }
            | Payload::Pages { .. } => {}
            Payload::Lost { count } => {
                self.losses += 1;
                self.lost_events = self.lost_events.saturating_add(count);
                self.lose(event.cpu);
            }
        }
        self.cpu(event.cpu).last = now;
    }

    /// Ends the trace at `end` (or at its last event, if that is later).
    pub(super) fn finish(&mut self, end: Option<Nanos>) {
        self.end = self.end.max(end.unwrap_or(0));
        let end = self.end;
        for cpu in 0..self.cpus.len() {
            if let Some(ix) = self.cpus[cpu].current {
                self.charge(ix, cpu as CpuId, end);
            }
        }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        let at = cpu as usize;
        if at >= self.cpus.len() {
            let fresh = Cpu { last: self.start.unwrap_or(0), ..Cpu::default() };
            self.cpus.resize(at + 1, fresh);
        }
        &mut self.cpus[at]
    }

    /// The living task of this tid; made, with this beginning, if there is none.
    fn lookup(&mut self, tid: Tid, begin: Begin, place: Place) -> Option<TaskIx> {
        if tid == 0 {
            return None;
        }
        match self.by_tid.get(&tid) {
            Some(ix) if self.tasks[*ix as usize].place != Place::Dead => Some(*ix),
            _ => self.create(tid, begin, place),
        }
    }

    fn create(&mut self, tid: Tid, begin: Begin, place: Place) -> Option<TaskIx> {
        if self.tasks.len() >= MOST_TASKS {
            self.beyond += 1;
            self.by_tid.remove(&tid);
            return None;
        }
        let ix = self.tasks.len() as TaskIx;
        self.by_tid.insert(tid, ix);
        self.tasks.push(Task {
            tid,
            begin,
            sequence: Vec::new(),
            run: 0,
            wakes: Wakes::default(),
            prios: Vec::new(),
            only_cpu: None,
            cut: false,
            place,
            prio: 120,
            moved: false,
            asked: None,
        });
        Some(ix)
    }

    fn push(&mut self, ix: TaskIx, token: Token) {
        let sequence = &mut self.tasks[ix as usize].sequence;
        let before = sequence.len();
        push(sequence, token);
        self.tokens += sequence.len() - before;
    }

    /// Counts the CPU time of a running task up to `now`.
    fn charge(&mut self, ix: TaskIx, on: CpuId, now: Nanos) {
        let capacity = self.capacity.get(on as usize).copied().filter(|c| *c > 0).unwrap_or(1024);
        let task = &mut self.tasks[ix as usize];
        let Place::Running { cpu, since } = task.place else { return };
        if cpu != on || now <= since {
            return;
        }
        let ns = now - since;
        task.place = Place::Running { cpu, since: now };
        task.run = task.run.saturating_add(ns);
        match task.prios.iter().position(|(prio, _)| *prio == task.prio) {
            Some(at) => task.prios[at].1 = task.prios[at].1.saturating_add(ns),
            None if task.prios.len() < 8 => task.prios.push((task.prio, ns)),
            None => {}
        }
        let work = (u128::from(ns) * u128::from(capacity) / 1024) as Nanos;
        self.push(ix, Token::Run(work));
    }

    fn seen_on(&mut self, ix: TaskIx, cpu: CpuId) {
        let task = &mut self.tasks[ix as usize];
        if task.only_cpu.is_some_and(|only| only != cpu) {
            task.moved = true;
        }
        task.only_cpu = (!task.moved).then_some(cpu);
    }

    /// `prev` goes off the CPU.
    fn leave(&mut self, cpu: CpuId, now: Nanos, prev: Tid, prio: i16, state: TaskState) {
        let start = self.start.unwrap_or(0);
        let Cpu { current, sight, since, .. } = *self.cpu(cpu);
        // It ran since it was seen coming. If it was not: from the start, if nothing can have come before;
        // after a loss nobody knows. And where a recorder hides some tasks, as early as can be.
        let since = match sight {
            Sight::Known => since,
            Sight::Fresh if self.complete => start,
            Sight::Fresh | Sight::Lost => now,
        };
        let ix = self.lookup(prev, Begin::After(since - start), Place::Running { cpu, since });
        let since = match ix.map(|ix| self.tasks[ix as usize].place) {
            Some(Place::Ready { since: then } | Place::Blocked { since: then, .. }) => since.max(then).min(now),
            _ => since,
        };
        if sight == Sight::Known && current != ix {
            self.contradictions += 1;
            if let Some(other) = current {
                self.charge(other, cpu, since);
                self.misplace(other, cpu);
            }
        }
        let Some(ix) = ix else { return };
        self.seen_on(ix, cpu);
        match self.tasks[ix as usize].place {
            Place::Running { cpu: on, .. } if on != cpu => return, // clocks of two CPUs disagree
            Place::Running { .. } => {}
            _ => self.start_run(ix, cpu, since),
        }
        self.tasks[ix as usize].prio = prio;
        self.charge(ix, cpu, now);
        let task = &mut self.tasks[ix as usize];
        task.place = match state {
            TaskState::Runnable => Place::Ready { since: now },
            TaskState::Dead | TaskState::Zombie => Place::Dead,
            _ => Place::Blocked { since: now, sure: true },
        };
    }

    /// Events were lost: from the CPU's last event on nobody knows who ran there.
    fn lose(&mut self, cpu: CpuId) {
        let slot = self.cpu(cpu);
        let (current, last) = (slot.current.take(), slot.last);
        slot.sight = Sight::Lost;
        if let Some(ix) = current {
            self.charge(ix, cpu, last);
            self.misplace(ix, cpu);
        }
    }

    /// What was thought to run on `cpu` does not: since it was last counted nobody knows where it is.
    fn misplace(&mut self, ix: TaskIx, cpu: CpuId) {
        let task = &mut self.tasks[ix as usize];
        if let Place::Running { cpu: on, since } = task.place
            && on == cpu
        {
            task.place = Place::Blocked { since, sure: false };
        }
    }

    /// `next` comes onto the CPU.
    fn enter(&mut self, cpu: CpuId, now: Nanos, next: Tid, prio: i16) {
        // A task that nobody woke since the start was waiting from the start.
        let queued_since = if self.losses == 0 { 0 } else { now - self.start.unwrap_or(0) };
        let ix = self.lookup(next, Begin::After(queued_since), Place::Ready { since: now });
        if let Some(ix) = ix {
            if let Place::Running { cpu: on, .. } = self.tasks[ix as usize].place {
                self.charge(ix, on, now);
                self.cpu(on).current = None;
            }
            self.seen_on(ix, cpu);
            self.start_run(ix, cpu, now);
            self.tasks[ix as usize].prio = prio;
        }
        let slot = self.cpu(cpu);
        (slot.current, slot.sight, slot.since) = (ix, Sight::Known, now);
    }

    /// Puts a task on a CPU; one whose wake-up was missed slept until now.
    fn start_run(&mut self, ix: TaskIx, cpu: CpuId, now: Nanos) {
        self.wake(ix, now, NOBODY);
        let task = &mut self.tasks[ix as usize];
        task.place = Place::Running { cpu, since: now };
        task.asked = None;
    }

    /// The waker as a task, if it is certain that it runs on this CPU.
    fn waker(&mut self, cpu: CpuId, waker: Option<Tid>) -> TaskIx {
        let Some(ix) = self.cpu(cpu).current else { return NOBODY };
        let task = &self.tasks[ix as usize];
        let there = matches!(task.place, Place::Running { cpu: on, .. } if on == cpu);
        if there && waker.is_none_or(|tid| tid == task.tid) { ix } else { NOBODY }
    }

    fn waking(&mut self, cpu: CpuId, now: Nanos, tid: Tid, prio: i16, waker: Tid) {
        self.wakings = true;
        let asleep_until = Begin::After(now - self.start.unwrap_or(0));
        let Some(ix) = self.lookup(tid, asleep_until, Place::Ready { since: now }) else { return };
        let by = self.waker(cpu, Some(waker));
        let task = &mut self.tasks[ix as usize];
        task.prio = if matches!(task.place, Place::Running { .. }) { task.prio } else { prio };
        match task.place {
            Place::Blocked { .. } => self.wake(ix, now, by),
            _ => task.asked = Some(by),
        }
    }

    fn wakeup(&mut self, cpu: CpuId, now: Nanos, tid: Tid, prio: i16) {
        let asleep_until = Begin::After(now - self.start.unwrap_or(0));
        let Some(ix) = self.lookup(tid, asleep_until, Place::Ready { since: now }) else { return };
        let task = &mut self.tasks[ix as usize];
        let asked = task.asked.take();
        if let Place::Blocked { .. } = task.place {
            task.prio = prio;
            // Kernels without sched_waking report the wake-up where the waker is.
            let by = match asked {
                Some(by) => self.still_running(by),
                None if self.wakings => NOBODY,
                None => self.waker(cpu, None),
            };
            self.wake(ix, now, by);
        }
    }

    /// A post goes where its waker is now: it must still run.
    fn still_running(&self, waker: TaskIx) -> TaskIx {
        let running = self.tasks.get(waker as usize).is_some_and(|w| matches!(w.place, Place::Running { .. }));
        if running { waker } else { NOBODY }
    }

    /// A blocked task becomes ready; if `by` is a task, the wake-up stands in its sequence too.
    fn wake(&mut self, ix: TaskIx, now: Nanos, by: TaskIx) {
        let task = &self.tasks[ix as usize];
        let Place::Blocked { since, sure } = task.place else { return };
        let length = now.saturating_sub(since);
        let waker = match self.tasks.get(by as usize).map(|w| w.place) {
            Some(Place::Running { cpu, .. }) if sure && !task.cut && by != ix && self.pairs.add(by, ix) => {
                self.charge(by, cpu, now);
                self.push(by, Token::Post(ix));
                by
            }
            _ => NOBODY,
        };
        self.push(ix, Token::Block { length, waker });
        let task = &mut self.tasks[ix as usize];
        task.wakes.add(now, length, waker);
        task.place = Place::Ready { since: now };
        task.asked = None;
    }

    fn fork(&mut self, cpu: CpuId, now: Nanos, parent: Tid, child: Tid) {
        if child == 0 {
            return;
        }
        let by = self.waker(cpu, Some(parent));
        let after = now - self.start.unwrap_or(0);
        let begin = if by == NOBODY { Begin::After(after) } else { Begin::Forked { by, after } };
        if let (Some(ix), Begin::Forked { by, .. }) = (self.create(child, begin, Place::Ready { since: now }), begin) {
            self.charge(by, cpu, now);
            self.push(by, Token::Fork(ix));
        }
    }
}
