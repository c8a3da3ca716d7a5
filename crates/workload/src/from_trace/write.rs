//! Writes a model down as a workload: its tasks with their properties, its groups and sessions.

use super::endings::{Ending, Endings};
use super::going_on::{locks, rounds_in_turn};
use super::identity::{Identity, Speaker, session};
use super::life::{Begin, Place, Task};
use super::locks::Locks;
use super::names::{Keys, bound_to};
use super::rooms::Rooms;
use super::sequence::{NOBODY, TaskIx, Token};
use super::services::{Service, Services};
use super::teams::Jobs;
use super::{ModelBuilder, Options, Report, emit};
use crate::{Global, Group, NO_SESSION, Phase, Props, Recorded, TaskDef, Workload};
use schedlab_base::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// The identity with which a task ran longest.
fn longest(task: &Task) -> &Identity {
    let most = task.identities.iter().rev().max_by_key(|(_, run)| *run);
    &most.expect("a task has at least one identity").0
}

/// When a task begins, and what it does then. A sleep at the start that no task ended is a delay.
fn beginning(task: &Task) -> (Nanos, &[Token]) {
    match (task.begin, task.sequence.split_first()) {
        (Begin::After(0), Some((&Token::Block { length, waker: NOBODY }, rest))) => (length, rest),
        (Begin::After(after) | Begin::Forked { after, .. }, _) => (after, &task.sequence),
    }
}

/// How a task starts, in a trace of this length: its parent forks it, or it was there.
fn start(task: &Task, delay: Nanos, kept: &[bool], span: Nanos) -> TaskDef {
    match forker(task, kept) {
        Some(_) => TaskDef { instances: 0, ..TaskDef::default() },
        None => TaskDef {
            delay: (delay + 500) / 1000 * 1000,
            cpu: task.home,
            averages: task.past.averages(span),
            ..TaskDef::default()
        },
    }
}

/// The task in the model that forks this one.
fn forker(task: &Task, kept: &[bool]) -> Option<TaskIx> {
    match task.begin {
        Begin::Forked { by, .. } => Some(by).filter(|by| kept[*by as usize]),
        Begin::After(_) => None,
    }
}

/// The parent of a task that came to its end, where it was seen.
fn parent_at_end(task: &Task) -> Option<TaskIx> {
    match task.begin {
        Begin::Forked { by, .. } if task.place == Place::Dead => Some(by),
        _ => None,
    }
}

/// What a task goes on with until the run ends: its work, or the rounds of work and sleep that it was in.
fn goes_on(end: &End, task: &Task, phases: &[Phase], voice: &emit::Voice) -> Option<Phase> {
    if *end == End::Work {
        return None;
    }
    if task.goes_on && !locks(&task.sequence) {
        return emit::on_and_on(phases, None, voice);
    }
    let rounds = rounds_in_turn(&task.sequence, 0, task.asleep?)?;
    emit::on_and_on(phases, Some(&rounds), voice)
}

/// What a task does: its sequence, and what it goes on with.
fn phases(
    end: &End,
    task: &Task,
    ended: Option<Ending>,
    sequence: &[Token],
    voice: &emit::Voice,
    report: &mut Report,
) -> Vec<Phase> {
    if let Some(ended) = ended {
        let phases = ended.phases(sequence, voice);
        *(if ended.killed { &mut report.killed } else { &mut report.stopped }) += 1;
        report.count_phases(&phases);
        return phases;
    }
    let mut phases = emit::phases(sequence, voice);
    report.count_phases(&phases);
    if let Some(phase) = goes_on(end, task, &phases, voice) {
        *(if task.goes_on { &mut report.going_on } else { &mut report.going_round }) += 1;
        phases.push(phase);
    }
    phases
}

/// The semaphore that each task waits on, by its key: one of its own, or that of its pool.
fn semaphores(shared: &[TaskIx], keys: &[String]) -> Vec<String> {
    let mut users = vec![0; keys.len()];
    shared.iter().for_each(|whose| users[*whose as usize] += 1);
    let name = |whose: &TaskIx| match users[*whose as usize] {
        1 => format!("wake-{}", keys[*whose as usize]),
        _ => format!("queue-{}", keys[*whose as usize]),
    };
    shared.iter().map(name).collect()
}

/// What wakes tasks as a pipe or a socket does.
fn synced(tasks: &[Task], semaphores: &[String], services: &Services, keys: &[String]) -> emit::Synced {
    let is_synced = |task: &TaskIx| tasks[*task as usize].wakes.sync();
    let mut sync = emit::Synced::default();
    let own = (0..).zip(semaphores).filter(|(task, _)| is_synced(task));
    sync.posts.extend(own.map(|(_, name)| name.clone()));
    for service in services.all() {
        let queue = || emit::queue(keys, service.queue());
        sync.posts.extend(service.servers.iter().any(is_synced).then(queue));
        sync.answers.extend(service.clients.iter().any(is_synced).then(queue));
    }
    sync
}

impl ModelBuilder {
    /// The workload of the kept tasks, in the window from `start` to `end`. `shared` says whose semaphore each task
    /// waits on.
    pub(super) fn write(
        &self,
        kept: &[bool],
        shared: &[TaskIx],
        (services, jobs, locks, rooms): (&Services, &[Jobs], &Locks, &Rooms),
        options: &Options,
        window: (Nanos, Nanos),
        report: &mut Report,
    ) -> Workload {
        let tasks = &self.track().tasks;
        let keys = &self.keys(kept);
        let semaphores = &semaphores(shared, keys);
        let sync = synced(tasks, semaphores, services, keys);
        let span = window.1 - window.0;
        let end = self.end(kept, keys, span);
        let costs = self.replay.observer.1.1.seen(self.soft_irqs_are_sent, &self.track().sent);
        let recorded = Recorded { costs, ..self.recorded.clone() };
        let recorded = Some(recorded).filter(|recorded| !recorded.kernel.is_empty());
        let taken = &self.track().taken;
        let interrupts = taken.sources(span);
        report.interrupts_ns = taken.sum();
        let mut workload =
            Workload { name: "model".to_owned(), global: end.global(), recorded, interrupts, ..Workload::default() };
        let speaker = Speaker::new(&self.facts, &self.groups, options.pin);
        let sessions = Sessions::of(tasks, kept);
        let stopped = self.stopped(services, jobs, window.0);
        for ix in (0..tasks.len()).filter(|ix| kept[*ix]) {
            let task = &tasks[ix];
            let unknown = task.identities.iter().any(|(identity, _)| identity.properties.policy.is_none());
            let prio = unknown.then(|| report.priority(task, &keys[ix])).flatten();
            let all: Vec<Props> = task.identities.iter().map(|(identity, _)| speaker.props(identity, prio)).collect();
            let changes = speaker.changes(&all);
            let props = self.begins_with(&speaker, task, all.into_iter().next().unwrap_or_default(), kept);
            report.pinned += usize::from(props.cpus.is_some());
            report.described += usize::from(longest(task).properties.policy.is_some());
            report.unsaid(task, &keys[ix]);
            let (delay, sequence) = beginning(task);
            let mut start = start(task, delay, kept, span);
            if self.from_nothing && window.0 == 0 {
                start.averages = None;
            }
            let (own, parent) = (ix as TaskIx, parent_at_end(task));
            let (beat, tick) = (task.wakes.beat(), task.phases.tick(task.wakes.all));
            let queue = services.of_server(own).map(Service::queue);
            let (sync, changes) = (&sync, &changes[..]);
            let voice = emit::Voice { keys, semaphores, own, beat, tick, queue, sync, changes, parent };
            let ended = task.ending.filter(|_| stopped[ix]);
            let phases = phases(&end, task, ended, sequence, &voice, report);
            let age = |ended: Ending| ended.at.saturating_sub(window.0.saturating_add(delay)).max(1_000) / 1000 * 1000;
            start.lifetime = ended.map(age);
            let (name, loops, session) = (keys[ix].clone(), Some(1), sessions.of_task(task));
            workload.tasks.push(TaskDef { name, loops, props, phases, session, ..start });
        }
        for list in jobs {
            let task = list.written(keys, semaphores, &sync);
            report.count_phases(&task.phases);
            report.shares(list, keys);
            workload.tasks.push(task);
        }
        report.answers(services, keys);
        report.waits(locks, rooms, keys);
        report.ends(&end);
        (report.sessions, workload.sessions) = (sessions.count, sessions.nice);
        workload.groups = self.groups_of(&workload, window, report);
        (report.groups, report.groups_known) = (workload.groups.len(), self.groups.are_known());
        workload
    }

    /// The properties that a task has at first: of its first identity, of its name if no CPUs are known of any, and
    /// what it does not have of its parent.
    fn begins_with(&self, speaker: &Speaker<'_>, task: &Task, mut props: Props, kept: &[bool]) -> Props {
        if speaker.pins() && task.identities.iter().all(|(identity, _)| identity.allowed.is_none()) {
            // Names say where kernel threads may run.
            props.cpus = bound_to(self.comm(task)).filter(|cpu| Some(*cpu) == task.only_cpu).map(|cpu| vec![cpu]);
        }
        if let (Some(by), Some((identity, _))) = (forker(task, kept), task.identities.first()) {
            speaker.differs(identity, &mut props, &self.track().tasks[by as usize].identities);
        }
        props
    }

    /// Which tasks were stopped, in a window from `start`. Workers whose jobs are done, and servers of clients that
    /// ended by themselves, which have answered all, were only cleared away.
    fn stopped(&self, services: &Services, jobs: &[Jobs], start: Nanos) -> Vec<bool> {
        let tasks = &self.track().tasks;
        let endings = Endings::of(self.track());
        let mut stopped: Vec<bool> =
            tasks.iter().map(|task| endings.is_stopped(task, beginning(task).1, start)).collect();
        jobs.iter().flat_map(|list| &list.workers).for_each(|worker| stopped[*worker as usize] = false);
        for service in services.all() {
            if !service.clients.iter().all(|client| stopped[*client as usize]) {
                service.servers.iter().for_each(|server| stopped[*server as usize] = false);
            }
        }
        stopped
    }

    pub(super) fn comm(&self, task: &Task) -> &str {
        self.names.get(&task.tid).map_or("", String::as_str)
    }

    /// The keys of the kept tasks; those of the others are empty.
    fn keys(&self, kept: &[bool]) -> Vec<String> {
        let mut unique = Keys::default();
        let key = |(task, keep): (&Task, &bool)| match keep {
            true => unique.unique(self.comm(task), task.tid),
            false => String::new(),
        };
        std::iter::zip(&self.track().tasks, kept).map(key).collect()
    }

    /// When the run ends. If no task was in the middle of long work when the trace ended, each has done what it did: a
    /// scheduler that needs longer shall still do all of it. Otherwise these go on, as they would have, until the
    /// recorded command has ended or, if it had not, as much time is over.
    fn end(&self, kept: &[bool], keys: &[String], span: Nanos) -> End {
        let tasks = || std::iter::zip(&self.track().tasks, kept).enumerate().filter(|(_, (_, keep))| **keep);
        if !tasks().any(|(_, (task, _))| task.goes_on) {
            return End::Work;
        }
        let ended = |task: &Task| Some(task.tid) == self.command && task.place == Place::Dead;
        match tasks().find(|(_, (task, _))| ended(task)) {
            None => End::Time(span.max(1)),
            Some((ix, _)) => End::Command(keys[ix].clone(), span.saturating_mul(MOST_TIMES).max(1)),
        }
    }

    /// The groups that the tasks are in, and those above them.
    fn groups_of(&self, workload: &Workload, window: (Nanos, Nanos), report: &mut Report) -> BTreeMap<String, Group> {
        let props = workload.tasks.iter().flat_map(|task| task.phases.iter().map(|p| &p.props).chain([&task.props]));
        let paths: BTreeSet<&str> =
            props.filter_map(|props| props.taskgroup.as_deref()).filter(|p| *p != "/").collect();
        let (groups, changed) = self.groups.of(paths.into_iter(), window);
        let remarks = changed
            .iter()
            .map(|path| format!("the cgroup {path} changed its weight or limits; those that it had longest are kept"));
        report.remarks.extend(remarks);
        groups
    }
}

/// A command that takes this many times as long as it was recorded is not waited for any more.
const MOST_TIMES: Nanos = 100;

/// What ends the run of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All tasks have done what they did.
    Work,
    /// As much time is over as was recorded.
    Time(Nanos),
    /// The task with this key has ended, or this time is over.
    Command(String, Nanos),
}

impl End {
    fn global(&self) -> Global {
        match self {
            Self::Work => Global::default(),
            Self::Time(duration) => Global { duration: Some(*duration), ..Global::default() },
            Self::Command(key, most) => Global { duration: Some(*most), until: Some(key.clone()), ..Global::default() },
        }
    }
}

/// The sessions of the modelled tasks.
struct Sessions {
    /// Whether the trace has sessions at all.
    known: bool,
    count: usize,
    nice: BTreeMap<u32, i8>,
}

impl Sessions {
    fn of(tasks: &[Task], kept: &[bool]) -> Self {
        let kept = std::iter::zip(tasks, kept).filter(|(_, keep)| **keep);
        let all: Vec<_> = kept.map(|(task, _)| &longest(task).properties).collect();
        let numbers: BTreeSet<u32> = all.iter().map(|properties| session(properties)).collect();
        let count = numbers.iter().filter(|number| **number != NO_SESSION).count();
        let nice = all.iter().filter_map(|properties| Some((session(properties), properties.autogroup_nice?)));
        Self { known: count > 0, count, nice: nice.filter(|(number, _)| *number != NO_SESSION).collect() }
    }

    fn of_task(&self, task: &Task) -> Option<u32> {
        self.known.then(|| session(&longest(task).properties))
    }
}
