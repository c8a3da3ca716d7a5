//! What a task that a signal ended would have gone on with.
//!
//! A load that is stopped after a time, by `timeout` or a script's `kill`, has no end of its own: how much it did by
//! then is what the recorded scheduler gave it. In the model it goes on, with its work or with its rounds of work and
//! sleep, and is killed when it is as old as it was.

use super::emit::{Voice, on_and_on, phases};
use super::joins::FAREWELL;
use super::life::Task;
use super::sequence::{NOBODY, Token, last_rounds, mean_block, stretches};
use crate::Phase;
use schedlab_base::Nanos;

/// A signal ended a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Killed {
    /// When, on the trace's clock.
    pub at: Nanos,
    /// It was in the middle of long work.
    amid_work: bool,
    /// It slept, or had just woken up.
    asleep: bool,
}

/// A sleep is at least so long.
const SLEEP: Nanos = 1_000;

/// In rounds that go on, a task sleeps for as long as it did, in place of waiting for others, whose rounds may have
/// fewer messages for it; or not at all if the message was there.
fn alone(token: Token) -> Option<Token> {
    match token {
        Token::Block { length, .. } if length < SLEEP => None,
        Token::Block { length, .. } => Some(Token::Block { length, waker: NOBODY }),
        other => Some(other),
    }
}

impl Killed {
    /// The end of a task by this signal; none if the task failed (SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV,
    /// SIGXCPU, SIGXFSZ, SIGSYS), or if nobody was left to work for (SIGPIPE): it did what there was.
    pub(super) fn of(task: &Task, signal: u16, start: Nanos, now: Nanos) -> Option<Self> {
        let goes_on = !matches!(signal, 4..=8 | 11 | 13 | 24 | 25 | 31);
        let asleep = task.awake.is_some() && task.burst <= FAREWELL;
        goes_on.then(|| Self { at: now, amid_work: task.is_amid_work(start, now), asleep })
    }

    /// The phases of a task that did `list` until it was killed.
    pub(super) fn phases(self, list: &[Token], voice: &Voice) -> Vec<Phase> {
        let (done, last) = self.split(list);
        let mut all = phases(done, voice);
        let slept = if let [Token::Block { length, .. }, ..] = last { *length } else { 0 };
        let rounds = last_rounds(done, SLEEP).map(|rounds| rounds.into_iter().filter_map(alone).collect::<Vec<_>>());
        let rounds = rounds.filter(|rounds| slept <= mean_block(rounds).saturating_mul(4));
        if self.amid_work || rounds.is_some() {
            let rounds = rounds.filter(|_| !self.amid_work);
            all.extend(on_and_on(&all, rounds.as_deref(), voice));
        }
        let begun = all.len();
        let more = if last.is_empty() { Vec::new() } else { phases(last, voice) };
        all.extend((begun..).zip(more).map(|(n, phase)| Phase { name: format!("p{n}"), ..phase }));
        all
    }

    /// What the task did before, and from the sleep on in which it was killed; or else what it told others as it ended.
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
