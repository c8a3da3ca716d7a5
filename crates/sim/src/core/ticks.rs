//! When ticks are, and those that are skipped and accounted for later.

use super::Core;
use crate::queue::Phase;
use schedlab_base::{CpuId, Nanos};

/// Ticks that were skipped because the scheduler had said that they could change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// The time of the first of them.
    pub first: Nanos,
    /// The time between two ticks.
    pub period: Nanos,
    /// The number of ticks.
    pub count: u64,
    /// Whether the last of them ended the running task's turn, as the scheduler said that it would
    /// ([`Due::turn_ends`](crate::Due)). The CPU has been asked to reschedule.
    pub end_turn: bool,
}

impl Ticks {
    /// The ticks at `since` and later; `None` if there are none.
    #[inline]
    #[must_use]
    pub fn since(self, since: Nanos) -> Option<Self> {
        let Self { first, period, count, .. } = self;
        if first >= since {
            return Some(self);
        }
        let before = (since - first).div_ceil(period);
        (before < count).then(|| Self { first: first + before * period, count: count - before, ..self })
    }
}

impl Core {
    /// Returns the number of ticks since the start (`jiffies`).
    #[inline]
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.jiffies_at(self.now)
    }

    /// Returns the number of ticks until a time, its own tick included.
    #[inline]
    #[must_use]
    pub fn jiffies_at(&self, time: Nanos) -> u64 {
        if time < self.tick_first { 0 } else { (time - self.tick_first) / self.tick_period + 1 }
    }

    /// Returns the time between two ticks.
    #[inline]
    #[must_use]
    pub fn tick_period(&self) -> Nanos {
        self.tick_period
    }

    /// Returns the time of the `n`th tick. The first tick is `n` = 1; no tick is at time 0.
    #[must_use]
    pub fn tick_time(&self, n: u64) -> Nanos {
        self.tick_first + n.saturating_sub(1).saturating_mul(self.tick_period)
    }

    /// Returns the time of the tick with which a timeout of this length ends if it begins now.
    pub(crate) fn tick_after(&self, length: Nanos) -> Nanos {
        self.tick_time(self.jiffies().saturating_add(length.div_ceil(self.tick_period).max(1)))
    }

    /// Returns the ticks of a CPU that have passed without being accounted for. The caller must account for them now.
    #[inline]
    pub fn take_ticks(&mut self, cpu: CpuId) -> Option<Ticks> {
        let next = self.cpus[cpu as usize].next_tick;
        if next > self.now {
            return None;
        }
        let pending = self.phase == Phase::Tick && cpu >= self.tick_cpu;
        let until = if pending { self.now } else { self.now + 1 };
        if next >= until {
            return None;
        }
        let count = (until - 1 - next) / self.tick_period + 1;
        let slot = &mut self.cpus[cpu as usize];
        slot.next_tick = next + count * self.tick_period;
        let end_turn = slot.turn_ends < until;
        if end_turn {
            slot.kernel_until = slot.turn_ends + self.machine.costs.tick_to_switch_ns.median();
            slot.resched_at = slot.resched_at.min(slot.kernel_until);
            slot.turn_ends = Nanos::MAX;
        }
        Some(Ticks { first: next, period: self.tick_period, count, end_turn })
    }
}
