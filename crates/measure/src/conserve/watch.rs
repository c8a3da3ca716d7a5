//! Watches CPUs and tasks: which CPUs are idle while tasks wait that may run there, since when, and how many.

mod facts;
mod found;

pub(super) use found::{Found, Waited};

use super::classes::{ANYWHERE, Classes, Words};
use super::wasted::Wasted;
use schedlab_base::{CpuId, CpuList, Nanos};
use schedlab_track::{Slot, row};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Unknown,
    Idle,
    Busy,
}

#[derive(Clone, Debug)]
struct Cpu {
    used: Use,
    /// The first of the tasks that wait here.
    first: u32,
    /// Since when it is used so, and how much time had been wasted then: see [`Watch::wasting`].
    used_since: Nanos,
    wasting: Nanos,
    /// Since when it is idle while somebody waits, if it is so.
    open: Nanos,
    /// Since then: tasks moved here, tasks that had been moved anywhere until then, looks at other queues.
    moves: u32,
    moves_before: u64,
    looks: u32,
    looked_at: Words,
}

impl Default for Cpu {
    fn default() -> Self {
        Self {
            used: Use::Unknown,
            first: NONE,
            used_since: 0,
            wasting: 0,
            open: 0,
            moves: 0,
            moves_before: 0,
            looks: 0,
            looked_at: Words::new(),
        }
    }
}

/// A wait that has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    class: u32,
    cpu: CpuId,
    since: Nanos,
    until: Nanos,
}

#[derive(Clone, Debug)]
struct Task {
    class: u32,
    /// Its affinity was told, or follows from what it is.
    known: bool,
    /// It waits on a queue.
    waits: bool,
    /// It is one of its class's tasks that wait on busy CPUs.
    counted: bool,
    /// Where it waits and since when.
    cpu: CpuId,
    since: Nanos,
    /// How much time had been wasted then: see [`Watch::wasting`].
    wasting: Nanos,
    /// Its last wait before that.
    last: Wait,
    next: u32,
    prev: u32,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            class: ANYWHERE,
            known: false,
            waits: false,
            counted: false,
            cpu: 0,
            since: 0,
            wasting: 0,
            last: Wait::default(),
            next: NONE,
            prev: NONE,
        }
    }
}

impl Task {
    /// Its wait on this queue, with this affinity, ends; another may begin at once.
    fn remember(&mut self, now: Nanos) {
        if self.waits && now > self.since {
            self.last = Wait { class: self.class, cpu: self.cpu, since: self.since, until: now };
            self.since = now;
        }
    }
}

/// The observer.
#[derive(Debug)]
pub(super) struct Watch {
    threshold: Nanos,
    /// Every change of an affinity is told when it happens, not when somebody looks.
    exact: bool,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    classes: Classes,
    idle: Words,
    /// The CPUs that are idle while somebody waits who may run there.
    open: Words,
    now: Nanos,
    changed: bool,
    matched: u32,
    moves: u64,
    /// Time in which any CPU was wasted.
    wasting: Nanos,
    /// CPU time in which CPUs were idle that could each have been given a task of its own.
    pub wasted: u128,
    pub idle_time: u128,
    pub unknown_time: u128,
    pub busy_time: u128,
    pub found: Vec<Found>,
    pub left_out: u64,
    pub longest: Nanos,
    /// The trace tells of the scheduler's looks at queues.
    pub has_looks: bool,
    /// How many CPUs were wasted over time, if that is kept.
    pub over_time: Option<Wasted>,
}

impl Watch {
    pub(super) fn new(threshold: Nanos, exact: bool) -> Self {
        Self {
            threshold,
            exact,
            cpus: Vec::new(),
            tasks: Vec::new(),
            classes: Classes::new(),
            idle: Words::new(),
            open: Words::new(),
            now: 0,
            changed: false,
            matched: 0,
            moves: 0,
            wasting: 0,
            wasted: 0,
            idle_time: 0,
            unknown_time: 0,
            busy_time: 0,
            found: Vec::new(),
            left_out: 0,
            longest: 0,
            has_looks: false,
            over_time: None,
        }
    }

    /// There is this CPU.
    pub(super) fn exists(&mut self, cpu: CpuId) {
        row(&mut self.cpus, cpu);
        let words = cpu as usize / 64 + 1;
        if words > self.idle.len() {
            self.idle.resize(words, 0);
            self.open.resize(words, 0);
            self.classes.grow(words);
        }
        self.classes.exists(cpu);
    }

    /// From `time` on the task may run on these CPUs only.
    fn allow(&mut self, slot: Slot, cpus: &CpuList, time: Nanos) {
        self.settle(time);
        let class = self.classes.of(cpus);
        self.reclass(slot, class.unwrap_or(ANYWHERE), class.is_some());
    }

    /// Whether the task's affinity is known.
    pub(super) fn knows(&self, slot: Slot) -> bool {
        self.tasks.get(slot as usize).is_some_and(|task| task.known)
    }

    fn reclass(&mut self, slot: Slot, class: u32, known: bool) {
        let now = self.now;
        let task = row(&mut self.tasks, slot);
        task.known = known;
        if task.class == class {
            return;
        }
        task.remember(now);
        self.discount(slot);
        self.tasks[slot as usize].class = class;
        self.count(slot);
    }

    /// Counts a task that waits on a busy CPU and could run on another.
    #[inline]
    fn count(&mut self, slot: Slot) {
        let Task { class, waits, counted, cpu, .. } = self.tasks[slot as usize];
        if waits && !counted && self.cpus[cpu as usize].used == Use::Busy && self.classes.leaves(class, cpu) {
            self.tasks[slot as usize].counted = true;
            self.classes.add(class);
            self.changed = true;
        }
    }

    #[inline]
    fn discount(&mut self, slot: Slot) {
        let task = &mut self.tasks[slot as usize];
        if std::mem::replace(&mut task.counted, false) {
            self.classes.remove(task.class);
            self.changed = true;
        }
    }

    /// Lets time go on to `now`: what held after the events of the last instant held until now.
    #[inline]
    fn settle(&mut self, now: Nanos) {
        if now > self.now {
            if self.changed {
                self.refresh();
            }
            if self.matched > 0 {
                self.wasted += u128::from(self.matched) * u128::from(now - self.now);
                self.wasting += now - self.now;
            }
            if let Some(wasted) = &mut self.over_time {
                wasted.turn(self.now, self.matched);
            }
            self.now = now;
        }
    }

    fn refresh(&mut self) {
        self.changed = false;
        let quiet = self.classes.is_quiet();
        if quiet && self.matched == 0 && self.open.iter().all(|word| *word == 0) {
            return;
        }
        for at in 0..self.open.len() {
            let is = self.idle[at] & self.classes.cover()[at];
            let mut turned = is ^ std::mem::replace(&mut self.open[at], is);
            while turned != 0 {
                let bit = turned.trailing_zeros();
                turned &= turned - 1;
                let cpu = at as CpuId * 64 + bit;
                if is >> bit & 1 == 1 {
                    self.start(cpu);
                } else {
                    self.close(cpu, self.now, false);
                }
            }
        }
        self.matched = self.classes.matching(&self.idle);
    }

    #[inline]
    fn start(&mut self, cpu: CpuId) {
        let (now, moves) = (self.now, self.moves);
        let cpu = &mut self.cpus[cpu as usize];
        (cpu.open, cpu.moves, cpu.moves_before, cpu.looks) = (now, 0, moves, 0);
        cpu.looked_at.clear();
    }

    #[inline]
    fn close(&mut self, cpu: CpuId, now: Nanos, until_end: bool) {
        let from = self.cpus[cpu as usize].open;
        if now.saturating_sub(from) > self.threshold {
            self.report(cpu, from, now, until_end);
        }
    }

    fn unlink(&mut self, slot: Slot) {
        let Task { cpu, next, prev, .. } = self.tasks[slot as usize];
        match prev {
            NONE => self.cpus[cpu as usize].first = next,
            prev => self.tasks[prev as usize].next = next,
        }
        if next != NONE {
            self.tasks[next as usize].prev = prev;
        }
    }

    /// Who waits on a CPU, one after the other.
    fn waiting(&self, cpu: CpuId) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut at = self.cpus[cpu as usize].first;
        while at != NONE {
            slots.push(at);
            at = self.tasks[at as usize].next;
        }
        slots
    }
}
