//! How figures scatter between runs: their mean with its 95% confidence interval, how many runs would narrow it enough,
//! and how likely a difference between two sets of runs is by chance.
//!
//! All of this assumes what Student's t assumes: runs are independent, and their figures are normally distributed.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The largest number of runs that is suggested.
const MOST_RUNS: usize = 10_000;

/// A mean and its 95% confidence interval. One figure, or figures that are all equal, have an interval of no width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The mean.
    pub mean: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of the mean of these figures.
    #[must_use]
    pub fn of(figures: &[f64]) -> Self {
        let mean = mean(figures);
        let half = if figures.len() < 2 { 0.0 } else { half(deviation(figures), figures.len()) };
        Self { low: mean - half, mean, high: mean + half }
    }
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// The standard deviation, over n - 1.
fn deviation(figures: &[f64]) -> f64 {
    let mean = mean(figures);
    (figures.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (figures.len() as f64 - 1.0)).sqrt()
}

/// Half the width of the 95% interval of the mean of `runs` figures with this standard deviation.
fn half(deviation: f64, runs: usize) -> f64 {
    student(runs as f64 - 1.0).inverse_cdf(0.975) * deviation / (runs as f64).sqrt()
}

fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("the degrees of freedom are above 0")
}

/// How many runs would make half the interval shorter than `distance`, if further runs scatter as these do; `None` for
/// more than 10,000.
#[must_use]
pub fn runs_for(figures: &[f64], distance: f64) -> Option<usize> {
    let deviation = deviation(figures);
    let enough = |runs: usize| half(deviation, runs) < distance.abs();
    if figures.len() < 2 || !enough(MOST_RUNS) {
        return None;
    }
    let (mut few, mut many) = (figures.len(), MOST_RUNS);
    while many - few > 1 {
        let middle = few.midpoint(many);
        if enough(middle) { many = middle } else { few = middle }
    }
    Some(many)
}

/// The difference between the means of two sets of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The second mean less the first, with its 95% interval; none if neither set has several runs.
    pub interval: Option<Interval>,
    /// How likely a difference of this size or more is if nothing has changed; 0 if there is no scatter.
    pub chance: f64,
}

/// Compares two sets of runs by Welch's t-test. A set of one run is taken to scatter as the other set does; if both
/// have one run, every difference counts.
#[must_use]
pub fn difference(before: &[f64], now: &[f64]) -> Difference {
    let by = mean(now) - mean(before);
    let tiny = by.abs() <= 1e-9 * mean(now).abs().max(mean(before).abs());
    let certain = |interval| Difference { interval, chance: if tiny { 1.0 } else { 0.0 } };
    let variance = |figures: &[f64]| (figures.len() > 1).then(|| deviation(figures).powi(2));
    let (freedom, error) = match (variance(before), variance(now)) {
        (None, None) => return certain(None),
        (Some(of), None) | (None, Some(of)) => {
            let runs = before.len().max(now.len()) as f64;
            (runs - 1.0, (of * (1.0 + 1.0 / runs)).sqrt())
        }
        (Some(old), Some(new)) => {
            let (old, new) = (old / before.len() as f64, new / now.len() as f64);
            let apart = old.powi(2) / (before.len() as f64 - 1.0) + new.powi(2) / (now.len() as f64 - 1.0);
            ((old + new).powi(2) / apart, (old + new).sqrt())
        }
    };
    if error <= 1e-12 * mean(now).abs().max(mean(before).abs()) {
        return certain(Some(Interval { low: by, mean: by, high: by }));
    }
    let student = student(freedom);
    let half = student.inverse_cdf(0.975) * error;
    let chance = 2.0 * student.sf((by / error).abs());
    Difference { interval: Some(Interval { low: by - half, mean: by, high: by + half }), chance }
}

/// By which part the mean of the second set is above that of the first, with Fieller's interval at this level of
/// confidence (0.95): the changes that a test of the two means would not refuse. None if neither set has several runs,
/// or if the first mean cannot be told from 0. Figures are not negative. A set of one run is taken to scatter, in
/// proportion, as the other does.
#[must_use]
pub fn relative_change(before: &[f64], now: &[f64], level: f64) -> Option<Interval> {
    if before.is_empty() || now.is_empty() {
        return None;
    }
    let (old, new) = (mean(before), mean(now));
    let ratio = new / old;
    let spread = |figures: &[f64]| (figures.len() > 1).then(|| deviation(figures).powi(2));
    // The variances of the two means, and the degrees of freedom.
    let (of_old, of_new, freedom) = match (spread(before), spread(now)) {
        (None, None) => return None,
        (Some(own), None) => (own / before.len() as f64, own * ratio.powi(2), before.len() as f64 - 1.0),
        (None, Some(own)) => (own / ratio.powi(2), own / now.len() as f64, now.len() as f64 - 1.0),
        (Some(a), Some(b)) => {
            let (a, b) = (a / before.len() as f64, b / now.len() as f64);
            let scaled = a * ratio.powi(2);
            let apart = b.powi(2) / (now.len() as f64 - 1.0) + scaled.powi(2) / (before.len() as f64 - 1.0);
            (a, b, if apart > 0.0 { (scaled + b).powi(2) / apart } else { f64::INFINITY })
        }
    };
    if !ratio.is_finite() || !of_old.is_finite() {
        return None;
    }
    let certain = of_old + of_new <= 1e-24 * old.abs().max(new.abs()).powi(2);
    let quantile = if certain { 0.0 } else { student(freedom).inverse_cdf(0.5 + level / 2.0) };
    let doubt = (quantile / old).powi(2) * of_old;
    if doubt >= 1.0 {
        return None;
    }
    let half = (quantile / old).abs() * (of_new * (1.0 - doubt) + of_old * ratio.powi(2)).sqrt();
    let [low, high] = [ratio - half, ratio + half].map(|end| end / (1.0 - doubt));
    Some(Interval { low: low.max(0.0) - 1.0, mean: ratio - 1.0, high: high - 1.0 })
}

/// Hedges' g: the difference of the means in units of the runs' standard deviation, corrected for small sets. None
/// unless both sets have several runs that scatter.
#[must_use]
pub fn hedges(before: &[f64], now: &[f64]) -> Option<f64> {
    if before.len() < 2 || now.len() < 2 {
        return None;
    }
    let (few, many) = (before.len() as f64, now.len() as f64);
    let freedom = few + many - 2.0;
    let pooled = ((deviation(before).powi(2) * (few - 1.0) + deviation(now).powi(2) * (many - 1.0)) / freedom).sqrt();
    let scale = mean(before).abs().max(mean(now).abs());
    (pooled > 1e-12 * scale).then(|| (mean(now) - mean(before)) / pooled * (1.0 - 3.0 / (4.0 * freedom - 1.0)))
}

/// Which of several tests show something, by Holm's method: the probability that any of them does by chance alone is
/// at most 5%, however many there are.
#[must_use]
pub fn beyond_chance(chances: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut beyond = vec![false; chances.len()];
    for (rank, test) in order.into_iter().enumerate() {
        if chances[test] > 0.05 / (chances.len() - rank) as f64 {
            break;
        }
        beyond[test] = true;
    }
    beyond
}

/// Which of several tests show something, by Benjamini and Hochberg's method: of those that it names, 5% at most are
/// expected to be chance.
#[must_use]
pub fn discoveries(chances: &[f64]) -> Vec<bool> {
    let mut sorted = chances.to_vec();
    sorted.sort_by(f64::total_cmp);
    let allowed = |rank: usize| 0.05 * (rank + 1) as f64 / sorted.len() as f64;
    let most = (0..sorted.len()).rev().find(|rank| sorted[*rank] <= allowed(*rank)).map(|rank| sorted[rank]);
    chances.iter().map(|chance| most.is_some_and(|most| *chance <= most)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_students_t() {
        // Mean 5, deviation 1, and the tables' 4.303 for 2 degrees of freedom.
        let interval = Interval::of(&[4.0, 5.0, 6.0]);
        assert!((interval.high - interval.mean - 4.3027 / 3f64.sqrt()).abs() < 1e-3, "{interval:?}");
        assert_eq!(Interval::of(&[7.0]), Interval { low: 7.0, mean: 7.0, high: 7.0 });
        assert_eq!(Interval::of(&[2.0, 2.0]), Interval { low: 2.0, mean: 2.0, high: 2.0 });
        for (freedom, quantile) in [(1.0, 12.706), (30.0, 2.042), (1000.0, 1.962)] {
            assert!((student(freedom).inverse_cdf(0.975) - quantile).abs() < 1e-3, "{freedom}");
        }
    }

    #[test]
    fn enough_runs_are_the_fewest_that_narrow_the_interval() {
        let figures = [4.0, 5.0, 6.0];
        let runs = runs_for(&figures, 0.5).unwrap();
        assert!(half(1.0, runs) < 0.5 && half(1.0, runs - 1) >= 0.5, "{runs}");
        assert_eq!(runs, 18, "2.110 / sqrt(18) is 0.497, and 2.120 / sqrt(17) is 0.514");
        assert_eq!(runs_for(&figures, 0.0), None);
        assert_eq!(runs_for(&figures, 1e-3), None, "some 4 million");
    }

    #[test]
    fn a_difference_is_judged_by_welchs_test() {
        // t = 2.75 / sqrt(1.6667 / 4 + 6.9167 / 4) = 1.8773 with 4.3664 degrees of freedom; integrated: p = 0.12768.
        let d = difference(&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0, 5.0, 9.0]);
        assert!((d.interval.unwrap().mean - 2.75).abs() < 1e-12 && (d.chance - 0.127_68).abs() < 1e-4, "{d:?}");
        assert_eq!(difference(&[1.0], &[1.0]).chance, 1.0);
        assert_eq!(difference(&[1.0], &[1.1]).chance, 0.0, "one run each: every difference counts");
        assert_eq!(difference(&[1.0, 1.0], &[1.0, 1.0]).chance, 1.0);
        assert_eq!(difference(&[1.0, 1.0], &[2.0, 2.0]).chance, 0.0);
        let one = difference(&[1.0, 2.0, 3.0], &[2.5]);
        assert!(one.chance > 0.5, "{one:?}");
    }

    #[test]
    fn a_relative_change_has_fiellers_interval() {
        let (before, now) = ([9.0, 10.0, 11.0], [18.0, 20.0, 22.0]);
        let found = relative_change(&before, &now, 0.95).unwrap();
        assert!((found.mean - 1.0).abs() < 1e-12, "{found:?}");
        // At either end a test of the second set against the first, multiplied, is just at the edge.
        for (end, edge) in [(found.low, true), (found.high, false)] {
            let scaled: Vec<f64> = before.iter().map(|x| x * (1.0 + end)).collect();
            let at = difference(&scaled, &now).interval.unwrap();
            let off = if edge { at.low } else { at.high };
            assert!(off.abs() < 0.5, "{end} {at:?}");
        }
        // With t = 2.7764 of 4 degrees: g = t² (1/3) / 100, and (2 ± 0.27764 sqrt(4/3 (1 - g) + 4/3)) / (1 - g) - 1.
        assert!((found.low - 0.590_4).abs() < 1e-3 && (found.high - 1.515_1).abs() < 1e-3, "{found:?}");
        assert_eq!(relative_change(&[1.0], &[2.0], 0.95), None, "one run each");
        assert_eq!(relative_change(&[-1.0, 1.0, 0.1], &[2.0, 3.0, 4.0], 0.95), None, "the first may be 0");
        let same = relative_change(&[2.0, 2.0], &[3.0, 3.0], 0.95).unwrap();
        assert_eq!((same.low, same.high), (0.5, 0.5));
        let one = relative_change(&before, &[20.0], 0.95).unwrap();
        assert!(one.low < found.low && one.high > found.high, "{one:?}");
    }

    #[test]
    fn an_effect_is_in_units_of_the_scatter() {
        // A difference of 3 at a deviation of 1, times 1 - 3 / 15.
        assert!((hedges(&[4.0, 5.0, 6.0], &[7.0, 8.0, 9.0]).unwrap() - 2.4).abs() < 1e-12);
        assert_eq!(hedges(&[4.0, 5.0], &[7.0]), None);
        assert_eq!(hedges(&[4.0, 4.0], &[7.0, 7.0]), None);
    }

    #[test]
    fn many_tests_need_stronger_evidence_each() {
        assert_eq!(beyond_chance(&[0.04]), [true]);
        assert_eq!(beyond_chance(&[0.04, 0.9]), [false, false]);
        assert_eq!(beyond_chance(&[0.9, 0.0, 0.02, 0.04]), [false, true, false, false]);
        assert_eq!(beyond_chance(&[0.0, 0.01, 0.02]), [true, true, true]);
        assert_eq!(beyond_chance(&[]), Vec::<bool>::new());
    }

    #[test]
    fn discoveries_are_chance_in_few_cases() {
        // The bounds are 0.0125, 0.025, 0.0375 and 0.05.
        assert_eq!(discoveries(&[0.9, 0.02, 0.001, 0.03]), [false, true, true, true]);
        assert_eq!(discoveries(&[0.9, 0.02, 0.03, 0.04]), [false, false, false, false]);
        assert_eq!(discoveries(&[0.04]), [true]);
        assert_eq!(discoveries(&[]), Vec::<bool>::new());
    }
}
