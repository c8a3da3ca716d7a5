//! Mutexes: who waits for one waits for whoever holds it.
//!
//! A task that finds a mutex held sleeps until its holder releases it, and is woken by that one. If it waited for this
//! task in the model, it would wait for one that, on another scheduler, may not even hold the mutex then, and would not
//! wait for the one that does. So in the model the tasks that share a mutex lock and unlock it ([`super::sections`]).
//!
//! A trace shows wake-ups alone. Tasks share a mutex if
//!
//! - each is woken by about as many of the others as by chance, and wakes as many: none has a part of its own. (Who
//!   asks and who answers, or who comes next in a row, has.)
//! - they are of one process, or have one name but for a number at its end.
//! - while one that was woken is on its CPU, and neither wakes the next one nor waits again, nobody else wakes one:
//!   there is one place, and it is in there. (That is not so of several mutexes, or of locks for readers.)
//! - those who wait at the same time are woken in the order in which they began to wait; if not, there must be hardly
//!   an exception to the former. They are woken one at a time. (At a barrier, the last one wakes all others.)
//! - one that is woken, but waits for a CPU, may find it taken. (What is handed over, as System V's semaphores are, is
//!   not a mutex as pthreads have it. It remains a wait for the task that released it.)
//! - one that is woken while others wait on wakes the next one before it sleeps for anything else. (Who takes one of
//!   several places, as the jobs of `make` do, works there, and sleeps.) Nor does it often wait again in the group
//!   before it wakes one. (Threads do that which wait for each other's messages and for the lock of an interpreter.)

use super::handoffs::{FEWEST_QUEUED, Handoff, PERCENT_IN_ORDER, PERCENT_TOGETHER, Preempted, TOGETHER, Waits};
use super::life::Task;
use super::sections::{Sections, Share, Signs};
use super::sequence::{TaskIx, Token, is_folded};
use super::teams::kind;
use super::track::Track;
use schedlab_base::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Tasks that share a mutex: so many at least and at most.
const FEWEST: usize = 3;
const MOST: usize = 256;

/// A task is woken by at least so many percent of as many others as by chance, and wakes as many; and both at least as
/// often as such a part of the mean.
const PERCENT_OF_CHANCE: f64 = 60.0;
const PART_OF_MEAN: usize = 20;

/// Of those who are woken while another one waits, so many percent at least show what is done while they are in their
/// section; in so many percent of these at most another one wakes one meanwhile, and in so many if they are not woken
/// in the order in which they began to wait.
const PERCENT_INSIDE: usize = 40;
const PERCENT_BESIDE: usize = 10;
const PERCENT_BESIDE_ANYHOW: usize = 3;

/// Who was woken has its CPU, and the mutex, after this time. It is looked at what so many others do afterwards.
const SOON: Nanos = 20_000;
const LATER: usize = 64;

/// One that gets a CPU only so long after it was woken, so many times at least, is less often the next to wake one than
/// in so many percent.
const LATE: Nanos = 100_000;
const FEWEST_LATE: usize = 16;
const PERCENT_HANDED: usize = 95;

/// A mutex.
#[derive(Debug)]
pub(super) struct Lock {
    /// Who takes it, in ascending order. It has the name of the first.
    pub members: Vec<TaskIx>,
    shares: Vec<Share>,
    sections: Sections,
}

/// The mutexes of a model.
#[derive(Debug, Default)]
pub(super) struct Locks(Vec<Lock>);

impl Locks {
    /// Those that the sequences show, among the tasks that may take one. `comm` is a task's name.
    pub fn find<'a>(
        track: &Track,
        mut causal: impl FnMut(TaskIx, TaskIx) -> bool,
        comm: impl Fn(TaskIx) -> &'a str,
        may: impl Fn(TaskIx) -> bool,
    ) -> Self {
        let may = |(ix, task): (TaskIx, &Task)| !is_folded(&task.sequence) && may(ix);
        let may: Vec<bool> = (0..).zip(&track.tasks).map(may).collect();
        let process = |ix: TaskIx| track.seats[track.tasks[ix as usize].slot as usize].tgid;
        let akin = |a, b| process(a).is_some() && process(a) == process(b) || kind(comm(a)) == kind(comm(b));
        let mut holds = |a: TaskIx, b: TaskIx| may[a as usize] && may[b as usize] && akin(a, b) && causal(a, b);
        let mut pairs: BTreeMap<(TaskIx, TaskIx), bool> = BTreeMap::new();
        let mut last = None;
        for Handoff { waker, sleeper, .. } in track.handoffs.woken() {
            if last.replace((*waker, *sleeper)) != Some((*waker, *sleeper)) {
                pairs.entry((*waker, *sleeper)).or_insert_with(|| holds(*waker, *sleeper));
            }
        }
        let pairs: BTreeSet<(TaskIx, TaskIx)> =
            pairs.into_iter().filter(|(_, holds)| *holds).map(|(pair, _)| pair).collect();
        Self(groups(&pairs).into_iter().filter_map(|group| Lock::of(track, &pairs, group)).collect())
    }

    /// All of them.
    pub fn all(&self) -> &[Lock] {
        &self.0
    }

    /// Whether a task takes one.
    pub fn has(&self, task: TaskIx) -> bool {
        self.0.iter().any(|lock| lock.is_of(task))
    }

    /// Whether both take the same one.
    pub fn joins(&self, a: TaskIx, b: TaskIx) -> bool {
        self.0.iter().any(|lock| lock.is_of(a) && lock.is_of(b))
    }

    /// The sequences of their tasks, which lock and unlock.
    pub fn written(&self, sequences: &[&[Token]]) -> BTreeMap<TaskIx, Vec<Token>> {
        let written = |lock: &Lock| {
            let lists: Vec<&[Token]> = lock.members.iter().map(|task| sequences[*task as usize]).collect();
            std::iter::zip(lock.members.clone(), lock.sections.written(&lock.members, &lists, &lock.shares))
        };
        self.0.iter().flat_map(written).collect()
    }
}

/// Tasks that wake each other, each one that it is woken by as well.
fn groups(pairs: &BTreeSet<(TaskIx, TaskIx)>) -> Vec<Vec<TaskIx>> {
    let mut others: BTreeMap<TaskIx, Vec<TaskIx>> = BTreeMap::new();
    for (a, b) in pairs.iter().filter(|(a, b)| pairs.contains(&(*b, *a))) {
        others.entry(*a).or_default().push(*b);
    }
    let mut groups = Vec::new();
    while let Some((first, next)) = others.pop_first() {
        let (mut group, mut next) = (BTreeSet::from([first]), next);
        while let Some(task) = next.pop() {
            group.insert(task);
            next.extend(others.remove(&task).unwrap_or_default());
        }
        if (FEWEST..=MOST).contains(&group.len()) {
            groups.push(group.into_iter().collect());
        }
    }
    groups
}

/// How often something happened to a task, and with how many others.
type With = (usize, usize);

/// The tasks of a group of which none has a part of its own in these wake-ups, if there are any. Those that do least to
/// others leave first.
fn alike(woken: &[Handoff], mut group: Vec<TaskIx>) -> Option<Vec<TaskIx>> {
    let mut times: BTreeMap<(TaskIx, TaskIx), usize> = BTreeMap::new();
    woken.iter().for_each(|handoff| *times.entry((handoff.waker, handoff.sleeper)).or_default() += 1);
    while group.len() >= FEWEST {
        let (mut slept, mut woke) = (vec![With::default(); group.len()], vec![With::default(); group.len()]);
        for ((waker, sleeper), times) in &times {
            if let (Ok(waker), Ok(sleeper)) = (group.binary_search(waker), group.binary_search(sleeper)) {
                for (all, others) in [&mut slept[sleeper], &mut woke[waker]] {
                    (*all, *others) = (*all + times, *others + 1);
                }
            }
        }
        let most = (group.len() - 1) as f64;
        let fewest = slept.iter().map(|(times, _)| times).sum::<usize>().div_ceil(group.len() * PART_OF_MEAN);
        let as_chance = |(times, others): With| {
            let by_chance = most * (1.0 - (1.0 - 1.0 / most).powf(times as f64));
            times >= fewest.max(1) && others as f64 * 100.0 >= by_chance * PERCENT_OF_CHANCE
        };
        let has_a_part = |at: &usize| !as_chance(slept[*at]) || !as_chance(woke[*at]);
        let Some(least) = (0..group.len()).filter(has_a_part).min_by_key(|at| slept[*at].0 + woke[*at].0) else {
            return Some(group);
        };
        group.remove(least);
    }
    None
}

/// A time during which a mutex was held while somebody waited for it, until the holder woke one.
struct Span {
    from: Nanos,
    to: Nanos,
    holder: TaskIx,
}

/// What wake-ups say if all are of one mutex.
#[derive(Default)]
struct Queue {
    shares: Vec<Share>,
    spans: Vec<Span>,
    /// When waits began, in order.
    sinces: Vec<Nanos>,
    /// How often one was woken while others waited on; how often in order, and together with the next one.
    queued: usize,
    in_order: usize,
    together: usize,
    /// How often it shows whether another one woke one while it was in its section, and how often one did.
    inside: usize,
    beside: usize,
    /// How often it got a CPU late, and woke the next one all the same.
    late: usize,
    handed: usize,
}

impl Queue {
    /// What these wake-ups of members by members say, which are in order.
    fn of(members: &[TaskIx], woken: &[Handoff]) -> Self {
        let place = |task: TaskIx| members.binary_search(&task).expect("it is a member");
        let mut waits = Waits::of(members, woken.iter());
        let mut sinces: Vec<Nanos> = woken.iter().map(|handoff| handoff.since).collect();
        sinces.sort_unstable();
        let mut queue = Self { shares: vec![Share::default(); members.len()], sinces, ..Self::default() };
        // When the mutex was released, and when who was woken then tried to get it, if others waited on.
        let (mut released, mut tried) = (0, None);
        for (at, handoff) in woken.iter().enumerate() {
            let Handoff { sleeper, waker, since, now, started, turn, .. } = *handoff;
            waits.end(sleeper);
            let first = waits.under_way(now).min();
            queue.shares[place(sleeper)].queued.push(first.is_some());
            // Who came after the last release found the mutex held.
            let came = queue.sinces.get(queue.began_by(released)).copied().filter(|came| *came < now);
            queue.shares[place(waker)].held.push(came.map_or(0, |came| now.saturating_sub(turn.max(came))));
            let from = came.into_iter().chain(tried).min().filter(|from| *from < now);
            queue.spans.extend(from.map(|from| Span { from, to: now, holder: waker }));
            if let Some(first) = first {
                let next = woken.get(at + 1);
                let by = |task: TaskIx| next.filter(|next| next.waker == task);
                queue.queued += 1;
                queue.in_order += usize::from(since <= first);
                queue.together += usize::from(by(waker).is_some_and(|next| next.now.saturating_sub(now) <= TOGETHER));
                if let Some(beside) = is_beside(handoff, waits.next_of(sleeper), &woken[at + 1..]) {
                    queue.inside += 1;
                    queue.beside += usize::from(beside);
                }
                queue.late += usize::from(started.saturating_sub(now) >= LATE);
                queue.handed += usize::from(started.saturating_sub(now) >= LATE && by(sleeper).is_some());
            }
            (released, tried) = (now, first.map(|_| started));
        }
        queue
    }

    /// How many waits had begun by then.
    fn began_by(&self, time: Nanos) -> usize {
        self.sinces.partition_point(|since| *since <= time)
    }

    /// Whether they are of one mutex.
    fn is_one(&self) -> bool {
        let beside = |percent| self.beside * 100 <= self.inside * percent;
        let in_order = self.in_order * 100 >= self.queued * PERCENT_IN_ORDER;
        self.queued >= FEWEST_QUEUED
            && self.inside >= FEWEST_QUEUED.max(self.queued * PERCENT_INSIDE / 100)
            && if in_order { beside(PERCENT_BESIDE) } else { beside(PERCENT_BESIDE_ANYHOW) }
            && self.together * 100 <= self.queued * PERCENT_TOGETHER
            && (self.late < FEWEST_LATE || self.handed * 100 < self.late * PERCENT_HANDED)
    }

    /// Whether a task held the mutex when it was back, and somebody waited for it.
    fn was_held_by(&self, Preempted { task, to, .. }: &Preempted) -> bool {
        let span = self.spans.get(self.spans.partition_point(|span| span.to <= *to));
        span.is_some_and(|span| span.from <= *to && span.holder == *task)
    }

    /// What tells how many sections there were.
    fn signs<'a>(&self, woken: &[Handoff], preempted: impl Iterator<Item = &'a Preempted>, in_vain: Nanos) -> Signs {
        let (inside, outside): (Vec<_>, Vec<_>) = preempted.partition(|preempted| self.was_held_by(preempted));
        let meanwhile =
            |preempted: &&Preempted| self.began_by(preempted.to).saturating_sub(self.began_by(preempted.from));
        let mut last: BTreeMap<TaskIx, Nanos> = BTreeMap::new();
        let was_in_vain = |handoff: &&Handoff| {
            let before = last.insert(handoff.sleeper, handoff.work);
            before.is_some_and(|before| handoff.work.saturating_sub(before) <= in_vain)
        };
        let others = inside.iter().map(meanwhile).sum::<usize>() + woken.iter().filter(was_in_vain).count();
        let span = woken.last().map_or(0, |last| last.now.saturating_sub(woken[0].now));
        Signs { inside: inside.len(), outside: outside.len(), met: woken.len().saturating_sub(others), span }
    }
}

/// Whether somebody else wakes one while who was woken is in its section: after it got its CPU, and before it does or
/// waits `again`. None if it waits again first, or too late to tell.
fn is_beside(handoff: &Handoff, again: Option<Nanos>, later: &[Handoff]) -> Option<bool> {
    let soon = handoff.started.saturating_add(SOON);
    let next = later.iter().take(LATER).find(|next| next.waker == handoff.sleeper || next.now > soon)?;
    let waits = again.is_some_and(|again| again <= next.now);
    (!waits).then_some(next.waker != handoff.sleeper)
}

impl Lock {
    /// The mutex that the tasks of a group share, without those that have a part of their own; none if they share none.
    /// Of each pair, the first task wakes the second.
    fn of(track: &Track, pairs: &BTreeSet<(TaskIx, TaskIx)>, group: Vec<TaskIx>) -> Option<Self> {
        let are_in = |group: &[TaskIx], handoff: &Handoff| {
            [handoff.waker, handoff.sleeper].iter().all(|task| group.binary_search(task).is_ok())
        };
        let holds = |handoff: &&Handoff| are_in(&group, handoff) && pairs.contains(&(handoff.waker, handoff.sleeper));
        let mut woken: Vec<Handoff> = track.handoffs.woken().iter().filter(holds).copied().collect();
        let members = alike(&woken, group)?;
        woken.retain(|handoff| are_in(&members, handoff));
        let is_member = |task: TaskIx| members.binary_search(&task).is_ok();
        let queue = Some(Queue::of(&members, &woken)).filter(Queue::is_one)?;
        let preempted = track.handoffs.preempted().iter().filter(|preempted| is_member(preempted.task));
        let signs = |in_vain| queue.signs(&woken, preempted, in_vain);
        let run = members.iter().map(|task| track.tasks[*task as usize].run).fold(0, Nanos::saturating_add);
        let lists: Vec<&[Token]> = members.iter().map(|task| &track.tasks[*task as usize].sequence[..]).collect();
        let sections = Sections::of(&members, &lists, &queue.shares, run, signs)?;
        Some(Self { members, shares: queue.shares, sections })
    }

    fn is_of(&self, task: TaskIx) -> bool {
        self.members.binary_search(&task).is_ok()
    }
}
