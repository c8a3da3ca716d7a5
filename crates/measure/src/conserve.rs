//! Work conservation: no CPU should be idle while a task waits on another that is allowed to run there.
//!
//! # What is found
//! A *violation* is a longest stretch of time, longer than the threshold, throughout which a CPU is idle while at
//! each instant some task waits on the queue of another, busy CPU and is allowed to run on the idle one. Not
//! necessarily the same task throughout, nor on the same queue. Instants without length do not end it.
//!
//! # What is wasted
//! At each instant, the most idle CPUs that could each be given a waiting task of its own: the size of a largest
//! matching between idle CPUs and tasks that wait on busy CPUs, along what the tasks are allowed. Where all may run
//! anywhere that is the lesser of the two numbers. Its integral over time is the CPU time wasted, also in stretches
//! that are shorter than the threshold.
//!
//! # What is not known is not held against anybody
//! A CPU of which nobody can tell what it runs is neither idle nor busy. A task whose affinity nobody knows counts as
//! allowed everywhere, and is counted in the report; of the kernel's own threads that are bound to a CPU the name tells
//! which. When a task that was believed to wait turns out to have run unseen, violations that rest on it alone are
//! dropped, and when a CPU that was believed to be idle turns out to have run somebody, its violations since it became
//! so; the most that they can have added to the waste is taken off.
//!
//! # Cost
//! An event costs no more than the CPUs whose state it changes, in words of 64; tasks are counted by affinity. Memory
//! grows with tasks and CPUs alone.

mod classes;
mod level;
mod watch;

pub use level::Level;

use crate::names::Names;
use crate::tracker::Tracker;
use level::Shape;
use schedlab_base::{AffinityRecord, CpuId, Event, Meta, NameRecord, Nanos, Payload, Sink, Tid};
use serde::Serialize;
use watch::{Found, Watch};

/// A violation shorter than this is none, unless another threshold is given.
pub const THRESHOLD: Nanos = 100_000_000;

/// What a check comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The scheduler kept its promise.
    Pass,
    /// It did not.
    Fail,
    /// Too little is known of what the CPUs did.
    Undecided,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Violations are longer than this.
    pub threshold: Nanos,
    /// The CPU time that may be wasted, violations or not; `None`: no violation is borne.
    pub max_wasted: Option<Nanos>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { threshold: THRESHOLD, max_wasted: None }
    }
}

/// A task that waited while a CPU was idle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitingTask {
    /// Its thread id.
    pub tid: Tid,
    /// Its name; empty when the trace tells none.
    pub name: String,
    /// The CPU on whose queue it waited last.
    pub cpu: CpuId,
    /// The part of the violation that its last two waits take.
    pub wait_us: f64,
    /// Whether it is known where it may run.
    pub affinity_known: bool,
}

/// A CPU that was idle for too long while tasks waited that were allowed there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    /// Since the trace's start.
    pub start_us: f64,
    /// How long.
    pub duration_us: f64,
    /// The CPU that was idle.
    pub idle_cpu: CpuId,
    /// The CPU on whose queue the tasks waited longest.
    pub busy_cpu: CpuId,
    /// The tasks that waited, the longest first; 16 at most.
    pub waiting: Vec<WaitingTask>,
    /// How many waited in all.
    pub waiting_tasks: u64,
    /// What separates the two CPUs.
    pub level: Level,
    /// The distance of their nodes, where they have different ones and the trace tells.
    pub distance: Option<u32>,
    /// Tasks that were moved to the idle CPU meanwhile, the one that ended the violation included.
    pub migrations_to_idle: u64,
    /// Tasks that were moved elsewhere meanwhile.
    pub migrations_elsewhere: u64,
    /// How often the balancer looked for work for the idle CPU; none where the trace does not tell.
    pub looks: Option<u64>,
    /// Whether it looked at the busy CPU; none where the trace does not tell.
    pub looked_at_busy: Option<bool>,
    /// The trace ended before it did.
    pub until_end: bool,
}

/// What was found. Times in microseconds, the nanoseconds as decimals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckReport {
    /// The violations, by their end.
    pub violations: Vec<Violation>,
    /// Violations beyond the 10,000 that are kept.
    pub violations_left_out: u64,
    /// The longest.
    pub longest_us: f64,
    /// The CPU time wasted, in stretches of any length.
    pub wasted_cpu_us: f64,
    /// The part of the CPUs' known time that this is.
    pub wasted_share: f64,
    /// The CPUs' time idle.
    pub idle_us: f64,
    /// The CPUs' time of which nobody can tell.
    pub unknown_us: f64,
    /// The trace's length.
    pub span_us: f64,
    /// How many CPUs.
    pub cpus: u64,
    /// Tasks that ran or waited.
    pub tasks: u64,
    /// Those of them of which it is not known where they may run.
    pub affinity_unknown: u64,
    /// Events.
    pub events: u64,
    /// How often the recorder lost some.
    pub losses: u64,
    /// Events that contradict others.
    pub contradictions: u64,
    /// Violations are longer than this.
    pub threshold_us: f64,
    /// The CPU time that may be wasted, where a bound was given.
    pub max_wasted_us: Option<f64>,
    /// What it comes to.
    pub verdict: Verdict,
}

/// A check in the making: feed it a trace, then [`Check::finish`].
#[derive(Debug)]
pub struct Check {
    bounds: Bounds,
    tracker: Tracker,
    watch: Watch,
    names: Names,
    shape: Shape,
}

impl Check {
    /// A check of a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta, bounds: Bounds) -> Self {
        let tracker = Tracker::new(meta);
        let mut watch = Watch::new(bounds.threshold);
        watch.exists(0);
        tracker.present().for_each(|cpu| watch.exists(cpu));
        Self { bounds, tracker, watch, names: Names::default(), shape: Shape::new(meta) }
    }

    /// Ends the check: at `end`, or else at the end of the metadata's span, but never before the last event.
    #[must_use]
    pub fn finish(mut self, end: Option<Nanos>) -> CheckReport {
        self.tracker.finish(end, &mut self.watch);
        let (start, end) = self.tracker.bounds();
        self.watch.finish(end);
        let us = |ns: u128| ns as f64 / 1e3;
        let watch = &self.watch;
        let known = watch.idle_time + watch.busy_time;
        let tasks = self.tracker.tasks.iter().filter(|(slot, task)| task.tid != 0 && self.was_there(*slot));
        let (tasks, unknown) =
            tasks.fold((0, 0), |(all, unknown), (slot, _)| (all + 1, unknown + u64::from(!watch.knows(slot))));
        let over = self.bounds.max_wasted.map_or(!watch.found.is_empty(), |most| watch.wasted > u128::from(most));
        let verdict = match over {
            true => Verdict::Fail,
            false if watch.unknown_time > known => Verdict::Undecided,
            false => Verdict::Pass,
        };
        CheckReport {
            violations: watch.found.iter().map(|found| self.violation(found, start)).collect(),
            violations_left_out: watch.left_out,
            longest_us: us(watch.longest.into()),
            wasted_cpu_us: us(watch.wasted),
            wasted_share: if known == 0 { 0.0 } else { watch.wasted as f64 / known as f64 },
            idle_us: us(watch.idle_time),
            unknown_us: us(watch.unknown_time),
            span_us: us((end - start).into()),
            cpus: self.tracker.present().count() as u64,
            tasks,
            affinity_unknown: unknown,
            events: self.tracker.events,
            losses: self.tracker.losses,
            contradictions: self.tracker.contradictions,
            threshold_us: us(self.bounds.threshold.into()),
            max_wasted_us: self.bounds.max_wasted.map(|most| us(most.into())),
            verdict,
        }
    }

    /// Whether the task did anything.
    fn was_there(&self, slot: u32) -> bool {
        self.tracker.tasks[slot].status != crate::tasks::Status::Unknown
    }

    fn violation(&self, found: &Found, start: Nanos) -> Violation {
        let us = |ns: Nanos| ns as f64 / 1e3;
        let (level, distance) = self.shape.between(found.cpu, found.busy);
        let told = self.watch.has_looks;
        let task = |w: &watch::Waited| WaitingTask {
            tid: self.tracker.tasks[w.slot].tid,
            name: self.names.of(w.slot).comm.to_string(),
            cpu: w.cpu,
            wait_us: us(w.time),
            affinity_known: w.known,
        };
        Violation {
            start_us: us(found.from.saturating_sub(start)),
            duration_us: us(found.to - found.from),
            idle_cpu: found.cpu,
            busy_cpu: found.busy,
            waiting: found.waited.iter().map(task).collect(),
            waiting_tasks: found.tasks as u64,
            level,
            distance,
            migrations_to_idle: found.moves.into(),
            migrations_elsewhere: found.moves_elsewhere,
            looks: told.then_some(found.looks.into()),
            looked_at_busy: told.then_some(found.saw_busy),
            until_end: found.until_end,
        }
    }
}

/// The CPU that a kernel thread of this name is bound to.
fn bound_by_name(comm: &str) -> Option<CpuId> {
    const BOUND: [&str; 8] =
        ["kworker", "migration", "ksoftirqd", "cpuhp", "idle_inject", "irq_work", "rcuc", "watchdog"];
    let (kind, rest) = comm.split_once('/')?;
    let digits = rest.split(':').next()?;
    BOUND.contains(&kind).then(|| digits.parse().ok())?
}

impl Sink for Check {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            if self.tracker.events > 0 {
                self.watch.settle(event.time);
            }
            self.tracker.event(event, &mut self.watch);
            match event.what {
                Payload::Fork { parent, child } => {
                    let tasks = &mut self.tracker.tasks;
                    if let (Some(parent), Some(child)) = (tasks.slot(parent), tasks.slot(child)) {
                        self.names.inherit(parent, child);
                        self.watch.inherit(parent, child);
                    }
                }
                Payload::Considered { why, word, mask, .. } if why.balances() => {
                    self.watch.looked(event.cpu, word, mask);
                }
                _ => {}
            }
        }
    }

    fn name(&mut self, record: &NameRecord) {
        let Some(slot) = self.tracker.tasks.to_name(record.tid) else { return };
        self.names.set(slot, record);
        if !self.watch.knows(slot)
            && let Some(cpu) = bound_by_name(&record.comm)
        {
            self.watch.allow(slot, &[cpu].into_iter().collect(), record.time);
        }
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        if let Some(slot) = self.tracker.tasks.to_name(record.tid) {
            self.watch.allow(slot, &record.cpus, record.time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bound_by_name;

    #[test]
    fn names_tell_where_the_kernels_threads_are_bound() {
        assert_eq!(bound_by_name("kworker/3:1H-kblockd"), Some(3));
        assert_eq!(bound_by_name("migration/12"), Some(12));
        for free in ["kworker/u8:2", "kworker/R-netns", "bash", "make/3", "scsi_eh_0"] {
            assert_eq!(bound_by_name(free), None, "{free}");
        }
    }
}
