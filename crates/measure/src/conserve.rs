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
pub(crate) use watch::bound_by_name;

use crate::names::Names;
use level::Shape;
use schedlab_base::{AffinityRecord, CpuId, Event, Meta, NameRecord, Nanos, Sink, Tid};
use schedlab_track::{Kept, Part, Seen, View, Viewed, observers};
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
    view: View<Watching>,
    shape: Shape,
}

/// Who is told.
#[derive(Debug)]
struct Watching {
    watch: Watch,
    names: Names,
    seen: Seen,
}

observers!(Watching: watch, names, seen);

impl Check {
    /// A check of a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta, bounds: Bounds) -> Self {
        Self::of_part(meta, bounds, None)
    }

    /// A check of a part of a trace with this metadata, or of the whole. Only the waits of the part's tasks count.
    #[must_use]
    pub fn of_part(meta: &Meta, bounds: Bounds, part: Option<Part>) -> Self {
        let watching = Watching { watch: Watch::new(bounds.threshold), names: Names::default(), seen: Seen::default() };
        let mut view = View::new(meta, part, Kept::Waits, watching);
        let (tracker, Watching { watch, .. }) = view.parts();
        watch.exists(0);
        tracker.present().for_each(|cpu| watch.exists(cpu));
        Self { bounds, view, shape: Shape::new(meta) }
    }

    /// Ends the check: at `end`, or else at the end of the metadata's span, but never before the last event.
    #[must_use]
    pub fn finish(self, end: Option<Nanos>) -> CheckReport {
        let Self { bounds, view, shape } = self;
        let viewed = view.finish(end);
        let Viewed { tracker, observer: Watching { watch, seen, .. }, .. } = &viewed;
        let (start, end) = viewed.bounds;
        let us = |ns: u128| ns as f64 / 1e3;
        let known = watch.idle_time + watch.busy_time;
        let tasks = tracker.tasks().filter(|(slot, tid)| *tid != 0 && seen.has(*slot));
        let (tasks, unknown) =
            tasks.fold((0, 0), |(all, unknown), (slot, _)| (all + 1, unknown + u64::from(!watch.knows(slot))));
        let over = bounds.max_wasted.map_or(!watch.found.is_empty(), |most| watch.wasted > u128::from(most));
        let verdict = match over {
            true => Verdict::Fail,
            false if watch.unknown_time > known => Verdict::Undecided,
            false => Verdict::Pass,
        };
        CheckReport {
            violations: watch.found.iter().map(|found| violation(&viewed, &shape, found)).collect(),
            violations_left_out: watch.left_out,
            longest_us: us(watch.longest.into()),
            wasted_cpu_us: us(watch.wasted),
            wasted_share: if known == 0 { 0.0 } else { watch.wasted as f64 / known as f64 },
            idle_us: us(watch.idle_time),
            unknown_us: us(watch.unknown_time),
            span_us: us((end - start).into()),
            cpus: tracker.present().count() as u64,
            tasks,
            affinity_unknown: unknown,
            events: viewed.events,
            losses: tracker.losses,
            contradictions: tracker.contradictions,
            threshold_us: us(bounds.threshold.into()),
            max_wasted_us: bounds.max_wasted.map(|most| us(most.into())),
            verdict,
        }
    }
}

/// A violation as the report has it.
fn violation(viewed: &Viewed<Watching>, shape: &Shape, found: &Found) -> Violation {
    let us = |ns: Nanos| ns as f64 / 1e3;
    let (level, distance) = shape.between(found.cpu, found.busy);
    let Viewed { tracker, observer: Watching { watch, names, .. }, .. } = viewed;
    let (start, _) = tracker.bounds();
    let told = watch.has_looks;
    let task = |w: &watch::Waited| WaitingTask {
        tid: tracker.tid(w.slot),
        name: names.of(w.slot).comm.to_string(),
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

impl Sink for Check {
    fn events(&mut self, batch: &[Event]) {
        self.view.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.view.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.view.affinity(record);
    }
}
