//! PELT, per-entity load tracking: how much of the time entities, queues and CPUs were runnable and running of late.
//!
//! # Idea
//! Each entity has averages of the time in which it was runnable and in which it ran; a queue has the sum of its
//! entities' loads, a CPU the sums over its tasks. Placement and balancing compare those sums. `update`: what changes
//! them. `read`: what is asked of them. `average`: the arithmetic.
//!
//! # Rule
//! A task's load is its weight by the part of the time in which it was runnable. Until 4.2 a queue's load is that of
//! the tasks that are queued; from 4.3 on also of those that slept off it, until they are forgotten or leave.

pub(super) mod above;
pub(super) mod average;
mod cpu_load;
mod read;
mod update;
pub(super) mod util_est;

use super::entity::{EntityId, QueueId};
use crate::classes::ClassId;
use above::{Above, WorkClock};
use average::Average;
use cpu_load::CpuLoad;
use schedlab_base::{CpuId, Nanos, Release, v, v2_6};
use util_est::Estimates;

/// Which load tracking a release has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loads {
    /// Weights as they are queued (until 3.10: averages are kept from 3.8 on, and balanced by from 3.11 on).
    Weights,
    /// Averages of those that are queued (3.11 to 4.2).
    Runnable,
    /// Averages of all that belong to the queue, and of the CPU's utilisation (4.3 on).
    All,
}

impl Loads {
    /// What a release tracks.
    #[must_use]
    pub fn of(release: Release) -> Self {
        match release {
            release if release < v(3, 11) => Self::Weights,
            release if release < v(4, 3) => Self::Runnable,
            _ => Self::All,
        }
    }
}

/// What a real-time task weighs among others in 2.6.24.
const RT_WEIGHT: u64 = 2 * super::load::WEIGHTS[0];

/// A CPU at 1024, the scale of utilisation.
const SCALE: f64 = 1024.0;

/// The average of a task that always ran. The kernel rounds the sum of its periods down at each of them,
/// and so it stays this much below the whole: the load of a hog of weight 1024 is 1023, that of the queue that it is
/// alone on 1024, and with another that just came 2047 (`___update_load_sum`; 6.12's own figures are between 1 - 1/5850
/// and 1 - 1/11900).
const WHOLE: f64 = 1.0 - 1.0 / 8192.0;

/// All averages of a fair scheduler; empty on one CPU, where they are not needed.
#[derive(Debug)]
pub(super) struct Pelt {
    loads: Loads,
    /// A CPU that sleeps keeps the loads that its ticks saw (until between 2.6.35 and 2.6.37); later the ticks are made
    /// up for.
    keeps_asleep: bool,
    /// Each CPU's: it is idle and its tick is off.
    asleep: Vec<bool>,
    /// Each CPU's load where that is the sum of its tasks' weights, whatever their groups weigh, real-time tasks
    /// included (`rq->load` until 2.6.26); else empty.
    flat: Vec<u64>,
    /// How many tasks of other classes it counts, of each CPU.
    others: Vec<u32>,
    on: bool,
    entities: Vec<OfEntity>,
    queues: Vec<OfQueue>,
    /// The sums over each group's queues (`tg->load_avg`).
    groups: Vec<Average>,
    cpus: Vec<OfCpu>,
    tick_loads: Vec<CpuLoad>,
    capacities: Vec<f64>,
    /// What tasks are expected to use (`util_est`).
    pub util_est: Estimates,
    release: Release,
    above: Vec<Above>,
    /// It matters of which class a task is that runs: there are others than fair ones, or CPUs differ.
    mixed: bool,
    /// Where CPUs differ (5.1 on); otherwise all averages go by the time.
    clocks: Vec<WorkClock>,
}

impl Pelt {
    /// For CPUs of these capacities and a number of queues; `tick` is the first tick and the time between two.
    pub fn new(release: Release, capacities: impl Iterator<Item = u32>, queues: usize, tick: (Nanos, Nanos)) -> Self {
        let capacities: Vec<f64> = capacities.map(f64::from).collect();
        let cpus = capacities.len();
        let (loads, differ) = (Loads::of(release), capacities.iter().any(|capacity| *capacity != SCALE));
        let clocks = if differ && loads == Loads::All { &capacities[..] } else { &[] };
        Self {
            clocks: clocks.iter().map(|capacity| WorkClock::new(*capacity as u32)).collect(),
            util_est: Estimates::new(release, cpus, differ),
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
            queues: vec![OfQueue::default(); queues],
            groups: vec![Average::default(); queues / cpus.max(1) - 1],
            cpus: vec![OfCpu::default(); cpus],
            tick_loads: vec![CpuLoad::new(tick.0, tick.1); cpus],
            capacities,
        }
    }

    fn averages(&self) -> bool {
        self.on && self.loads != Loads::Weights
    }

    /// The average of an entity that is always runnable, or running.
    fn whole(&self) -> f64 {
        if self.loads == Loads::All { WHOLE } else { 1.0 }
    }

    /// What a CPU is worth as a whole.
    pub fn capacity(&self, cpu: CpuId) -> u64 {
        self.capacities[cpu as usize] as u64
    }

    /// The clock of a CPU's averages.
    #[inline]
    fn clock(&self, cpu: CpuId, now: Nanos) -> Nanos {
        if self.clocks.is_empty() { now } else { self.clocks[cpu as usize].at(now) }
    }

    /// An entity's averages go on by another clock: its CPU's while it is attached there, otherwise the time.
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

    /// The load of a queue, and of its group, changes.
    fn shift(&mut self, q: QueueId, time: Nanos, value: f64, level: f64) {
        let now = self.clock(q % self.cpus.len() as u32, time);
        if self.loads == Loads::Runnable && (q as usize) < self.tick_loads.len() {
            self.set_asleep(q, false, now);
            let seen = &mut self.tick_loads[q as usize];
            seen.fold_average(now, &self.queues[q as usize].load);
            seen.unsettle();
        }
        self.queues[q as usize].load.shift(now, value, level);
        if let Some(group) = (q / self.cpus.len() as u32).checked_sub(1) {
            self.groups[group as usize].shift(time, value, level);
        }
    }

    /// Folds in the ticks so far. A CPU that sleeps has none.
    fn fold_ticks(&mut self, cpu: CpuId, now: Nanos) {
        let of = &mut self.tick_loads[cpu as usize];
        if self.asleep[cpu as usize] {
        } else if self.loads == Loads::Runnable {
            of.fold_average(now, &self.queues[cpu as usize].load);
        } else {
            of.fold(now);
        }
    }

    /// The tick of an idle CPU stops, or comes again.
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

    /// A CPU that sleeps has the ticks up to now made up for.
    pub fn miss_ticks(&mut self, cpu: CpuId, now: Nanos) {
        if self.asleep[cpu as usize] {
            self.tick_loads[cpu as usize].miss(now);
        }
    }

    /// The number of runnable tasks of other classes on a CPU changed.
    pub fn count_others(&mut self, cpu: CpuId, runnable: u32, now: Nanos) {
        let before = std::mem::replace(&mut self.others[cpu as usize], runnable);
        if let Some(flat) = self.flat.get_mut(cpu as usize) {
            *flat = *flat + u64::from(runnable) * RT_WEIGHT - u64::from(before) * RT_WEIGHT;
            let load = *flat;
            self.see_load(cpu, load, now);
        }
    }

    /// The ticks of a CPU see another load from now on.
    fn see_load(&mut self, cpu: CpuId, load: u64, now: Nanos) {
        if load > 0 {
            self.set_asleep(cpu, false, now);
        }
        self.fold_ticks(cpu, now);
        self.tick_loads[cpu as usize].change(load);
    }

    /// The load of a task joins its CPU's, or leaves.
    #[inline]
    fn count_flat(&mut self, cpu: CpuId, by: i64) {
        if let Some(flat) = self.flat.get_mut(cpu as usize) {
            *flat = flat.wrapping_add_signed(by);
        }
    }
}

/// How much of the time an entity was runnable and running, each of 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfEntity {
    /// Runnable.
    pub runnable: Average,
    /// Running, in parts of the biggest CPU.
    pub running: Average,
    /// Counted in its queue's averages.
    pub attached: bool,
}

/// What is averaged of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfQueue {
    /// Weight of the entities, runnable ones and those that were of late.
    pub load: Average,
}

/// What is averaged of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfCpu {
    /// Runnable fair tasks, 1024 each.
    pub runnable: Average,
    /// The part of the time in which fair tasks ran, of 1024 for the biggest CPU.
    pub util: Average,
}
