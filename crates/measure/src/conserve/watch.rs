//! Watches CPUs and tasks: which CPUs are idle while tasks wait that may run there, since when, and how many.

use super::classes::{ANYWHERE, Classes, Words, members};
use crate::row;
use crate::tasks::Slot;
use crate::tracker::{Observer, Occupant};
use schedlab_base::{CpuId, CpuList, Nanos};
use std::collections::BTreeMap;

/// More violations than this are counted, not kept.
const MOST_KEPT: usize = 10_000;
/// So many of the tasks that waited are told of each.
const MOST_WAITING: usize = 16;

const NONE: u32 = u32::MAX;
const STILL: Nanos = Nanos::MAX;

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

/// A task that waited while a CPU was idle on which it was allowed.
#[derive(Clone, Debug)]
pub(super) struct Waited {
    pub slot: Slot,
    pub cpu: CpuId,
    /// How much of the violation its last two waits take.
    pub time: Nanos,
    pub known: bool,
}

/// A CPU that was idle for too long beside waiting tasks.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub cpu: CpuId,
    pub busy: CpuId,
    pub from: Nanos,
    pub to: Nanos,
    /// Those who waited, the longest first.
    pub waited: Vec<Waited>,
    /// How many waited.
    pub tasks: usize,
    pub moves: u32,
    pub moves_elsewhere: u64,
    pub looks: u32,
    pub saw_busy: bool,
    pub until_end: bool,
}

/// The observer.
#[derive(Debug)]
pub(super) struct Watch {
    threshold: Nanos,
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
}

impl Watch {
    pub(super) fn new(threshold: Nanos) -> Self {
        Self {
            threshold,
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
    pub(super) fn allow(&mut self, slot: Slot, cpus: &CpuList, time: Nanos) {
        self.settle(time);
        let class = self.classes.of(cpus);
        self.reclass(slot, class.unwrap_or(ANYWHERE), class.is_some());
    }

    /// A task is born with its parent's affinity, where none was told.
    pub(super) fn inherit(&mut self, parent: Slot, child: Slot) {
        let Task { class, known, .. } = *row(&mut self.tasks, parent);
        if known && !row(&mut self.tasks, child).known {
            self.reclass(child, class, true);
        }
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

    /// The scheduler looked at queues on behalf of `cpu`.
    pub(super) fn looked(&mut self, cpu: CpuId, word: u16, mask: u64) {
        self.has_looks = true;
        let Some(cpu) = self.cpus.get_mut(cpu as usize) else { return };
        cpu.looks = cpu.looks.saturating_add(1);
        *row(&mut cpu.looked_at, word.into()) |= mask;
    }

    /// Everything up to `end` has been told.
    pub(super) fn finish(&mut self, end: Nanos) {
        self.settle(end);
        let still: Vec<CpuId> = members(&self.open).collect();
        for cpu in still {
            self.close(cpu, self.now, true);
        }
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
    pub(super) fn settle(&mut self, now: Nanos) {
        if now > self.now {
            if self.changed {
                self.refresh();
            }
            if self.matched > 0 {
                self.wasted += u128::from(self.matched) * u128::from(now - self.now);
                self.wasting += now - self.now;
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

    #[cold]
    fn report(&mut self, number: CpuId, from: Nanos, to: Nanos, until_end: bool) {
        self.longest = self.longest.max(to - from);
        if self.found.len() >= MOST_KEPT {
            self.left_out += 1;
            return;
        }
        let mut waited = Vec::new();
        let mut by_cpu: BTreeMap<CpuId, Nanos> = BTreeMap::new();
        for (slot, task) in (0..).zip(&self.tasks) {
            let part = |wait: Wait| {
                let fits = wait.cpu != number && self.classes.allows(wait.class, number);
                if fits { wait.until.min(to).saturating_sub(wait.since.max(from)) } else { 0 }
            };
            let until = if task.waits { STILL } else { 0 };
            let present = Wait { class: task.class, cpu: task.cpu, since: task.since, until };
            let (now, before) = (part(present), part(task.last));
            for (wait, time) in [(present, now), (task.last, before)].into_iter().filter(|(_, time)| *time > 0) {
                *by_cpu.entry(wait.cpu).or_default() += time;
            }
            if now + before > 0 {
                let cpu = if now >= before { present.cpu } else { task.last.cpu };
                waited.push(Waited { slot, cpu, time: now + before, known: task.known });
            }
        }
        waited.sort_by_key(|w| (std::cmp::Reverse(w.time), w.slot));
        let Some((busy, _)) = by_cpu.into_iter().max_by_key(|(cpu, time)| (*time, std::cmp::Reverse(*cpu))) else {
            return;
        };
        let tasks = waited.len();
        waited.truncate(MOST_WAITING);
        let cpu = &self.cpus[number as usize];
        let saw = cpu.looked_at.get(busy as usize / 64).is_some_and(|word| word >> (busy % 64) & 1 == 1);
        self.found.push(Found {
            cpu: number,
            busy,
            from,
            to,
            waited,
            tasks,
            moves: cpu.moves,
            moves_elsewhere: self.moves - cpu.moves_before - u64::from(cpu.moves),
            looks: cpu.looks,
            saw_busy: saw,
            until_end,
        });
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

impl Observer for Watch {
    fn span(&mut self, _: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        let time = u128::from(to.saturating_sub(from));
        match who {
            Occupant::Unknown => self.unknown_time += time,
            Occupant::Idle => self.idle_time += time,
            Occupant::Task(_) => self.busy_time += time,
        }
    }

    fn migrated(&mut self, _: Slot, _: CpuId, to: CpuId) {
        self.moves += 1;
        if let Some(cpu) = self.cpus.get_mut(to as usize) {
            cpu.moves = cpu.moves.saturating_add(1);
        }
    }

    #[inline]
    fn occupied(&mut self, number: CpuId, who: Occupant, now: Nanos) {
        self.settle(now);
        if number as usize >= self.cpus.len() {
            self.exists(number);
        }
        let used = match who {
            Occupant::Unknown => Use::Unknown,
            Occupant::Idle => Use::Idle,
            Occupant::Task(_) => Use::Busy,
        };
        let cpu = &mut self.cpus[number as usize];
        let was = std::mem::replace(&mut cpu.used, used);
        if was == used {
            return;
        }
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if used == Use::Idle || was == Use::Idle {
            self.idle[word] = if used == Use::Idle { self.idle[word] | bit } else { self.idle[word] & !bit };
            self.changed = true;
        }
        (cpu.used_since, cpu.wasting) = (self.now, self.wasting);
        if cpu.first != NONE && (used == Use::Busy || was == Use::Busy) {
            for slot in self.waiting(number) {
                if used == Use::Busy { self.count(slot) } else { self.discount(slot) }
            }
        }
    }

    #[inline]
    fn queued(&mut self, slot: Slot, number: CpuId, now: Nanos) {
        self.settle(now);
        if number as usize >= self.cpus.len() {
            self.exists(number);
        }
        let first = std::mem::replace(&mut self.cpus[number as usize].first, slot);
        let wasting = self.wasting;
        let task = row(&mut self.tasks, slot);
        task.wasting = wasting;
        debug_assert!(!task.waits, "a task waits on one queue");
        (task.waits, task.cpu, task.since, task.next, task.prev) = (true, number, now.max(self.now), first, NONE);
        if first != NONE {
            self.tasks[first as usize].prev = slot;
        }
        self.count(slot);
    }

    #[inline]
    fn unqueued(&mut self, slot: Slot, now: Nanos) {
        if !self.tasks.get(slot as usize).is_some_and(|task| task.waits) {
            return;
        }
        self.settle(now);
        self.unlink(slot);
        self.discount(slot);
        self.tasks[slot as usize].remember(now);
        self.tasks[slot as usize].waits = false;
    }

    /// What was held against the scheduler on this task's account alone does not count.
    #[cold]
    fn doubted(&mut self, slot: Slot, now: Nanos) {
        self.settle(now);
        let Some(task) = self.tasks.get_mut(slot as usize).filter(|task| task.waits) else { return };
        let since = std::mem::replace(&mut task.since, now.max(self.now));
        task.last = Wait::default();
        // It can have added one CPU to the waste, and no more.
        let before = std::mem::replace(&mut task.wasting, self.wasting);
        self.wasted = self.wasted.saturating_sub((self.wasting - before).into());
        let class = task.class;
        self.found.retain_mut(|found| {
            if found.to > since && found.waited.iter().any(|w| w.slot == slot) {
                found.waited.retain(|w| w.slot != slot);
                found.tasks -= 1;
            }
            !found.waited.is_empty()
        });
        let resting: Vec<CpuId> = members(&self.open).filter(|cpu| self.classes.allows(class, *cpu)).collect();
        for cpu in resting {
            self.start(cpu);
        }
    }

    /// What was held against the scheduler on this CPU's account does not count.
    #[cold]
    fn misjudged(&mut self, number: CpuId, now: Nanos) {
        self.settle(now);
        let Some(cpu) = self.cpus.get_mut(number as usize) else { return };
        let before = std::mem::replace(&mut cpu.wasting, self.wasting);
        self.wasted = self.wasted.saturating_sub((self.wasting - before).into());
        let since = cpu.used_since;
        self.found.retain(|found| found.cpu != number || found.to <= since);
        self.open[number as usize / 64] &= !(1 << (number % 64));
        self.changed = true;
    }

    #[cold]
    fn forgotten(&mut self, number: CpuId, now: Nanos) {
        self.settle(now);
        if (number as usize) < self.cpus.len() {
            for slot in self.waiting(number) {
                self.unqueued(slot, now);
            }
        }
    }
}
