//! Per-entity load tracking (PELT): averages of how much of the recent time entities, queues and CPUs were runnable and
//! running.
//!
//! # Idea
//! Each entity has averages of its runnable time and its running time. A queue has the sum of its entities' loads, and
//! a CPU has the sums over its tasks. Task placement and load balancing compare those sums. The module `update` has the
//! events that change them, `read` the queries, and `average` the arithmetic.
//!
//! # Rule
//! A task's load is its weight times the fraction of time that it was runnable. Until 4.2 the load of a queue is that
//! of its queued tasks. From 4.3 on it also includes blocked tasks that slept on it, until their load has decayed or
//! they leave.

pub(super) mod above;
pub(super) mod average;
mod cpu_load;
mod propagate;
mod read;
mod update;
pub(super) mod util_est;

use super::entity::{EntityId, QueueId};
use crate::classes::ClassId;
use above::{Above, WorkClock};
use average::{Average, Left};
use cpu_load::CpuLoad;
use propagate::Reported;
use schedlab_base::{CpuId, Nanos, Release, v, v2_6};
use util_est::Estimates;

/// The kind of load tracking that a release uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loads {
    /// Queued weights (until 3.10; averages exist from 3.8 on, but load balancing uses them from 3.11 on).
    Weights,
    /// Averages of the queued entities (3.11 to 4.2).
    Runnable,
    /// Averages of all entities that belong to the queue, and of the CPU's utilisation (4.3 on).
    All,
}

impl Loads {
    /// The kind of a release.
    #[must_use]
    pub fn of(release: Release) -> Self {
        match release {
            release if release < v(3, 11) => Self::Weights,
            release if release < v(4, 3) => Self::Runnable,
            _ => Self::All,
        }
    }
}

/// The weight of a real-time task in the load of its CPU in 2.6.24.
const RT_WEIGHT: u64 = 2 * super::load::WEIGHTS[0];

/// The utilisation of a CPU of capacity 1024.
const SCALE: f64 = 1024.0;

/// The average of a task that was always running. The kernel truncates the sum at each period, so it stays this much
/// below 1. The load of a hog of weight 1024 is therefore 1023; the load of the queue is 1024 with this hog alone, and
/// 2047 with another that has just arrived (`___update_load_sum`; the values of 6.12 itself are between 1 - 1/5850 and
/// 1 - 1/11900).
const WHOLE: f64 = 1.0 - 1.0 / 8192.0;

/// All averages of a fair scheduler. Empty on a single CPU, where they are not needed.
#[derive(Debug)]
pub(super) struct Pelt {
    loads: Loads,
    /// Whether a CPU without a tick keeps the loads that its ticks saw (until a change between 2.6.35 and 2.6.37).
    /// Later the missed ticks are made up for.
    keeps_asleep: bool,
    /// For each CPU, whether it is idle and has stopped its tick.
    asleep: Vec<bool>,
    /// For each CPU, its load in releases where this is the sum of its tasks' weights, including real-time tasks and
    /// regardless of the groups' weights (`rq->load` until 2.6.26). Otherwise empty.
    flat: Vec<u64>,
    /// For each CPU, the number of tasks of other classes that its load includes.
    others: Vec<u32>,
    on: bool,
    entities: Vec<OfEntity>,
    /// For each entity.
    ties: Vec<Tie>,
    queues: Vec<OfQueue>,
    /// For each group, the exact sum over its queues.
    groups: Vec<Average>,
    /// For each group, the sum of what its queues have reported (`tg->load_avg`), and this by group entity.
    sums: Vec<u64>,
    reported: Vec<Reported>,
    cpus: Vec<OfCpu>,
    /// Shared by the averages that change at one event.
    left: Left,
    tick_loads: Vec<CpuLoad>,
    capacities: Vec<f64>,
    /// The estimated utilisation of tasks (`util_est`).
    pub util_est: Estimates,
    release: Release,
    above: Vec<Above>,
    /// Whether the class of the running task matters: there have been tasks of other classes than fair, or the CPUs'
    /// capacities differ.
    mixed: bool,
    /// The clocks of the CPUs if their capacities differ, or once an interrupt has taken time (4.3 on). Otherwise
    /// empty, and all averages use the time.
    clocks: Vec<WorkClock>,
}

impl Pelt {
    /// Creates the averages for CPUs of these capacities and a number of queues. `tick` is the time of the first tick
    /// and the length of a tick.
    pub fn new(release: Release, capacities: impl Iterator<Item = u32>, queues: usize, tick: (Nanos, Nanos)) -> Self {
        let capacities: Vec<f64> = capacities.map(f64::from).collect();
        let cpus = capacities.len();
        let (loads, differ) = (Loads::of(release), capacities.iter().any(|capacity| *capacity != SCALE));
        let clocks = if differ && loads == Loads::All { &capacities[..] } else { &[] };
        Self {
            clocks: clocks.iter().map(|capacity| WorkClock::new(*capacity as u32)).collect(),
            util_est: Estimates::new(release, cpus),
            release,
            above: vec![Above::default(); cpus],
            mixed: !clocks.is_empty(),
            loads,
            keeps_asleep: release < v2_6(36),
            asleep: vec![false; cpus],
            flat: if release < v2_6(27) && cpus > 1 { vec![0; cpus] } else { Vec::new() },
            others: vec![0; cpus],
            on: cpus > 1,
            entities: Vec::new(),
            ties: Vec::new(),
            queues: vec![OfQueue::default(); queues],
            groups: vec![Average::default(); queues / cpus.max(1) - 1],
            sums: vec![0; queues / cpus.max(1) - 1],
            reported: vec![Reported::default(); queues - cpus],
            cpus: vec![OfCpu::default(); cpus],
            left: Left::default(),
            tick_loads: vec![CpuLoad::new(tick.0, tick.1); cpus],
            capacities,
        }
    }

    #[inline]
    fn averages(&self) -> bool {
        self.on && self.loads != Loads::Weights
    }

    /// The average of an entity that is always runnable, or always running.
    fn whole(&self) -> f64 {
        if self.loads == Loads::All { WHOLE } else { 1.0 }
    }

    /// The original capacity of a CPU.
    pub fn capacity(&self, cpu: CpuId) -> u64 {
        self.capacities[cpu as usize] as u64
    }

    /// The time by the clock of a CPU's averages.
    #[inline]
    fn clock(&self, cpu: CpuId, now: Nanos) -> Nanos {
        if self.clocks.is_empty() { now } else { self.clocks[cpu as usize].at(now) }
    }

    /// Moves an entity's averages to another clock: its CPU's when it is attached there, and the time otherwise.
    fn rebase(&mut self, e: EntityId, from: Nanos, to: Nanos) {
        if !self.clocks.is_empty() {
            let of = &mut self.entities[e as usize];
            of.runnable = Average::of(of.runnable.at(from), of.runnable.level(), to);
            of.running = Average::of(of.running.at(from), of.running.level(), to);
        }
    }

    fn steer_class(&mut self, cpu: CpuId, class: Option<ClassId>, now: Nanos) {
        let clock = self.clock(cpu, now);
        let above = &mut self.above[cpu as usize];
        above.run(now, clock, class);
        if let Some(work) = self.clocks.get_mut(cpu as usize) {
            let (rt, dl) = above.util(clock);
            match class {
                Some(_) => work.work(now),
                None => work.idle(now, self.cpus[cpu as usize].util.at(clock) + (rt + dl) as f64),
            }
        }
    }

    /// Counts time that interrupts or the hypervisor take from a CPU.
    pub fn note_taken(&mut self, cpu: CpuId, (from, until): (Nanos, Nanos)) {
        self.above[cpu as usize].take(from, until);
        if self.loads == Loads::All && self.on {
            if self.clocks.is_empty() {
                self.clocks = self.cpus.iter().map(|_| WorkClock::new(SCALE as u32)).collect();
            }
            self.clocks[cpu as usize].take(from, until);
        }
    }

    /// Changes the load of a queue and of its group.
    fn shift(&mut self, q: QueueId, time: Nanos, value: f64, level: f64) {
        let now = self.clock(q % self.cpus.len() as u32, time);
        if self.loads == Loads::Runnable && (q as usize) < self.tick_loads.len() {
            self.set_asleep(q, false, now);
            let seen = &mut self.tick_loads[q as usize];
            seen.fold_average(now, &self.queues[q as usize].load);
            seen.unsettle();
        }
        self.queues[q as usize].load.shift(now, value, level, &mut self.left);
        if let Some(group) = (q / self.cpus.len() as u32).checked_sub(1) {
            self.groups[group as usize].shift(time, value, level, &mut self.left);
        }
    }

    /// Applies the ticks so far to `cpu_load[]`. A CPU that has stopped its tick has none.
    #[inline]
    fn fold_ticks(&mut self, cpu: CpuId, now: Nanos) {
        let of = &mut self.tick_loads[cpu as usize];
        if self.asleep[cpu as usize] {
        } else if self.loads == Loads::Runnable {
            of.fold_average(now, &self.queues[cpu as usize].load);
        } else {
            of.fold(now);
        }
    }

    /// Called when an idle CPU stops its tick, or restarts it.
    #[inline]
    pub fn set_asleep(&mut self, cpu: CpuId, asleep: bool, now: Nanos) {
        if self.asleep[cpu as usize] != asleep && self.loads != Loads::All {
            self.change_asleep(cpu, asleep, now);
        }
    }

    fn change_asleep(&mut self, cpu: CpuId, asleep: bool, now: Nanos) {
        if asleep {
            self.fold_ticks(cpu, now);
        } else if self.keeps_asleep {
            self.tick_loads[cpu as usize].skip(now);
        } else {
            self.tick_loads[cpu as usize].miss(now);
        }
        self.asleep[cpu as usize] = asleep;
    }

    /// Makes up for the missed ticks of a CPU that has stopped its tick.
    pub fn miss_ticks(&mut self, cpu: CpuId, now: Nanos) {
        if self.asleep[cpu as usize] {
            self.tick_loads[cpu as usize].miss(now);
        }
    }

    /// Sets the number of runnable tasks of other classes on a CPU.
    pub fn count_others(&mut self, cpu: CpuId, runnable: u32, now: Nanos) {
        let before = std::mem::replace(&mut self.others[cpu as usize], runnable);
        if let Some(flat) = self.flat.get_mut(cpu as usize) {
            *flat = *flat + u64::from(runnable) * RT_WEIGHT - u64::from(before) * RT_WEIGHT;
            let load = *flat;
            self.see_load(cpu, load, now);
        }
    }

    /// Sets the load that the ticks of a CPU see from now on.
    fn see_load(&mut self, cpu: CpuId, load: u64, now: Nanos) {
        if load > 0 {
            self.set_asleep(cpu, false, now);
        }
        self.fold_ticks(cpu, now);
        self.tick_loads[cpu as usize].change(load);
    }

    /// Adds the load of a task to its CPU's, or subtracts it.
    #[inline]
    fn count_flat(&mut self, cpu: CpuId, by: i64) {
        if let Some(flat) = self.flat.get_mut(cpu as usize) {
            *flat = flat.wrapping_add_signed(by);
        }
    }
}

/// How much of the recent time an entity was runnable and running, each as a fraction of 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfEntity {
    /// The runnable average.
    pub runnable: Average,
    /// The running average, scaled by the capacity relative to the biggest CPU.
    pub running: Average,
}

/// What an entity's averages belong to. (Beside them it takes 2 bytes; among them it would take 8.)
#[derive(Clone, Copy, Debug, Default)]
pub struct Tie {
    /// Whether they are included in its queue's averages.
    pub attached: bool,
    /// Whether it has a utilisation of its own.
    pub utilisation: Utilisation,
}

/// Whether an entity has a utilisation of its own: a task gets its first one when it is first enqueued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Utilisation {
    /// Not yet.
    #[default]
    None,
    /// Not yet, and it is a task that was born in another class.
    NoneElsewhere,
    /// It has one.
    Own,
}

/// The averages of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfQueue {
    /// The load of its entities, both runnable and, from 4.3 on, blocked.
    pub load: Average,
}

/// The averages of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfCpu {
    /// The runnable average of fair tasks, with 1024 for each.
    pub runnable: Average,
    /// The utilisation by fair tasks, where 1024 is all of the biggest CPU.
    pub util: Average,
}
