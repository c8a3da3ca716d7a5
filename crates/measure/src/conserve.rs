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
//! # Waiting by affinity
//! A task that waits while every idle CPU is one that it is not allowed on is no violation. Such waits are summed up by
//! the CPUs that tasks are bound to.
//!
//! # Cost
//! An event costs no more than the CPUs whose state it changes, in words of 64; tasks are counted by affinity. Memory
//! grows with tasks and CPUs alone.

mod bound;
mod classes;
mod level;
mod wasted;
mod watch;

pub use level::Level;
pub(crate) use level::Shape;
pub use wasted::Wasted;

use crate::names::Names;
use bound::{Bound, BoundWait};
use schedlab_base::{
    AffinityRecord, CpuId, CpuList, Event, Meta, NameRecord, Nanos, Partial, Payload, Sink, Tid, total,
};
use schedlab_track::{Kept, Part, Seen, Slot, Tracker, View, Viewed, observers};
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
    /// Nobody can know: the report's reason says why.
    Undecided,
}

/// With a larger part of its switches contradicting others, or of its events lost, a trace decides nothing.
pub const MOST_DOUBTFUL: f64 = 0.05;

/// At most so many tasks are listed of those that waited because they are bound to the same CPUs.
const MOST_BOUND_TASKS: usize = 16;

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

/// A task that waited while only CPUs were idle that it is not allowed on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoundTask {
    /// Its thread id.
    pub tid: Tid,
    /// Its name; empty when the trace tells none.
    pub name: String,
    /// How long.
    pub wait_us: f64,
}

/// Waiting by tasks that are bound to the same CPUs, while only other CPUs were idle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoundWaiting {
    /// The CPUs that the tasks may run on, as the kernel writes them.
    pub allowed: String,
    /// The CPUs that were idle meanwhile, not necessarily all at once.
    pub idle: String,
    /// How long the tasks waited, summed.
    pub wait_us: f64,
    /// How many tasks waited.
    pub waiting_tasks: u64,
    /// Those that waited longest; 16 at most.
    pub waiting: Vec<BoundTask>,
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
    /// Waiting by affinity, the longest first.
    pub bound: Vec<BoundWaiting>,
    /// All of it.
    pub bound_wait_us: f64,
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
    /// Why it is undecided, if it is.
    pub reason: Option<String>,
}

/// A check in the making: feed it a trace, then [`Check::finish`].
#[derive(Debug)]
pub struct Check {
    bounds: Bounds,
    view: View<Watching>,
    shape: Shape,
    partial: Option<Partial>,
    switches: u64,
}

/// Who is told.
#[derive(Debug)]
struct Watching {
    watch: Watch,
    names: Names,
    bound: Bound,
    seen: Seen,
}

observers!(Watching: watch, names, bound, seen);

impl Check {
    /// A check of a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta, bounds: Bounds) -> Self {
        Self::of_part(meta, bounds, None)
    }

    /// A check of a part of a trace with this metadata, or of the whole. Only the waits of the part's tasks count.
    #[must_use]
    pub fn of_part(meta: &Meta, bounds: Bounds, part: Option<Part>) -> Self {
        let cpus = meta.cpus.iter().map(|place| place.cpu).collect();
        // `schedlab record` reads affinities now and then; whatever else writes them writes every change.
        let watch = Watch::new(bounds.threshold, meta.source != "record");
        let watching = Watching { watch, names: Names::default(), bound: Bound::new(cpus), seen: Seen::new(meta) };
        let mut view = View::new(meta, part, Kept::Waits, watching);
        let (tracker, Watching { watch, .. }) = view.parts();
        watch.exists(0);
        tracker.present().for_each(|cpu| watch.exists(cpu));
        Self { bounds, view, shape: Shape::new(meta), partial: meta.partial.clone(), switches: 0 }
    }

    /// Also keeps how many CPUs were wasted over time, for [`Check::finish_over_time`].
    #[must_use]
    pub fn over_time(mut self) -> Self {
        self.view.parts().1.watch.over_time = Some(Wasted::default());
        self
    }

    /// Ends the check as [`Check::finish`] does, and says when how many CPUs were wasted.
    #[must_use]
    pub fn finish_over_time(self, end: Option<Nanos>) -> (CheckReport, Wasted) {
        self.end(end)
    }

    /// Ends the check: at `end`, or else at the end of the metadata's span, but never before the last event.
    #[must_use]
    pub fn finish(self, end: Option<Nanos>) -> CheckReport {
        self.end(end).0
    }

    fn end(self, end: Option<Nanos>) -> (CheckReport, Wasted) {
        let Self { bounds, view, shape, partial, switches } = self;
        let mut viewed = view.finish(end);
        let over_time = viewed.observer.watch.over_time.take();
        let Viewed { tracker, observer: Watching { watch, seen, bound, .. }, .. } = &viewed;
        let (start, end) = viewed.bounds;
        let us = |ns: u128| ns as f64 / 1e3;
        let known = watch.idle_time + watch.busy_time;
        let tasks = tracker.tasks().filter(|(slot, tid)| *tid != 0 && seen.has(*slot));
        let (tasks, unknown) =
            tasks.fold((0, 0), |(all, unknown), (slot, _)| (all + 1, unknown + u64::from(!watch.knows(slot))));
        let over = bounds.max_wasted.map_or(!watch.found.is_empty(), |most| watch.wasted > u128::from(most));
        let reason = doubt(&viewed, partial.as_ref(), switches, over);
        let verdict = match over {
            _ if reason.is_some() => Verdict::Undecided,
            true => Verdict::Fail,
            false => Verdict::Pass,
        };
        let bound: Vec<BoundWaiting> = bound.waits().iter().map(|wait| bound_waiting(&viewed, wait)).collect();
        let report = CheckReport {
            violations: watch.found.iter().map(|found| violation(&viewed, &shape, found)).collect(),
            violations_left_out: watch.left_out,
            longest_us: us(watch.longest.into()),
            bound_wait_us: total(bound.iter().map(|wait| wait.wait_us)),
            bound,
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
            reason,
        };
        (report, over_time.unwrap_or_default().of(start, end))
    }
}

/// Why the trace decides nothing, if it does not; `over`: what was found is beyond the bounds.
fn doubt(viewed: &Viewed<Watching>, partial: Option<&Partial>, switches: u64, over: bool) -> Option<String> {
    let Viewed { tracker, observer: Watching { watch, .. }, .. } = viewed;
    let Tracker { events, lost, contradictions, .. } = *tracker;
    let doubtful = |part: u64, all: u64| part as f64 > MOST_DOUBTFUL * all as f64;
    let most = MOST_DOUBTFUL * 100.0;
    if let Some(partial) = partial {
        Some(partial.reason())
    } else if events == 0 {
        Some("the trace has no events".to_owned())
    } else if doubtful(contradictions, switches) {
        let of = format!("{contradictions} events contradict others, beside {switches} switches");
        Some(format!("{of}: more than {most}% of the switches are in doubt"))
    } else if over {
        // What was found rests on events that are there.
        None
    } else if doubtful(lost, events + lost) {
        Some(format!("{lost} of {} events were lost: more than {most}%", events + lost))
    } else if watch.unknown_time > watch.idle_time + watch.busy_time {
        Some("what the CPUs did is not known for more than half of the time".to_owned())
    } else {
        None
    }
}

fn bound_waiting(viewed: &Viewed<Watching>, wait: &BoundWait) -> BoundWaiting {
    let Viewed { tracker, observer: Watching { names, .. }, .. } = viewed;
    let task = |(slot, time): &(Slot, Nanos)| BoundTask {
        tid: tracker.tid(*slot),
        name: names.of(*slot).comm.to_string(),
        wait_us: *time as f64 / 1e3,
    };
    let text = |cpus: &CpuList| cpus.to_string();
    BoundWaiting {
        allowed: text(&wait.cpus),
        idle: text(&wait.idle),
        wait_us: wait.time as f64 / 1e3,
        waiting_tasks: wait.tasks.len() as u64,
        waiting: wait.tasks.iter().take(MOST_BOUND_TASKS).map(task).collect(),
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
        self.switches += batch.iter().filter(|event| matches!(event.what, Payload::Switch { .. })).count() as u64;
        self.view.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.view.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.view.affinity(record);
    }

    fn lasts(&mut self, until: Nanos) {
        self.view.lasts(until);
    }
}
