//! Waiting by affinity: tasks that waited while CPUs were idle that they were not allowed on.
//!
//! No scheduler could have run such a task, so this is no violation. It is what an unbalanced machine often comes from.
//!
//! A class is a set of CPUs that tasks are bound to. Each class has a clock that goes on while some CPU is idle and no
//! idle CPU is in the class. A wait counts by how far the clock of its class went meanwhile. Only the clocks of classes
//! with waiting tasks are kept up, so that an event costs no more than there are such classes.

use super::classes::members;
use crate::affinity::Affinities;
use schedlab_base::{AffinityRecord, CpuId, CpuList, NameRecord, Nanos};
use schedlab_track::{Observer, Occupant, Slot, row};
use std::collections::{BTreeMap, HashMap};

/// More different affinities than this are not told apart, so that memory stays bounded.
const MOST_CLASSES: usize = 1 << 12;

/// Tasks that are bound to the same CPUs.
#[derive(Debug)]
struct Class {
    cpus: CpuList,
    words: Vec<u64>,
    /// How many of its tasks wait.
    waiting: u32,
    /// Whether the clock goes on.
    blocked: bool,
    clock: Nanos,
    /// The CPUs that were idle meanwhile.
    idle: Vec<u64>,
}

/// A task, as far as it is bound.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// Its class; none if it may run anywhere, or if nobody knows where.
    class: Option<u32>,
    waits: bool,
    /// The CPU on whose queue it waits.
    cpu: CpuId,
    /// Where the clock of its class stood when it began to wait.
    since: Nanos,
    /// What its waits come to, by class: those of the class that it has now.
    waited: Nanos,
}

/// The observer.
#[derive(Debug)]
pub(super) struct Bound {
    affinities: Affinities,
    /// The CPUs that there are.
    present: Vec<CpuId>,
    classes: Vec<Class>,
    index: HashMap<CpuList, u32>,
    /// The classes with waiting tasks.
    active: Vec<u32>,
    tasks: Vec<Task>,
    /// What tasks had waited in classes that they have left.
    before: BTreeMap<(u32, Slot), Nanos>,
    idle: Vec<u64>,
    now: Nanos,
}

/// What the tasks of a class waited.
#[derive(Clone, Debug)]
pub(super) struct BoundWait {
    pub(super) cpus: CpuList,
    pub(super) idle: CpuList,
    pub(super) time: u128,
    /// The tasks that waited, the longest first.
    pub(super) tasks: Vec<(Slot, Nanos)>,
}

impl Bound {
    pub(super) fn new(present: Vec<CpuId>) -> Self {
        Self {
            affinities: Affinities::default(),
            present,
            classes: Vec::new(),
            index: HashMap::new(),
            active: Vec::new(),
            tasks: Vec::new(),
            before: BTreeMap::new(),
            idle: Vec::new(),
            now: 0,
        }
    }

    /// The classes whose tasks waited while other CPUs were idle, the longest first.
    pub(super) fn waits(&self) -> Vec<BoundWait> {
        let mut sums = self.before.clone();
        for (slot, task) in (0..).zip(&self.tasks) {
            if let (Some(class), waited @ 1..) = (task.class, task.waited) {
                *sums.entry((class, slot)).or_default() += waited;
            }
        }
        let mut by_class: Vec<Vec<(Slot, Nanos)>> = vec![Vec::new(); self.classes.len()];
        sums.into_iter().for_each(|((class, slot), waited)| by_class[class as usize].push((slot, waited)));
        let wait = |(class, mut tasks): (&Class, Vec<(Slot, Nanos)>)| {
            tasks.sort_by_key(|(slot, time)| (std::cmp::Reverse(*time), *slot));
            let time = tasks.iter().map(|(_, time)| u128::from(*time)).sum();
            BoundWait { cpus: class.cpus.clone(), idle: members(&class.idle).collect(), time, tasks }
        };
        let mut waits: Vec<BoundWait> = self.classes.iter().zip(by_class).map(wait).filter(|w| w.time > 0).collect();
        waits.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.cpus.cmp(&b.cpus)));
        waits
    }

    #[inline]
    fn settle(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        for class in &self.active {
            let class = &mut self.classes[*class as usize];
            if class.blocked && passed > 0 {
                class.clock += passed;
                class.idle.resize(self.idle.len().max(class.idle.len()), 0);
                class.idle.iter_mut().zip(&self.idle).for_each(|(seen, idle)| *seen |= idle);
            }
        }
    }

    /// Whether the clocks go on has to be decided anew.
    fn decide(&mut self) {
        let any = self.idle.iter().any(|word| *word != 0);
        for class in &self.active {
            let class = &mut self.classes[*class as usize];
            class.blocked = any && self.idle.iter().zip(&class.words).all(|(idle, allowed)| idle & allowed == 0);
        }
    }

    /// The class of an affinity; none if it leaves no CPU out.
    fn class(&mut self, cpus: &CpuList) -> Option<u32> {
        if self.present.iter().all(|cpu| cpus.contains(*cpu)) || cpus.is_empty() {
            return None;
        }
        if let Some(class) = self.index.get(cpus) {
            return Some(*class);
        }
        if self.classes.len() >= MOST_CLASSES {
            return None;
        }
        let mut words = Vec::new();
        cpus.iter().for_each(|cpu| *row(&mut words, cpu / 64) |= 1u64 << (cpu % 64));
        let class = self.classes.len() as u32;
        let (cpus, idle) = (cpus.clone(), Vec::new());
        self.index.insert(cpus.clone(), class);
        self.classes.push(Class { cpus, words, waiting: 0, blocked: false, clock: 0, idle });
        Some(class)
    }

    /// The task's affinity may have changed.
    fn reclass(&mut self, slot: Slot) {
        let class = self.affinities.of(slot).cloned().and_then(|cpus| self.class(&cpus));
        let task = *row(&mut self.tasks, slot);
        if task.class == class {
            return;
        }
        self.end(slot, true);
        if let (Some(old), waited @ 1..) = (task.class, self.tasks[slot as usize].waited) {
            *self.before.entry((old, slot)).or_default() += waited;
        }
        self.tasks[slot as usize] = Task { class, ..Task::default() };
        if task.waits {
            self.begin(slot, task.cpu);
        }
    }

    #[inline]
    fn begin(&mut self, slot: Slot, cpu: CpuId) {
        let task = row(&mut self.tasks, slot);
        (task.waits, task.cpu) = (true, cpu);
        let Some(number) = task.class else { return };
        let class = &mut self.classes[number as usize];
        task.since = class.clock;
        class.waiting += 1;
        if class.waiting == 1 {
            self.active.push(number);
            self.decide();
        }
    }

    /// The task waits no more; whether its wait counts.
    #[inline]
    fn end(&mut self, slot: Slot, counts: bool) {
        let task = row(&mut self.tasks, slot);
        if !std::mem::replace(&mut task.waits, false) {
            return;
        }
        let Some(number) = task.class else { return };
        let class = &mut self.classes[number as usize];
        if counts {
            task.waited += class.clock - task.since;
        }
        class.waiting -= 1;
        if class.waiting == 0 {
            self.active.retain(|active| *active != number);
        }
    }
}

impl Observer for Bound {
    fn ends(&mut self, end: Nanos) {
        self.settle(end);
        for slot in 0..self.tasks.len() as Slot {
            self.end(slot, true);
        }
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        self.affinities.named(task, record);
        self.reclass(task);
    }

    fn allowed(&mut self, task: Slot, record: &AffinityRecord) {
        self.settle(record.time);
        self.affinities.allowed(task, record);
        self.reclass(task);
    }

    fn forked(&mut self, parent: Option<Slot>, child: Slot, sure: bool, now: Nanos) {
        self.affinities.forked(parent, child, sure, now);
        self.reclass(child);
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, now: Nanos) {
        let (word, bit) = (cpu / 64, 1u64 << (cpu % 64));
        let was = self.idle.get(word as usize).is_some_and(|word| word & bit != 0);
        if was != (who == Occupant::Idle) {
            self.settle(now);
            *row(&mut self.idle, word) ^= bit;
            self.decide();
        }
    }

    fn queued(&mut self, task: Slot, cpu: CpuId, now: Nanos) {
        self.settle(now);
        self.begin(task, cpu);
    }

    fn unqueued(&mut self, task: Slot, now: Nanos) {
        self.settle(now);
        self.end(task, true);
    }

    /// The task ran unseen: its present wait does not count.
    fn doubted(&mut self, task: Slot, now: Nanos) {
        self.settle(now);
        let Task { waits, cpu, .. } = *row(&mut self.tasks, task);
        if waits {
            self.end(task, false);
            self.begin(task, cpu);
        }
    }

    /// The tasks that waited on this CPU's queue may have run unseen.
    fn forgotten(&mut self, cpu: CpuId, now: Nanos) {
        self.settle(now);
        for slot in 0..self.tasks.len() as Slot {
            if self.tasks[slot as usize].cpu == cpu {
                self.end(slot, false);
            }
        }
    }

    /// The CPU was not idle all the time: the present waits do not count, unless it ran for a moment only.
    fn misjudged(&mut self, _: CpuId, since: Option<Nanos>, now: Nanos) {
        self.settle(now);
        if since.is_some() {
            return;
        }
        for task in &mut self.tasks {
            if let (true, Some(class)) = (task.waits, task.class) {
                task.since = self.classes[class as usize].clock;
            }
        }
    }
}
