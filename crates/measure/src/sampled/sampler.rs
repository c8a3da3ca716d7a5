//! When to look, what to watch, and what is a violation.

use super::machine::{CpuNow, Looked, WaitingNow};
use crate::conserve::{Level, Shape};
use schedlab_base::{CpuId, CpuList, Meta, Nanos, Tid};
use serde::Serialize;
use std::collections::BTreeMap;

/// So many looks belong to a watch, besides the one that begins it.
pub const SAMPLES: u32 = 16;

/// At so many looks of a watch a CPU may run something: on a live machine hardly a CPU is left alone for 100 ms.
const DISTURBED: u32 = 2;

/// At most so many waiting tasks are listed.
const MOST_WAITING: usize = 16;

/// How often to look, and how long to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The time from one look to the next.
    pub every: Nanos,
    /// A state that lasts for this long is a violation.
    pub watch: Nanos,
}

impl Default for Timing {
    fn default() -> Self {
        Self { every: 1_000_000_000, watch: 100_000_000 }
    }
}

impl Timing {
    /// When the look `sample` of a watch is due, from its begin on. The distances are uneven: by the golden ratio, no
    /// two looks of a watch fall into the same phase of anything periodic, except by chance.
    fn offset(self, sample: u32) -> Nanos {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        if sample >= SAMPLES {
            return self.watch;
        }
        let early = (f64::from(sample) * GOLDEN).fract() * 0.8;
        let part = (f64::from(sample) - early) / f64::from(SAMPLES);
        (self.watch as f64 * part) as Nanos
    }
}

/// A task that waited, at the end of a watch, while a CPU was idle that it may run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingThere {
    /// Its thread id.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// The CPU on whose queue it waited.
    pub cpu: CpuId,
    /// Whether it is known where it may run.
    pub affinity_known: bool,
}

/// A violation: CPUs that were idle throughout a watch while tasks waited that may run there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// When the watch began: on a live machine since the checker's start, in a trace since the trace's.
    pub start_us: f64,
    /// How long it was watched. It may have lasted longer on both sides.
    pub duration_us: f64,
    /// The idle CPU that is nearest to the busy one.
    pub idle_cpu: CpuId,
    /// The CPU on whose queue most of the tasks waited.
    pub busy_cpu: CpuId,
    /// All CPUs that were idle, as the kernel writes lists.
    pub idle_cpus: String,
    /// All CPUs on whose queues the tasks waited.
    pub busy_cpus: String,
    /// The looks between the first and the last at which the idle CPU ran something: 2 at most.
    pub disturbed: u32,
    /// What separates the idle CPU from the busy one.
    pub level: Level,
    /// The distance of their nodes, if they have different ones and it is known.
    pub distance: Option<u32>,
    /// The tasks that waited when the watch ended; 16 at most.
    pub waiting: Vec<WaitingThere>,
    /// How many waited in all.
    pub waiting_tasks: u64,
}

/// What the checker has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Looks at the CPUs, those of watches included.
    pub looks: u64,
    /// CPUs read.
    pub cpus_read: u64,
    /// Readings of the waiting tasks.
    pub task_lists: u64,
    /// Watches begun.
    pub watches: u64,
    /// Violations found.
    pub violations: u64,
}

/// A state that is being watched.
#[derive(Debug)]
struct Watch {
    from: Nanos,
    sample: u32,
    /// The CPUs that have been idle so far, each with the looks at which it was not.
    idle: Vec<(CpuId, u32)>,
    /// The CPUs on whose queues tasks waited that could have run there.
    busy: Vec<CpuId>,
}

/// The checker: [`Sampler::next`] says when to look, and [`Sampler::look`] what was found.
#[derive(Debug)]
pub struct Sampler {
    timing: Timing,
    shape: Shape,
    start: Nanos,
    next: Nanos,
    watch: Option<Watch>,
    work: Work,
}

impl Sampler {
    /// A checker that begins at `start`, of a machine with this topology. Its first look is one interval later.
    #[must_use]
    pub fn new(timing: Timing, meta: &Meta, start: Nanos) -> Self {
        let next = start.saturating_add(timing.every.max(1));
        Self { timing, shape: Shape::new(meta), start, next, watch: None, work: Work::default() }
    }

    /// The same, with its first look at the start.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self { next: self.start, ..self }
    }

    /// When the next look is due.
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// What it has done.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// The idle CPUs of the state that is being watched, if there is one.
    #[must_use]
    pub fn watched(&self) -> Option<Vec<CpuId>> {
        self.watch.as_ref().map(|watch| watch.idle.iter().map(|(cpu, _)| *cpu).collect())
    }

    /// Gives up the watch: what it rests on has turned out to be wrong. Looks go on as planned.
    pub fn give_up(&mut self, now: Nanos) {
        if self.watch.take().is_some() {
            self.plan(now);
        }
    }

    /// Leaves out the look that is due: the checker can afford no more at the moment.
    pub fn leave_out(&mut self, now: Nanos) {
        self.plan(now);
    }

    /// Looks at the machine, which is in this state at `now`, and returns a violation if one has lasted long enough.
    ///
    /// # Errors
    /// When the machine cannot be looked at.
    pub fn look<M: Looked>(&mut self, now: Nanos, machine: &mut M) -> Result<Option<Finding>, M::Error> {
        self.work.looks += 1;
        let between = self.watch.as_ref().is_some_and(|watch| watch.sample < SAMPLES);
        let cpus = machine.cpus(between)?;
        self.work.cpus_read += cpus.len() as u64;
        let crowded = cpus.iter().any(|cpu| cpu.is_crowded());
        let idle: Vec<CpuId> = cpus.iter().filter(|cpu| cpu.is_idle()).map(|cpu| cpu.cpu).collect();
        if !crowded || (idle.is_empty() && self.watch.is_none()) {
            self.watch = None;
            self.plan(now);
            return Ok(None);
        }
        let mut watch = match self.watch.take() {
            Some(watch) => watch,
            None => Watch { from: now, sample: 0, idle: idle.iter().map(|cpu| (*cpu, 0)).collect(), busy: Vec::new() },
        };
        let is_busy = |cpu: &CpuId| find(cpus, *cpu).is_some_and(|cpu| cpu.is_crowded());
        let last = watch.sample == SAMPLES;
        watch.idle.retain_mut(|(cpu, disturbed)| {
            let is_idle = idle.binary_search(cpu).is_ok();
            *disturbed += u32::from(!is_idle);
            is_idle || (*disturbed <= DISTURBED && !last)
        });
        // Between the first and the last look, a queue that is still too long is enough.
        if !watch.idle.is_empty() && (watch.sample == 0 || last || !watch.busy.iter().any(is_busy)) {
            let busy: Vec<CpuId> = cpus.iter().filter(|cpu| !cpu.is_idle()).map(|cpu| cpu.cpu).collect();
            self.work.task_lists += 1;
            let waiting = could_run(machine.waiting()?, &busy, &watch.idle);
            watch.idle.retain(|(cpu, _)| waiting.iter().any(|task| allowed(task, *cpu)));
            watch.busy = waiting.iter().map(|task| task.cpu).collect();
            watch.busy.sort_unstable();
            watch.busy.dedup();
            if last && !watch.idle.is_empty() {
                self.work.violations += 1;
                let found = self.finding(&watch, &waiting, now);
                self.plan(now);
                return Ok(Some(found));
            }
        }
        if watch.idle.is_empty() || last {
            self.plan(now);
            return Ok(None);
        }
        self.work.watches += u64::from(watch.sample == 0);
        watch.sample += 1;
        self.next = watch.from + self.timing.offset(watch.sample);
        self.watch = Some(watch);
        Ok(None)
    }

    /// The next look that does not belong to a watch.
    fn plan(&mut self, now: Nanos) {
        let every = self.timing.every.max(1);
        self.next = self.start.saturating_add(((now - self.start) / every + 1).saturating_mul(every));
    }

    fn finding(&self, watch: &Watch, waiting: &[&WaitingNow], now: Nanos) -> Finding {
        let mut counts: BTreeMap<CpuId, u64> = BTreeMap::new();
        waiting.iter().for_each(|task| *counts.entry(task.cpu).or_default() += 1);
        let most = counts.values().copied().max().unwrap_or(0);
        let busy = counts.iter().find(|(_, count)| **count == most).map_or(0, |(cpu, _)| *cpu);
        let could = |(cpu, _): &&(CpuId, u32)| waiting.iter().any(|task| task.cpu == busy && allowed(task, *cpu));
        let nearest = watch.idle.iter().filter(could).min_by_key(|(cpu, _)| self.shape.between(*cpu, busy));
        let (idle, disturbed) = nearest.or(watch.idle.first()).copied().unwrap_or_default();
        let (level, distance) = self.shape.between(idle, busy);
        let there = |task: &&WaitingNow| WaitingThere {
            tid: task.tid,
            name: task.name.clone(),
            cpu: task.cpu,
            affinity_known: task.allowed.is_some(),
        };
        let us = |ns: Nanos| ns as f64 / 1e3;
        Finding {
            start_us: us(watch.from - self.start),
            duration_us: us(now - watch.from),
            idle_cpu: idle,
            busy_cpu: busy,
            idle_cpus: watch.idle.iter().map(|(cpu, _)| *cpu).collect::<CpuList>().to_string(),
            busy_cpus: watch.busy.iter().copied().collect::<CpuList>().to_string(),
            disturbed,
            level,
            distance,
            waiting: waiting.iter().take(MOST_WAITING).map(there).collect(),
            waiting_tasks: waiting.len() as u64,
        }
    }
}

fn find(cpus: &[CpuNow], cpu: CpuId) -> Option<CpuNow> {
    cpus.binary_search_by_key(&cpu, |now| now.cpu).ok().map(|at| cpus[at])
}

/// Whether the task may run on the CPU, and does not wait there.
fn allowed(task: &WaitingNow, cpu: CpuId) -> bool {
    task.cpu != cpu && task.allowed.as_ref().is_none_or(|cpus| cpus.contains(cpu))
}

/// The tasks that wait on a busy CPU and may run on one of the idle ones.
fn could_run<'a>(waiting: &'a [WaitingNow], busy: &[CpuId], idle: &[(CpuId, u32)]) -> Vec<&'a WaitingNow> {
    let could =
        |task: &&WaitingNow| busy.binary_search(&task.cpu).is_ok() && idle.iter().any(|(cpu, _)| allowed(task, *cpu));
    waiting.iter().filter(could).collect()
}

#[cfg(test)]
mod tests;
