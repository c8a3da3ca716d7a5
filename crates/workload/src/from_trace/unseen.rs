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

use super::added::Added;
use super::beats::{Beats, MOST_STEPS, Sender, Step};
use super::cause::Sample;
use super::life::{Place, Task};
use super::messages::Lengths;
use super::pace::Pace;
use super::sequence::{NOBODY, TaskIx};
use super::track::Track;
use schedlab_base::Nanos;

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

    /// How much it has done by now, though that may turn out not to have been its own.
    fn work_by(&self, ix: TaskIx, now: Nanos) -> Nanos {
        let since_counted = match self.0.tasks[ix as usize].place {
            Place::Running { cpu, since } => self.0.cores.work(cpu, now.saturating_sub(since), now),
            _ => 0,
        };
        self.work(ix) + since_counted
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

    /// A task is woken by another one.
    pub(super) fn is_told(&mut self, ix: TaskIx, waker: TaskIx) {
        let step = self.receive(ix, |receiver, own, all| receiver.woken(waker, own, all));
        let by_now = self.tasks[waker as usize].work;
        let step = step.map(|(from, slept, fed)| {
            if let Some(fed) = fed {
                self.fed[fed].next = Some(by_now);
            }
            let whole = by_now.saturating_sub(from);
            Step { awake: slept.saturating_sub(from).min(whole), whole }
        });
        let sender = self.tasks[ix as usize].receiver.senders.iter_mut().find(|sender| sender.task == waker);
        if let Some(sender) = sender {
            self.steps += usize::from(sender.wakes(step.filter(|_| self.steps < MOST_STEPS)));
        }
    }

    /// The burst of a task that blocks or ends.
    pub(super) fn burst_ends(&mut self, ix: TaskIx, now: Nanos) {
        let fed = self.receive(ix, |receiver, own, all| receiver.stops(ix, own, all, now));
        if let Some(fed) = fed
            && self.fed_entries < MOST_FED
        {
            self.fed_entries += fed.supplies.len();
            if let Some(told) = &mut self.tasks[ix as usize].receiver.told {
                told.fed = Some(self.fed.len());
            }
            self.fed.push(fed);
        }
        self.falls_silent(ix, now);
    }
}

/// The latest wake-up of a task by another one.
#[derive(Clone, Copy, Debug)]
struct Told {
    by: TaskIx,
    /// How far the waker was, and how far when the task slept again.
    from: Nanos,
    slept: Option<Nanos>,
    /// The burst that followed, among those during which messages may have come.
    fed: Option<usize>,
}

/// A task that is woken by tasks.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    pub senders: Vec<Sender>,
    told: Option<Told>,
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

/// Who sent a message, and how far it was in its work.
type Sent = (TaskIx, Nanos);

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
    /// Who woke it, and how far that one was then, when the task slept again, and when it woke the task the next time,
    /// if nobody else did before.
    by: TaskIx,
    from: Nanos,
    slept: Nanos,
    next: Option<Nanos>,
}

impl Fed {
    /// The task's wakers did not send more than they can.
    pub(super) fn bound(&mut self, pace: &Pace) {
        let sent = |supply: &Supply| pace.most(supply.waker, self.task, supply.work);
        self.most = self.supplies.iter().map(sent).fold(1, u64::saturating_add);
    }

    /// The messages of a waker that sends one with each block of its work, beside the one that woke the task; so many
    /// of them as one. How far it was, and where the task waits for them: they cut its burst into equal pieces.
    fn of_blocks(&self, block: Nanos, at_once: u64) -> impl Iterator<Item = (Sent, Nanos)> + '_ {
        let whole = self.next.map(|next| next.saturating_sub(self.from));
        let shown = whole.map_or(u64::MAX, |whole| ((whole + block / 2) / block).saturating_sub(1));
        let count = (self.slept.saturating_sub(self.from) / block).min(shown);
        let apart = whole.map_or(block, |whole| whole / (count + 1)) * at_once;
        let pieces = (count / at_once).min(MOST_PIECES) + 1;
        (1..pieces).filter_map(move |piece| {
            let from = self.from + apart * piece;
            let at = (self.begin + self.burst * piece / pieces).max(self.so_far(from)?);
            (at < self.begin + self.burst).then_some(((self.by, from), at))
        })
    }

    /// The messages of a burst that is cut into so many pieces, and where the task waits for them.
    fn by_length(&self, pieces: u64, mut causal: impl FnMut(TaskIx, TaskIx) -> bool) -> Vec<(Sent, Nanos)> {
        if pieces < 2 {
            return Vec::new();
        }
        let supplies: Vec<&Supply> = self.supplies.iter().filter(|supply| causal(supply.waker, self.task)).collect();
        let message = |piece: u64| {
            let at = self.begin + self.burst * piece / pieces;
            let all: Nanos = supplies.iter().map(|supply| supply.done(at)).sum();
            // Of what the wakers had done by then, in the same proportion: so later pieces have later posts.
            let done = (u128::from(all) * u128::from(piece) / u128::from(pieces)) as Nanos;
            Some((place(&supplies, at, done)?, at))
        };
        (1..pieces).filter_map(message).collect()
    }

    /// How far the task was when its waker was there, if that is known.
    fn so_far(&self, from: Nanos) -> Option<Nanos> {
        let holds =
            |supply: &&Supply| supply.waker == self.by && (supply.from..=supply.from + supply.work).contains(&from);
        let Supply { from: first, work, since, until, .. } = *self.supplies.iter().find(holds)?;
        let part = u128::from(until - since) * u128::from(from - first);
        Some(since + part.div_ceil(u128::from(work)) as Nanos)
    }
}

impl Receiver {
    /// A task woke it. If that one was also the last to do so: how far it was then, and when the task slept again; and
    /// the burst between.
    pub(super) fn woken(&mut self, by: TaskIx, own: Nanos, all: &By<'_>) -> Option<(Nanos, Nanos, Option<usize>)> {
        if self.senders.iter().all(|sender| sender.task != by) && self.senders.len() < MOST_WAKERS {
            self.senders.push(Sender::new(by));
        }
        let mut seen = self.seen.take().unwrap_or_default();
        seen.clear();
        seen.extend(self.senders.iter().map(|sender| all.work(sender.task)));
        (self.seen, self.begin) = (Some(seen), own);
        self.supplies.clear();
        let before = self.told.replace(Told { by, from: all.work(by), slept: None, fed: None });
        let Told { from, slept, fed, .. } = before.filter(|before| before.by == by)?;
        Some((from, slept?, fed))
    }

    /// It was woken by no task.
    pub(super) fn is_alone(&mut self) {
        self.told = None;
    }

    /// It gets a CPU.
    pub(super) fn starts(&mut self, own: Nanos, turn: u64, all: &By<'_>) {
        let Some(seen) = &mut self.seen else { return };
        self.started = (own, turn);
        for (Sender { task: waker, .. }, seen) in self.senders.iter().zip(seen) {
            let by_now = all.work(*waker);
            let work = by_now.saturating_sub(std::mem::replace(seen, by_now));
            if work > 0 {
                self.supplies.push(Supply { waker: *waker, from: by_now - work, work, since: own, until: own });
            }
        }
    }

    /// Where it is now is unknown, and so is the end of its burst.
    pub(super) fn vanishes(&mut self) {
        (self.seen, self.heard, self.told) = (None, None, None);
    }

    /// Its own work when a task woke it, if its burst began so.
    pub(super) fn begin(&self) -> Option<Nanos> {
        self.seen.as_ref().map(|_| self.begin)
    }

    /// It blocks or ends.
    pub(super) fn stops(&mut self, task: TaskIx, own: Nanos, all: &By<'_>, now: Nanos) -> Option<Fed> {
        let seen = self.seen.take()?;
        let told =
            self.told.as_mut().map(|told| (told.by, told.from, *told.slept.get_or_insert(all.work_by(told.by, now))));
        let waited = self.supplies.iter().map(|supply| supply.work).sum();
        let burst = own.saturating_sub(self.begin);
        self.lengths.add(burst);
        let (since, turn) = self.started;
        // Those that ran all the while: then it is known how far they were when the task was anywhere in its burst.
        let wakers = self.senders.iter().map(|sender| &sender.task);
        for (waker, seen) in wakers.zip(seen).filter(|(waker, _)| all.runs_since(**waker, turn)) {
            let work = all.work(*waker).saturating_sub(seen);
            if work > 0 {
                self.supplies.push(Supply { waker: *waker, from: seen, work, since, until: own });
            }
        }
        let supplies = std::mem::take(&mut self.supplies);
        if supplies.is_empty() {
            self.alone.add(burst);
        }
        let (by, from, slept) = told.unwrap_or((NOBODY, 0, 0));
        let fed = Fed { task, begin: self.begin, burst, waited, supplies, most: u64::MAX, by, from, slept, next: None };
        (!fed.supplies.is_empty()).then_some(fed)
    }
}

/// What tells how many messages a burst is: how long it is, and how much work a waker does for each.
pub(super) struct Worth {
    pub lengths: Vec<Lengths>,
    pub beats: Beats,
}

impl Worth {
    /// How much work of its waker's each message of this burst takes, if that is what tells of them.
    fn block(&self, fed: &Fed) -> Option<Nanos> {
        self.beats.block(fed.by, fed.task).filter(|_| self.lengths[fed.task as usize].of_several)
    }

    /// Into how many pieces a burst is cut by its length, with so many messages in each; 1 if it is not.
    fn pieces(&self, fed: &Fed, at_once: u64) -> u64 {
        let Some(message) = self.lengths[fed.task as usize].take.map(|take| take * at_once) else { return 1 };
        ((fed.burst + message / 2) / message).min(MOST_PIECES).min(fed.most).max(1)
    }

    /// How many messages a burst has beside the one that woke the task.
    fn messages(&self, fed: &Fed, at_once: u64) -> u64 {
        let by_length = || self.pieces(fed, at_once) - 1;
        self.block(fed).map_or_else(by_length, |block| fed.of_blocks(block, at_once).count() as u64)
    }

    /// How many more messages each task seems to have got than woke it.
    pub(super) fn counts(&self, fed: &[Fed]) -> Vec<u64> {
        let mut counts = vec![0; self.lengths.len()];
        fed.iter().for_each(|fed| counts[fed.task as usize] += self.messages(fed, 1));
        counts
    }
}

/// The messages of bursts of several. They are at most `most` tokens: if need be, several messages are taken as one.
pub(super) fn additions(
    fed: &[Fed],
    worth: &Worth,
    tasks: &[Task],
    most: usize,
    mut causal: impl FnMut(TaskIx, TaskIx) -> bool,
) -> Added {
    let tokens = |at_once: u64| fed.iter().map(|fed| worth.messages(fed, at_once) * TOKENS).sum::<u64>();
    let at_once = (0..u64::BITS).map(|shift| 1 << shift).find(|at_once| tokens(*at_once) <= most as u64);
    let mut added = Added::to(tasks);
    let Some(at_once) = at_once else { return added };
    for fed in fed {
        let messages = match worth.block(fed) {
            Some(block) if causal(fed.by, fed.task) => fed.of_blocks(block, at_once).collect(),
            Some(_) => Vec::new(),
            None => fed.by_length(worth.pieces(fed, at_once), &mut causal),
        };
        for (sent, at) in messages {
            added.message(sent, (fed.task, at));
            added.cut.insert((fed.task, fed.begin));
        }
    }
    added
}

/// The waker, and how far it was in its work, when the wakers had done so much of what they have done when the task is
/// at `at`.
fn place(supplies: &[&Supply], at: Nanos, mut done: Nanos) -> Option<Sent> {
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
