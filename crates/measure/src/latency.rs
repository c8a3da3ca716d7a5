//! Latency: from a wake-up (it is on a queue) or from its waking (somebody asked for it) to running.
//!
//! The first start of a new task is no wake-up and counts in neither; nor does a wait after preemption.
//! These two count in the delay, which is any wait that ended.

use crate::histogram::FEW;
use crate::measure::{Measure, us};
use crate::noted::{DELAY, Note, Noted, SETS, WAKEUP, WAKING};
use crate::{Histogram, Latency};
use schedlab_base::Nanos;
use serde::{Serialize, Serializer};
use std::ops::Deref;

/// From wake-ups, and from becoming runnable, to running. Of many tasks that only waited there are none: they share
/// these zeros, and take no memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyFigures(Option<Box<Latencies>>);

/// The figures of those that there are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latencies {
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

static NONE: Latencies = Latencies {
    latency_us: Latency::NONE,
    waking_latency_us: Latency::NONE,
    delay_us: Latency::NONE,
    delay_max_start_us: None,
    delay_max_end_us: None,
};

impl Deref for LatencyFigures {
    type Target = Latencies;

    fn deref(&self) -> &Latencies {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl Serialize for LatencyFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl LatencyFigures {
    /// The latency of wake-ups: from wakeup to running, or from waking where no wakeup was recorded.
    #[must_use]
    pub fn of_wakeups(&self) -> &Latency {
        if self.latency_us.count == 0 { &self.waking_latency_us } else { &self.latency_us }
    }
}

/// The measure: of a task, or of the tasks that started on a CPU, once there are any.
#[derive(Debug, Default)]
pub(crate) struct Waits(Option<Box<Kept>>);

/// What is kept of them.
///
/// A duration that counts as several kinds is kept once, with all others that count as the same kinds: a wake-up that
/// put the task onto a queue the moment it began counts as all three, a wait after preemption as a delay alone.
///
/// There are as many of these as there are tasks, and none of them is in a cache when it is needed. So durations are
/// first noted one after another, and counted in the histograms when there are many: then what one of them brings into
/// the cache serves the others.
#[derive(Debug, Default)]
struct Kept {
    /// Not counted yet.
    noted: Vec<Note>,
    /// The longest delay, and when it ended.
    longest: (Nanos, Nanos),
    /// What was counted, by the set of kinds.
    sets: Option<Box<Sets>>,
}

/// A histogram for each set of kinds that has occurred.
type Sets = [Option<Box<Histogram>>; SETS];

/// So many durations of a task are noted before they are counted.
const NOTED: usize = 128;

impl Kept {
    fn of(&self, kind: usize) -> Latency {
        let mut parts = self
            .sets
            .iter()
            .flat_map(|sets| sets.iter())
            .enumerate()
            .filter(|(set, _)| set & kind != 0)
            .filter_map(|(_, part)| part.as_deref());
        let noted = self.noted.iter().filter(|note| note.set() & kind != 0).map(|note| note.duration());
        if self.sets.is_none() && self.noted.len() <= FEW {
            return Latency::exact(&mut noted.collect::<Vec<_>>());
        }
        let mut noted = noted.peekable();
        let (first, second) = (parts.next(), parts.next());
        if let (Some(only), None, None) = (first, second, noted.peek()) {
            return only.latency();
        }
        let mut sum = first.cloned().unwrap_or_default();
        second.into_iter().chain(parts).for_each(|part| sum.merge(part));
        noted.for_each(|value| sum.record(value));
        sum.latency()
    }

    /// Counts what is noted, one set of kinds after the other.
    #[cold]
    fn count(&mut self) {
        let there = self.noted.iter().fold(0, |there, note| there | 1u32 << note.set());
        let sets = self.sets.get_or_insert_default();
        for (set, histogram) in sets.iter_mut().enumerate().filter(|(set, _)| there & (1 << set) != 0) {
            let of_set = self.noted.iter().filter(|note| note.set() == set);
            histogram.get_or_insert_default().record_all(of_set.map(|note| note.duration()));
        }
        self.noted.clear();
    }

    /// Takes a delay.
    #[inline]
    fn record(&mut self, delay: &Noted) {
        if delay.wait > self.longest.0 || self.longest.1 == 0 {
            self.longest = (delay.wait, delay.end);
        }
        self.noted.push(delay.whole);
        if delay.others != [None; 2] {
            self.noted.extend(delay.others.iter().flatten());
        }
        self.count_many();
    }

    #[inline]
    fn count_many(&mut self) {
        if self.noted.len() >= NOTED {
            self.count();
        }
    }
}

impl Kept {
    fn add(&mut self, other: &Self) {
        for (set, theirs) in other.sets.iter().flat_map(|sets| sets.iter().enumerate()) {
            if let Some(theirs) = theirs {
                self.sets.get_or_insert_default()[set].get_or_insert_default().merge(theirs);
            }
        }
        self.noted.extend(&other.noted);
        self.count_many();
        // Of equal ones the first.
        let rank = |(wait, end): (Nanos, Nanos)| (wait, std::cmp::Reverse(end));
        if self.longest.1 == 0 || (other.longest.1 > 0 && rank(other.longest) > rank(self.longest)) {
            self.longest = other.longest;
        }
    }

    fn figures(&self) -> Latencies {
        let longest = Some(self.longest).filter(|(_, end)| *end > 0);
        Latencies {
            latency_us: self.of(WAKEUP),
            waking_latency_us: self.of(WAKING),
            delay_us: self.of(DELAY),
            delay_max_start_us: longest.map(|(wait, end)| us(end - wait)),
            delay_max_end_us: longest.map(|(_, end)| us(end)),
        }
    }
}

impl Measure for Waits {
    type Figures = LatencyFigures;

    #[inline]
    fn served(&mut self, delay: &Noted) {
        self.0.get_or_insert_default().record(delay);
    }

    fn add(&mut self, other: &Self) {
        if let Some(other) = &other.0 {
            self.0.get_or_insert_default().add(other);
        }
    }

    fn figures(&self) -> LatencyFigures {
        LatencyFigures(self.0.as_ref().map(|kept| Box::new(kept.figures())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_track::Delay;

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
            if n < 90 { &mut latencies } else { &mut other }.record(&Noted::from(&delay));
            for (histogram, value) in apart.iter_mut().zip([delay.wakeup, delay.waking, Some(delay.wait)]) {
                value.into_iter().for_each(|value| histogram.record(value));
            }
        }
        latencies.add(&other);
        let Latencies { latency_us, waking_latency_us, delay_us, .. } = latencies.figures();
        let figures = [latency_us, waking_latency_us, delay_us];
        assert_eq!(figures, apart.map(|histogram| histogram.latency()));
        assert_eq!(figures.map(|latency| latency.count), [120, 120, 200]);
        assert_eq!(Kept::default().figures(), NONE);
    }
}
