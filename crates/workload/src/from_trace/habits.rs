//! Messages that no wake-up shows, of tasks that send one in each of their rounds.
//!
//! A client asks once in each of its bursts, and then waits for the answer or does something else. If in nearly all of
//! those bursts at whose end the server slept it was woken, then the client asks in the others too: the server was
//! awake, and took the message when it was done with the last one. The same is true of several servers that take from
//! one queue, a *pool*: if one of them sleeps, it is woken, and else the message waits for the first that is free. So a
//! server's burst during which messages came is several, one for each message.
//!
//! A round may be longer than a burst. A task may sleep for a lock or for an answer in the middle of it, and send its
//! message only after that: a client that a timer wakes does so once between two expiries, and a worker once for each
//! time that the other one has woken it. Or it wakes several in one go, as at the start of a phase: then it sends each
//! of them a message whenever it wakes some of them.
//!
//! A server may also do in one go what it was asked for several times. Then the pieces of its burst are short, but it
//! would be woken for the second message all the same if that came later.
//!
//! The replay cannot deadlock (see [`super::unseen`]): a server that runs when a message is sent begins a new turn
//! there, and a wait for the message stands in that turn or in a later one.

use super::added::Added;
use super::life::{Place, Task};
use super::rounds::Regular;
use super::sequence::{NOBODY, TaskIx};
use super::track::Track;
use schedlab_base::Nanos;
use std::collections::{BTreeSet, HashMap};

/// Of so many sleepers it is followed whether a task wakes them: the first ones.
const MOST_SLEEPERS: usize = u32::BITS as usize;

/// Who is woken in a smaller part of the bursts in which the task wakes anybody was woken by chance.
const RARELY: u64 = 64;

/// So many bursts in which a sleeper could be woken at least, and so many percent in which it was, make a habit.
const FEWEST: usize = 16;
const PERCENT: usize = 90;

/// If two or more are woken in at most so many percent of the bursts in which any is, a message is for one of them.
const PERCENT_TOGETHER: usize = 10;

/// At most so many messages, counted for each task that may have got one, are held, and as many bursts.
const MOST_HELD: usize = 1 << 20;

/// Some of the tasks that a task wakes: a bit for each.
type Bits = u32;

/// A burst of a task that wakes others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// Who woke it.
    by: TaskIx,
    /// Its work at the beginning and at the end.
    pub from: Nanos,
    pub to: Nanos,
    /// The tasks that it woke, and those of the others that slept when it ended.
    woken: Bits,
    asleep: Bits,
    /// Where those that were awake begin among all hearers, and how many they are.
    hearers: (u32, u32),
}

#[cfg(test)]
impl Burst {
    /// A burst from here to there, of which nothing else is known.
    pub fn of(from: Nanos, to: Nanos) -> Self {
        Self { by: NOBODY, from, to, woken: 0, asleep: 0, hearers: (0, 0) }
    }
}

/// Whom a task wakes in its bursts.
#[derive(Debug)]
pub(super) struct Habit {
    /// Whom, and in how many bursts.
    pub sleepers: Vec<(TaskIx, u64)>,
    /// It wakes more than are followed.
    more: bool,
    pub bursts: Vec<Burst>,
    /// The burst that is under way: the task's waker, the tasks that it has woken, and its work at the beginning and
    /// when it last woke one.
    by: TaskIx,
    woken: Bits,
    begin: Nanos,
    at: Nanos,
    /// In so many bursts it woke others; the sum of the parts of them after which it did, in thousandths.
    waking: u64,
    parts: u64,
}

impl Default for Habit {
    fn default() -> Self {
        let (sleepers, bursts, by) = (Vec::new(), Vec::new(), NOBODY);
        Self { sleepers, more: false, bursts, by, woken: 0, begin: 0, at: 0, waking: 0, parts: 0 }
    }
}

/// Where the rounds of a task begin, in each of which it sends a message to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// Each burst is one.
    Burst,
    /// When a timer or an interrupt wakes it.
    Timer,
    /// When the other one wakes it: so it answers.
    Answer,
}

impl Round {
    const ALL: [Self; 3] = [Self::Burst, Self::Timer, Self::Answer];

    fn begins(self, by: TaskIx, to: TaskIx) -> bool {
        match self {
            Self::Burst => true,
            Self::Timer => by == NOBODY,
            Self::Answer => by == to,
        }
    }
}

impl Habit {
    /// The task is woken by this one.
    pub(super) fn begins(&mut self, by: TaskIx) {
        self.by = by;
    }

    /// The task wakes another one.
    pub(super) fn wakes(&mut self, sleeper: TaskIx, own: Nanos) {
        self.at = own;
        let known = self.sleepers.iter().position(|(task, _)| *task == sleeper);
        if known.is_none() && self.sleepers.len() == MOST_SLEEPERS {
            self.more = true;
            return;
        }
        let bit = known.unwrap_or_else(|| {
            self.sleepers.push((sleeper, 0));
            self.sleepers.len() - 1
        });
        if self.woken & (1 << bit) == 0 {
            self.woken |= 1 << bit;
            self.sleepers[bit].1 += 1;
        }
    }

    /// Its burst ends, and another one may begin.
    fn ends(&mut self, own: Nanos, sleeps: impl Fn(TaskIx) -> bool) -> Burst {
        let woken = std::mem::take(&mut self.woken);
        let from = std::mem::replace(&mut self.begin, own);
        if woken != 0 && own > from {
            self.waking += 1;
            self.parts += (self.at - from) * 1000 / (own - from);
        }
        let asleep = self.those(|task, _| sleeps(task)) & !woken;
        Burst { by: self.by, from, to: own, woken, asleep, hearers: (0, 0) }
    }

    /// Those of whom this is true, given who it is and in how many bursts woken.
    pub(super) fn those(&self, mut is: impl FnMut(TaskIx, u64) -> bool) -> Bits {
        let bit = |(bit, (task, times)): (usize, &(TaskIx, u64))| Bits::from(is(*task, *times)) << bit;
        self.sleepers.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
    }

    /// Who these are, and in how many bursts they were woken.
    fn tasks(&self, these: Bits) -> impl Iterator<Item = (TaskIx, u64)> + '_ {
        self.sleepers.iter().enumerate().filter(move |(bit, _)| these >> bit & 1 == 1).map(|(_, sleeper)| *sleeper)
    }

    /// Whether it woke this one in a burst.
    fn woke_in(&self, burst: &Burst, sleeper: TaskIx) -> bool {
        burst.woken & self.those(|task, _| task == sleeper) != 0
    }

    /// Those that it does not wake by chance, as far as is known.
    pub(super) fn often(&self) -> Bits {
        self.those(|_, times| times * RARELY >= self.waking)
    }

    /// A pool, one task of which gets a message in each burst; `causes` are the tasks that it wakes of its own accord.
    fn one_of(&self, causes: Bits) -> Bits {
        let all = causes & self.often();
        let together = self.bursts.iter().filter(|burst| (burst.woken & all).count_ones() > 1).count();
        let any = self.bursts.iter().filter(|burst| burst.woken & all != 0).count();
        let one = wakes_one_of(&self.bursts, all, |_| true) && together * 100 <= any * PERCENT_TOGETHER;
        if one { all } else { 0 }
    }

    /// Before how many sleeps that one of these ended it had woken one of them, and before how many it had not, though
    /// all of them slept.
    pub(super) fn waits_for(&self, is: impl Fn(TaskIx) -> bool) -> (usize, usize) {
        let these = self.those(|task, _| is(task));
        let before = self.bursts.windows(2).filter(|pair| is(pair[1].by));
        before.fold((0, 0), |(woke, not), pair| match pair[0] {
            Burst { woken, .. } if woken & these != 0 => (woke + 1, not),
            Burst { asleep, .. } => (woke, not + usize::from(asleep & these == these)),
        })
    }

    /// Where in a burst it wakes others, on average.
    pub(super) fn part(&self) -> Fraction {
        Fraction(self.parts / self.waking.max(1))
    }
}

/// A part of a burst, in thousandths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fraction(pub u64);

impl Fraction {
    /// When a burst from here to there is so far.
    pub(super) fn of(self, from: Nanos, to: Nanos) -> Nanos {
        from + (to - from) * self.0 / 1000
    }
}

/// Bursts by rounds. What came before the first is left out.
fn rounds(bursts: &[Burst], begins: impl Fn(&Burst) -> bool + Copy) -> impl Iterator<Item = &[Burst]> {
    let mut rounds = bursts.chunk_by(move |_, next| !begins(next));
    let first = rounds.next().filter(|round| begins(&round[0]));
    first.into_iter().chain(rounds)
}

/// Whether one of these is woken in nearly all rounds in which it can be.
pub(super) fn wakes_one_of(bursts: &[Burst], these: Bits, begins: impl Fn(&Burst) -> bool + Copy) -> bool {
    is_habit(rounds(bursts, begins).filter_map(|round| woke(round, these)))
}

/// Whether a task does something nearly always, given whether it did each time that it could.
fn is_habit(times: impl Iterator<Item = bool>) -> bool {
    let (chances, taken) = times.fold((0, 0), |(all, taken), did| (all + 1, taken + usize::from(did)));
    chances >= FEWEST && taken * 100 >= chances * PERCENT
}

/// The rounds in each of which a task sent a message to one that did not sleep, of those that it often wakes.
fn silent_rounds(bursts: &[Burst], often: Bits, this: Bits, sleeper: TaskIx) -> Vec<&[Burst]> {
    let silent = |round: &&[Burst]| woke(round, this).is_none();
    for kind in Round::ALL {
        let begins = move |burst: &Burst| kind.begins(burst.by, sleeper);
        if wakes_one_of(bursts, this, begins) {
            return rounds(bursts, begins).filter(silent).collect();
        }
    }
    // Or one whenever it wakes others.
    let others = |round: &&[Burst]| round[0].woken & often & !this != 0;
    let seen = rounds(bursts, |_| true).filter(others).filter_map(|round| woke(round, this));
    if is_habit(seen) { rounds(bursts, |_| true).filter(others).filter(silent).collect() } else { Vec::new() }
}

/// Whether one of these was woken in a round; none if all that shows is that they did not sleep.
fn woke(round: &[Burst], these: Bits) -> Option<bool> {
    let woke = round.iter().any(|burst| burst.woken & these != 0);
    let could = woke || round.iter().all(|burst| burst.asleep & these != 0);
    could.then_some(woke)
}

/// The burst of a task that a task woke.
#[derive(Debug)]
struct Heard {
    task: TaskIx,
    begin: Nanos,
    /// None while it lasts, or if its end was not seen.
    end: Option<Nanos>,
}

/// A task that may have got a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hearer {
    /// In which of its bursts.
    pub burst: usize,
    /// Its work by then.
    pub so_far: Nanos,
}

/// Messages that may have been sent.
#[derive(Debug, Default)]
pub(super) struct Silence {
    hearers: Vec<Hearer>,
    heard: Vec<Heard>,
    /// How many bursts of wakers are kept.
    bursts: usize,
}

impl Track {
    /// The burst of a task ends: it may have sent messages to those who were awake.
    pub(super) fn falls_silent(&mut self, ix: TaskIx, now: Nanos) {
        let task = &mut self.tasks[ix as usize];
        let (own, mut habit) = (task.work, std::mem::take(&mut task.habit));
        if let Some(heard) = task.receiver.heard.take() {
            self.silence.heard[heard].end = Some(own);
        }
        let sleeps = |task: &Task| matches!(task.place, Place::Blocked { .. }) && task.asked.is_none();
        let mut burst = habit.ends(own, |task| sleeps(&self.tasks[task as usize]));
        let room = self.silence.bursts < MOST_HELD && self.silence.hearers.len() < MOST_HELD;
        if !habit.sleepers.is_empty() && !habit.more && room {
            let first = self.silence.hearers.len();
            for (task, _) in habit.tasks(habit.often() & !burst.asleep) {
                let woken = habit.woke_in(&burst, task);
                if !woken || self.tasks[task as usize].place == Place::Ready {
                    self.hears(task, now);
                }
            }
            burst.hearers = (first as u32, (self.silence.hearers.len() - first) as u32);
            habit.bursts.push(burst);
            self.silence.bursts += 1;
        }
        self.tasks[ix as usize].habit = habit;
    }

    /// A message may be sent to a task that is awake: it counts if a task woke it.
    fn hears(&mut self, ix: TaskIx, now: Nanos) {
        let Some(begin) = self.tasks[ix as usize].receiver.begin() else { return };
        let mut so_far = self.tasks[ix as usize].work;
        match self.tasks[ix as usize].place {
            // It may turn out not to have run: so what it did since it was last counted is not counted here.
            Place::Running { cpu, since } => {
                so_far += self.cores.work(cpu, now.saturating_sub(since), now);
                self.tasks[ix as usize].turn = self.next_turn();
            }
            Place::Ready => {}
            Place::Blocked { .. } | Place::Dead => return,
        }
        let heard = &mut self.silence.heard;
        let burst = *self.tasks[ix as usize].receiver.heard.get_or_insert_with(|| {
            heard.push(Heard { task: ix, begin, end: None });
            heard.len() - 1
        });
        self.silence.hearers.push(Hearer { burst, so_far });
    }
}

impl Silence {
    /// Those of these tasks that were awake when a burst ended, and went on working. What came when theirs was over was
    /// for another one.
    pub(super) fn hearers(&self, burst: &Burst, among: impl Fn(TaskIx) -> bool) -> impl Iterator<Item = Hearer> {
        let (first, count) = burst.hearers;
        let heard = move |hearer: &Hearer| {
            let Heard { task, end, .. } = self.heard[hearer.burst];
            end.is_some_and(|end| end > hearer.so_far) && among(task)
        };
        self.hearers[first as usize..][..count as usize].iter().copied().filter(heard)
    }
}

/// A message that came in a burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// How far the receiver was.
    pub so_far: Nanos,
    pub waker: TaskIx,
    /// How far the waker was.
    pub from: Nanos,
}

/// The messages that were sent.
pub(super) struct Sent<'a> {
    heard: &'a [Heard],
    /// By the bursts in which they came.
    messages: Vec<Vec<Message>>,
    regular: Vec<Regular>,
    /// Which burst begins there.
    begin: HashMap<(TaskIx, Nanos), usize>,
}

impl<'a> Sent<'a> {
    pub(super) fn of(silence: &'a Silence, tasks: &[Task], mut causal: impl FnMut(TaskIx, TaskIx) -> bool) -> Self {
        let mut messages = messages(silence, tasks, &mut causal);
        messages.iter_mut().for_each(|messages| messages.sort_by_key(|message| message.so_far));
        let regular = Regular::all(silence, tasks, &messages, causal);
        let begin = (0..).zip(&silence.heard).map(|(at, heard)| ((heard.task, heard.begin), at)).collect();
        Self { heard: &silence.heard, messages, regular, begin }
    }

    /// The tasks whose messages are those that habits tell of: the lengths of their bursts tell of no more than half as
    /// many again. Where these tell of more, a task sends several in a burst.
    pub(super) fn explained(&self, tasks: &[Task], by_lengths: &[u64]) -> Vec<bool> {
        let mut by_habits = vec![0; tasks.len()];
        for (heard, messages) in std::iter::zip(self.heard, self.all(&Added::to(tasks))) {
            by_habits[heard.task as usize] += messages.len() as u64;
        }
        let explained = |((task, lengths), habits): ((&Task, &u64), u64)| {
            let woken = task.wakes.all - task.wakes.by_nobody;
            habits > 0 && 2 * (woken + lengths) <= 3 * (woken + habits)
        };
        std::iter::zip(tasks, by_lengths).zip(by_habits).map(explained).collect()
    }

    /// All messages, given those that were found in other ways.
    fn all(&self, added: &Added) -> Vec<Vec<Message>> {
        let mut all = self.messages.clone();
        let own = |task: TaskIx, from: Nanos, to: Nanos| {
            // A burst may be of no length: then another one begins there.
            let at = self.begin.get(&(task, from)).copied().filter(|at| self.heard[*at].end == Some(to));
            at.into_iter().flat_map(|at| self.heard[at].cuts(&self.messages[at]))
        };
        for regular in &self.regular {
            regular.missing(&added.waits(regular.waker), own).for_each(|(burst, message)| all[burst].push(message));
        }
        all.iter_mut().for_each(|messages| messages.sort_by_key(|message| message.so_far));
        all
    }

    /// Adds them where none are known in a burst.
    pub(super) fn add_to(&self, added: &mut Added) {
        let all = self.all(added);
        for (heard, messages) in std::iter::zip(self.heard, &all) {
            if !added.cut.contains(&(heard.task, heard.begin)) {
                for (message, at) in std::iter::zip(messages, heard.cuts(messages)) {
                    added.message((message.waker, message.from), (heard.task, at));
                }
            }
        }
    }
}

impl Heard {
    /// Where the task waits for each of these messages, which came in its burst: they cut it into equal pieces.
    fn cuts(&self, messages: &[Message]) -> impl Iterator<Item = Nanos> {
        let pieces = messages.len() as u64 + 1;
        let lasts = self.end.map(|end| end - self.begin);
        let cut = move |(piece, message): (u64, &Message)| {
            lasts.map(|lasts| (self.begin + lasts * piece / pieces).max(message.so_far))
        };
        (1..).zip(messages).map_while(cut)
    }
}

/// The messages that were sent, by the bursts in which they came.
fn messages(silence: &Silence, tasks: &[Task], causal: &mut impl FnMut(TaskIx, TaskIx) -> bool) -> Vec<Vec<Message>> {
    let mut messages: Vec<Vec<Message>> = vec![Vec::new(); silence.heard.len()];
    for (waker, Task { habit, .. }) in (0..).zip(tasks) {
        let causes = habit.those(|task, _| causal(waker, task));
        let message = |burst: &Burst, hearer: Hearer| {
            let from = habit.part().of(burst.from, burst.to);
            (hearer.burst, Message { so_far: hearer.so_far, waker, from })
        };
        let one = habit.one_of(causes);
        if one != 0 {
            for burst in habit.bursts.iter().filter(|burst| (burst.woken | burst.asleep) & one == 0) {
                // The first that is free takes it: the one whose burst is the longest for its messages.
                let piece = |hearer: &Hearer| {
                    let Heard { begin, end, .. } = silence.heard[hearer.burst];
                    (end.unwrap_or(begin) - begin) / (messages[hearer.burst].len() as u64 + 2)
                };
                let pool = silence.hearers(burst, |task| habit.tasks(one).any(|(sleeper, _)| sleeper == task));
                if let Some((hearer, message)) = pool.max_by_key(piece).map(|hearer| message(burst, hearer)) {
                    messages[hearer].push(message);
                }
            }
            continue;
        }
        let often = causes & habit.often();
        if often == 0 {
            continue;
        }
        let mut by = |by| if by != NOBODY && causal(by, waker) { by } else { NOBODY };
        let bursts: Vec<Burst> = habit.bursts.iter().map(|burst| Burst { by: by(burst.by), ..*burst }).collect();
        for (bit, (sleeper, _)) in habit.sleepers.iter().enumerate().filter(|(bit, _)| often >> bit & 1 == 1) {
            for round in silent_rounds(&bursts, often, 1 << bit, *sleeper) {
                let heard = |burst: &Burst| {
                    silence.hearers(burst, |task| task == *sleeper).next().map(|hearer| message(burst, hearer))
                };
                if let Some((hearer, message)) = round.iter().rev().find_map(heard) {
                    messages[hearer].push(message);
                }
            }
        }
    }
    messages
}

/// The tasks that take from one queue, by queue.
pub(super) fn pools(tasks: &[Task], mut causal: impl FnMut(TaskIx, TaskIx) -> bool) -> Vec<Vec<TaskIx>> {
    // In how many bursts each task was woken, and in how many of them as one of a pool; and the pool.
    let mut woken = vec![(0, 0); tasks.len()];
    let mut pools: Vec<BTreeSet<TaskIx>> = Vec::new();
    for (waker, Task { habit, .. }) in (0..).zip(tasks) {
        let causes = habit.those(|task, _| causal(waker, task));
        let one = Some(habit.one_of(causes)).filter(|one| one.count_ones() > 1).unwrap_or(0);
        habit.tasks(causes).for_each(|(task, times)| woken[task as usize].0 += times);
        habit.tasks(one).for_each(|(task, times)| woken[task as usize].1 += times);
        let mut pool: BTreeSet<TaskIx> = habit.tasks(one).map(|(task, _)| task).collect();
        // Who takes from two queues joins them.
        let (joined, apart) = pools.into_iter().partition(|known| !known.is_disjoint(&pool));
        pools = apart;
        pool.extend(joined.into_iter().flatten());
        pools.extend(Some(pool).filter(|pool| !pool.is_empty()));
    }
    let from_there = |task: &TaskIx| {
        let (all, pooled) = woken[*task as usize];
        pooled * 100 >= all * PERCENT as u64
    };
    let pools = pools.into_iter().map(|pool| pool.into_iter().filter(from_there).collect());
    pools.filter(|pool: &Vec<TaskIx>| pool.len() > 1).collect()
}
