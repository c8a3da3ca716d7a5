//! How a figure differs between two sets.

use crate::scatter::{Interval, difference, hedges, relative_change};
use schedlab_base::total;
use serde::Serialize;

/// Latencies that differ by less than this, in us, are the same.
const SAME_LATENCY: f64 = 10.0;

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It is larger, and larger is worse: waits, latencies, switches, migrations, the duration.
    Worse,
    /// It is smaller, and larger is worse.
    Better,
    /// It is larger: CPU time, wake-ups.
    More,
    /// It is smaller.
    Less,
    /// There is no difference beyond the scatter.
    Same,
    /// There is nothing to judge the scatter by.
    Unknown,
}

impl Direction {
    /// Whether it changed.
    #[must_use]
    pub fn changed(self) -> bool {
        !matches!(self, Self::Same | Self::Unknown)
    }
}

/// A figure in both sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The mean over the runs of the first set.
    pub a: f64,
    /// Over those of the second.
    pub b: f64,
    /// From the first to the second: 0.1 is 10% more.
    pub change: f64,
    /// Its 95% interval; none where it has no bounds.
    pub interval: Option<[f64; 2]>,
    /// Hedges' g: the difference in units of the scatter.
    pub effect_size: Option<f64>,
    /// How likely a difference of this size is if nothing has changed; none where the scatter is not known.
    pub chance: Option<f64>,
    /// What became of it, with all figures of all rows in view (Benjamini and Hochberg's method).
    pub direction: Direction,
    #[serde(skip)]
    neutral: bool,
    #[serde(skip)]
    latency: bool,
    /// What the scatter is judged by; empty where nothing is.
    #[serde(skip)]
    samples: [Vec<f64>; 2],
}

fn mean(values: &[f64]) -> f64 {
    total(values.iter().copied()) / values.len().max(1) as f64
}

impl Effect {
    /// Compares the runs of both sets. With `scatter`, they are samples of it.
    pub(super) fn new(key: &str, a: Vec<f64>, b: Vec<f64>, floor: f64, scatter: bool) -> Self {
        let (mean_a, mean_b) = (mean(&a), mean(&b));
        let effect = Self {
            a: mean_a,
            b: mean_b,
            change: mean_b.max(floor) / mean_a.max(floor).max(f64::MIN_POSITIVE) - 1.0,
            interval: None,
            effect_size: None,
            chance: None,
            direction: Direction::Unknown,
            neutral: matches!(key, "run_us" | "wakeups"),
            latency: key.starts_with("latency"),
            samples: [Vec::new(), Vec::new()],
        };
        if scatter { effect.scattering(a, b, floor) } else { effect }
    }

    /// The same with the scatter of these samples; what is below `floor` counts as that.
    pub(super) fn scattering(self, a: Vec<f64>, b: Vec<f64>, floor: f64) -> Self {
        let [a, b] = [a, b].map(|values| values.into_iter().map(|value| value.max(floor)).collect::<Vec<_>>());
        let (chance, effect_size) = (Some(difference(&a, &b).chance), hedges(&a, &b));
        let found = Self { chance, effect_size, samples: [a, b], ..self };
        Self { interval: found.relative(0.95), ..found }
    }

    /// The interval of the relative change at a level of confidence.
    pub(super) fn relative(&self, level: f64) -> Option<[f64; 2]> {
        let [a, b] = &self.samples;
        relative_change(a, b, level).map(|Interval { low, high, .. }| [low, high])
    }

    /// The 95% interval of the difference.
    pub(super) fn absolute(&self) -> Option<[f64; 2]> {
        let [a, b] = &self.samples;
        let found = (!a.is_empty() && !b.is_empty()).then(|| difference(a, b).interval).flatten();
        found.map(|Interval { low, high, .. }| [low, high])
    }

    /// Sets the direction.
    pub(super) fn settle(&mut self, beyond: bool) {
        let apart = self.b - self.a;
        let tiny = self.latency && apart.abs() < SAME_LATENCY;
        self.direction = match (apart > 0.0, self.neutral) {
            _ if !beyond || tiny || apart == 0.0 => Direction::Same,
            (true, false) => Direction::Worse,
            (false, false) => Direction::Better,
            (true, true) => Direction::More,
            (false, true) => Direction::Less,
        };
    }

    /// How much it changed, by that end of its interval which is nearer to no change; as a logarithm.
    pub(super) fn size(&self) -> f64 {
        // Where the first mean may be 0, the ratio has no bounds; the difference has.
        let by_difference = || self.absolute().filter(|_| self.a > 0.0).map(|ends| ends.map(|end| end / self.a));
        let ends = self.interval.or_else(by_difference).unwrap_or([self.change; 2]);
        if ends[0] <= 0.0 && ends[1] >= 0.0 {
            return 0.0;
        }
        ends.map(|end| end.max(-0.9999).ln_1p().abs()).into_iter().fold(f64::INFINITY, f64::min)
    }

    /// As [`Effect::size`], of what got worse; what got better is negative.
    pub(super) fn worsening(&self) -> f64 {
        match self.direction {
            Direction::Worse => self.size(),
            Direction::Better => -self.size(),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_scatter_got_worse_or_better() {
        let mut worse = Effect::new("wait_us", vec![100.0, 102.0, 98.0], vec![150.0, 153.0, 147.0], 1.0, true);
        assert!(worse.chance.unwrap() < 0.001 && worse.effect_size.unwrap() > 10.0, "{worse:?}");
        worse.settle(true);
        assert_eq!(worse.direction, Direction::Worse);
        let [low, high] = worse.interval.unwrap();
        assert!(low < 0.5 && high > 0.5 && low > 0.4, "{worse:?}");
        assert!(worse.size() < 0.5f64.ln_1p() && worse.worsening() > 0.0);
        let mut tiny = Effect::new("latency_p50_us", vec![3.0, 3.0], vec![4.0, 4.0], 1.0, true);
        tiny.settle(true);
        assert_eq!(tiny.direction, Direction::Same);
        assert_eq!(Effect::new("wait_us", vec![1.0], vec![2.0], 1.0, false).direction, Direction::Unknown);
    }
}
