//! A workload out of a trace: each task's bursts, its sleeps, who wakes whom and who forks whom, free of
//! what the recorded scheduler decided.
//!
//! A task's time in a trace is of three kinds. *Running* time is its demand: it is replayed as `run`,
//! burst by burst, where a burst lasts from one blocking point to the next, however often the task was
//! preempted in between. *Waiting* time, runnable but not on a CPU, is the scheduler's doing: it is not
//! replayed. *Blocked* time ends in one of two ways:
//!
//! - another modelled task ended it: the sleeper waits on its own semaphore (`sem_wait`), and the waker
//!   posts it (`sem_post`) at that point of its burst, so that cause and effect stay tied whatever the
//!   scheduler. A semaphore keeps a post that comes early.
//! - a timer or an interrupt ended it: `sleep` for as long as it was blocked, or `timer` when the task wakes
//!   on a fixed beat.
//!
//! The replay cannot deadlock: every `sem_wait` has its own `sem_post`, and the recorded order itself is an
//! order in which each post precedes its wait. Folding cycles into loops changes times, never that order.
//!
//! Bounds: a builder holds at most [`ModelBuilder::MOST_TOKENS`] bursts, blocks and wake-ups (16 bytes each) and
//! 65,536 tasks; beyond them it folds cycles ever more loosely, and says so.

mod added;
mod beats;
mod cause;
mod causes;
mod coarse;
mod consumers;
mod cores;
mod costs;
mod emit;
mod endings;
mod going_on;
mod groups;
mod habits;
mod handoffs;
mod identity;
mod joins;
mod life;
mod locks;
mod messages;
mod names;
mod pace;
mod past;
mod pools;
mod report;
mod rhythm;
mod rooms;
mod rounds;
mod sections;
mod sequence;
mod services;
mod serving;
mod sides;
mod taken;
mod teams;
#[cfg(test)]
mod tests;
mod timeouts;
mod track;
mod unseen;
mod wakeups;
mod write;
mod yields;

pub use costs::{CostsOf, SeenCost};
pub use names::is_kernel_thread;
pub use report::Report;

use crate::{Policy, Props, Recorded, Workload};
use added::Added;
use beats::Beats;
use causes::{Causes, forget_wakers};
use coarse::Coarseness;
use cores::Cores;
use costs::CostsSeen;
use groups::Groups;
use joins::Joins;
use life::Task;
use locks::Locks;
use pace::Pace;
use rooms::Rooms;
use schedlab_base::{
    AffinityRecord, Error, Event, GroupRecord, Meta, NameRecord, Nanos, Partial, Result, SMT_LOSS_PERCENT, Sink,
    TaskRecord, Tid, counted,
};
use schedlab_track::{Chosen, Kept, MAX_CPUS, Part, Replay, Seen, Selected, Tracker};
use sequence::{TaskIx, is_folded};
use services::Services;
use std::collections::HashMap;
use teams::{Jobs, Team};
use track::{MOST_TASKS, Track};
use unseen::Worth;

/// Less CPU time than this cannot be written down: the language's unit is a microsecond.
const SHORTEST: Nanos = 500;

/// What to keep.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keep so many tasks, the busiest; `None` keeps all.
    pub tasks: Option<usize>,
    /// Leave out tasks with less CPU time.
    pub min_run: Nanos,
    /// The most events that the workload should have; cycles are folded, ever more loosely, until it does.
    pub most_events: usize,
    /// Bind tasks to the CPUs that they may use.
    pub pin: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { tasks: None, min_run: 0, most_events: 1_000_000, pin: true }
    }
}

/// A workload and what there is to say of it.
#[derive(Clone, Debug)]
pub struct Model {
    /// The workload.
    pub workload: Workload,
    /// How it came about.
    pub report: Report,
}

/// What happens in the part that is modelled, whom the whole trace has, and what wake-ups cost.
type Watching = (Selected<Track>, (Selected<Seen>, CostsSeen));

/// Builds a workload from the events of a trace.
#[derive(Debug)]
pub struct ModelBuilder {
    replay: Replay<Watching>,
    /// Whether the model is of a part of the trace.
    of_part: bool,
    chosen: Option<Chosen>,
    names: HashMap<Tid, String>,
    coarseness: Coarseness,
    most_tokens: usize,
    next_check: usize,
    partial: Option<Partial>,
    groups: Groups,
    facts: identity::Facts,
    recorded: Recorded,
    /// The process of the command that was recorded.
    command: Option<Tid>,
    /// Whether the trace begins with a simulation, before which there was nothing.
    from_nothing: bool,
    /// Whether a soft interrupt mostly woke a task to which the running one had sent something.
    soft_irqs_are_sent: bool,
}

impl ModelBuilder {
    /// The default bound on what is held in memory: 4 Mi tokens of 16 bytes.
    pub const MOST_TOKENS: usize = 1 << 22;

    /// A builder for a trace with this head.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self::of_part(meta, Part::default())
    }

    /// A builder for a part of a trace. The workload begins with the window, with the tasks that run or wait then, and
    /// has the part's tasks alone.
    #[must_use]
    pub fn of_part(meta: &Meta, part: Part) -> Self {
        Self::with_bound(meta, part, Self::MOST_TOKENS)
    }

    /// A builder that holds at most about `most_tokens` bursts, blocks and wake-ups.
    #[must_use]
    pub fn with_bound(meta: &Meta, part: Part, most_tokens: usize) -> Self {
        let of_part = part.from > 0 || part.to < Nanos::MAX || part.tasks.is_some();
        let chosen = part.tasks.clone();
        let hz = meta.system.as_ref().and_then(|system| system.hz).filter(|hz| *hz > 0);
        let tick = hz.map(|hz| 1_000_000_000 / Nanos::from(hz));
        // The costs of a machine go along where its kernel is known.
        let track = Track::new(Cores::new(&meta.cpus, SMT_LOSS_PERCENT), tick, !meta.kernel.is_empty());
        let track = Selected::new(part.clone(), Kept::Story, track);
        let seen = Selected::new(part, Kept::Figures, Seen::new(meta));
        Self {
            replay: Replay::new(meta, (track, (seen, CostsSeen::default()))),
            of_part,
            chosen,
            names: HashMap::new(),
            coarseness: Coarseness::default(),
            most_tokens,
            next_check: most_tokens,
            partial: meta.partial.clone(),
            groups: Groups::default(),
            facts: identity::Facts::of(meta),
            recorded: Recorded::of(meta),
            from_nothing: meta.source == "sim",
            soft_irqs_are_sent: false,
            command: meta.target.as_ref().filter(|t| t.command.is_some()).and_then(|t| t.processes.first().copied()),
        }
    }

    /// The same for a machine on which each of two busy SMT siblings loses so many percent of its speed, in place of
    /// [`SMT_LOSS_PERCENT`]. The simulation of the workload must lose as much. Called before there are events.
    #[must_use]
    pub fn with_smt_loss(mut self, percent: u64) -> Self {
        self.replay.observer.0.inner.cores = Cores::new(&self.recorded.cpus, percent);
        self
    }

    /// The workload.
    ///
    /// # Errors
    /// When no task in the trace ran, or the options leave none.
    pub fn finish(mut self, options: &Options) -> Result<Model> {
        self.replay.finish(None);
        self.replay.observer.0.inner.pairs.settle();
        rhythm::count_missed(&mut self.replay.observer.0.inner.tasks);
        let kept = self.kept(options)?;
        let mut report = self.count(&kept);
        let mut causes = self.settle(&kept);
        self.soft_irqs_are_sent =
            self.track().pairs.soft_irqs_are_sent(|waker, task| causes.hold(self.track(), waker, task));
        let mut pools = habits::pools(&self.track().tasks, |waker, task| causes.hold(self.track(), waker, task));
        let joins = Joins::of(&self.track().tasks, &kept);
        let comm = |task: &TaskIx| self.comm(&self.track().tasks[*task as usize]);
        let alike = |tasks: &[TaskIx]| tasks.iter().all(|task| comm(task) == comm(&tasks[0]));
        let window = self.replay.observer.0.bounds();
        let mut services = Services::find(self.track(), &kept, window, alike);
        let teams = teams::find(self.track(), window, (&pools, &mut services), |task| comm(&task));
        let busy = |task| services.has(task) || teams.iter().any(|team| team.workers.contains(&task));
        let mut causal = |waker, task| causes.hold(self.track(), waker, task);
        let mut locks = Locks::find(self.track(), &mut causal, |task| comm(&task), |task| !busy(task));
        let takes = |task| locks.has(task) || pools.iter().any(|pool| pool.contains(&task));
        let consumers = consumers::pools(self.track(), &mut causal, |task| !busy(task) && !takes(task));
        let in_pool = |task| pools.iter().chain(&consumers).any(|pool| pool.contains(&task));
        let may = |task| !busy(task) && !locks.has(task) && !in_pool(task);
        let mut rooms = Rooms::find(self.track(), causal, may);
        self.add_unseen(causes, &joins, (&mut services, &mut locks, &mut rooms), options.most_events);
        pools.extend(consumers);
        pools.retain(|pool| !pool.iter().any(|task| services.of_server(*task).is_some() || locks.has(*task)));
        self.coarseness.shrink(&mut self.replay.observer.0.inner, options.most_events);
        let shared = pools::semaphores(&self.track().tasks, &kept, pools);
        let tasks = &mut self.replay.observer.0.inner.tasks;
        let share = |team: &Team| team.share(tasks, &shared, options.most_events / 2);
        let jobs: Vec<Jobs> = teams.iter().filter_map(share).collect();
        let workload = self.write(&kept, &shared, (&services, &jobs, &locks, &rooms), options, window, &mut report);
        report.remarks.extend(self.coarseness.remark());
        Ok(Model { workload, report })
    }

    fn track(&self) -> &Track {
        &self.replay.observer.0.inner
    }

    /// Which tasks the model has.
    fn kept(&self, options: &Options) -> Result<Vec<bool>> {
        let tasks = &self.track().tasks;
        let chosen = |t: &Task| self.chosen.as_ref().is_none_or(|chosen| chosen.has(t.slot));
        let seen = &self.replay.observer.1.0.inner;
        // One that waits for a CPU in vain has work, though it did none.
        let works = |t: &Task| t.run >= SHORTEST || t.goes_on && seen.has(t.slot);
        let may = |t: &Task| t.run >= options.min_run && chosen(t);
        let mut works: Vec<bool> = tasks.iter().map(|t| may(t) && works(t)).collect();
        self.add_wakers(&mut works, |task| may(&tasks[task as usize]));
        let mut order: Vec<usize> = (0..tasks.len()).filter(|i| works[*i]).collect();
        order.sort_by_key(|i| std::cmp::Reverse(tasks[*i].run));
        order.truncate(options.tasks.unwrap_or(usize::MAX));
        if order.is_empty() {
            let longest = tasks.iter().filter(|t| chosen(t)).map(|t| t.run).max().unwrap_or(0);
            return Err(if longest < SHORTEST && self.of_part {
                Error::input("no task that was selected ran").mend("select a longer window, or other tasks")
            } else if longest < SHORTEST {
                Error::input("the trace has no task that ran").mend("record one with context switches in it")
            } else {
                Error::input("no task ran long enough to be kept")
                    .mend(format!("the busiest ran {} us: lower the bound", longest / 1000))
            });
        }
        let mut kept = vec![false; tasks.len()];
        order.into_iter().for_each(|i| kept[i] = true);
        Ok(kept)
    }

    /// Adds the tasks that wake those which work, and those that wake them in turn: the simulator has some that do so
    /// without any CPU time.
    fn add_wakers(&self, works: &mut [bool], may: impl Fn(TaskIx) -> bool) {
        let (track, (start, end)) = (self.track(), self.replay.observer.0.bounds());
        loop {
            let wakes = |(waker, sleeper, _): &(TaskIx, TaskIx, u64)| {
                !works[*waker as usize] && works[*sleeper as usize] && may(*waker)
            };
            let causal = |(waker, sleeper, _): &(TaskIx, TaskIx, u64)| track.causal(*waker, *sleeper, end - start);
            let more: Vec<TaskIx> = track.pairs.all().filter(wakes).filter(causal).map(|(waker, ..)| waker).collect();
            if more.is_empty() {
                return;
            }
            more.into_iter().for_each(|waker| works[waker as usize] = true);
        }
    }

    fn count(&self, kept: &[bool]) -> Report {
        let Replay { tracker, observer: (selected, (seen, _)) } = &self.replay;
        let ((start, end), track) = (selected.bounds(), &selected.inner);
        let run = |want: bool| {
            let of = track.tasks.iter().zip(kept).filter(|(_, k)| **k == want);
            of.map(|(t, _)| t.run).fold(0, Nanos::saturating_add)
        };
        let mut report = Report {
            events: selected.events,
            tasks: kept.iter().filter(|k| **k).count(),
            left_out: taking_part(tracker, &seen.inner).saturating_sub(kept.iter().filter(|k| **k).count()),
            modelled_ns: run(true),
            left_out_ns: run(false),
            span_ns: end - start,
            unseen: track.unseen(kept, end - start),
            lost_events: tracker.lost,
            ..Report::default()
        };
        report.remarks.extend(self.partial.as_ref().map(|partial| format!("partial: {}", partial.reason())));
        if tracker.losses > 0 {
            report.remarks.push(format!(
                "events were lost in {}: who woke a task across them is unknown, it sleeps instead",
                counted(tracker.losses, "place")
            ));
        }
        if tracker.contradictions > 0 {
            let contradict = if tracker.contradictions == 1 { "contradicts" } else { "contradict" };
            report.remarks.push(format!(
                "{} {contradict} what was seen before, as if the recorder had not seen some tasks; the time goes to \
                 those it saw",
                counted(tracker.contradictions, "switch")
            ));
        }
        if track.beyond > 0 {
            report.remarks.push(format!(
                "{} sightings of tasks beyond the first {MOST_TASKS}, or of CPUs beyond {MAX_CPUS}, are not modelled",
                track.beyond
            ));
        }
        report
    }

    /// Adds the waits for children and the messages that no wake-up shows, and lets each server answer the client whose
    /// question it took. If there were too many events else, several messages are one, or there are none.
    fn add_unseen(
        &mut self,
        mut causes: Causes<'_>,
        joins: &Joins,
        (services, locks, queues): (&mut Services, &mut Locks, &mut Rooms),
        most_events: usize,
    ) {
        let track = &mut self.replay.observer.0.inner;
        let pace = Pace::of(&track.tasks);
        track.fed.iter_mut().for_each(|fed| fed.bound(&pace));
        let plain: Vec<bool> = track.tasks.iter().map(|task| !is_folded(&task.sequence)).collect();
        let (kept, served) = (causes.kept, services.clone());
        let mut causal = |tasks: &Track, waker, task| {
            let plain = plain[waker as usize] && plain[task as usize];
            plain && !served.joins(waker, task) && !locks.joins(waker, task) && causes.hold(tasks, waker, task)
        };
        let sent = habits::Sent::of(&track.silence, &track.tasks, |waker, task| causal(track, waker, task));
        let lengths = messages::lengths(&track.fed, &track.tasks);
        let worth = Worth { lengths, beats: Beats::of(&track.tasks) };
        let explained = sent.explained(&track.tasks, &worth.counts(&track.fed));
        let rooms = std::iter::successors(Some(4 * most_events), |room| Some(room / 2));
        let mut tried = Added::default();
        for room in rooms.take_while(|room| *room > most_events / 16).map(Some).chain([None]) {
            let mut added = Added::to(&track.tasks);
            if let Some(room) = room {
                added = unseen::additions(&track.fed, &worth, &track.tasks, room, |waker, task| {
                    !explained[task as usize] && causal(track, waker, task)
                });
                sent.add_to(&mut added);
            }
            joins.add_to(&mut added);
            if added.tokens == tried.tokens {
                continue;
            }
            let with = |(task, added): (&Task, &Vec<_>)| match added.is_empty() {
                true => task.sequence.clone(),
                false => added::insert(&task.sequence, added.clone()),
            };
            let mut sequences: Vec<_> = std::iter::zip(&track.tasks, &added.tokens).map(with).collect();
            let lists: Vec<_> = sequences.iter().map(|list| &list[..]).collect();
            let written = services.written(&track.tasks, kept, &lists);
            let locked = locks.written(&lists);
            written.into_iter().chain(locked).for_each(|(task, list)| sequences[task as usize] = list);
            queues.write(track, &mut sequences, most_events);
            sequences.iter_mut().for_each(|list| forget_wakers(list));
            let fits = |loosely: Coarseness| Some((loosely, loosely.fold_all(&sequences, most_events)?));
            if let Some((coarseness, sequences)) = self.coarseness.looser().find_map(fits) {
                std::iter::zip(&mut track.tasks, sequences).for_each(|(task, sequence)| task.sequence = sequence);
                self.coarseness = coarseness;
                return;
            }
            tried = added;
        }
        (*services, *locks, *queues) = Default::default();
        track.tasks.iter_mut().for_each(|task| forget_wakers(&mut task.sequence));
    }
}

impl Sink for ModelBuilder {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            let Replay { tracker, observer } = &mut self.replay;
            if event.cpu >= MAX_CPUS {
                observer.0.inner.beyond += 1;
                continue;
            }
            tracker.event(event, observer);
            let track = &mut observer.0.inner;
            if track.tokens > self.next_check {
                self.coarseness.shrink(track, self.most_tokens / 2);
                self.next_check = self.most_tokens.max(track.tokens * 2);
            }
        }
    }

    fn name(&mut self, record: &NameRecord) {
        // Slots are numbered by names too: tasks were chosen in a reading that had them.
        self.replay.name(record);
        if record.tid != 0 && (self.names.len() < 2 * MOST_TASKS || self.names.contains_key(&record.tid)) {
            self.names.insert(record.tid, record.comm.chars().take(64).collect());
        }
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.replay.affinity(record);
    }

    fn task(&mut self, record: &TaskRecord) {
        self.replay.task(record);
    }

    fn group(&mut self, record: &GroupRecord) {
        self.groups.add(record);
    }

    fn lasts(&mut self, until: Nanos) {
        self.replay.lasts(until);
    }
}

/// How many tasks ran, waited or were moved.
fn taking_part(tracker: &Tracker, seen: &Seen) -> usize {
    tracker.tasks().filter(|(slot, tid)| *tid != 0 && seen.has(*slot)).count()
}

/// Policy and priority of a kernel priority: 100..=139 are nice -20..=19; below are real-time ones, of
/// which the trace does not tell FIFO from RR (kernel threads are FIFO); -1 is a deadline task, whose
/// parameters the trace does not have.
fn policy(prio: i16) -> Props {
    let (policy, priority) = match prio {
        120 => (None, None),
        100..=139 => (None, Some(i32::from(prio) - 120)),
        0..=98 => (Some(Policy::Fifo), Some(99 - i32::from(prio))),
        i16::MIN..=-1 => (Some(Policy::Fifo), Some(99)),
        _ => (None, None),
    };
    Props { policy, priority, ..Props::default() }
}
