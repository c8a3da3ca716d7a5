//! Messages that no wake-up shows, of tasks that send one in each of their rounds, where several rounds were one burst.
//!
//! A server that found its next request when it was done with one did not sleep in between: two rounds are one burst,
//! which [`super::habits`] or [`super::unseen`] cut. In each of them it answers, though its client was woken by the
//! first answer at most, and was still waiting for a CPU when the second came.
//!
//! A reader of a pipe wakes its writer as well, but only when that found the pipe full: then few of its rounds have a
//! message.

use super::habits::{Burst, Fraction, Habit, Hearer, Message, Silence, wakes_one_of};
use super::life::Task;
use super::sequence::{TaskIx, Token, places};
use schedlab_base::Nanos;

/// Of so many percent of the rounds at least the message must be known; else it is not one of each round.
const PERCENT_KNOWN: usize = 67;

/// The rounds of a task that sends another one a message in each burst.
#[derive(Debug)]
pub(super) struct Regular {
    pub waker: TaskIx,
    /// How far it was when it sent the messages that are known.
    posts: Vec<Nanos>,
    /// How many bursts it has.
    bursts: usize,
    /// At which part of a burst it sends its message.
    part: Fraction,
    /// The bursts at whose end the other one was awake.
    heard: Vec<(Burst, Hearer)>,
}

impl Regular {
    pub fn all(
        silence: &Silence,
        tasks: &[Task],
        messages: &[Vec<Message>],
        mut causal: impl FnMut(TaskIx, TaskIx) -> bool,
    ) -> Vec<Self> {
        let mut all = Vec::new();
        for (waker, task) in (0..).zip(tasks) {
            let habit = &task.habit;
            let causes = habit.those(|task, _| causal(waker, task)) & habit.often();
            let sleepers = habit.sleepers.iter().enumerate();
            for (bit, (sleeper, _)) in sleepers.filter(|(bit, _)| causes >> bit & 1 == 1) {
                if wakes_one_of(&habit.bursts, 1 << bit, |_| true) {
                    all.push(Self::of(silence, (waker, task), *sleeper, messages));
                }
            }
        }
        all
    }

    fn of(silence: &Silence, (waker, task): (TaskIx, &Task), sleeper: TaskIx, messages: &[Vec<Message>]) -> Self {
        let heard = |burst: &Burst| Some((*burst, silence.hearers(burst, |task| task == sleeper).next()?));
        let Habit { bursts, .. } = &task.habit;
        let heard: Vec<(Burst, Hearer)> = bursts.iter().filter_map(heard).collect();
        let mut posts = posts(&task.sequence, sleeper);
        // A burst of the other one may have heard many.
        let silent = heard.chunk_by(|(_, a), (_, b)| a.burst == b.burst).flat_map(|same| &messages[same[0].1.burst]);
        posts.extend(silent.filter(|message| message.waker == waker).map(|message| message.from));
        posts.sort_unstable();
        posts.dedup();
        Self { waker, posts, bursts: bursts.len(), part: task.habit.part(), heard }
    }

    /// The messages that are missing, with the bursts in which they came, if the task waited there (in order), or where
    /// its burst from here to there says.
    pub fn missing<I: Iterator<Item = Nanos>>(
        &self,
        waits: &[Nanos],
        own: impl Fn(TaskIx, Nanos, Nanos) -> I,
    ) -> impl Iterator<Item = (usize, Message)> {
        let mut rounds = self.bursts;
        let mut missing = Vec::new();
        for (burst, hearer) in &self.heard {
            let mut cuts = within(waits, burst.from, burst.to.saturating_sub(1)).to_vec();
            if cuts.is_empty() {
                cuts.extend(
                    own(self.waker, burst.from, burst.to).filter(|cut| (burst.from + 1..burst.to).contains(cut)),
                );
            }
            rounds += cuts.len();
            let known = within(&self.posts, burst.from, burst.to).len();
            let begins = std::iter::once(burst.from).chain(cuts.iter().copied());
            let pieces = std::iter::zip(begins, cuts.iter().copied().chain([burst.to]));
            let silent = pieces.filter(|(from, to)| within(&self.posts, *from, *to).is_empty());
            let message = |(from, to): (Nanos, Nanos)| {
                let from = self.part.of(from, to);
                (hearer.burst, Message { so_far: hearer.so_far, waker: self.waker, from })
            };
            missing.extend(silent.map(message).take((cuts.len() + 1).saturating_sub(known)));
        }
        if (self.posts.len() * 100) < rounds * PERCENT_KNOWN {
            missing.clear();
        }
        missing.into_iter()
    }
}

/// Those of these times that are later than `from`, and not later than `to`.
fn within(times: &[Nanos], from: Nanos, to: Nanos) -> &[Nanos] {
    let first = times.partition_point(|time| *time <= from);
    let rest = &times[first..];
    &rest[..rest.partition_point(|time| *time <= to)]
}

/// How far a task was each time that it woke this one.
fn posts(sequence: &[Token], sleeper: TaskIx) -> Vec<Nanos> {
    places(sequence, |token| *token == Token::Post(sleeper))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [Nanos; 0] = [];

    /// The messages that are missing of a task with 20 bursts and these posts, whose last burst, from 1000 to 1080, was
    /// cut there: when it sends them.
    fn missing(posts: Vec<Nanos>, cuts: &[Nanos]) -> Vec<Nanos> {
        let heard = vec![(Burst::of(1000, 1080), Hearer { burst: 7, so_far: 300 })];
        let regular = Regular { waker: 1, posts, bursts: 20, part: Fraction(750), heard };
        let found = regular.missing(cuts, |_, _, _| std::iter::empty());
        found
            .map(|(burst, message)| {
                assert_eq!((burst, message.waker, message.so_far), (7, 1, 300));
                message.from
            })
            .collect()
    }

    #[test]
    fn each_round_has_a_message() {
        let posts = |last: &[Nanos]| (0..18).map(|n| 50 * n).chain(last.iter().copied()).collect();
        // One round, or two of which the first or the second one shows its message, or both.
        assert_eq!(missing(posts(&[1030]), &[]), NONE);
        assert_eq!(missing(posts(&[1030]), &[1040]), [1070]);
        assert_eq!(missing(posts(&[1070]), &[1040]), [1030]);
        assert_eq!(missing(posts(&[1030, 1070]), &[1040]), NONE);
        // As many as there are rounds, though two are in one of them; and what another burst waited for.
        assert_eq!(missing(posts(&[1010, 1030]), &[1040]), NONE);
        assert_eq!(missing(posts(&[1030]), &[900, 1100]), NONE);
    }

    #[test]
    fn a_message_of_few_rounds_is_not_one_of_each() {
        assert_eq!(missing((0..10).map(|n| 100 * n).chain([1030]).collect(), &[1040]), NONE);
    }
}
