//! Messages that no wake-up shows, of tasks that send one each time that they have done so much work.
//!
//! The stage of a pipeline writes to the next one, or reads from the one before, each time that it has done a block.
//! That shows only if the other one sleeps. It shows that the stage does so in any case: whenever the other one goes to
//! sleep, it is woken before the stage has done more than one block. So if the other one slept only when several blocks
//! had been done, it was told of each. (A mutex is released at such a pace as well. But who takes it in turn wakes as
//! often as it is woken, and is told of nothing if it is awake. So do two tasks that answer each other, of which
//! [`super::habits`] knows.)

use super::cause::Sample;
use super::life::Task;
use super::sequence::TaskIx;
use schedlab_base::Nanos;
use std::collections::HashMap;

/// Of so many steps from one wake-up to the next there is a sample for each pair of tasks, and so many are kept in all.
const MOST_OF_PAIR: usize = 512;
pub(super) const MOST_STEPS: usize = 1 << 20;

/// So many of them at least, in which the task slept again at once, show how much work a block is.
const FEWEST: usize = 16;

/// It slept at once if less than such a part of a block was done since it was woken.
const PERCENT_AT_ONCE: Nanos = 70;

/// In so many percent of the cases at least it was woken before more than so many percent of a block were done since it
/// went to sleep.
const PERCENT_WOKEN: usize = 80;
const PERCENT_OF_BLOCK: Nanos = 200;

/// Who sends messages wakes the other one at least so many times as often as it is woken by it.
const TIMES_AS_OFTEN: u64 = 2;

/// From one wake-up to the next one by the same waker, in that one's work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Until the task slept again.
    pub awake: Nanos,
    pub whole: Nanos,
}

/// A task that wakes another one.
#[derive(Debug)]
pub(super) struct Sender {
    pub task: TaskIx,
    times: u64,
    /// The steps, of which both samples have the same ones.
    awake: Sample<MOST_OF_PAIR>,
    whole: Sample<MOST_OF_PAIR>,
}

impl Sender {
    pub fn new(task: TaskIx) -> Self {
        Self { task, times: 0, awake: Sample::default(), whole: Sample::default() }
    }

    /// It wakes the other one, which it was also the last to wake if there is a step. Whether more is kept than before.
    pub fn wakes(&mut self, step: Option<Step>) -> bool {
        self.times += 1;
        if let Some(Step { awake, whole }) = step {
            self.awake.add(awake);
            self.whole.add(whole);
        }
        step.is_some() && self.whole.seen() <= MOST_OF_PAIR as u64
    }

    fn steps(&self) -> Vec<Step> {
        let ((awake, _), (whole, _)) = (self.awake.kept(), self.whole.kept());
        std::iter::zip(awake, whole).map(|(awake, whole)| Step { awake: *awake, whole: *whole }).collect()
    }
}

/// The work of a block, of the tasks that tell another one of each: by both.
#[derive(Debug, Default)]
pub(super) struct Beats(HashMap<(TaskIx, TaskIx), Nanos>);

impl Beats {
    pub fn of(tasks: &[Task]) -> Self {
        let times = |waker: TaskIx, task: TaskIx| {
            let senders = &tasks[task as usize].receiver.senders;
            senders.iter().find(|sender| sender.task == waker).map_or(0, |sender| sender.times)
        };
        let mut beats = HashMap::new();
        for (task, of) in (0..).zip(tasks) {
            for sender in &of.receiver.senders {
                if sender.times >= TIMES_AS_OFTEN * times(task, sender.task)
                    && let Some(block) = block(&sender.steps())
                {
                    beats.insert((sender.task, task), block);
                }
            }
        }
        Self(beats)
    }

    /// How much work of this one each message to that task takes.
    pub fn block(&self, waker: TaskIx, task: TaskIx) -> Option<Nanos> {
        self.0.get(&(waker, task)).copied()
    }
}

/// How much work a block is, if there is a message for each.
fn block(steps: &[Step]) -> Option<Nanos> {
    let mut all: Vec<Nanos> = steps.iter().map(|step| step.whole).collect();
    if all.len() < FEWEST {
        return None;
    }
    // A tenth of them at least will be single blocks; then those of them that are say how long.
    let tenth = all.len() / 10;
    let mut block = *all.select_nth_unstable(tenth).1;
    for _ in 0..3 {
        let at_once = steps.iter().filter(|step| step.awake * 100 < block * PERCENT_AT_ONCE);
        let single: Vec<Nanos> = at_once.map(|step| step.whole).collect();
        if single.len() < FEWEST {
            return None;
        }
        block = median(single);
    }
    let soon = |step: &&Step| (step.whole - step.awake) * 100 <= block * PERCENT_OF_BLOCK;
    let woken = steps.iter().filter(soon).count();
    (block > 0 && woken * 100 >= steps.len() * PERCENT_WOKEN).then_some(block)
}

/// The middle one of some numbers, of which there is one at least.
pub(super) fn median<T: Ord + Copy>(mut list: Vec<T>) -> T {
    let middle = list.len() / 2;
    *list.select_nth_unstable(middle).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(list: &[(Nanos, Nanos)]) -> Vec<Step> {
        list.iter().cycle().take(60).map(|(awake, whole)| Step { awake: *awake, whole: *whole }).collect()
    }

    #[test]
    fn a_block_is_what_is_done_where_the_other_one_slept_at_once() {
        // Three blocks, of which two were done while the task was awake; one block, and one that took a little longer.
        assert_eq!(block(&steps(&[(24_000, 30_000), (1_000, 10_000), (2_000, 12_000)])), Some(12_000));
        assert_eq!(block(&steps(&[(24_000, 30_000), (1_000, 10_000)])[..15]), None);
    }

    #[test]
    fn who_lets_others_sleep_for_longer_does_not_tell_them_of_each_block() {
        assert_eq!(block(&steps(&[(1_000, 10_000), (1_000, 10_000), (1_000, 90_000)])), None);
        // It always finds the other one at work: nothing shows how long a block is.
        assert_eq!(block(&steps(&[(29_000, 30_000)])), None);
    }
}
