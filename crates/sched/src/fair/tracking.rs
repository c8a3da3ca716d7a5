//! Keeps the averages of entities, queues and CPUs: what changes them, and what the balancers ask of them.
//!
//! A task's load is its weight by the part of the time in which it was runnable. Until 4.2 a queue's load is that of
//! the tasks that are queued; from 4.3 on also of those that slept off it, until they are forgotten or leave.

use super::capacity::{Above, WorkClock};
use super::decay::{Average, CpuLoad, OfCpu, OfEntity, OfQueue};
use super::entity::{EntityId, QueueId};
use super::{Discipline, Fair};
use crate::classes::ClassId;
use schedlab_base::{CpuId, Nanos, Release, v, v2_6};
use schedlab_sim::TaskId;

/// Which load tracking a release has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loads {
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

/// What the average of a task that always ran comes to. The kernel rounds the sum of its periods down at each of them,
/// and so it stays this much below the whole: the load of a hog of weight 1024 is 1023, that of the queue that it is
/// alone on 1024, and with another that just came 2047 (`___update_load_sum`; 6.12's own figures are between 1 - 1/5850
/// and 1 - 1/11900).
const WHOLE: f64 = 1.0 - 1.0 / 8192.0;

/// All averages of a fair scheduler; empty on one CPU, where nobody asks for them.
#[derive(Debug)]
pub(super) struct Tracking {
    loads: Loads,
    /// A CPU that sleeps keeps the loads that its ticks saw (until 2.6.37); later the ticks are made up for.
    keeps_asleep: bool,
    /// Each CPU's: it is idle and its tick is off.
    asleep: Vec<bool>,
    /// Each CPU's load where that is the sum of its tasks' weights, whatever their groups weigh, real-time tasks
    /// included (`rq->load` until 2.6.25); else empty.
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
    release: Release,
    above: Vec<Above>,
    /// It matters of which class a task is that runs: there are others than fair ones, or CPUs differ.
    mixed: bool,
    /// Where CPUs differ (5.1 on); otherwise all averages go by the time.
    clocks: Vec<WorkClock>,
}

impl Tracking {
    pub fn new(release: Release, capacities: impl Iterator<Item = u32>, queues: usize, tick: (Nanos, Nanos)) -> Self {
        let capacities: Vec<f64> = capacities.map(f64::from).collect();
        let cpus = capacities.len();
        let (loads, differ) = (Loads::of(release), capacities.iter().any(|capacity| *capacity != SCALE));
        let clocks = if differ && loads == Loads::All { &capacities[..] } else { &[] };
        Self {
            clocks: clocks.iter().map(|capacity| WorkClock::new(*capacity as u32)).collect(),
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

    /// What the average of an entity that is always runnable, or running, comes to.
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

    /// So many tasks of other classes are runnable on a CPU.
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

impl<D: Discipline> Fair<D> {
    /// A new entity: what it was before it was, a whole one.
    pub(super) fn track(&mut self, e: EntityId, now: Nanos) {
        let t = &mut self.tracking;
        if t.entities.len() <= e as usize {
            t.entities.resize(e as usize + 1, OfEntity::default());
        }
        let runnable = Average::of(1.0, 0.0, now);
        t.entities[e as usize] = OfEntity { runnable, ..OfEntity::default() };
    }

    /// An entity is counted into its queue.
    pub(super) fn track_in(&mut self, q: QueueId, e: EntityId, now: Nanos) {
        let weight = self.entities[e as usize].load.weight as f64;
        let (task, cpu) = (e >= self.first_task, self.cpu_of(q));
        let t = &mut self.tracking;
        if !t.averages() {
            return t.count_flat(cpu, if task { weight as i64 } else { 0 });
        }
        let whole = t.whole();
        let (time, now) = (now, t.clock(cpu, now));
        let attach = !t.entities[e as usize].attached;
        if attach {
            t.rebase(e, time, now);
        }
        let of = &mut t.entities[e as usize];
        let fresh = task && attach && of.running == Average::default();
        of.attached = true;
        let before = of.runnable.at(now);
        of.runnable.steer(now, whole);
        let brings = if attach || t.loads == Loads::Runnable { weight * before } else { 0.0 };
        t.shift(q, time, brings, weight);
        if !task {
            return;
        }
        let all = t.queues[q as usize].load.at(now);
        let of = &mut t.entities[e as usize];
        let of_cpu = &mut t.cpus[cpu as usize];
        if fresh {
            // post_init_entity_util_avg(): a part of what the queue uses by its weight, at most half of what is left.
            let used = of_cpu.util.at(now);
            let left = ((t.capacities[cpu as usize] - used) / 2.0).max(0.0);
            let util = if used > 0.0 { (used * weight / (all + 1.0)).min(left) } else { left };
            of.running = Average::of(util / SCALE, 0.0, now);
            of.runnable = Average::of(of.runnable.at(now), whole, now);
            self.estimates.begin(e - self.first_task, of.runnable.at(now) * SCALE - util, time);
        }
        let (runnable, running) = (of.runnable.at(now), of.running.at(now));
        let (runnable, running) = if attach { (runnable * SCALE, running * SCALE) } else { (0.0, 0.0) };
        of_cpu.runnable.shift(now, runnable, SCALE);
        of_cpu.util.shift(now, running, 0.0);
    }

    /// An entity is counted out of its queue.
    pub(super) fn track_out(&mut self, q: QueueId, e: EntityId, now: Nanos) {
        let weight = self.entities[e as usize].load.weight as f64;
        let (task, cpu) = (e >= self.first_task, self.cpu_of(q));
        let t = &mut self.tracking;
        if !t.averages() {
            return t.count_flat(cpu, if task { -(weight as i64) } else { 0 });
        }
        let (time, now) = (now, t.clock(cpu, now));
        let of = &mut t.entities[e as usize];
        of.runnable.steer(now, 0.0);
        let takes = if t.loads == Loads::Runnable { weight * of.runnable.at(now) } else { 0.0 };
        t.shift(q, time, -takes, -weight);
        if task {
            t.cpus[cpu as usize].runnable.shift(now, 0.0, -SCALE);
        }
    }

    /// An entity leaves its queue for good: to another CPU or group, or because it ended.
    pub(super) fn track_away(&mut self, q: QueueId, e: EntityId, now: Nanos) {
        let weight = self.entities[e as usize].load.weight as f64;
        let (task, cpu) = (e >= self.first_task, self.cpu_of(q));
        let t = &mut self.tracking;
        if !t.averages() || !std::mem::take(&mut t.entities[e as usize].attached) {
            return;
        }
        let (time, now) = (now, t.clock(cpu, now));
        let of = &t.entities[e as usize];
        let (runnable, running) = (of.runnable.at(now), of.running.at(now));
        t.rebase(e, now, time);
        if t.loads == Loads::All {
            t.shift(q, time, -weight * runnable, 0.0);
        }
        if task {
            let of_cpu = &mut t.cpus[cpu as usize];
            of_cpu.runnable.shift(now, -runnable * SCALE, 0.0);
            of_cpu.util.shift(now, -running * SCALE, 0.0);
        }
    }

    /// A task begins to run on a CPU, or stops.
    pub(super) fn track_running(&mut self, cpu: CpuId, e: EntityId, runs: bool, now: Nanos) {
        let t = &mut self.tracking;
        if !t.averages() {
            return;
        }
        let now = t.clock(cpu, now);
        let full = if t.clocks.is_empty() { t.capacities[cpu as usize] } else { SCALE };
        let level = if runs { full } else { 0.0 };
        let whole = t.whole();
        t.entities[e as usize].running.steer(now, level / SCALE * whole);
        t.cpus[cpu as usize].util.steer(now, level);
    }

    /// The weight of an entity changes, by `by`.
    pub(super) fn track_weight(&mut self, q: QueueId, e: EntityId, by: f64, now: Nanos) {
        let queued = self.entities[e as usize].on_rq;
        let (task, cpu) = (e >= self.first_task, self.cpu_of(q));
        let t = &mut self.tracking;
        if queued && task {
            t.count_flat(cpu, by as i64);
        }
        if !t.averages() || !t.entities[e as usize].attached {
            return;
        }
        let runnable = t.entities[e as usize].runnable.at(t.clock(cpu, now));
        let counts = queued || t.loads == Loads::All;
        let value = if counts { by * runnable } else { 0.0 };
        t.shift(q, now, value, if queued { by } else { 0.0 });
    }

    /// The load of a queue: of a root queue that of the CPU, as balancers compare it (`cpu_load`, `weighted_cpuload`).
    /// Until 4.2 that is a sum of whole numbers, and an average has arrived after a third of a second.
    #[must_use]
    pub fn load_avg_at(&self, q: QueueId, now: Nanos) -> f64 {
        if self.tracking.averages() {
            let t = &self.tracking;
            let load = t.queues[q as usize].load.at(t.clock(self.cpu_of(q), now));
            if t.loads == Loads::Runnable { load.round() } else { load }
        } else if let Some(flat) = self.tracking.flat.get(q as usize) {
            *flat as f64
        } else {
            self.queues[q as usize].load.weight as f64
        }
    }

    /// Whether the averages of a group's queue and of all its queues stay as they are while nothing happens.
    pub(super) fn group_is_settled(&self, q: QueueId, now: Nanos) -> bool {
        let t = &self.tracking;
        t.queues[q as usize].load.is_settled(t.clock(self.cpu_of(q), now)) && t.groups[self.group_of(q)].is_settled(now)
    }

    /// The load averages of a group's queue and of all its queues together.
    pub(super) fn group_averages(&self, q: QueueId) -> (u64, u64) {
        let (t, now) = (&self.tracking, self.clock);
        let own = t.queues[q as usize].load.at(t.clock(self.cpu_of(q), now)).round() as u64;
        (own, t.groups[self.group_of(q)].at(now).round() as u64)
    }

    /// How many fair tasks of a CPU were runnable of late, 1024 each.
    #[must_use]
    pub fn runnable_avg_at(&self, cpu: CpuId, now: Nanos) -> f64 {
        self.tracking.cpus[cpu as usize].runnable.at(self.tracking.clock(cpu, now))
    }

    /// How much fair tasks used a CPU of late, of 1024 for the biggest. A small CPU without idle time comes to more
    /// than its capacity.
    #[must_use]
    pub fn util_avg_at(&self, cpu: CpuId, now: Nanos) -> f64 {
        self.tracking.cpus[cpu as usize].util.at(self.tracking.clock(cpu, now))
    }

    /// How much real-time and deadline tasks used a CPU of late, of the same.
    pub(super) fn util_above_at(&self, cpu: CpuId, now: Nanos) -> (u64, u64) {
        self.tracking.above[cpu as usize].util(self.tracking.clock(cpu, now))
    }

    /// What higher classes leave of a CPU's capacity (`scale_rt_capacity`).
    pub(super) fn left_at(&self, cpu: CpuId, now: Nanos) -> u64 {
        let t = &self.tracking;
        let capacity = t.capacity(cpu);
        t.above[cpu as usize].leave(t.release, capacity, now, t.clock(cpu, now))
    }

    /// A CPU runs a task of that class from now on, or nothing.
    #[inline]
    pub(super) fn track_class(&mut self, cpu: CpuId, class: Option<ClassId>, now: Nanos) {
        let t = &mut self.tracking;
        t.mixed |= class.is_some_and(|class| class != ClassId::Fair);
        if t.on && t.mixed {
            t.steer_class(cpu, class, now);
        }
    }

    /// How much of the biggest CPU a task used of late, of 1024.
    #[must_use]
    pub fn task_util_at(&self, p: TaskId, now: Nanos) -> f64 {
        let e = self.entity(p);
        self.tracking.entities[e as usize].running.at(self.clock_of(e, now)) * SCALE
    }

    /// The clock of an entity's averages.
    #[inline]
    fn clock_of(&self, e: EntityId, now: Nanos) -> Nanos {
        let t = &self.tracking;
        if t.clocks.is_empty() || !t.entities[e as usize].attached {
            return now;
        }
        t.clock(self.cpu_of(self.entities[e as usize].queue), now)
    }

    /// How much of the time a task was runnable of late, of 1024.
    #[must_use]
    pub fn task_runnable_at(&self, p: TaskId, now: Nanos) -> f64 {
        let e = self.entity(p);
        self.tracking.entities[e as usize].runnable.at(self.clock_of(e, now)) * SCALE
    }

    /// What a task weighs of its CPU's load (`task_h_load`).
    #[must_use]
    pub fn task_load_at(&self, p: TaskId, now: Nanos) -> f64 {
        if !self.tracking.averages() {
            return self.root_load(p) as f64;
        }
        let part = |e: EntityId| {
            let runnable = &self.tracking.entities[e as usize].runnable;
            self.entities[e as usize].load.weight as f64 * runnable.at(self.clock_of(e, now))
        };
        let mut e = self.entity(p);
        let mut load = part(e);
        while let Some(group) = self.parent(e) {
            load *= part(group) / (self.load_avg_at(group + self.cpus, now) + 1.0);
            e = group;
        }
        if self.tracking.loads == Loads::Runnable { load.round() } else { load }
    }

    /// The load of a CPU as its ticks saw it (`rq->cpu_load[index]`).
    pub(super) fn tick_load_at(&mut self, cpu: CpuId, index: u8, now: Nanos) -> u64 {
        self.tracking.fold_ticks(cpu, now);
        self.folded_tick_load(cpu, index)
    }

    /// The same, as of the last change or [`Fair::fold_tick_load`].
    pub(super) fn folded_tick_load(&self, cpu: CpuId, index: u8) -> u64 {
        self.tracking.tick_loads[cpu as usize].get(index)
    }

    /// Counts the ticks so far into the loads that they saw.
    pub(super) fn fold_tick_load(&mut self, cpu: CpuId) {
        self.tracking.fold_ticks(cpu, self.clock);
    }

    /// The weight of a queue changed: where ticks see weights, that of a root queue or of all of a CPU's tasks, they
    /// see another one from now on.
    #[inline]
    pub(super) fn note_tick_load(&mut self, q: QueueId) {
        if !self.tracking.on || self.tracking.loads != Loads::Weights {
            return;
        }
        let cpu = self.cpu_of(q);
        if let Some(flat) = self.tracking.flat.get(cpu as usize) {
            let load = *flat;
            self.tracking.see_load(cpu, load, self.clock);
        } else if q < self.cpus {
            self.tracking.see_load(q, self.queues[q as usize].load.weight, self.clock);
        }
    }
}
