//! What ran on a CPU while tasks waited for it, kept so that any of their waits can be taken apart.
//!
//! Each CPU has a log of what ran on it while any task waited. A task that comes notes where the log ends: what ran
//! during its wait is the log from there on. So what ran is written down once however many wait, and a task that goes
//! costs nothing: what is kept of its wait is a part of the log (`parts`). When a log is long, what no task and no part
//! needs any more is dropped, and if that is not enough, the entries between two of their ends are added up.

use super::parts::{Open, Parts, Ticket};
use super::sums::{Entry, IDLE, MEANWHILE, MOST, OTHERS, Tally, UNKNOWN, Who};
use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Slot, row};

const NONE: Slot = u32::MAX;

/// A log is shortened when it has more entries than this, and twice as many as it had to keep the last time.
const LONG: usize = 4096;

/// A new entry is added to one of the last few where it can be: two tasks that take turns need two entries.
const NEAR: usize = 4;

/// Time that tasks were kept waiting, by what ran: as much for each of them that waited.
#[derive(Clone, Debug, Default)]
pub(super) struct Caused {
    tasks: Vec<Nanos>,
    pub(super) idle: Nanos,
    pub(super) unknown: Nanos,
    others: Nanos,
}

impl Caused {
    #[inline]
    fn of(&mut self, who: Who) -> &mut Nanos {
        match who {
            IDLE => &mut self.idle,
            UNKNOWN => &mut self.unknown,
            OTHERS => &mut self.others,
            task => row(&mut self.tasks, task),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, who: Who, time: Nanos) {
        let sum = self.of(who);
        *sum = sum.saturating_add(time);
    }

    pub(super) fn take(&mut self, who: Who, time: Nanos) {
        let sum = self.of(who);
        *sum = sum.saturating_sub(time);
    }

    pub(super) fn task(&self, task: Slot) -> Nanos {
        self.tasks.get(task as usize).copied().unwrap_or(0)
    }
}

#[derive(Clone, Debug)]
struct Cpu {
    who: Who,
    /// Up to when it is written down what ran.
    until: Nanos,
    first: Slot,
    last: Slot,
    waiting: u32,
    log: Vec<Entry>,
    /// The length of the log when it was last shortened.
    kept: usize,
    /// Its length when the CPU was last given to another.
    given: usize,
    /// The parts of the log that are kept, and the end of the last one: nothing is added to the entries before.
    open: Open,
    closed: usize,
}

impl Default for Cpu {
    fn default() -> Self {
        let (log, open) = (Vec::new(), Open::default());
        let (first, last) = (NONE, NONE);
        Self { who: UNKNOWN, until: 0, first, last, waiting: 0, log, kept: 0, given: 0, open, closed: 0 }
    }
}

impl Cpu {
    /// Adds to the log, whose entries from `since` on are of the last task's time alone.
    #[inline]
    fn write(&mut self, who: Who, time: Nanos, since: usize) {
        let near = since.max(self.closed).max(self.log.len().saturating_sub(NEAR));
        match self.log[near..].iter_mut().rev().find(|(known, _)| *known == who) {
            Some((_, sum)) => *sum = sum.saturating_add(time),
            None => self.log.push((who, time)),
        }
    }
}

/// A task's place on a queue.
#[derive(Clone, Copy, Debug)]
struct Node {
    waits: bool,
    cpu: CpuId,
    since: Nanos,
    next: Slot,
    prev: Slot,
    /// Where the log of its CPU ended when it came.
    at: usize,
}

impl Default for Node {
    fn default() -> Self {
        Self { waits: false, cpu: 0, since: 0, next: NONE, prev: NONE, at: 0 }
    }
}

/// The queues of all CPUs.
#[derive(Debug, Default)]
pub(super) struct Queues {
    cpus: Vec<Cpu>,
    nodes: Vec<Node>,
    tally: Tally,
    pub(super) parts: Parts,
    pub(super) caused: Caused,
}

impl Queues {
    /// The queue that the task waits on and since when, if it waits.
    #[inline]
    pub(super) fn place(&self, task: Slot) -> Option<(CpuId, Nanos)> {
        self.nodes.get(task as usize).filter(|node| node.waits).map(|node| (node.cpu, node.since))
    }

    /// Up to when it is written down what ran on the CPU.
    pub(super) fn until(&self, cpu: CpuId) -> Nanos {
        self.cpus.get(cpu as usize).map_or(0, |cpu| cpu.until)
    }

    /// Writes down what ran on the CPU up to now.
    #[inline]
    pub(super) fn settle(&mut self, number: CpuId, now: Nanos) {
        let cpu = row(&mut self.cpus, number);
        let time = now.saturating_sub(cpu.until);
        if time == 0 {
            return;
        }
        cpu.until = now;
        if cpu.waiting > 0 {
            let (who, waiting) = (cpu.who, cpu.waiting);
            cpu.write(who, time, self.nodes[cpu.last as usize].at);
            self.caused.add(who, time.saturating_mul(waiting.into()));
            if cpu.log.len() >= LONG.max(2 * cpu.kept) {
                self.shorten(number);
            }
        }
    }

    /// Drops what no task waits for any more and no part needs, and adds up the rest if it is still long.
    #[cold]
    fn shorten(&mut self, number: CpuId) {
        let slots = self.waiting(number);
        let cpu = &mut self.cpus[number as usize];
        let mut ends = cpu.open.ends(&mut self.parts);
        ends.extend(slots.iter().map(|slot| self.nodes[*slot as usize].at));
        ends.sort_unstable();
        ends.dedup();
        let long = std::mem::take(&mut cpu.log);
        let is_long = long.len() - ends.first().copied().unwrap_or(long.len()) > LONG / 2;
        let mut places = Vec::with_capacity(ends.len());
        for (at, begin) in ends.iter().enumerate() {
            places.push(cpu.log.len());
            let entries = &long[*begin..ends.get(at + 1).copied().unwrap_or(long.len())];
            if is_long {
                self.tally.add(entries);
                cpu.log.extend(self.tally.take(MEANWHILE));
            } else {
                cpu.log.extend_from_slice(entries);
            }
        }
        let place = |end: usize| ends.binary_search(&end).map_or(0, |at| places[at]);
        for slot in slots {
            let node = &mut self.nodes[slot as usize];
            node.at = place(node.at);
        }
        cpu.open.move_to(place, &mut self.parts);
        (cpu.kept, cpu.given, cpu.closed) = (cpu.log.len(), 0, cpu.log.len());
    }

    /// From now on the CPU is this one's.
    #[inline]
    pub(super) fn occupy(&mut self, number: CpuId, who: Who, now: Nanos) {
        self.settle(number, now);
        let cpu = &mut self.cpus[number as usize];
        (cpu.who, cpu.given) = (who, cpu.log.len());
    }

    /// The task waits on this queue from now on.
    #[inline]
    pub(super) fn push(&mut self, task: Slot, number: CpuId, now: Nanos) {
        self.settle(number, now);
        let cpu = &mut self.cpus[number as usize];
        let prev = std::mem::replace(&mut cpu.last, task);
        cpu.waiting += 1;
        let at = cpu.log.len();
        if prev == NONE {
            cpu.first = task;
        } else {
            self.nodes[prev as usize].next = task;
        }
        *row(&mut self.nodes, task) = Node { waits: true, cpu: number, since: now, next: NONE, prev, at };
    }

    /// Keeps what ran since the task came to its queue.
    pub(super) fn keep(&mut self, task: Slot) -> Ticket {
        let Node { cpu, at, .. } = self.nodes[task as usize];
        let Cpu { log, open, closed, .. } = &mut self.cpus[cpu as usize];
        *closed = log.len();
        open.keep(at..log.len(), log, &mut self.parts, &mut self.tally)
    }

    /// What ran in these parts, added up, when nothing is open any more.
    pub(super) fn sums(&self, tickets: &[Ticket]) -> Vec<Entry> {
        let mut tally = Tally::default();
        tickets.iter().for_each(|ticket| tally.add(self.parts.sums(*ticket)));
        tally.take(MOST)
    }

    /// Adds up the kept parts of a CPU's log that go beyond this entry, because the log changes from there on.
    fn add_up(&mut self, number: CpuId, from: usize) {
        let Cpu { log, open, .. } = &mut self.cpus[number as usize];
        open.add_up(from, log, &mut self.parts, &mut self.tally);
    }

    /// The task waits no more.
    #[inline]
    pub(super) fn remove(&mut self, task: Slot) {
        let node = &mut self.nodes[task as usize];
        node.waits = false;
        let Node { cpu: number, prev, next, .. } = *node;
        if next != NONE {
            self.nodes[next as usize].prev = prev;
        }
        if prev != NONE {
            self.nodes[prev as usize].next = next;
        }
        let cpu = &mut self.cpus[number as usize];
        cpu.waiting -= 1;
        if next == NONE {
            cpu.last = prev;
        }
        if prev == NONE {
            cpu.first = next;
        }
        if cpu.waiting == 0 && !cpu.log.is_empty() {
            self.add_up(number, 0);
            let cpu = &mut self.cpus[number as usize];
            cpu.log.clear();
            (cpu.kept, cpu.given, cpu.closed) = (0, 0, 0);
        }
    }

    /// The task's time on its present queue does not count against anybody.
    pub(super) fn acquit(&mut self, task: Slot) {
        let Node { cpu, at, .. } = self.nodes[task as usize];
        for (who, time) in &self.cpus[cpu as usize].log[at..] {
            self.caused.take(*who, *time);
        }
    }

    /// The tasks on a queue, in the order in which they came.
    pub(super) fn waiting(&self, number: CpuId) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut at = self.cpus.get(number as usize).map_or(NONE, |cpu| cpu.first);
        while at != NONE {
            slots.push(at);
            at = self.nodes[at as usize].next;
        }
        slots
    }

    /// A span of the CPU has ended, and it was this one's: the tasks that wait may have been told another.
    #[inline]
    pub(super) fn was(&mut self, number: CpuId, who: Who, from: Nanos, to: Nanos) {
        self.settle(number, to);
        let cpu = &self.cpus[number as usize];
        if cpu.who != who && cpu.waiting > 0 {
            self.correct(number, who, from, to);
        }
    }

    #[cold]
    fn correct(&mut self, number: CpuId, who: Who, from: Nanos, to: Nanos) {
        let Cpu { who: believed, given, .. } = self.cpus[number as usize];
        self.add_up(number, given.saturating_sub(NEAR));
        let slots = self.waiting(number);
        // From the last one on, so that the entries of those before stay where they are.
        for (at, slot) in slots.iter().enumerate().rev() {
            let next = slots.get(at + 1).map(|next| &self.nodes[*next as usize]);
            let until = next.map_or(to, |next| next.since).min(to);
            let log = &mut self.cpus[number as usize].log;
            let end = next.map_or(log.len(), |next| next.at);
            let Node { at: begin, since, .. } = self.nodes[*slot as usize];
            let wrong = until.saturating_sub(since.max(from));
            let time = take(&mut log[begin..end], believed, wrong);
            if time > 0 {
                log.insert(end, (who, time));
                slots[at + 1..].iter().for_each(|later| self.nodes[*later as usize].at += 1);
                let all = time.saturating_mul(at as u64 + 1);
                self.caused.take(believed, all);
                self.caused.add(who, all);
            }
        }
    }

    /// The CPUs that there are.
    pub(super) fn cpus(&self) -> std::ops::Range<CpuId> {
        0..self.cpus.len() as CpuId
    }
}

/// Takes at most this much of this one's time away, and returns how much that was.
fn take(entries: &mut [Entry], who: Who, most: Nanos) -> Nanos {
    let mut left = most;
    for (_, time) in entries.iter_mut().rev().filter(|(known, _)| *known == who) {
        let taken = left.min(*time);
        *time -= taken;
        left -= taken;
    }
    most - left
}

#[cfg(test)]
mod tests;
