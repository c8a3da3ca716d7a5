//! Ticks that are skipped, and accounted for later.

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
