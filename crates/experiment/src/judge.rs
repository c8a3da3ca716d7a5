//! Whether samples stand to their bounds as a relation asks.
//!
//! A deterministic backend's single run decides. Several runs (seeds, or repetitions on a real kernel) are judged
//! by the 95% confidence interval of the mean distance from the bound; one run on a real kernel decides nothing.

use crate::experiment::Margin;
use crate::file::Relation;
use crate::verdict::Verdict;

/// One run's value and the bound that holds for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The value.
    pub value: f64,
    /// The bound.
    pub bound: f64,
}

/// The verdict on samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// How far inside the bound the mean lies, in units of the bound where it is not 0; negative is outside.
    pub slack: f64,
}

/// Judges samples; `deterministic`: one run decides.
#[must_use]
pub fn judge(relation: Relation, margin: Margin, samples: &[Sample], deterministic: bool) -> Judged {
    let sides: &[f64] = match relation {
        Relation::Less | Relation::AtMost => &[1.0],
        Relation::AtLeast | Relation::More => &[-1.0],
        Relation::Equal => &[1.0, -1.0],
    };
    let strict = matches!(relation, Relation::Less | Relation::More);
    let scale = samples.iter().map(|s| s.bound.abs()).fold(0.0, f64::max);
    let mut verdict = Verdict::Pass;
    let mut slack = f64::INFINITY;
    for side in sides {
        let distances: Vec<f64> = samples.iter().map(|s| side * (s.bound - s.value) + margin.of(s.bound)).collect();
        let (low, mean, high) = interval(&distances);
        slack = slack.min(if scale > 0.0 { mean / scale } else { mean });
        let inside = |x: f64| if strict { x > 0.0 } else { x >= -1e-12 * scale };
        let here = match (samples.len(), inside(low), inside(high)) {
            (0, ..) => Verdict::Undecided,
            (1, ..) if !deterministic => Verdict::Undecided,
            (_, true, _) => Verdict::Pass,
            (_, _, false) => Verdict::Fail,
            _ => Verdict::Undecided,
        };
        verdict = Verdict::all([verdict, here]);
    }
    Judged { verdict, slack }
}

/// The 95% confidence interval of the mean, and the mean.
fn interval(x: &[f64]) -> (f64, f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    if x.len() < 2 {
        return (mean, mean, mean);
    }
    let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student_t(x.len() - 1) * (variance / n).sqrt();
    (mean - half, mean, mean + half)
}

/// The 97.5% quantile of Student's t.
fn student_t(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    // Beyond the table: the first term of the expansion around the normal quantile, within 0.1% there.
    TABLE.get(freedom - 1).copied().unwrap_or_else(|| 1.960 + 2.372 / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Scalar;

    fn one(relation: Relation, value: f64, bound: f64, margin: &str) -> Verdict {
        let margin = Margin::parse(&Scalar::Text(margin.into())).unwrap();
        judge(relation, margin, &[Sample { value, bound }], true).verdict
    }

    #[test]
    fn each_relation_holds_on_its_side() {
        use Relation::{AtLeast, AtMost, Equal, Less, More};
        for (relation, value, holds) in [
            (Less, 9.9, true),
            (Less, 10.0, false),
            (AtMost, 10.0, true),
            (AtMost, 10.1, false),
            (Equal, 10.0, true),
            (Equal, 10.1, false),
            (AtLeast, 10.0, true),
            (AtLeast, 9.9, false),
            (More, 10.0, false),
            (More, 10.1, true),
        ] {
            assert_eq!(one(relation, value, 10.0, "0%") == Verdict::Pass, holds, "{relation:?} {value}");
        }
    }

    #[test]
    fn a_margin_widens_the_bound() {
        assert_eq!(one(Relation::Equal, 102.0, 100.0, "2%"), Verdict::Pass);
        assert_eq!(one(Relation::Equal, 102.1, 100.0, "2%"), Verdict::Fail);
        assert_eq!(one(Relation::Equal, 97.9, 100.0, "2%"), Verdict::Fail);
        assert_eq!(one(Relation::AtMost, -99.0, -100.0, "2%"), Verdict::Pass);
        let absolute = Margin::parse(&Scalar::Int(3)).unwrap();
        let sample = [Sample { value: 3.0, bound: 0.0 }];
        assert_eq!(judge(Relation::Equal, absolute, &sample, true).verdict, Verdict::Pass);
    }

    #[test]
    fn one_run_on_a_real_kernel_decides_nothing_and_several_by_their_interval() {
        let many = |values: &[f64]| {
            let samples: Vec<_> = values.iter().map(|v| Sample { value: *v, bound: 10.0 }).collect();
            judge(Relation::AtMost, Margin::Absolute(0.0), &samples, false).verdict
        };
        assert_eq!(many(&[5.0]), Verdict::Undecided);
        assert_eq!(many(&[5.0, 5.1, 5.2]), Verdict::Pass);
        assert_eq!(many(&[15.0, 15.1, 15.2]), Verdict::Fail);
        assert_eq!(many(&[5.0, 14.0, 8.0]), Verdict::Undecided);
    }

    #[test]
    fn the_t_quantiles_go_on_beyond_the_table() {
        assert!((student_t(30) - 2.042).abs() < 1e-9);
        assert!((student_t(60) - 2.000).abs() < 2e-3);
        assert!((student_t(1000) - 1.962).abs() < 2e-3);
    }
}
