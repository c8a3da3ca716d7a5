//! Finds what happens next: a winner tree over the CPUs and a heap of timers.
//!
//! Instants are ordered by time, then by [`Phase`], then by CPU or task number. This order is part of the engine's
//! contract (and of the oracles'): at one instant ticks come first, then the scheduler's own timers, then wake-ups in
//! the order of tasks, then rescheduling, then what the running tasks do next.

use schedlab_base::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The order of what happens at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// The timer interrupt.
    Tick,
    /// A timer of the scheduler expires, or a CPU goes offline or comes online.
    Timer,
    /// A timer of a task expires, or a task starts.
    Wake,
    /// The running task reads its CPU clock.
    Poll,
    /// A CPU reschedules because it was asked to.
    Resched,
    /// The running task has finished its burst and continues with its program.
    Run,
}

/// An instant: time, phase, and CPU or task, in one comparable word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

impl Key {
    /// Later than anything.
    pub const NEVER: Self = Self(u128::MAX);

    /// Creates the instant `time`, `phase` of the CPU or task `who`.
    #[inline]
    pub fn new(time: Nanos, phase: Phase, who: u32) -> Self {
        Self((u128::from(time) << 64) | (u128::from(phase as u8) << 32) | u128::from(who))
    }

    /// Returns the time.
    #[inline]
    pub fn time(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }

    /// Returns the phase.
    #[inline]
    pub fn phase(self) -> Phase {
        match (self.0 >> 32) as u8 {
            0 => Phase::Tick,
            1 => Phase::Timer,
            2 => Phase::Wake,
            3 => Phase::Poll,
            4 => Phase::Resched,
            _ => Phase::Run,
        }
    }

    /// Returns the number of the CPU or task.
    #[inline]
    pub fn who(self) -> u32 {
        self.0 as u32
    }
}

/// The earliest instant of each CPU and of all CPUs. An update costs log2(CPUs) comparisons, a look-up none.
#[derive(Debug)]
pub struct CpuQueue {
    leaves: usize,
    tree: Vec<Key>,
}

impl CpuQueue {
    /// Creates a queue for `cpus` CPUs, none of which has anything to do.
    pub fn new(cpus: usize) -> Self {
        let leaves = cpus.next_power_of_two();
        Self { leaves, tree: vec![Key::NEVER; 2 * leaves] }
    }

    /// Sets the next instant of a CPU.
    #[inline]
    pub fn set(&mut self, cpu: usize, key: Key) {
        let mut i = self.leaves + cpu;
        let mut winner = key;
        self.tree[i] = key;
        while i > 1 {
            winner = winner.min(self.tree[i ^ 1]);
            i /= 2;
            if self.tree[i] == winner {
                return;
            }
            self.tree[i] = winner;
        }
    }

    /// Returns the earliest instant of all CPUs.
    #[inline]
    pub fn first(&self) -> Key {
        self.tree[1]
    }
}

/// Timers of sleeping tasks and of tasks that have not started yet.
#[derive(Debug)]
pub struct Timers {
    first: Key,
    heap: BinaryHeap<Reverse<Key>>,
    /// Tasks that start one after the other, by task. Only the next start of each is in the heap.
    starts: Vec<Starts>,
    /// How many starts are not in the heap.
    hidden: usize,
}

/// The starts of tasks whose numbers follow each other, each so long after the one before it.
#[derive(Debug)]
struct Starts {
    task: u32,
    time: Nanos,
    every: Nanos,
    /// How many follow that one.
    more: u32,
}

impl Starts {
    /// Takes one more task, if it fits.
    fn extend(&mut self, time: Nanos, task: u32) -> bool {
        let Some(after) = time.checked_sub(self.time) else { return false };
        if self.more == 0 {
            self.every = after;
        }
        let next = u64::from(self.more) + 1;
        let fits = u64::from(self.task) + next == u64::from(task) && self.every.checked_mul(next) == Some(after);
        self.more += u32::from(fits);
        fits
    }
}

impl Default for Timers {
    fn default() -> Self {
        Self { first: Key::NEVER, heap: BinaryHeap::new(), starts: Vec::new(), hidden: 0 }
    }
}

impl Timers {
    /// Sets a timer that wakes `task` at `time`.
    pub fn add(&mut self, time: Nanos, task: u32) {
        let key = Key::new(time, Phase::Wake, task);
        self.first = self.first.min(key);
        self.heap.push(Reverse(key));
    }

    /// Sets a timer that starts `task` at `time`, before any has expired. The tasks come in ascending order.
    pub fn start(&mut self, time: Nanos, task: u32) {
        if self.starts.last_mut().is_some_and(|starts| starts.extend(time, task)) {
            self.hidden += 1;
        } else {
            self.starts.push(Starts { task, time, every: 0, more: 0 });
            self.add(time, task);
        }
    }

    /// Returns the earliest expiry.
    #[inline]
    pub fn first(&self) -> Key {
        self.first
    }

    /// Removes the earliest timer.
    #[inline]
    pub fn pop(&mut self) {
        let expired = self.heap.pop();
        if self.hidden > 0
            && let Some(Reverse(key)) = expired
        {
            self.follow(key);
        }
        self.first = self.heap.peek().map_or(Key::NEVER, |key| key.0);
    }

    /// If that was a task's start, the next one's is set.
    #[cold]
    fn follow(&mut self, key: Key) {
        let at = self.starts.partition_point(|starts| starts.task <= key.who());
        let Some(starts) = at.checked_sub(1).map(|at| &mut self.starts[at]) else { return };
        if starts.more > 0 && (starts.time, starts.task) == (key.time(), key.who()) {
            (starts.task, starts.time, starts.more) = (starts.task + 1, starts.time + starts.every, starts.more - 1);
            let (time, task) = (starts.time, starts.task);
            self.add(time, task);
            self.hidden -= 1;
        }
    }
}

/// The scheduler's own timers, by number; each has one expiry.
#[derive(Debug, Default)]
pub struct OwnTimers {
    /// The expiry of each timer; `Nanos::MAX` if it is not running.
    due: Vec<Nanos>,
    /// May contain expiries of timers that have since been moved or cancelled.
    heap: BinaryHeap<Reverse<Key>>,
}

impl OwnTimers {
    /// Starts a timer, or moves its expiry.
    pub fn start(&mut self, id: u32, at: Nanos) {
        if self.due.len() <= id as usize {
            self.due.resize(id as usize + 1, Nanos::MAX);
        }
        if self.due[id as usize] != at {
            self.due[id as usize] = at;
            self.heap.push(Reverse(Key::new(at, Phase::Timer, id)));
        }
    }

    /// Stops a timer.
    pub fn cancel(&mut self, id: u32) {
        if let Some(due) = self.due.get_mut(id as usize) {
            *due = Nanos::MAX;
        }
    }

    /// Returns the expiry of a timer; `Nanos::MAX` if it is not running.
    pub fn due(&self, id: u32) -> Nanos {
        self.due.get(id as usize).copied().unwrap_or(Nanos::MAX)
    }

    /// Returns the earliest expiry that has not been cancelled.
    #[inline]
    pub fn first(&mut self) -> Key {
        while let Some(Reverse(key)) = self.heap.peek() {
            if self.due[key.who() as usize] == key.time() {
                return *key;
            }
            self.heap.pop();
        }
        Key::NEVER
    }

    /// Removes the earliest timer, which is then no longer running.
    pub fn pop(&mut self) {
        if let Some(Reverse(key)) = self.heap.pop() {
            self.cancel(key.who());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_ordered_by_time_phase_and_number() {
        let mut queue = CpuQueue::new(3);
        queue.set(2, Key::new(5, Phase::Tick, 2));
        queue.set(0, Key::new(5, Phase::Resched, 0));
        queue.set(1, Key::new(5, Phase::Tick, 1));
        assert_eq!((queue.first().who(), queue.first().phase()), (1, Phase::Tick));
        queue.set(1, Key::new(4, Phase::Run, 1));
        assert_eq!((queue.first().time(), queue.first().phase()), (4, Phase::Run));
        queue.set(1, Key::NEVER);
        queue.set(2, Key::NEVER);
        assert_eq!(queue.first().who(), 0);
    }

    #[test]
    fn tasks_start_in_the_order_of_their_times() {
        let times = [5, 5, 5, 3, 7, 11, 11, 9, u64::MAX >> 8, 4];
        let mut timers = Timers::default();
        (0..).zip(times).for_each(|(task, time)| timers.start(time, task));
        assert!(timers.heap.len() < times.len());
        let mut expected: Vec<_> = (0..).zip(times).map(|(task, time)| (time, task)).collect();
        // One of them has another timer when it starts.
        timers.add(7, 4);
        expected.push((7, 4));
        expected.sort_unstable();
        for expected in expected {
            assert_eq!((timers.first().time(), timers.first().who()), expected);
            timers.pop();
        }
        assert_eq!(timers.first(), Key::NEVER);
    }

    #[test]
    fn a_timer_that_was_moved_or_cancelled_does_not_expire() {
        let mut timers = OwnTimers::default();
        timers.start(3, 50);
        timers.start(1, 40);
        timers.start(3, 30);
        assert_eq!((timers.first().who(), timers.first().time(), timers.due(3)), (3, 30, 30));
        timers.pop();
        assert_eq!(timers.due(3), Nanos::MAX);
        timers.cancel(1);
        assert_eq!(timers.first(), Key::NEVER);
        timers.start(1, 40);
        timers.start(1, 60);
        timers.start(1, 40);
        assert_eq!(timers.first().time(), 40);
        timers.pop();
        assert_eq!(timers.first(), Key::NEVER);
    }
}
