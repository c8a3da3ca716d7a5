//! Queues with room for so many messages: who finds one full waits until its receiver has taken some.
//!
//! Several tasks send one another messages through a socket or a pipe. One that finds it full sleeps, and the
//! receiver wakes it when there is room again. If that were a wait for what the receiver had done by then in the
//! recording, a sender would wait for it on another scheduler as well, where the queue may be all but empty. Then
//! senders wait for a receiver that waits for senders, the messages come one by one, and receivers sleep twice as
//! often as they should. So in the model the queue has room for so many messages: before each of them its sender
//! takes a place, and waits if there is none, and the receiver gives places back when it takes messages.
//!
//! A trace shows only wake-ups. By them, a task is such a receiver if
//!
//! - at least two tasks wake it, its senders, and others in at most a tenth of the times.
//! - it wakes some of them as well, but less often: those found it full.
//! - no sender is a receiver, and none waits for anything else, once there are messages, than for places in such
//!   queues; nor does the receiver, but for those few times, which the model leaves out.
//!
//! How many messages a queue has room for is how many were in it when senders went to sleep, in the median; how many
//! are taken before a place is given back is how many fewer there were when those were woken.
//!
//! The replay cannot deadlock: a sender waits only for a place, and a receiver only for a message. If there is no
//! place, at least one message is there.

use super::beats::median;
use super::sequence::{NOBODY, TaskIx, Token, is_folded, places, push};
use super::track::Track;
use schedlab_base::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A receiver has so many senders at least and at most.
const FEWEST: usize = 2;
const MOST: usize = 1 << 10;

/// A receiver was woken by its senders so often at least, and woke them at most so many times as often.
const FEWEST_WOKEN: usize = 4;
const TIMES_AS_OFTEN: usize = 2;

/// A task is a sender if it wakes the receiver at least in such a part of the times that it would if all did as often.
const PART_OF_EQUAL: usize = 10;

/// Of the queues that share senders, so many messages at least found one full, and more woke a receiver.
const FEWEST_FULL: usize = 16;

/// So many percent of the receiver's waits at least, once there are messages, are for its senders.
const PERCENT_FOR_SENDERS: usize = 90;

/// A queue has room for so many messages at least. Where one seems to have less, most messages do not show.
const FEWEST_PLACES: usize = 4;

/// So many stretches of running of all tasks are held at most.
pub(super) const MOST_RUNS: usize = 1 << 20;

/// When a task ran, and how far it was in its work before and after.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: Nanos,
    to: Nanos,
    before: Nanos,
    after: Nanos,
}

/// How far a task was at which time.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Vec<Run>);

impl Progress {
    /// It has run. Whether that is a new stretch.
    pub fn runs(&mut self, (from, to): (Nanos, Nanos), (before, after): (Nanos, Nanos)) -> bool {
        match self.0.last_mut() {
            Some(last) if last.to == from => {
                (last.to, last.after) = (to, after);
                false
            }
            _ => {
                self.0.push(Run { from, to, before, after });
                true
            }
        }
    }

    /// How far it was.
    fn at(&self, time: Nanos) -> Nanos {
        match self.0.get(self.0.partition_point(|run| run.to < time)) {
            Some(Run { from, before, .. }) if time <= *from => *before,
            Some(Run { from, to, before, after }) => {
                let part = u128::from(after - before) * u128::from(time - from) / u128::from(to - from);
                before + part as Nanos
            }
            None => self.0.last().map_or(0, |last| last.after),
        }
    }
}

/// A queue, of which it is not known how much room it has.
#[derive(Clone, Debug)]
struct Queue {
    receiver: TaskIx,
    senders: BTreeSet<TaskIx>,
    /// How often they woke the receiver.
    woken: usize,
    /// From when until when a sender slept that found it full.
    full: Vec<(Nanos, Nanos)>,
}

/// A queue of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub receiver: TaskIx,
    pub size: usize,
}

/// The queues with room for so many messages.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    queues: Vec<Queue>,
    found: Vec<Found>,
    senders: usize,
}

/// The sleeps that each task ended of each other one: when they began and ended. The waker is the first of the two.
type Woken = BTreeMap<(TaskIx, TaskIx), Vec<(Nanos, Nanos)>>;

impl Rooms {
    /// Those that the wake-ups show, among the tasks that may have one.
    pub fn find(track: &Track, mut causal: impl FnMut(TaskIx, TaskIx) -> bool, may: impl Fn(TaskIx) -> bool) -> Self {
        if track.runs >= MOST_RUNS {
            return Self::default();
        }
        let mut woken = Woken::new();
        for handoff in track.handoffs.woken() {
            woken.entry((handoff.waker, handoff.sleeper)).or_default().push((handoff.since, handoff.now));
        }
        woken.retain(|(waker, sleeper), _| causal(*waker, *sleeper));
        let mut wakers: BTreeMap<TaskIx, Vec<TaskIx>> = BTreeMap::new();
        woken.keys().for_each(|(waker, sleeper)| wakers.entry(*sleeper).or_default().push(*waker));
        let mut queues: Vec<Queue> = wakers.iter().filter_map(|(task, wakers)| queue(&woken, *task, wakers)).collect();
        // Who is woken most, and wakes least, receives messages; those who wake it send them.
        queues.sort_by_key(|queue| (Reverse(queue.woken.saturating_sub(queue.full.len())), queue.receiver));
        let mut senders: BTreeSet<TaskIx> = BTreeSet::new();
        queues.retain(|queue| {
            let receives = !senders.contains(&queue.receiver);
            if receives {
                let often = |sender: &&TaskIx| {
                    let times = woken.get(&(**sender, queue.receiver)).map_or(0, Vec::len);
                    times * queue.senders.len() * PART_OF_EQUAL >= queue.woken
                };
                senders.extend(queue.senders.iter().filter(often));
            }
            receives
        });
        let fits = |task: TaskIx| may(task) && !is_folded(&track.tasks[task as usize].sequence);
        let all_fit = |queue: &Queue| queue.senders.iter().chain([&queue.receiver]).all(|task| fits(*task));
        Self { queues: queues.into_iter().filter(all_fit).collect(), ..Self::default() }
    }

    /// Those of the model.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// How many tasks send messages through them.
    pub fn senders(&self) -> usize {
        self.senders
    }

    /// Puts places into the sequences of their tasks, if these then have no more than so many tokens.
    pub fn write(&mut self, track: &Track, sequences: &mut [Vec<Token>], most: usize) {
        (self.found, self.senders) = Default::default();
        let mut queues = self.queues.clone();
        let (receivers, rooms) = loop {
            let receivers = close(&mut queues, sequences);
            let rooms = rooms(&queues, track, sequences);
            if rooms.iter().all(Option::is_some) {
                break (receivers, rooms);
            }
            let mut has_room = rooms.iter().map(Option::is_some);
            queues.retain(|_| has_room.next().unwrap_or(false));
        };
        let mut written: BTreeMap<TaskIx, Vec<Token>> = BTreeMap::new();
        let mut found = Vec::new();
        for (queue, room) in std::iter::zip(&queues, rooms.into_iter().flatten()) {
            found.push(Found { receiver: queue.receiver, size: room.size });
            let list = receiver(&sequences[queue.receiver as usize], queue, room);
            written.insert(queue.receiver, list);
        }
        for task in queues.iter().flat_map(|queue| &queue.senders) {
            written.entry(*task).or_insert_with(|| sender(&sequences[*task as usize], &receivers));
        }
        for queue in &queues {
            for (other, times) in queue.others(&sequences[queue.receiver as usize]) {
                let list = written.entry(other).or_insert_with(|| sequences[other as usize].clone());
                forget_last(list, Token::Post(queue.receiver), times);
            }
        }
        if written.values().map(Vec::len).sum::<usize>() <= most {
            written.into_iter().for_each(|(task, list)| sequences[task as usize] = list);
            let senders: BTreeSet<TaskIx> = queues.into_iter().flat_map(|queue| queue.senders).collect();
            (self.found, self.senders) = (found, senders.len());
        }
    }
}

/// Leaves those whose tasks wait for nothing else, with the senders of which that is true. Their receivers.
fn close(queues: &mut Vec<Queue>, sequences: &[Vec<Token>]) -> BTreeSet<TaskIx> {
    loop {
        let receivers: BTreeSet<TaskIx> = queues.iter().map(|queue| queue.receiver).collect();
        let waits_for_others = |task: &TaskIx| {
            let mut waits = waits(&sequences[*task as usize], |token| is_post(token, &receivers));
            receivers.contains(task) || waits.any(|token| !is_wait(token, &receivers))
        };
        let senders: BTreeSet<TaskIx> = queues.iter().flat_map(|queue| &queue.senders).copied().collect();
        let others: BTreeSet<TaskIx> = senders.into_iter().filter(waits_for_others).collect();
        let before = queues.len();
        queues.iter_mut().for_each(|queue| queue.senders.retain(|task| !others.contains(task)));
        queues.retain(|queue| queue.is_closed(&sequences[queue.receiver as usize]));
        if queues.len() == before && others.is_empty() {
            return receivers;
        }
    }
}

/// How much room these queues have, where enough messages found one full.
fn rooms(queues: &[Queue], track: &Track, sequences: &[Vec<Token>]) -> Vec<Option<Room>> {
    let seen: Vec<Seen> = queues.iter().map(|queue| queue.seen(track, sequences)).collect();
    let going_on = track.tasks.iter().any(|task| task.goes_on);
    let room = |queue: &Queue| {
        let beside = |(other, _): &(&Queue, &Seen)| !queue.senders.is_disjoint(&other.senders);
        let room = Seen::room(std::iter::zip(queues, &seen).filter(beside))?;
        // A place that was to be given back together with others might not be, once the task goes on with its last
        // rounds.
        Some(Room { at_once: if going_on { 1 } else { room.at_once }, ..room })
    };
    queues.iter().map(room).collect()
}

/// Leaves out the last so many of these tokens.
fn forget_last(list: &mut Vec<Token>, what: Token, mut times: usize) {
    let mut kept = Vec::with_capacity(list.len());
    for token in list.drain(..).rev() {
        if token == what && times > 0 {
            times -= 1;
        } else {
            kept.push(token);
        }
    }
    list.extend(kept.into_iter().rev());
}

/// The queue of a task that these wake, if it may have one.
fn queue(woken: &Woken, receiver: TaskIx, wakers: &[TaskIx]) -> Option<Queue> {
    let by_senders: usize = wakers.iter().filter_map(|waker| woken.get(&(*waker, receiver))).map(Vec::len).sum();
    let full: Vec<(Nanos, Nanos)> =
        wakers.iter().filter_map(|sender| woken.get(&(receiver, *sender))).flatten().copied().collect();
    let is_one = (FEWEST..=MOST).contains(&wakers.len())
        && by_senders >= FEWEST_WOKEN
        && full.len() <= TIMES_AS_OFTEN * by_senders;
    is_one.then(|| Queue { receiver, senders: wakers.iter().copied().collect(), woken: by_senders, full })
}

fn is_post(token: &Token, to: &BTreeSet<TaskIx>) -> bool {
    matches!(token, Token::Post(task) if to.contains(task))
}

fn is_wait(token: &Token, by: &BTreeSet<TaskIx>) -> bool {
    matches!(token, Token::Block { waker, .. } if by.contains(waker))
}

/// The waits of a task for others, from the first of these tokens on.
fn waits(list: &[Token], first: impl Fn(&Token) -> bool) -> impl Iterator<Item = &Token> {
    let waits = |token: &&Token| match token {
        Token::Block { waker, .. } => *waker != NOBODY,
        token => matches!(token, Token::Join | Token::Lock(_) | Token::Jobs(_)),
    };
    list.iter().skip_while(move |token| !first(token)).filter(waits)
}

/// How many messages a queue has room for, and after how many that were taken it has room for as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    size: usize,
    at_once: usize,
}

/// How many messages were in a queue when senders that found it full went to sleep, and when they were woken.
#[derive(Debug, Default)]
struct Seen {
    full: Vec<usize>,
    left: Vec<usize>,
}

impl Seen {
    /// The room that these queues have, which share senders.
    fn room<'a>(queues: impl Iterator<Item = (&'a Queue, &'a Self)>) -> Option<Room> {
        let (mut woken, mut full, mut left) = (0, Vec::new(), Vec::new());
        for (queue, seen) in queues {
            woken += queue.woken;
            full.extend_from_slice(&seen.full);
            left.extend_from_slice(&seen.left);
        }
        if full.len() < FEWEST_FULL || woken < full.len() {
            return None;
        }
        let (size, left) = (median(full), median(left));
        (size >= FEWEST_PLACES).then(|| Room { size, at_once: size.saturating_sub(left).max(1) })
    }
}

impl Queue {
    /// How often the receiver waits for each task that is no sender of its own, after its first message.
    fn others(&self, list: &[Token]) -> BTreeMap<TaskIx, usize> {
        let mut others = BTreeMap::new();
        for token in waits(list, |token| is_wait(token, &self.senders)) {
            if let Token::Block { waker, .. } = token
                && !self.senders.contains(waker)
            {
                *others.entry(*waker).or_default() += 1;
            }
        }
        others
    }

    /// Whether its receiver waits for hardly anything else than messages of its senders, once there are some.
    fn is_closed(&self, list: &[Token]) -> bool {
        let (mut all, mut own) = (0, 0);
        for token in waits(list, |token| is_wait(token, &self.senders)) {
            if !matches!(token, Token::Block { .. }) {
                return false;
            }
            all += 1;
            own += usize::from(is_wait(token, &self.senders));
        }
        self.senders.len() >= FEWEST && own * 100 >= all * PERCENT_FOR_SENDERS
    }

    fn seen(&self, track: &Track, sequences: &[Vec<Token>]) -> Seen {
        let to_it = |token: &Token| *token == Token::Post(self.receiver);
        let sent = |task: &TaskIx| (*task, places(&sequences[*task as usize], to_it));
        let sent: Vec<(TaskIx, Vec<Nanos>)> = self.senders.iter().map(sent).collect();
        let taken = places(&sequences[self.receiver as usize], |token| is_wait(token, &self.senders));
        let far = |task: TaskIx, time: Nanos| track.tasks[task as usize].progress.at(time);
        let there = |time: Nanos| {
            let sent = sent.iter().map(|(task, places)| {
                let far = far(*task, time);
                places.partition_point(|place| *place <= far)
            });
            let far = far(self.receiver, time);
            sent.sum::<usize>().saturating_sub(taken.partition_point(|place| *place < far))
        };
        let (full, left) = self.full.iter().map(|(since, now)| (there(*since), there(*now))).unzip();
        Seen { full, left }
    }
}

/// What a sender does that waits for places in the queues of these.
fn sender(list: &[Token], receivers: &BTreeSet<TaskIx>) -> Vec<Token> {
    let mut all = Vec::with_capacity(list.len());
    for token in list.iter().filter(|token| !is_wait(token, receivers)) {
        if let Token::Post(receiver) = token
            && receivers.contains(receiver)
        {
            all.push(Token::Take(*receiver));
        }
        push(&mut all, *token);
    }
    all
}

/// What a receiver does that gives places back.
fn receiver(list: &[Token], queue: &Queue, Room { size, at_once }: Room) -> Vec<Token> {
    let mut all = vec![Token::Give; size];
    let (mut begun, mut taken) = (false, 0);
    for token in list.iter().filter(|token| !is_post(token, &queue.senders)) {
        let is_message = is_wait(token, &queue.senders);
        begun |= is_message;
        if begun && !is_message && matches!(token, Token::Block { waker, .. } if *waker != NOBODY) {
            continue;
        }
        push(&mut all, *token);
        if is_message {
            taken += 1;
            if taken == at_once {
                all.extend(std::iter::repeat_n(Token::Give, at_once));
                taken = 0;
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_task_was() {
        let mut progress = Progress::default();
        assert!(progress.runs((10, 20), (0, 10)));
        assert!(!progress.runs((20, 30), (10, 15)));
        assert!(progress.runs((50, 60), (15, 25)));
        assert_eq!(
            [5, 10, 20, 30, 40, 50, 55, 60, 99].map(|time| progress.at(time)),
            [0, 0, 7, 15, 15, 15, 20, 25, 25]
        );
    }

    #[test]
    fn places_are_taken_before_messages_and_given_back_with_them() {
        use Token::{Give, Post, Run, Take};
        let wait = |waker| Token::Block { length: 9, waker };
        let senders = BTreeSet::from([1, 2]);
        let list = [Run(4), Post(3), Run(2), wait(3), Run(3), Post(3), Post(7)];
        let want = [Run(4), Take(3), Post(3), Run(5), Take(3), Post(3), Post(7)];
        assert_eq!(sender(&list, &BTreeSet::from([3])), want);
        let queue = Queue { receiver: 3, senders, woken: 9, full: Vec::new() };
        let list = [wait(1), Run(1), wait(2), Run(1), Post(1), Run(1), wait(1)];
        let want = [Give, Give, Give, wait(1), Run(1), wait(2), Give, Give, Run(2), wait(1)];
        assert_eq!(receiver(&list, &queue, Room { size: 3, at_once: 2 }), want);
    }
}
