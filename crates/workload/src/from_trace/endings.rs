//! What a task that was ended would have gone on with.
//!
//! A load that is stopped after a time has no end of its own: how much it did by then is what the recorded scheduler
//! gave it. In the model it goes on, with its work or with its rounds of work and sleep, and is killed when it is as
//! old as it was. There are two ways to stop a load:
//!
//! - A signal of `timeout` or a script's `kill` ends it. A child that is forked to be killed, and has done little or
//!   nothing by then, did what there was: its end is most of its work.
//! - It ends by itself when it sees that its time is over: right after a task of its process, or its parent, has slept
//!   for at least half of its life. So benchmarks stop their threads.

use super::emit::{Voice, on_and_on, phases};
use super::going_on::{last_rounds, locks, rounds_in_turn};
use super::joins::FAREWELL;
use super::life::{Begin, Place, Task};
use super::sequence::{ANSWER, QUEUE, TaskIx, Token, slept, stretches};
use super::track::Track;
use crate::Phase;
use schedlab_base::{Nanos, Tid};
use std::collections::{BTreeMap, BTreeSet};

/// The end of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// When, on the trace's clock.
    pub at: Nanos,
    /// By a signal.
    pub killed: bool,
    /// It was in the middle of long work.
    amid_work: bool,
    /// It slept, or had just woken up.
    asleep: bool,
}

/// A long sleep that no task ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nap {
    pub woken: Nanos,
    pub length: Nanos,
}

impl Nap {
    /// A shorter sleep is no nap.
    pub(super) const LEAST: Nanos = 100_000_000;
    /// So many of a task are kept, the last ones.
    pub(super) const KEPT: usize = 8;
    /// Who is stopped ends within this time, or within this part of the sleep.
    const SOON: Nanos = 20_000_000;
    const PART: Nanos = 50;

    /// Whether a task that began and ended then was stopped at the end of this sleep.
    fn stops(self, began: Nanos, ended: Nanos) -> bool {
        let after = ended.checked_sub(self.woken);
        after.is_some_and(|after| after <= Self::SOON.max(self.length / Self::PART))
            && self.length >= ended.saturating_sub(began) / 2
    }
}

/// A sleep is at least so long.
const SLEEP: Nanos = 1_000;

/// In rounds that go on, a task sleeps for as long as it did, in place of waiting for others, whose rounds may have
/// fewer messages for it; or not at all if the message was there.
fn alone(token: Token) -> Option<Token> {
    match token {
        // What a task asks in these rounds is answered in others.
        Token::Block { waker: QUEUE | ANSWER, .. } => Some(token),
        other => slept(other, SLEEP),
    }
}

impl Ending {
    /// The end of a task by this signal; none if the task failed (SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV,
    /// SIGXCPU, SIGXFSZ, SIGSYS), or if nobody was left to work for (SIGPIPE): it did what there was.
    pub(super) fn by_signal(task: &Task, signal: u16, start: Nanos, now: Nanos) -> Option<Self> {
        let goes_on = !matches!(signal, 4..=8 | 11 | 13 | 24 | 25 | 31);
        let end = Self::of(task, start, now);
        let amid_work = end.amid_work || task.has_computed(task.began(start), start, now);
        goes_on.then_some(Self { killed: true, amid_work, ..end })
    }

    /// The end of a task by itself.
    pub(super) fn of(task: &Task, start: Nanos, now: Nanos) -> Self {
        let asleep = task.awake.is_some() && task.burst <= FAREWELL;
        Self { at: now, killed: false, amid_work: task.is_amid_work(start, now), asleep }
    }

    /// Whether a signal ended it while it slept.
    pub(super) fn killed_asleep(self) -> bool {
        self.killed && self.asleep
    }

    /// Whether a task that began then and did `list` was in the middle of something when one of these sleeps was over.
    pub(super) fn is_stopped(self, list: &[Token], began: Nanos, mut naps: impl Iterator<Item = Nap>) -> bool {
        naps.any(|nap| nap.stops(began, self.at)) && self.is_amid(list)
    }

    /// Whether a task that did `list` was at long work, or at rounds of work and sleep.
    fn is_amid(self, list: &[Token]) -> bool {
        self.amid_work || last_rounds(self.split(list).0, SLEEP).is_some()
    }

    /// The phases of a task that did `list` until it was ended.
    pub(super) fn phases(self, list: &[Token], voice: &Voice) -> Vec<Phase> {
        let (done, last) = self.split(list);
        let mut all = phases(done, voice);
        let asleep = if let [Token::Block { length, .. }, ..] = last { *length } else { 0 };
        if self.amid_work && !locks(done) {
            all.extend(on_and_on(&all, None, voice));
        } else if let Some(rounds) = rounds_in_turn(done, SLEEP, asleep) {
            let rounds: Vec<Token> = rounds.into_iter().filter_map(alone).collect();
            all.extend(on_and_on(&all, Some(&rounds), voice));
        }
        let begun = all.len();
        let more = if last.is_empty() { Vec::new() } else { phases(last, voice) };
        all.extend((begun..).zip(more).map(|(n, phase)| Phase { name: format!("p{n}"), ..phase }));
        all
    }

    /// What the task did before, and from the sleep on in which it was ended; or else what it told others as it ended.
    fn split(self, list: &[Token]) -> (&[Token], &[Token]) {
        let plain = stretches(list).last().filter(|last| last.times == 1).map_or(0, |last| last.body.len());
        let looped = list.len() - plain;
        let is_block = |token: &Token| matches!(token, Token::Block { .. });
        if let Some(at) = list[looped..].iter().rposition(is_block).filter(|_| self.asleep) {
            return list.split_at(looped + at);
        }
        let wakes = |token: &Token| matches!(token, Token::Post(_) | Token::End(_));
        let rest = match &list[looped..] {
            [.., word, Token::Run(rest)] if wakes(word) && *rest <= FAREWELL => 1,
            _ => 0,
        };
        let words = list[looped..list.len() - rest].iter().rev().take_while(|token| wakes(token)).count();
        list.split_at(list.len() - rest - words)
    }
}

/// Why tasks ended, as far as that concerns others than themselves.
pub(super) struct Endings<'a> {
    track: &'a Track,
    /// The processes of which a thread ended by itself. When that is the last thing that the process does, a signal
    /// ends all others.
    by_themselves: BTreeSet<Tid>,
    /// The long sleeps of each process, with their tasks.
    naps: BTreeMap<Tid, Vec<(TaskIx, Nap)>>,
}

impl<'a> Endings<'a> {
    pub(super) fn of(track: &'a Track) -> Self {
        let mut all = Self { track, by_themselves: BTreeSet::new(), naps: BTreeMap::new() };
        for (ix, task) in (0..).zip(&track.tasks) {
            let Some(process) = all.process(task) else { continue };
            if task.place == Place::Dead && task.ending.is_none_or(|ending| !ending.killed) {
                all.by_themselves.insert(process);
            }
            if !task.naps.is_empty() {
                all.naps.entry(process).or_default().extend(task.naps.iter().map(|nap| (ix, *nap)));
            }
        }
        all
    }

    /// The process of a task, where known.
    pub(super) fn process(&self, task: &Task) -> Option<Tid> {
        self.track.seats[task.slot as usize].tgid
    }

    /// Whether a task that did `list` would have gone on, in a trace that began at `start`.
    pub(super) fn is_stopped(&self, task: &Task, list: &[Token], start: Nanos) -> bool {
        let Some(ending) = task.ending else { return false };
        let process = self.process(task);
        if ending.killed {
            return ending.is_amid(list) && process.is_none_or(|process| !self.by_themselves.contains(&process));
        }
        let others = process.and_then(|process| self.naps.get(&process)).into_iter().flatten();
        let others = others.filter(|(ix, _)| self.track.tasks[*ix as usize].slot != task.slot).map(|(_, nap)| *nap);
        let parent = match task.begin {
            Begin::Forked { by, .. } => self.track.tasks.get(by as usize),
            Begin::After(_) => None,
        };
        let parents = parent.into_iter().flat_map(|parent| parent.naps.iter().copied());
        ending.is_stopped(list, task.began(start), others.chain(parents))
    }
}
