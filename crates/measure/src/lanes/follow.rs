//! Turns events into spans.

use super::{Doing, Lanes, Span};
use schedlab_base::{CpuId, Event, Meta, NameRecord, Nanos, Payload, Sink, TaskState, Tid};
use std::collections::BTreeMap;

/// Tasks beyond this number are not followed.
const MOST_TASKS: usize = 1 << 20;

/// CPUs beyond this number are not followed.
const MOST_CPUS: CpuId = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Here {
    /// `None`: it has ended.
    doing: Option<Doing>,
    since: Nanos,
    cpu: CpuId,
}

/// Follows tasks and CPUs along a trace and hands their spans on.
///
/// What was true before the first event of a task follows from that event: a task that leaves a CPU ran
/// there from the start, one that comes onto a CPU unwoken waited from the start, one that is woken slept.
#[derive(Debug)]
pub struct Follow<L> {
    lanes: L,
    start: Option<Nanos>,
    end: Nanos,
    tasks: BTreeMap<Tid, Here>,
    current: Vec<Option<Tid>>,
    /// The last event of each CPU.
    last: Vec<Nanos>,
    names: BTreeMap<Tid, String>,
}

/// What is left when the trace is over.
#[derive(Clone, Debug)]
pub struct Followed<L> {
    /// Took the spans.
    pub lanes: L,
    /// The length of the trace.
    pub length: Nanos,
    /// The last known name of each task.
    pub names: BTreeMap<Tid, String>,
}

impl<L: Lanes> Follow<L> {
    /// Follows a trace with this head.
    pub fn new(meta: &Meta, lanes: L) -> Self {
        let (start, end) = meta.span.map_or((None, 0), |(start, end)| (Some(start), end.saturating_sub(start)));
        let tasks = BTreeMap::new();
        let mut this = Self { lanes, start, end, tasks, current: Vec::new(), last: Vec::new(), names: BTreeMap::new() };
        for (cpu, tid) in meta.running.iter().filter(|(cpu, _)| *cpu < MOST_CPUS) {
            this.enter(*cpu, 0, *tid);
        }
        this
    }

    /// Ends what still lasts.
    pub fn finish(mut self) -> Followed<L> {
        let end = self.end;
        for (tid, here) in std::mem::take(&mut self.tasks) {
            self.hand_on(tid, here, end);
        }
        Followed { lanes: self.lanes, length: end, names: self.names }
    }

    fn hand_on(&mut self, tid: Tid, here: Here, to: Nanos) {
        let Here { doing, since, cpu } = here;
        if let Some(doing) = doing.filter(|_| since < to) {
            self.lanes.span(&Span { tid, doing, cpu, from: since, to });
        }
    }

    /// The task does something else from `now` on; before its first event it did `before`.
    fn turn(&mut self, tid: Tid, now: Nanos, before: Option<Doing>, doing: Option<Doing>, cpu: CpuId) {
        if !self.tasks.contains_key(&tid) && self.tasks.len() >= MOST_TASKS {
            return;
        }
        // An earlier guess may lie before what is known of it since.
        let now = self.tasks.get(&tid).map_or(now, |here| here.since.max(now));
        let old = self.tasks.insert(tid, Here { doing, since: now, cpu });
        self.hand_on(tid, old.unwrap_or(Here { doing: before, since: 0, cpu }), now);
    }

    fn doing(&self, tid: Tid) -> Option<Doing> {
        self.tasks.get(&tid).and_then(|here| here.doing)
    }

    fn event(&mut self, event: &Event) {
        let start = *self.start.get_or_insert(event.time);
        let now = event.time.saturating_sub(start);
        self.end = self.end.max(now);
        let cpu = event.cpu;
        if cpu >= MOST_CPUS {
            return;
        }
        match event.what {
            Payload::Switch { prev, prev_state, next, .. } => {
                self.leave(cpu, now, prev, prev_state);
                self.enter(cpu, now, next);
            }
            Payload::Waking { tid, target, .. } | Payload::Wakeup { tid, target, .. } => {
                self.wakeup(now, tid, target);
            }
            Payload::WakeupNew { tid, target, .. } if tid != 0 => {
                // It begins here: nothing to tell of before.
                self.turn(tid, now, None, Some(Doing::Waiting), target);
                self.lanes.wakeup(now, tid, target);
            }
            Payload::Lost { .. } => self.lanes.lost(now, cpu),
            _ => {}
        }
        self.slot(cpu);
        self.last[cpu as usize] = now;
    }

    /// The place of a CPU's current task.
    fn slot(&mut self, cpu: CpuId) -> &mut Option<Tid> {
        let at = cpu as usize;
        if at >= self.current.len() {
            self.current.resize(at + 1, None);
            self.last.resize(at + 1, 0);
        }
        &mut self.current[at]
    }

    fn leave(&mut self, cpu: CpuId, now: Nanos, prev: Tid, state: TaskState) {
        let known = self.slot(cpu).take();
        let last = self.last[cpu as usize];
        if let Some(other) = known.filter(|other| *other != prev) {
            // Events were lost: it left the CPU at a time that nobody saw.
            if self.doing(other) == Some(Doing::Running) {
                self.turn(other, last, None, Some(Doing::Waiting), cpu);
            }
        }
        if prev == 0 {
            return;
        }
        if self.tasks.contains_key(&prev) && self.doing(prev) != Some(Doing::Running) {
            self.turn(prev, last, None, Some(Doing::Running), cpu);
        }
        let doing = match state {
            TaskState::Runnable => Some(Doing::Waiting),
            TaskState::Uninterruptible => Some(Doing::Blocked),
            TaskState::Dead | TaskState::Zombie => None,
            _ => Some(Doing::Sleeping),
        };
        self.turn(prev, now, Some(Doing::Running), doing, cpu);
    }

    fn enter(&mut self, cpu: CpuId, now: Nanos, next: Tid) {
        *self.slot(cpu) = (next != 0).then_some(next);
        if next != 0 {
            self.turn(next, now, Some(Doing::Waiting), Some(Doing::Running), cpu);
        }
    }

    fn wakeup(&mut self, now: Nanos, tid: Tid, target: CpuId) {
        let asleep = matches!(self.doing(tid), None | Some(Doing::Sleeping | Doing::Blocked));
        if tid != 0 && asleep {
            self.turn(tid, now, Some(Doing::Sleeping), Some(Doing::Waiting), target);
            self.lanes.wakeup(now, tid, target);
        }
    }
}

impl<L: Lanes> Sink for Follow<L> {
    fn events(&mut self, batch: &[Event]) {
        batch.iter().for_each(|event| self.event(event));
    }

    fn name(&mut self, record: &NameRecord) {
        if self.names.len() < MOST_TASKS || self.names.contains_key(&record.tid) {
            self.names.insert(record.tid, record.comm.chars().take(64).collect());
        }
    }
}
