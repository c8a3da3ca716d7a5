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

/// The latencies of a task, or of the tasks that started on a CPU.
///
/// A duration that counts in several is kept once: there are as many of these as there are tasks, and none of them is
/// in a cache when it is needed.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Wake-ups that put the task onto a queue the moment they began: all three latencies are one.
    at_once: Histogram,
    /// Waits that no wake-up began: delays and nothing else.
    preempted: Histogram,
    /// All other.
    rest: Option<Box<Apart>>,
    /// The longest delay, and when it ended.
    longest: (Nanos, Nanos),
}

/// The three latencies, each by itself.
#[derive(Debug, Default)]
struct Apart {
    wakeup: Histogram,
    waking: Histogram,
    delay: Histogram,
}

impl Kept {
    fn of(&self, rest: impl Fn(&Apart) -> &Histogram, more: Option<&Histogram>) -> Latency {
        let parts = [Some(&self.at_once), more, self.rest.as_deref().map(rest)];
        let mut parts = parts.into_iter().flatten().filter(|part| part.count() > 0);
        match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => Latency::default(),
            (Some(one), None, _) => one.latency(),
            (Some(one), Some(two), three) => {
                let mut sum = one.clone();
                [Some(two), three].into_iter().flatten().for_each(|part| sum.merge(part));
                sum.latency()
            }
        }
    }

    #[inline]
    fn record(&mut self, delay: Delay) {
        if delay.wait > self.longest.0 || self.longest.1 == 0 {
            self.longest = (delay.wait, delay.end);
        }
        match delay {
            Delay { wait, wakeup: None, waking: None, .. } => self.preempted.record(wait),
            Delay { wait, wakeup, waking, .. } if wakeup == Some(wait) && waking == Some(wait) => {
                self.at_once.record(wait)
            }
            _ => self.rest.get_or_insert_default().record(delay),
        }
    }
}

impl Part for Kept {
    type Figures = LatencyFigures;

    fn add(&mut self, other: &Self) {
        self.at_once.merge(&other.at_once);
        self.preempted.merge(&other.preempted);
        // Of equal ones the first.
        let rank = |(wait, end): (Nanos, Nanos)| (wait, std::cmp::Reverse(end));
        if self.longest.1 == 0 || (other.longest.1 > 0 && rank(other.longest) > rank(self.longest)) {
            self.longest = other.longest;
        }
        if let Some(theirs) = &other.rest {
            let mine = self.rest.get_or_insert_default();
            mine.wakeup.merge(&theirs.wakeup);
            mine.waking.merge(&theirs.waking);
            mine.delay.merge(&theirs.delay);
        }
    }

    fn figures(&self) -> LatencyFigures {
        let longest = Some(self.longest).filter(|(_, end)| *end > 0);
        LatencyFigures {
            latency_us: self.of(|rest| &rest.wakeup, None),
            waking_latency_us: self.of(|rest| &rest.waking, None),
            delay_us: self.of(|rest| &rest.delay, Some(&self.preempted)),
            delay_max_start_us: longest.map(|(wait, end)| us(end - wait)),
            delay_max_end_us: longest.map(|(_, end)| us(end)),
        }
    }
}

impl Apart {
    fn record(&mut self, delay: Delay) {
        self.delay.record(delay.wait);
        if let Some(latency) = delay.wakeup {
            self.wakeup.record(latency);
        }
        if let Some(latency) = delay.waking {
            self.waking.record(latency);
        }
    }
}

/// The measure: by task, and by the CPU on which the task started to run.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Parts<Kept>);

impl Observer for Latencies {
    #[inline]
    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        self.0.task(task).record(delay);
        self.0.cpu(cpu).record(delay);
    }
}

impl Measure for Latencies {
    type Part = Kept;

    fn parts(&self) -> &Parts<Kept> {
        &self.0
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
        let (mut latencies, mut other, mut apart) = (Kept::default(), Kept::default(), Apart::default());
        for (n, delay) in all.into_iter().cycle().take(200).enumerate() {
            if n < 90 {
                latencies.record(delay)
            } else {
                other.record(delay)
            }
            apart.record(delay);
        }
        latencies.add(&other);
        let LatencyFigures { latency_us, waking_latency_us, delay_us, .. } = latencies.figures();
        let told = [latency_us, waking_latency_us, delay_us];
        assert_eq!(told, [apart.wakeup.latency(), apart.waking.latency(), apart.delay.latency()]);
        assert_eq!(told.map(|latency| latency.count), [120, 120, 200]);
        assert_eq!(Kept::default().figures(), LatencyFigures::default());
    }
}
