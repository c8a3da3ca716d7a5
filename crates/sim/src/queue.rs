//! What comes next: a winner tree over the CPUs and a heap of timers.
//!
//! Instants are ordered by time, then by [`Phase`], then by CPU or task number. That order is part
//! of the engine's contract (and of the oracles'): at one instant ticks come first, then the
//! scheduler's timers, then wake-ups in the order of tasks, then rescheduling, then whatever the running tasks do next.

use schedlab_base::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens first at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// The timer interrupt.
    Tick,
    /// A timer of the scheduler's own expires, or a CPU goes offline or comes back.
    Timer,
    /// A timer of a task expires, or a task starts.
    Wake,
    /// The running task reads its CPU clock.
    Poll,
    /// A CPU reschedules because it was asked to.
    Resched,
    /// The running task has done its burst and goes on with its program.
    Run,
}

/// An instant: time, phase and whose, in one comparable word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

impl Key {
    /// Later than anything.
    pub const NEVER: Self = Self(u128::MAX);

    /// The instant `time`, `phase` of the CPU or task `who`.
    #[inline]
    pub fn new(time: Nanos, phase: Phase, who: u32) -> Self {
        Self((u128::from(time) << 64) | (u128::from(phase as u8) << 32) | u128::from(who))
    }

    /// When.
    #[inline]
    pub fn time(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }

    /// In which phase.
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

    /// Whose: the CPU's or task's number.
    #[inline]
    pub fn who(self) -> u32 {
        self.0 as u32
    }
}

/// The earliest instant of each CPU, and of all: an update costs log2(CPUs) comparisons, a look none.
#[derive(Debug)]
pub struct CpuQueue {
    leaves: usize,
    tree: Vec<Key>,
}

impl CpuQueue {
    /// A queue for `cpus` CPUs, none of which has anything to do.
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

    /// The earliest instant of all.
    #[inline]
    pub fn first(&self) -> Key {
        self.tree[1]
    }
}

/// Timers of sleeping tasks and tasks yet to start.
#[derive(Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<Key>>);

impl Timers {
    /// Wakes `task` at `time`.
    pub fn add(&mut self, time: Nanos, task: u32) {
        self.0.push(Reverse(Key::new(time, Phase::Wake, task)));
    }

    /// The earliest.
    #[inline]
    pub fn first(&self) -> Key {
        self.0.peek().map_or(Key::NEVER, |k| k.0)
    }

    /// Takes the earliest away.
    #[inline]
    pub fn pop(&mut self) {
        self.0.pop();
    }
}

/// The scheduler's own timers, by number: one expiry each.
#[derive(Debug, Default)]
pub struct OwnTimers {
    /// When each expires; `Nanos::MAX`: it is not running.
    due: Vec<Nanos>,
    /// May hold expiries that were moved or cancelled since.
    heap: BinaryHeap<Reverse<Key>>,
}

impl OwnTimers {
    /// Starts a timer, or moves it.
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

    /// When a timer expires; `Nanos::MAX`: it is not running.
    pub fn due(&self, id: u32) -> Nanos {
        self.due.get(id as usize).copied().unwrap_or(Nanos::MAX)
    }

    /// The earliest that has not been cancelled.
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

    /// Takes the earliest away: it is no longer running.
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
