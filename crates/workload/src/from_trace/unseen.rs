//! Messages that no wake-up shows.
//!
//! A trace shows that a task was woken only if it slept. What another task sent to it while it was awake shows in two
//! things: the task that waited for a CPU, or ran on another one, while its wakers ran has a longer burst than usual,
//! and it did not block in between. On another scheduler, which lets it run sooner, it would block between two of these
//! messages. Without them a model can only lose blocks: a post that comes early saves one, and nothing brings it back.
//!
//! So the burst of a task that is a multiple of its usual ones, and while which tasks that wake it have run, is cut
//! into as many pieces, if the task's bursts are the longer the more those did while it waited ([`super::messages`]).
//! Each piece but the first waits for a post of its own, and these posts are spread over what the wakers did meanwhile.
//!
//! The replay cannot deadlock, because each wait leads to an earlier turn, and so none back to itself. A task's *turn*
//! is its stay on a CPU. Turns are numbered as the trace shows them to begin, even if a switch was not recorded and
//! its time is a guess. A piece waits only for what a waker did in a turn that began before the piece's own: either
//! all of it was done before that one began, or the waker has been on its CPU since before. A block that a task ended
//! was ended in a turn that began before the sleeper's next one.

use super::cause::Sample;
use super::joins::told_at_last;
use super::life::{Place, Task};
use super::pace::Pace;
use super::sequence::{TaskIx, Token, is_folded};
use super::track::Track;
use schedlab_base::Nanos;
use std::collections::{BTreeSet, HashMap};

/// Of so many wakers it is followed what they do while the task waits: the first ones.
const MOST_WAKERS: usize = 32;

/// At most so many supplies of bursts that may have had several messages are held.
const MOST_FED: usize = 1 << 21;

/// A message takes a post, a wait, and cuts two bursts.
const TOKENS: u64 = 4;

/// A burst is cut into at most this many pieces.
const MOST_PIECES: u64 = 256;

/// What a waker did while the task waited for a CPU, or while it ran on another one.
#[derive(Clone, Copy, Debug)]
struct Supply {
    waker: TaskIx,
    /// In the waker's work, from the start of its sequence.
    from: Nanos,
    work: Nanos,
    /// How far the task was in its own work when this began and when it was done: the same if the task waited.
    since: Nanos,
    until: Nanos,
}

impl Supply {
    /// How much of it was done when the task was this far.
    fn done(&self, at: Nanos) -> Nanos {
        let (part, whole) = (at.saturating_sub(self.since), self.until - self.since);
        match whole {
            _ if at >= self.until => self.work,
            0 => 0,
            _ => (u128::from(self.work) * u128::from(part) / u128::from(whole)) as Nanos,
        }
    }
}

/// What all tasks have done so far.
pub(super) struct By<'a>(&'a Track);

impl By<'_> {
    /// How much work of a task is in its sequence: what follows may turn out not to have been its own.
    fn work(&self, ix: TaskIx) -> Nanos {
        self.0.tasks[ix as usize].work
    }

    /// Whether it has been on a CPU all the time since before this turn began.
    fn runs_since(&self, ix: TaskIx, turn: u64) -> bool {
        let task = &self.0.tasks[ix as usize];
        matches!(task.place, Place::Running { .. }) && task.turn < turn
    }
}

impl Track {
    /// A turn begins: its number.
    pub(super) fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Lets the receiver of a task look at the others' work.
    pub(super) fn receive<R>(&mut self, ix: TaskIx, look: impl FnOnce(&mut Receiver, Nanos, &By<'_>) -> R) -> R {
        let mut receiver = std::mem::take(&mut self.tasks[ix as usize].receiver);
        let all = By(self);
        let result = look(&mut receiver, all.work(ix), &all);
        self.tasks[ix as usize].receiver = receiver;
        result
    }

    /// The burst of a task that blocks or ends.
    pub(super) fn burst_ends(&mut self, ix: TaskIx, now: Nanos) {
        if let Some(fed) = self.receive(ix, |receiver, own, all| receiver.stops(ix, own, all))
            && self.fed_entries < MOST_FED
        {
            self.fed_entries += fed.supplies.len();
            self.fed.push(fed);
        }
        self.falls_silent(ix, now);
    }
}

/// A task that is woken by tasks.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    wakers: Vec<TaskIx>,
    /// The work of each waker when it was last looked at; none while no wake-up by a task is under way.
    seen: Option<Vec<Nanos>>,
    /// The task's own work when it was woken.
    begin: Nanos,
    /// Its own work when it got its CPU, and the turn that began then.
    started: (Nanos, u64),
    supplies: Vec<Supply>,
    /// The bursts after wake-ups by tasks.
    pub lengths: Sample,
    /// Those before and during which none of its wakers ran.
    pub alone: Sample,
    /// Its burst among those during which messages may have come, if it is one of them.
    pub heard: Option<usize>,
}

/// A burst during which, or before which, the task's wakers ran.
#[derive(Debug)]
pub(super) struct Fed {
    pub task: TaskIx,
    begin: Nanos,
    pub burst: Nanos,
    /// How much these did while the task waited for its CPU.
    pub waited: Nanos,
    supplies: Vec<Supply>,
    /// How many messages there were at most.
    most: u64,
}

impl Fed {
    /// The task's wakers did not send more than they can.
    pub(super) fn bound(&mut self, pace: &Pace) {
        let sent = |supply: &Supply| pace.most(supply.waker, self.task, supply.work);
        self.most = self.supplies.iter().map(sent).fold(1, u64::saturating_add);
    }
}

impl Receiver {
    /// A task woke it.
    pub(super) fn woken(&mut self, by: TaskIx, own: Nanos, all: &By<'_>) {
        if !self.wakers.contains(&by) && self.wakers.len() < MOST_WAKERS {
            self.wakers.push(by);
        }
        let mut seen = self.seen.take().unwrap_or_default();
        seen.clear();
        seen.extend(self.wakers.iter().map(|waker| all.work(*waker)));
        (self.seen, self.begin) = (Some(seen), own);
        self.supplies.clear();
    }

    /// It gets a CPU.
    pub(super) fn starts(&mut self, own: Nanos, turn: u64, all: &By<'_>) {
        let Some(seen) = &mut self.seen else { return };
        self.started = (own, turn);
        for (waker, seen) in self.wakers.iter().zip(seen) {
            let by_now = all.work(*waker);
            let work = by_now.saturating_sub(std::mem::replace(seen, by_now));
            if work > 0 {
                self.supplies.push(Supply { waker: *waker, from: by_now - work, work, since: own, until: own });
            }
        }
    }

    /// Where it is now is unknown, and so is the end of its burst.
    pub(super) fn vanishes(&mut self) {
        (self.seen, self.heard) = (None, None);
    }

    /// Its own work when a task woke it, if its burst began so.
    pub(super) fn begin(&self) -> Option<Nanos> {
        self.seen.as_ref().map(|_| self.begin)
    }

    /// It blocks or ends.
    pub(super) fn stops(&mut self, task: TaskIx, own: Nanos, all: &By<'_>) -> Option<Fed> {
        let seen = self.seen.take()?;
        let waited = self.supplies.iter().map(|supply| supply.work).sum();
        let burst = own.saturating_sub(self.begin);
        self.lengths.add(burst);
        let (since, turn) = self.started;
        // Those that ran all the while: then it is known how far they were when the task was anywhere in its burst.
        for (waker, seen) in self.wakers.iter().zip(seen).filter(|(waker, _)| all.runs_since(**waker, turn)) {
            let work = all.work(*waker).saturating_sub(seen);
            if work > 0 {
                self.supplies.push(Supply { waker: *waker, from: seen, work, since, until: own });
            }
        }
        let supplies = std::mem::take(&mut self.supplies);
        if supplies.is_empty() {
            self.alone.add(burst);
        }
        (!supplies.is_empty()).then_some(Fed { task, begin: self.begin, burst, waited, supplies, most: u64::MAX })
    }
}

/// Where something is put into a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Once the task has done this much of its work.
    Work(Nanos),
    /// Before the fork of this task.
    Fork(TaskIx),
}

/// What to put into the sequences.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// By task: where, and what.
    pub tokens: Vec<Vec<(At, Token)>>,
    /// The bursts that were cut: whose, and its work when it began.
    pub cut: BTreeSet<(TaskIx, Nanos)>,
}

impl Added {
    /// Nothing yet.
    pub(super) fn to(tasks: &[Task]) -> Self {
        Self { tokens: vec![Vec::new(); tasks.len()], ..Self::default() }
    }

    /// A waker sends a message when it is `from` in its work, and a task waits for it when it is `at` in its own.
    pub(super) fn message(&mut self, (waker, from): (TaskIx, Nanos), (task, at): (TaskIx, Nanos)) {
        self.tokens[waker as usize].push((At::Work(from), Token::Post(task)));
        self.tokens[task as usize].push((At::Work(at), Token::Block { length: 0, waker }));
    }

    /// Where a task waits for messages that were added, in its work.
    pub(super) fn waits(&self, task: TaskIx) -> Vec<Nanos> {
        let wait = |(at, token): &(At, Token)| match (at, token) {
            (At::Work(at), Token::Block { .. }) => Some(*at),
            _ => None,
        };
        let mut waits: Vec<Nanos> = self.tokens[task as usize].iter().filter_map(wait).collect();
        waits.sort_unstable();
        waits
    }

    /// A child tells its parent that it ends, when it is `from` in its work.
    pub(super) fn end(&mut self, child: TaskIx, from: Nanos, parent: TaskIx) {
        self.tokens[child as usize].push((At::Work(from), Token::End(parent)));
    }

    /// A parent waits for the ends of so many children.
    pub(super) fn joins(&mut self, parent: TaskIx, at: At, times: usize) {
        self.tokens[parent as usize].extend(std::iter::repeat_n((at, Token::Join), times));
    }
}

/// How many more messages each task seems to have got than woke it, by the lengths of its bursts and by the work that
/// a message takes (see [`super::messages::take`]).
pub(super) fn counts(fed: &[Fed], take: &[Option<Nanos>]) -> Vec<u64> {
    let mut counts = vec![0; take.len()];
    for fed in fed {
        if let Some(message) = take[fed.task as usize] {
            counts[fed.task as usize] += pieces(fed, message).saturating_sub(1);
        }
    }
    counts
}

/// Into how many pieces a burst is cut if a message takes this long.
fn pieces(fed: &Fed, message: Nanos) -> u64 {
    ((fed.burst + message / 2) / message).min(MOST_PIECES).min(fed.most)
}

/// The messages of bursts that are a multiple of the usual ones. They are at most `most` tokens: if need be, several
/// messages are taken as one.
pub(super) fn additions(
    fed: &[Fed],
    take: &[Option<Nanos>],
    tasks: &[Task],
    most: usize,
    mut causal: impl FnMut(TaskIx, TaskIx) -> bool,
) -> Added {
    let pieces = |fed: &Fed, at_once: u64| -> Option<u64> {
        Some(pieces(fed, take[fed.task as usize]? * at_once)).filter(|pieces| *pieces > 1)
    };
    let tokens = |at_once: u64| -> u64 {
        fed.iter().filter_map(|fed| pieces(fed, at_once)).map(|pieces| (pieces - 1) * TOKENS).sum()
    };
    let at_once = (0..u64::BITS).map(|shift| 1 << shift).find(|at_once| tokens(*at_once) <= most as u64);
    let mut added = Added::to(tasks);
    for fed in fed {
        let Some(pieces) = at_once.and_then(|at_once| pieces(fed, at_once)) else { continue };
        let supplies: Vec<&Supply> = fed.supplies.iter().filter(|supply| causal(supply.waker, fed.task)).collect();
        for piece in 1..pieces {
            let at = fed.begin + fed.burst * piece / pieces;
            let all: Nanos = supplies.iter().map(|supply| supply.done(at)).sum();
            // Of what the wakers had done by then, in the same proportion: so later pieces have later posts.
            let done = (u128::from(all) * u128::from(piece) / u128::from(pieces)) as Nanos;
            if let Some(sent) = place(&supplies, at, done) {
                added.message(sent, (fed.task, at));
                added.cut.insert((fed.task, fed.begin));
            }
        }
    }
    added
}

/// The waker, and how far it was in its work, when the wakers had done so much of what they have done when the task is
/// at `at`.
fn place(supplies: &[&Supply], at: Nanos, mut done: Nanos) -> Option<(TaskIx, Nanos)> {
    if done == 0 {
        return None;
    }
    for supply in supplies {
        let work = supply.done(at);
        if done <= work {
            return Some((supply.waker, supply.from + done));
        }
        done -= work;
    }
    None
}

/// Puts each token where it belongs: before what the task did then if it is a post, and after that if it is a wait. In
/// a sequence with loops, all but what stands before forks, which are in none, is put at the end.
pub(super) fn insert(list: &[Token], added: Vec<(At, Token)>) -> Vec<Token> {
    let is_wait = |token: &Token| matches!(token, Token::Block { .. } | Token::Join);
    let mut before: HashMap<TaskIx, Vec<Token>> = HashMap::new();
    let mut by_work = Vec::new();
    for (at, token) in added {
        match at {
            At::Work(at) => by_work.push((at, token)),
            At::Fork(child) => before.entry(child).or_default().push(token),
        }
    }
    let folded = is_folded(list);
    // At the end nobody must wait for a task that waits.
    by_work.sort_by_key(|(at, token)| if folded { (0, !is_wait(token)) } else { (*at, is_wait(token)) });
    let mut by_work = by_work.into_iter().peekable();
    let mut out = Vec::with_capacity(list.len() + 2 * by_work.len());
    let mut done: Nanos = 0;
    for token in list {
        let work = match *token {
            Token::Run(work) if !folded => work,
            other => {
                if let Token::Fork(child) = other {
                    out.extend(before.remove(&child).into_iter().flatten());
                }
                out.push(other);
                continue;
            }
        };
        let end = done.saturating_add(work);
        while let Some((at, token)) = by_work.next_if(|(at, token)| *at < end || (*at == end && !is_wait(token))) {
            if at > done {
                out.push(Token::Run(at - done));
                done = at;
            }
            out.push(token);
        }
        if end > done {
            out.push(Token::Run(end - done));
        }
        done = end;
    }
    out.extend(by_work.map(|(_, token)| token));
    if folded { out } else { told_at_last(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stand_where_the_work_is_done() {
        let list = [Token::Run(10), Token::Post(7), Token::Run(5)];
        let wait = Token::Block { length: 0, waker: 9 };
        let added = [(12, Token::Post(2)), (4, Token::Post(1)), (10, wait), (10, Token::Post(3))];
        let added = added.map(|(at, token)| (At::Work(at), token)).to_vec();
        let want = [
            Token::Run(4),
            Token::Post(1),
            Token::Run(6),
            Token::Post(3),
            Token::Post(7),
            wait,
            Token::Run(2),
            Token::Post(2),
            Token::Run(3),
        ];
        assert_eq!(insert(&list, added), want);
    }
}
