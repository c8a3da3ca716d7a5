//! What ran on a CPU while tasks waited for it, kept so that any of their waits can be taken apart.
//!
//! The tasks that wait on a CPU stand in the order in which they came. Each keeps what ran from its own coming until
//! that of the next one. So a wait is the sum over its task and those behind it, what ran is written down once however
//! many wait, and when a task goes, what it kept is added to the task before it, or forgotten.

use super::sums::{IDLE, OTHERS, Ran, UNKNOWN, Who};
use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Slot, row};

const NONE: Slot = u32::MAX;

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
}

impl Default for Cpu {
    fn default() -> Self {
        Self { who: UNKNOWN, until: 0, first: NONE, last: NONE, waiting: 0 }
    }
}

/// A task's place on a queue.
#[derive(Clone, Debug)]
struct Node {
    waits: bool,
    cpu: CpuId,
    since: Nanos,
    next: Slot,
    prev: Slot,
    ran: Ran,
}

impl Default for Node {
    fn default() -> Self {
        Self { waits: false, cpu: 0, since: 0, next: NONE, prev: NONE, ran: Ran::default() }
    }
}

/// The queues of all CPUs.
#[derive(Debug, Default)]
pub(super) struct Queues {
    cpus: Vec<Cpu>,
    nodes: Vec<Node>,
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
            self.nodes[cpu.last as usize].ran.add(who, time);
            self.caused.add(who, time.saturating_mul(waiting.into()));
        }
    }

    /// From now on the CPU is this one's.
    #[inline]
    pub(super) fn occupy(&mut self, number: CpuId, who: Who, now: Nanos) {
        self.settle(number, now);
        self.cpus[number as usize].who = who;
    }

    /// The task waits on this queue from now on.
    #[inline]
    pub(super) fn push(&mut self, task: Slot, number: CpuId, now: Nanos) {
        self.settle(number, now);
        let cpu = &mut self.cpus[number as usize];
        let prev = std::mem::replace(&mut cpu.last, task);
        cpu.waiting += 1;
        if prev == NONE {
            cpu.first = task;
        } else {
            self.nodes[prev as usize].next = task;
        }
        let node = row(&mut self.nodes, task);
        (node.waits, node.cpu, node.since, node.next, node.prev) = (true, number, now, NONE, prev);
    }

    /// What ran since the task came to its queue.
    pub(super) fn collect(&self, task: Slot, sum: &mut Ran) {
        let mut at = task;
        while at != NONE {
            sum.add_all(&self.nodes[at as usize].ran);
            at = self.nodes[at as usize].next;
        }
    }

    /// The task waits no more.
    #[inline]
    pub(super) fn remove(&mut self, task: Slot) {
        let node = &mut self.nodes[task as usize];
        node.waits = false;
        let (number, prev, next) = (node.cpu, node.prev, node.next);
        let mut ran = std::mem::take(&mut node.ran);
        let cpu = &mut self.cpus[number as usize];
        cpu.waiting -= 1;
        match next {
            NONE => cpu.last = prev,
            next => self.nodes[next as usize].prev = prev,
        }
        match prev {
            NONE => self.cpus[number as usize].first = next,
            prev => {
                let before = &mut self.nodes[prev as usize];
                before.next = next;
                before.ran.absorb(&mut ran);
            }
        }
        // The room is kept for the task's next wait.
        ran.clear();
        self.nodes[task as usize].ran = ran;
    }

    /// The task's time on its present queue does not count against anybody.
    pub(super) fn acquit(&mut self, task: Slot) {
        let mut ran = Ran::default();
        self.collect(task, &mut ran);
        ran.sums().into_iter().for_each(|(who, time)| self.caused.take(who, time));
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
        let believed = self.cpus[number as usize].who;
        let slots = self.waiting(number);
        for (at, slot) in slots.iter().enumerate() {
            let until = slots.get(at + 1).map_or(to, |next| self.nodes[*next as usize].since).min(to);
            let node = &mut self.nodes[*slot as usize];
            let time = node.ran.take(believed, until.saturating_sub(node.since.max(from)));
            if time > 0 {
                node.ran.add(who, time);
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
