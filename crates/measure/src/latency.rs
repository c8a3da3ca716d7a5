//! Latency: from a wake-up (it is on a queue) or from its waking (somebody asked for it) to running.
//!
//! The first start of a new task is no wake-up and counts in neither; nor does a wait after preemption.
//! These two count in the delay, which is any wait that ended.

use crate::histogram::FEW;
use crate::measure::{Measure, us};
use crate::{Histogram, Latency};
use schedlab_base::Nanos;
use schedlab_track::Delay;
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

/// The kinds of latency, as bits.
const WAKEUP: usize = 1;
const WAKING: usize = 2;
const DELAY: usize = 4;
const SETS: usize = 8;

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
    /// Not counted yet: a duration, shifted left, and its kinds in the lowest bits.
    noted: Vec<u64>,
    /// The longest delay, and when it ended.
    longest: (Nanos, Nanos),
    /// What was counted, by the set of kinds.
    sets: Option<Box<Sets>>,
}

/// A histogram for each set of kinds that has occurred.
type Sets = [Option<Box<Histogram>>; SETS];

/// A longer duration, of 73 years, is counted as this one.
const LONGEST: Nanos = u64::MAX / SETS as u64;

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
        let noted = self.noted().filter(|(kinds, _)| kinds & kind != 0).map(|(_, value)| value);
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

    fn noted(&self) -> impl Iterator<Item = (usize, Nanos)> {
        self.noted.iter().map(|note| ((*note % SETS as u64) as usize, *note / SETS as u64))
    }

    #[inline]
    fn note(&mut self, kinds: usize, value: Nanos) {
        self.noted.push((value.min(LONGEST) * SETS as u64) | kinds as u64);
        if self.noted.len() == NOTED {
            self.count();
        }
    }

    #[cold]
    fn count(&mut self) {
        let mut noted = std::mem::take(&mut self.noted);
        let sets = self.sets.get_or_insert_default();
        for note in noted.drain(..) {
            sets[(note % SETS as u64) as usize].get_or_insert_default().record(note / SETS as u64);
        }
        self.noted = noted;
    }

    /// Counts a duration at once: what this needs of few CPUs is in the cache.
    #[inline]
    fn put(&mut self, kinds: usize, value: Nanos) {
        self.sets.get_or_insert_default()[kinds % SETS].get_or_insert_default().record(value.min(LONGEST));
    }

    /// Takes a delay, each of its durations by `note`.
    #[inline(always)]
    fn record(&mut self, &Delay { wait, wakeup, waking, end }: &Delay, note: impl Fn(&mut Self, usize, Nanos)) {
        if wait > self.longest.0 || self.longest.1 == 0 {
            self.longest = (wait, end);
        }
        let mut kinds = DELAY;
        for (kind, latency) in [(WAKEUP, wakeup), (WAKING, waking)] {
            match latency {
                Some(latency) if latency == wait => kinds |= kind,
                Some(latency) => note(self, kind, latency),
                None => {}
            }
        }
        note(self, kinds, wait);
    }
}

impl Kept {
    fn add(&mut self, other: &Self) {
        for (set, theirs) in other.sets.iter().flat_map(|sets| sets.iter().enumerate()) {
            if let Some(theirs) = theirs {
                self.sets.get_or_insert_default()[set].get_or_insert_default().merge(theirs);
            }
        }
        other.noted().for_each(|(kinds, value)| self.note(kinds, value));
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
    fn served(&mut self, delay: &Delay) {
        self.0.get_or_insert_default().record(delay, Kept::note);
    }

    #[inline]
    fn taken(&mut self, delay: &Delay) {
        self.0.get_or_insert_default().record(delay, Kept::put);
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
                latencies.record(&delay, Kept::note)
            } else {
                other.record(&delay, if n < 150 { Kept::note } else { Kept::put })
            }
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
