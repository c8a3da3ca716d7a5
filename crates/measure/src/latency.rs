//! Latency: from a wake-up (it is on a queue) or from its waking (somebody asked for it) to running.
//!
//! The first start of a new task is no wake-up and counts in neither; nor does a wait after preemption.
//! These two count in the delay, which is any wait that ended.

use crate::measure::{Measure, Part, Parts, us};
use crate::{Histogram, Latency};
use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Delay, Observer, Slot};
use serde::Serialize;

/// From wake-ups, and from becoming runnable, to running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// From wakeup to running.
    pub latency_us: Latency,
    /// From waking to running.
    pub waking_latency_us: Latency,
    /// Each wait that ended, from becoming runnable (woken, forked or preempted) to running.
    pub delay_us: Latency,
    /// When the longest delay began, on the trace's clock; none where no wait ended.
    pub delay_max_start_us: Option<f64>,
    /// When it ended.
    pub delay_max_end_us: Option<f64>,
}

impl LatencyFigures {
    /// The latency of wake-ups: from wakeup to running, or from waking where no wakeup was recorded.
    #[must_use]
    pub fn of_wakeups(&self) -> &Latency {
        if self.latency_us.count == 0 { &self.waking_latency_us } else { &self.latency_us }
    }
}

/// The kinds of latency, as bits.
const WAKEUP: usize = 1;
const WAKING: usize = 2;
const DELAY: usize = 4;
const SETS: usize = 8;

/// The latencies of a task, or of the tasks that started on a CPU.
///
/// A duration that counts as several kinds is kept once, with all others that count as the same kinds: a wake-up that
/// put the task onto a queue the moment it began counts as all three, a wait after preemption as a delay alone. There
/// are as many of these as there are tasks, and none of them is in a cache when it is needed.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// By the set of kinds.
    sets: [Option<Box<Histogram>>; SETS],
    /// The longest delay, and when it ended.
    longest: (Nanos, Nanos),
}

impl Kept {
    fn of(&self, kind: usize) -> Latency {
        let mut parts =
            self.sets.iter().enumerate().filter(|(set, _)| set & kind != 0).filter_map(|(_, h)| h.as_deref());
        match (parts.next(), parts.next()) {
            (None, _) => Latency::default(),
            (Some(one), None) => one.latency(),
            (Some(one), second) => {
                let mut sum = one.clone();
                second.into_iter().chain(parts).for_each(|part| sum.merge(part));
                sum.latency()
            }
        }
    }

    #[inline]
    fn set(&mut self, kinds: usize) -> &mut Histogram {
        self.sets[kinds].get_or_insert_default()
    }

    #[inline(always)]
    fn record(&mut self, &Delay { wait, wakeup, waking, end }: &Delay) {
        if wait > self.longest.0 || self.longest.1 == 0 {
            self.longest = (wait, end);
        }
        let mut kinds = DELAY;
        for (kind, latency) in [(WAKEUP, wakeup), (WAKING, waking)] {
            match latency {
                Some(latency) if latency == wait => kinds |= kind,
                Some(latency) => self.set(kind).record(latency),
                None => {}
            }
        }
        self.set(kinds).record(wait);
    }
}

impl Part for Kept {
    type Figures = LatencyFigures;

    fn add(&mut self, other: &Self) {
        for (set, theirs) in other.sets.iter().enumerate() {
            if let Some(theirs) = theirs {
                self.set(set).merge(theirs);
            }
        }
        // Of equal ones the first.
        let rank = |(wait, end): (Nanos, Nanos)| (wait, std::cmp::Reverse(end));
        if self.longest.1 == 0 || (other.longest.1 > 0 && rank(other.longest) > rank(self.longest)) {
            self.longest = other.longest;
        }
    }

    fn figures(&self) -> LatencyFigures {
        let longest = Some(self.longest).filter(|(_, end)| *end > 0);
        LatencyFigures {
            latency_us: self.of(WAKEUP),
            waking_latency_us: self.of(WAKING),
            delay_us: self.of(DELAY),
            delay_max_start_us: longest.map(|(wait, end)| us(end - wait)),
            delay_max_end_us: longest.map(|(_, end)| us(end)),
        }
    }
}

/// So many delays wait to be counted.
const BATCH: usize = 512;
/// The counts of so many tasks are in the caches.
const FEW: usize = 64;

/// The measure: by task, and by the CPU on which the task started to run.
///
/// The counts of many tasks are in no cache. Delays are therefore counted many at a time, so that the processor fetches
/// the counts of several at once. Those of few tasks are counted at once.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    parts: Parts<Kept>,
    pending: Vec<(Slot, CpuId, Delay)>,
}

impl Latencies {
    #[inline(never)]
    fn count_now(&mut self, task: Slot, cpu: CpuId, delay: &Delay) {
        self.parts.task(task).record(delay);
        self.parts.cpu(cpu).record(delay);
    }

    #[cold]
    fn count(&mut self) {
        for (task, cpu, delay) in self.pending.drain(..) {
            self.parts.task(task).record(&delay);
            self.parts.cpu(cpu).record(&delay);
        }
    }
}

impl Observer for Latencies {
    #[inline]
    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        // Of equal delays the first counts as the longest, so none may overtake one that waits.
        if self.pending.is_empty() && self.parts.tasks() <= FEW && (task as usize) < FEW {
            return self.count_now(task, cpu, &delay);
        }
        self.pending.push((task, cpu, delay));
        if self.pending.len() == BATCH {
            self.count();
        }
    }

    fn ends(&mut self, _: Nanos) {
        self.count();
    }
}

impl Measure for Latencies {
    type Part = Kept;

    fn parts(&self) -> &Parts<Kept> {
        &self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_once_counts_wherever_it_belongs() {
        let delay = |wait, wakeup, waking| Delay { wait, wakeup, waking, end: 1000 };
        let all = [
            delay(7, Some(7), Some(7)),
            delay(100, None, None),
            delay(20, Some(20), Some(30)),
            delay(40, Some(40), None),
            delay(50, None, Some(50)),
        ];
        let (mut latencies, mut other) = (Kept::default(), Kept::default());
        let mut apart: [Histogram; 3] = Default::default();
        for (n, delay) in all.into_iter().cycle().take(200).enumerate() {
            if n < 90 {
                latencies.record(&delay)
            } else {
                other.record(&delay)
            }
            for (histogram, value) in apart.iter_mut().zip([delay.wakeup, delay.waking, Some(delay.wait)]) {
                value.into_iter().for_each(|value| histogram.record(value));
            }
        }
        latencies.add(&other);
        let LatencyFigures { latency_us, waking_latency_us, delay_us, .. } = latencies.figures();
        let figures = [latency_us, waking_latency_us, delay_us];
        assert_eq!(figures, apart.map(|histogram| histogram.latency()));
        assert_eq!(figures.map(|latency| latency.count), [120, 120, 200]);
        assert_eq!(Kept::default().figures(), LatencyFigures::default());
    }
}
