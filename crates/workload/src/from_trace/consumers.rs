//! Tasks that take work from one queue, into which others put it that do not wait for them.
//!
//! A producer that goes on with its own work shows nothing but wake-ups: whoever waits when there is something to do is
//! woken. In the model, work that is bound to the consumer which took it would wait for this one while another is free.
//! So such consumers wait on one semaphore, as a pool does ([`super::pools`]).
//!
//! - Several consumers are woken by the same producers, and nearly never by others; nor do they wake these.
//! - The producers sleep far less often than they wake one. (Who sends a message and sleeps has a habit, which shows
//!   who takes from one queue: [`super::habits`].)
//! - Who has waited longest is woken first, as by a futex or a condition; or else who has waited shortest, as by
//!   `epoll`.
//! - They are woken one at a time, not all together.

use super::handoffs::{FEWEST_QUEUED, Handoff, PERCENT_IN_ORDER, PERCENT_TOGETHER, TOGETHER, Waits};
use super::sequence::{TaskIx, Token};
use super::track::Track;
use std::collections::{BTreeMap, BTreeSet};

/// A producer wakes each of its consumers so many times at least. Of more consumers it is not asked how they wait.
const FEWEST: usize = 8;
const MOST: usize = 256;

/// For each sleep of a producer, it wakes consumers so many times at least.
const WAKES_A_SLEEP: usize = 5;

/// So many percent of the wake-ups of consumers at most are by others than their producers, or of producers by their
/// consumers.
const PERCENT_ASTRAY: usize = 10;

/// Producers and their consumers.
struct Queue {
    producers: BTreeSet<TaskIx>,
    consumers: BTreeSet<TaskIx>,
}

/// The consumers that take from one queue, by queue, among the tasks that may. `causal` says whether a task wakes
/// another one of its own accord.
pub(super) fn pools(
    track: &Track,
    mut causal: impl FnMut(TaskIx, TaskIx) -> bool,
    may: impl Fn(TaskIx) -> bool,
) -> Vec<Vec<TaskIx>> {
    let mut pairs: BTreeMap<(TaskIx, TaskIx), usize> = BTreeMap::new();
    let woken = track.handoffs.woken();
    woken.iter().for_each(|handoff| *pairs.entry((handoff.waker, handoff.sleeper)).or_default() += 1);
    pairs.retain(|(waker, sleeper), _| causal(*waker, *sleeper));
    let mut queues: Vec<Queue> = Vec::new();
    for (producer, task) in (0..).zip(&track.tasks) {
        let of = pairs.range((producer, 0)..=(producer, TaskIx::MAX)).filter(|(_, times)| **times >= FEWEST);
        let (consumers, times): (BTreeSet<TaskIx>, Vec<usize>) = of.map(|((_, task), times)| (*task, *times)).unzip();
        let sleeps = task.sequence.iter().filter(|token| matches!(token, Token::Block { .. })).count();
        if consumers.len() < 2
            || sleeps * WAKES_A_SLEEP > times.iter().sum()
            || !consumers.iter().all(|task| may(*task))
        {
            continue;
        }
        let mut queue = Queue { producers: BTreeSet::from([producer]), consumers };
        let (joined, apart) = queues.into_iter().partition(|known| !known.consumers.is_disjoint(&queue.consumers));
        queues = apart;
        for known in joined {
            queue.producers.extend(known.producers);
            queue.consumers.extend(known.consumers);
        }
        queues.push(queue);
    }
    let one = |queue: Queue| {
        let is_apart = queue.is_apart(&pairs);
        let [producers, consumers] = [queue.producers, queue.consumers].map(Vec::from_iter);
        (is_apart && are_woken_in_order(woken, &producers, &consumers)).then_some(consumers)
    };
    queues.into_iter().filter_map(one).collect()
}

impl Queue {
    /// Whether the consumers are woken by the producers alone, and do not wake these.
    fn is_apart(&self, pairs: &BTreeMap<(TaskIx, TaskIx), usize>) -> bool {
        let (mut given, mut astray) = (0, 0);
        for ((waker, sleeper), times) in pairs {
            match (self.producers.contains(waker), self.consumers.contains(sleeper)) {
                (true, true) => given += times,
                (false, true) => astray += times,
                _ if self.consumers.contains(waker) && self.producers.contains(sleeper) => astray += times,
                _ => {}
            }
        }
        self.producers.is_disjoint(&self.consumers) && astray * 100 <= given * PERCENT_ASTRAY
    }
}

/// Whether the producers wake the consumers in order and one at a time. Both are in ascending order.
pub(super) fn are_woken_in_order(woken: &[Handoff], producers: &[TaskIx], consumers: &[TaskIx]) -> bool {
    if consumers.len() > MOST {
        return false;
    }
    let is = |tasks: &[TaskIx], task: TaskIx| tasks.binary_search(&task).is_ok();
    let given = woken.iter().filter(|handoff| is(producers, handoff.waker) && is(consumers, handoff.sleeper));
    let mut waits = Waits::of(consumers, given.clone());
    let (mut queued, mut longest, mut shortest, mut together) = (0, 0, 0, 0);
    let mut before: Option<&Handoff> = None;
    for handoff in given {
        let Handoff { waker, sleeper, since, now, .. } = *handoff;
        waits.end(sleeper);
        if let (Some(first), Some(last)) = (waits.under_way(now).min(), waits.under_way(now).max()) {
            queued += 1;
            longest += usize::from(since <= first);
            shortest += usize::from(since >= last);
            let at_once = |before: &Handoff| before.waker == waker && now.saturating_sub(before.now) <= TOGETHER;
            together += usize::from(before.is_some_and(at_once));
        }
        before = Some(handoff);
    }
    queued >= FEWEST_QUEUED
        && longest.max(shortest) * 100 >= queued * PERCENT_IN_ORDER
        && together * 100 <= queued * PERCENT_TOGETHER
}
