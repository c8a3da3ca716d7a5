//! How many CPUs were wasted over time.

use schedlab_base::Nanos;

/// At each instant, the most idle CPUs that could each have been given a waiting task of its own. What turns out later
/// to have been wrong stays in it, so it is at least what the report sums up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wasted {
    times: Vec<Nanos>,
    counts: Vec<u32>,
    end: Nanos,
}

impl Wasted {
    /// From `time` on there are so many.
    #[inline]
    pub(super) fn turn(&mut self, time: Nanos, count: u32) {
        if self.counts.last().copied().unwrap_or(0) != count {
            self.times.push(time);
            self.counts.push(count);
        }
    }

    /// Counts time from the trace's start.
    pub(super) fn of(mut self, start: Nanos, end: Nanos) -> Self {
        self.times.iter_mut().for_each(|time| *time = time.saturating_sub(start));
        self.end = end.saturating_sub(start);
        self
    }

    /// When some were wasted, and how many: from, until, count; in order.
    pub fn stretches(&self) -> impl Iterator<Item = (Nanos, Nanos, u32)> {
        let ends = self.times.iter().skip(1).copied().chain([self.end]);
        let all = self.times.iter().copied().zip(ends).zip(&self.counts);
        all.filter(|(_, count)| **count > 0).map(|((from, to), count)| (from, to, *count))
    }
}
