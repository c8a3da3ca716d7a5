//! Messages that no wake-up shows, of tasks that send one in each of their bursts.
//!
//! A client asks once in each of its bursts, and then waits for the answer or does something else. If in nearly all of
//! those bursts at whose end the server slept it was woken, then the client asks in the others too: the server was
//! awake, and took the message when it was done with the last one. The same is true of several servers that take from
//! one queue, a *pool*: if one of them sleeps, it is woken, and else the message waits for the first that is free. So a
//! server's burst during which messages came is several, one for each message.
//!
//! A server may also do in one go what it was asked for several times. Then its bursts with such messages are about as
//! long as those without, and the messages do not count.
//!
//! The replay cannot deadlock (see [`super::unseen`]): a server that runs when a message is sent begins a new turn
//! there, and a wait for the message stands in that turn or in a later one.

use super::life::{Place, Task};
use super::sequence::TaskIx;
use super::track::Track;
use super::unseen::Added;
use schedlab_base::Nanos;
use std::collections::BTreeSet;

/// Of so many sleepers it is followed whether a task wakes them: the first ones.
const MOST_SLEEPERS: usize = u32::BITS as usize;

/// Of so many bursts it is kept whom the task woke in them, and who slept: the first ones.
const MOST_BURSTS: usize = 1024;

/// Who is woken in a smaller part of the bursts in which the task wakes anybody was woken by chance.
const RARELY: u64 = 64;

/// So many bursts in which a sleeper could be woken at least, and so many percent in which it was, make a habit.
const FEWEST: usize = 16;
const PERCENT: usize = 90;

/// If two or more are woken in at most so many percent of the bursts in which any is, a message is for one of them.
const PERCENT_TOGETHER: usize = 10;

/// So many bursts without messages at least say how long one is.
const FEWEST_ALONE: u64 = 8;

/// Each of several messages takes at least such a part of the time of one that comes alone.
const LEAST_PART: f64 = 0.7;

/// At most so many messages, counted for each task that may have got one, are held, and as many bursts.
const MOST_HELD: usize = 1 << 20;

/// Some of the tasks that a task wakes: a bit for each.
type Bits = u32;

/// Whom a task woke in a burst, and who of the others slept when it ended.
#[derive(Clone, Copy, Debug)]
struct Burst {
    woken: Bits,
    asleep: Bits,
}

/// To whom a task sends messages: one in each of its bursts.
#[derive(Clone, Copy, Debug, Default)]
struct To {
    /// To each of these.
    each: Bits,
    /// To one of these.
    one: Bits,
}

/// Whom a task wakes in its bursts.
#[derive(Debug, Default)]
pub(super) struct Habit {
    /// Whom, and in how many bursts.
    sleepers: Vec<(TaskIx, u64)>,
    /// It wakes more than are followed.
    more: bool,
    bursts: Vec<Burst>,
    /// The burst that is under way: whom it has woken in it, and its work when it began and at its last wake-up.
    woken: Bits,
    begin: Nanos,
    at: Nanos,
    /// In so many bursts it woke others; the sum of the parts of them after which it did, in thousandths.
    waking: u64,
    parts: u64,
}

impl Habit {
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
        let length = own - self.begin;
        if woken != 0 && length > 0 {
            self.waking += 1;
            self.parts += (self.at - self.begin) * 1000 / length;
        }
        self.begin = own;
        Burst { woken, asleep: self.those(|task, _| sleeps(task)) & !woken }
    }

    /// Those of whom this is true, given who it is and in how many bursts woken.
    fn those(&self, mut is: impl FnMut(TaskIx, u64) -> bool) -> Bits {
        let bit = |(bit, (task, times)): (usize, &(TaskIx, u64))| Bits::from(is(*task, *times)) << bit;
        self.sleepers.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
    }

    /// Who these are, and in how many bursts they were woken.
    fn tasks(&self, these: Bits) -> impl Iterator<Item = (TaskIx, u64)> + '_ {
        self.sleepers.iter().enumerate().filter(move |(bit, _)| these >> bit & 1 == 1).map(|(_, sleeper)| *sleeper)
    }

    /// Those that it does not wake by chance, as far as is known.
    fn often(&self) -> Bits {
        self.those(|_, times| times * RARELY >= self.waking)
    }

    /// Whether it wakes one of these in nearly all bursts in which it can.
    fn wakes_one_of(&self, these: Bits) -> bool {
        let chances = self.bursts.iter().filter(|burst| (burst.woken | burst.asleep) & these != 0).count();
        let taken = self.bursts.iter().filter(|burst| burst.woken & these != 0).count();
        chances >= FEWEST && taken * 100 >= chances * PERCENT
    }

    /// To whom it sends messages, of those of whom it is the cause that they wake.
    fn to(&self, causes: Bits) -> To {
        let all = causes & self.often();
        let together = self.bursts.iter().filter(|burst| (burst.woken & all).count_ones() > 1).count();
        let any = self.bursts.iter().filter(|burst| burst.woken & all != 0).count();
        if self.wakes_one_of(all) && together * 100 <= any * PERCENT_TOGETHER {
            return To { one: all, each: 0 };
        }
        let each = (0..Bits::BITS).map(|bit| 1 << bit).filter(|bit| all & bit != 0 && self.wakes_one_of(*bit));
        To { each: each.fold(0, |all, bit| all | bit), one: 0 }
    }

    /// Where in a burst it wakes others, on average.
    fn usual(&self, from: Nanos, to: Nanos) -> Nanos {
        from + (to - from) * (self.parts / self.waking.max(1)) / 1000
    }
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
struct Hearer {
    /// In which of its bursts.
    burst: usize,
    /// Its work by then.
    so_far: Nanos,
}

/// A burst of a task that may have sent messages to tasks that were awake.
#[derive(Debug)]
struct Silent {
    waker: TaskIx,
    from: Nanos,
    to: Nanos,
    /// Whom else it woke, and who slept.
    burst: Burst,
    /// Where its hearers end among all.
    until: usize,
}

/// Messages that may have been sent.
#[derive(Debug, Default)]
pub(super) struct Silence {
    silent: Vec<Silent>,
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
        let from = habit.begin;
        let burst = habit.ends(own, |task| matches!(self.tasks[task as usize].place, Place::Blocked { .. }));
        let room = self.silence.bursts < MOST_HELD && self.silence.hearers.len() < MOST_HELD;
        if !habit.sleepers.is_empty() && !habit.more && own > from && room {
            if habit.bursts.len() < MOST_BURSTS {
                habit.bursts.push(burst);
                self.silence.bursts += 1;
            }
            let before = self.silence.hearers.len();
            let awake = habit.often() & !burst.woken & !burst.asleep;
            for (task, _) in habit.tasks(awake) {
                self.hears(task, now);
            }
            let until = self.silence.hearers.len();
            if until > before {
                self.silence.silent.push(Silent { waker: ix, from, to: own, burst, until });
            }
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

/// A message that came in a burst.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// How far the receiver was.
    so_far: Nanos,
    waker: TaskIx,
    /// How far the waker was.
    from: Nanos,
}

/// The messages that were sent and taken one by one.
pub(super) struct Sent<'a> {
    heard: &'a [Heard],
    /// By the bursts in which they came.
    messages: Vec<Vec<Message>>,
}

impl<'a> Sent<'a> {
    pub(super) fn of(silence: &'a Silence, tasks: &[Task], causal: impl FnMut(TaskIx, TaskIx) -> bool) -> Self {
        let mut messages = messages(silence, tasks, causal);
        let taken = taken_one_by_one(silence, tasks, &messages);
        for (heard, messages) in std::iter::zip(&silence.heard, &mut messages) {
            if !taken[heard.task as usize] {
                messages.clear();
            }
        }
        Self { heard: &silence.heard, messages }
    }

    /// Adds them where none are known in a burst.
    pub(super) fn add_to(&self, added: &mut Added) {
        for (Heard { task, begin, end }, messages) in std::iter::zip(self.heard, &self.messages) {
            let Some(end) = end.filter(|_| !added.cut.contains(&(*task, *begin))) else { continue };
            let pieces = messages.len() as u64 + 1;
            for (piece, message) in (1..).zip(messages) {
                let at = (begin + (end - begin) * piece / pieces).max(message.so_far);
                added.message((message.waker, message.from), (*task, at));
            }
        }
    }
}

/// The messages that were sent, by the bursts in which they came.
fn messages(silence: &Silence, tasks: &[Task], mut causal: impl FnMut(TaskIx, TaskIx) -> bool) -> Vec<Vec<Message>> {
    let mut messages: Vec<Vec<Message>> = vec![Vec::new(); silence.heard.len()];
    let mut known: Vec<Option<To>> = vec![None; tasks.len()];
    let mut first = 0;
    for Silent { waker, from, to, burst, until } in &silence.silent {
        let hearers = &silence.hearers[std::mem::replace(&mut first, *until)..*until];
        let habit = &tasks[*waker as usize].habit;
        let To { each, one } =
            *known[*waker as usize].get_or_insert_with(|| habit.to(habit.those(|task, _| causal(*waker, task))));
        let among = |these: Bits| {
            let those = move |hearer: &&Hearer| {
                let Heard { task, end, .. } = silence.heard[hearer.burst];
                // What came when the burst was over was for another one.
                let lasts = end.is_some_and(|end| end > hearer.so_far);
                lasts && habit.tasks(these).any(|(sleeper, _)| sleeper == task)
            };
            hearers.iter().filter(those)
        };
        let message = |hearer: &Hearer| Message { so_far: hearer.so_far, waker: *waker, from: habit.usual(*from, *to) };
        for hearer in among(each) {
            messages[hearer.burst].push(message(hearer));
        }
        if (burst.woken | burst.asleep) & one == 0 {
            // The first that is free takes it: the one whose burst is the longest for its messages.
            let piece = |hearer: &&Hearer| {
                let Heard { begin, end, .. } = silence.heard[hearer.burst];
                (end.unwrap_or(begin) - begin) / (messages[hearer.burst].len() as u64 + 2)
            };
            if let Some(hearer) = among(one).max_by_key(piece) {
                messages[hearer.burst].push(message(hearer));
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
        let To { one, .. } = habit.to(causes);
        let one = if one.count_ones() > 1 { one } else { 0 };
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

/// Whether a task's bursts with messages are longer than those without, by task.
fn taken_one_by_one(silence: &Silence, tasks: &[Task], messages: &[Vec<Message>]) -> Vec<bool> {
    let mut with = vec![(0, 0, 0); tasks.len()];
    for (heard, messages) in std::iter::zip(&silence.heard, messages).filter(|(_, messages)| !messages.is_empty()) {
        let (bursts, sum, pieces) = &mut with[heard.task as usize];
        *bursts += 1;
        *sum += heard.end.unwrap_or(heard.begin) - heard.begin;
        *pieces += messages.len() as u64 + 1;
    }
    let holds = |(task, (bursts, sum, pieces)): (&Task, (u64, Nanos, u64))| {
        let (all, total) = task.receiver.bursts();
        let (alone, length) = (all.saturating_sub(bursts), total.saturating_sub(sum));
        let piece = sum as f64 / pieces.max(1) as f64;
        let takes_time = piece >= LEAST_PART * length as f64 / alone.max(1) as f64;
        alone >= FEWEST_ALONE && takes_time
    };
    std::iter::zip(tasks, with).map(holds).collect()
}
