//! A histogram of durations: exact while they are few, log-linear afterwards.
//!
//! Each octave has 64 buckets of equal width, so a quantile, given as the middle of its bucket, is off
//! by less than 0.8% (1/128) and never outside of what was recorded; durations below 64 ns are exact. Count, mean, the
//! shortest and the longest are always exact.

use schedlab_base::Nanos;
use serde::Serialize;

const BITS: u32 = 6;
const SUB: usize = 1 << BITS;

/// So many durations are kept as they are.
pub(crate) const FEW: usize = 32;

/// The shares whose quantiles are told.
const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Durations recorded, for quantiles.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    count: u64,
    /// The complement of the shortest, so that it begins at 0 and grows.
    not_min: Nanos,
    max: Nanos,
    sum: u128,
    few: Vec<Nanos>,
    many: Buckets,
}

/// The buckets of the octaves that occurred, a row each; none while the durations are few.
///
/// The first row is the index: by octave the number of its row, 0 where it has none. It stands with the counts so that
/// a duration is counted in few cache lines.
#[derive(Clone, Debug, Default)]
struct Buckets(Vec<[u32; SUB]>);

/// What a distribution of latencies comes to, in microseconds. All zero when `count` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// The mean (exact).
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90 of 100 are no longer.
    pub p90: f64,
    /// 99 of 100 are no longer.
    pub p99: f64,
    /// 999 of 1000 are no longer.
    pub p999: f64,
    /// The longest (exact).
    pub max: f64,
}

impl Latency {
    /// That of no durations.
    pub(crate) const NONE: Self = Self { count: 0, mean: 0.0, p50: 0.0, p90: 0.0, p99: 0.0, p999: 0.0, max: 0.0 };

    /// What these durations come to, all of it exact; they are sorted.
    pub(crate) fn exact(durations: &mut [Nanos]) -> Self {
        durations.sort_unstable();
        let Some(max) = durations.last() else { return Self::default() };
        let count = durations.len() as u64;
        let sum = durations.iter().map(|duration| u128::from(*duration)).sum();
        Self::of(count, sum, ranks(SHARES, count).map(|rank| durations[rank as usize - 1]), *max)
    }

    fn of(count: u64, sum: u128, quantiles: [Nanos; 4], max: Nanos) -> Self {
        let [p50, p90, p99, p999] = quantiles.map(|nanos| nanos as f64 / 1e3);
        let mean = sum as f64 / count as f64 / 1e3;
        Self { count, mean, p50, p90, p99, p999, max: max as f64 / 1e3 }
    }
}

/// The ranks of the quantiles of these shares among so many.
fn ranks<const N: usize>(shares: [f64; N], count: u64) -> [u64; N] {
    shares.map(|q| ((q * count as f64).ceil() as u64).clamp(1, count.max(1)))
}

impl Histogram {
    /// Takes a duration.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        self.not_min = self.not_min.max(!value);
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        if self.many.is_empty() { self.record_few(value) } else { self.many.add(value) }
    }

    /// Takes durations as if by [`Histogram::record`], with fewer instructions for each.
    pub(crate) fn record_all(&mut self, mut values: impl Iterator<Item = Nanos>) {
        while self.many.is_empty() {
            let Some(value) = values.next() else { return };
            self.record(value);
        }
        let (mut count, mut sum, mut min, mut max) = (self.count, self.sum, !self.not_min, self.max);
        for value in values {
            (count, sum) = (count + 1, sum + u128::from(value));
            (min, max) = (min.min(value), max.max(value));
            self.many.add(value);
        }
        (self.count, self.sum, self.not_min, self.max) = (count, sum, !min, max);
    }

    fn record_few(&mut self, value: Nanos) {
        if self.few.len() < FEW {
            self.few.push(value);
            return;
        }
        std::mem::take(&mut self.few).into_iter().chain([value]).for_each(|value| self.many.add(value));
    }

    /// Takes all that the other has taken.
    pub fn merge(&mut self, other: &Self) {
        if other.many.is_empty() {
            other.few.iter().for_each(|value| self.record(*value));
            return;
        }
        self.not_min = self.not_min.max(other.not_min);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        std::mem::take(&mut self.few).into_iter().for_each(|value| self.many.add(value));
        self.many.merge(&other.many);
    }

    /// How many durations were taken.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The duration that a share `q` (0 to 1) of all do not exceed: the one of rank ⌈q·n⌉. The first and the last
    /// rank are exact, and no quantile lies outside of them. 0 when there is none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Nanos {
        self.quantiles([q])[0]
    }

    /// As [`Histogram::quantile`], of several shares in rising order.
    fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Nanos; N] {
        let ranks = ranks(shares, self.count);
        if self.many.is_empty() {
            let mut few = self.few.clone();
            few.sort_unstable();
            return ranks.map(|rank| few.get(rank as usize - 1).copied().unwrap_or(0));
        }
        let mut found = self.many.at_ranks(ranks);
        for (value, rank) in found.iter_mut().zip(ranks) {
            *value = match rank {
                1 => !self.not_min,
                rank if rank >= self.count => self.max,
                _ => (*value).clamp(!self.not_min, self.max),
            };
        }
        found
    }

    /// Mean, quantiles and maximum.
    #[must_use]
    pub fn latency(&self) -> Latency {
        if self.count == 0 {
            return Latency::default();
        }
        Latency::of(self.count, self.sum, self.quantiles(SHARES), self.max)
    }
}

impl Buckets {
    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    fn add(&mut self, value: Nanos) {
        // Up to twice `SUB` each value has a bucket of its own. Above, values are halved until they are below that.
        let halvings = (value | (2 * SUB as Nanos - 1)).ilog2() - BITS;
        let bucket = (value >> halvings) as usize + halvings as usize * SUB;
        let count = &mut self.octave(bucket / SUB)[bucket % SUB];
        *count = count.saturating_add(1);
    }

    /// The counts of an octave.
    #[inline]
    fn octave(&mut self, octave: usize) -> &mut [u32; SUB] {
        let row = match self.0.first() {
            Some(index) if index[octave] > 0 => index[octave],
            _ => self.add_octave(octave),
        };
        &mut self.0[row as usize]
    }

    #[cold]
    fn add_octave(&mut self, octave: usize) -> u32 {
        let row = self.0.len().max(1);
        self.0.resize(row + 1, [0; SUB]);
        self.0[0][octave] = row as u32;
        row as u32
    }

    /// The octaves that occurred, lowest first, with their counts.
    fn octaves(&self) -> impl Iterator<Item = (usize, &[u32; SUB])> {
        let index = self.0.first().into_iter().flatten();
        index.enumerate().filter(|(_, row)| **row > 0).map(|(octave, row)| (octave, &self.0[*row as usize]))
    }

    /// Adds the counts of the other's buckets.
    fn merge(&mut self, other: &Self) {
        for (octave, theirs) in other.octaves() {
            let mine = self.octave(octave);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
        }
    }

    /// The middles of the buckets with these ranks, which rise.
    fn at_ranks<const N: usize>(&self, ranks: [u64; N]) -> [Nanos; N] {
        let mut found = [Nanos::MAX; N];
        let (mut below, mut next) = (0, 0);
        for (octave, counts) in self.octaves() {
            let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
            if next == N || below + all < ranks[next] {
                below += all;
                continue;
            }
            for (sub, count) in counts.iter().enumerate() {
                below += u64::from(*count);
                while next < N && below >= ranks[next] {
                    found[next] = middle(octave, sub);
                    next += 1;
                }
            }
        }
        found
    }
}

fn middle(octave: usize, sub: usize) -> Nanos {
    match octave {
        0 => sub as Nanos,
        1 => (SUB + sub) as Nanos,
        _ => (((SUB + sub) as Nanos) << (octave - 1)) + (1 << (octave - 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Rng;

    fn exact(values: &mut [Nanos], q: f64) -> Nanos {
        values.sort_unstable();
        values[((q * values.len() as f64).ceil() as usize).max(1) - 1]
    }

    #[test]
    fn few_are_exact() {
        let mut histogram = Histogram::default();
        [5_000, 1_000, 3_000, 2_000].into_iter().for_each(|v| histogram.record(v));
        let latency = histogram.latency();
        assert_eq!((latency.count, latency.mean, latency.p50, latency.p90, latency.max), (4, 2.75, 2.0, 5.0, 5.0));
        assert_eq!(Histogram::default().latency(), Latency::default());
    }

    #[test]
    fn quantiles_of_many_are_within_one_percent() {
        let mut rng = Rng::new(1);
        for scale in [40, 1_000, 1_000_000, u64::MAX >> 1] {
            let mut values: Vec<Nanos> = (0..10_000).map(|_| rng.below(scale) / (1 + rng.below(100))).collect();
            let mut histogram = Histogram::default();
            values.iter().for_each(|&v| histogram.record(v));
            for q in [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let (got, want) = (histogram.quantile(q) as f64, exact(&mut values, q) as f64);
                assert!((got - want).abs() <= want / 128.0, "{scale} {q}: {got} {want}");
            }
        }
    }

    #[test]
    fn no_quantile_lies_outside_of_what_was_recorded() {
        // The bucket of 3,000 ns has its middle at 2,992.
        let mut same = Histogram::default();
        (0..100).for_each(|_| same.record(3_000));
        let latency = same.latency();
        assert_eq!([latency.p50, latency.p90, latency.p999, latency.max], [3.0; 4]);
        let mut merged = Histogram::default();
        merged.merge(&same);
        assert_eq!(merged.latency(), latency);
        let mut rng = Rng::new(3);
        for _ in 0..200 {
            let (low, width) = (rng.below(1 << 20), 1 + rng.below(1 << 12));
            let mut histogram = Histogram::default();
            let mut values: Vec<Nanos> = (0..33 + rng.below(40)).map(|_| low + rng.below(width)).collect();
            values.iter().for_each(|&v| histogram.record(v));
            values.sort_unstable();
            let quantiles = [0.0, 0.01, 0.5, 0.99, 1.0].map(|q| histogram.quantile(q));
            assert!(quantiles.is_sorted(), "{quantiles:?}");
            assert_eq!((quantiles[0], quantiles[4]), (values[0], values[values.len() - 1]));
        }
    }

    #[test]
    fn merged_is_as_if_recorded_in_one() {
        let mut rng = Rng::new(2);
        for sizes in [[3, 5], [3, 500], [500, 3], [500, 700], [0, 40]] {
            let (mut one, mut parts) = (Histogram::default(), Vec::new());
            for size in sizes {
                let mut part = Histogram::default();
                for _ in 0..size {
                    let value = rng.below(1 << 30);
                    one.record(value);
                    part.record(value);
                }
                parts.push(part);
            }
            let mut merged = Histogram::default();
            parts.iter().for_each(|part| merged.merge(part));
            assert_eq!(merged.latency(), one.latency());
        }
    }

    #[test]
    fn all_at_once_is_as_one_after_another() {
        let mut rng = Rng::new(4);
        for size in [0, 1, 32, 33, 500] {
            let (mut one_by_one, mut at_once) = (Histogram::default(), Histogram::default());
            for _ in 0..3 {
                let values: Vec<Nanos> = (0..size).map(|_| rng.next_u64() >> rng.below(64)).collect();
                values.iter().for_each(|value| one_by_one.record(*value));
                at_once.record_all(values.into_iter());
            }
            assert_eq!(at_once.latency(), one_by_one.latency());
        }
    }

    #[test]
    fn the_extremes_have_a_bucket() {
        let mut histogram = Histogram::default();
        for _ in 0..100 {
            [0, 63, 64, 127, 128, u64::MAX].into_iter().for_each(|v| histogram.record(v));
        }
        assert_eq!((histogram.quantile(0.01), histogram.quantile(0.3)), (0, 63));
        assert!(histogram.quantile(1.0) > u64::MAX / 128 * 127);
    }
}
