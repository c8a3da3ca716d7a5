//! Whether samples stand to their bounds as a relation asks.
//!
//! On a deterministic backend a seed is a load that could have been: what is claimed has to hold for each of them, so
//! the range over the seeds decides. On a real kernel several runs are measurements of one thing and scatter; there the
//! 95% confidence interval of the mean distance from the bound decides, and one run decides nothing.

use crate::experiment::Margin;
use crate::file::Relation;
use crate::scatter::{Interval, runs_for};
use crate::verdict::Verdict;
use schedlab_chart::number;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;

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
    /// How far inside the bound the worst sample (on a real kernel: the mean) lies, in units of the bound where it is
    /// not 0; negative is outside.
    pub slack: f64,
    /// For how many samples it holds.
    pub holds: usize,
    /// If the runs scatter across the bound: how many would settle it, where that can be foreseen.
    pub runs_needed: Option<usize>,
}

impl Relation {
    /// The sides of the bound that are out of bounds: 1 above it, -1 below.
    fn sides(self) -> &'static [f64] {
        match self {
            Self::Less | Self::AtMost => &[1.0],
            Self::AtLeast | Self::More => &[-1.0],
            Self::Equal | Self::AsPublished => &[1.0, -1.0],
        }
    }
}

/// Judges samples; `deterministic`: the range over them decides.
#[must_use]
pub fn judge(relation: Relation, margin: Margin, samples: &[Sample], deterministic: bool) -> Judged {
    let strict = matches!(relation, Relation::Less | Relation::More);
    let scale = samples.iter().map(|s| s.bound.abs()).fold(0.0, f64::max);
    let inside = |x: f64| if strict { x > 0.0 } else { x >= -1e-12 * scale };
    let distance = |side: f64, s: &Sample| side * (s.bound - s.value) + margin.of(s.bound);
    let slack = |distance: f64| if scale > 0.0 { distance / scale } else { distance };
    if !deterministic {
        return by_interval(relation.sides(), samples, &distance, &inside, &slack);
    }
    let least = |s: &Sample| relation.sides().iter().map(|side| distance(*side, s)).fold(f64::INFINITY, f64::min);
    let distances: Vec<f64> = samples.iter().map(least).collect();
    let holds = distances.iter().filter(|d| inside(**d)).count();
    let verdict = match holds {
        _ if samples.is_empty() => Verdict::Undecided,
        0 => Verdict::Fail,
        all if all == samples.len() => Verdict::Pass,
        _ => Verdict::Undecided,
    };
    let worst = distances.iter().copied().fold(f64::INFINITY, f64::min);
    Judged { verdict, slack: slack(worst), holds, runs_needed: None }
}

/// Judges by the confidence interval of the mean distance from each side's bound.
fn by_interval(
    sides: &[f64],
    samples: &[Sample],
    distance: &dyn Fn(f64, &Sample) -> f64,
    inside: &dyn Fn(f64) -> bool,
    slack: &dyn Fn(f64) -> f64,
) -> Judged {
    let mut verdict = Verdict::Pass;
    let mut nearest: Option<(f64, Vec<f64>)> = None;
    for side in sides {
        let distances: Vec<f64> = samples.iter().map(|s| distance(*side, s)).collect();
        let Interval { low, mean, high } = Interval::of(&distances);
        if nearest.as_ref().is_none_or(|(least, _)| mean < *least) {
            nearest = Some((mean, distances));
        }
        let here = match (samples.len(), inside(low), inside(high)) {
            (0 | 1, ..) => Verdict::Undecided,
            (_, true, _) => Verdict::Pass,
            (_, _, false) => Verdict::Fail,
            _ => Verdict::Undecided,
        };
        verdict = Verdict::all([verdict, here]);
    }
    let (mean, distances) = nearest.expect("every relation has a side");
    // The side that the mean is nearest to, or farthest beyond, is the one that takes the most runs.
    let runs_needed = (verdict == Verdict::Undecided).then(|| runs_for(&distances, mean)).flatten();
    let holds = distances.iter().filter(|d| inside(**d)).count();
    Judged { verdict, slack: slack(mean), holds, runs_needed }
}

/// The values that an expectation allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Required {
    relation: Relation,
    low: Option<f64>,
    high: Option<f64>,
}

impl Required {
    /// What a relation to this bound, with this margin, allows.
    #[must_use]
    pub fn new(relation: Relation, bound: f64, margin: f64) -> Self {
        let (low, high) = match relation {
            Relation::Less | Relation::AtMost => (None, Some(bound + margin)),
            Relation::AtLeast | Relation::More => (Some(bound - margin), None),
            Relation::Equal | Relation::AsPublished => (Some(bound - margin), Some(bound + margin)),
        };
        Self { relation, low, high }
    }
}

/// `9.5 to 10.5`, `at most 3`.
impl fmt::Display for Required {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = [self.low, self.high].map(|end| end.map_or_else(String::new, number));
        match self.relation {
            Relation::Less => write!(f, "less than {high}"),
            Relation::AtMost => write!(f, "at most {high}"),
            Relation::AtLeast => write!(f, "at least {low}"),
            Relation::More => write!(f, "more than {low}"),
            Relation::Equal | Relation::AsPublished if self.low == self.high => write!(f, "exactly {low}"),
            Relation::Equal | Relation::AsPublished => write!(f, "{low} to {high}"),
        }
    }
}

impl Serialize for Required {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Required", 3)?;
        fields.serialize_field("low", &self.low)?;
        fields.serialize_field("high", &self.high)?;
        fields.serialize_field("text", &self.to_string())?;
        fields.end()
    }
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
    fn on_the_simulator_the_range_over_the_seeds_decides() {
        let judged = |relation, values: &[f64]| {
            let samples: Vec<_> = values.iter().map(|v| Sample { value: *v, bound: 10.0 }).collect();
            let judged = judge(relation, Margin::Absolute(1.0), &samples, true);
            (judged.verdict, judged.holds)
        };
        assert_eq!(judged(Relation::AtMost, &[5.0, 10.9, 8.0]), (Verdict::Pass, 3));
        assert_eq!(judged(Relation::AtMost, &[5.0, 11.1, 8.0]), (Verdict::Undecided, 2), "one seed is over it");
        assert_eq!(judged(Relation::AtMost, &[11.1, 12.0]), (Verdict::Fail, 0));
        assert_eq!(judged(Relation::Equal, &[9.1, 10.9]), (Verdict::Pass, 2));
        assert_eq!(judged(Relation::Equal, &[8.9, 11.1]), (Verdict::Fail, 0), "their mean is the bound");
        assert_eq!(judged(Relation::AtMost, &[]), (Verdict::Undecided, 0));
    }

    #[test]
    fn the_number_of_runs_needed_is_that_of_the_side_in_doubt() {
        let judged = |relation, values: &[f64], bound| {
            let samples: Vec<_> = values.iter().map(|v| Sample { value: *v, bound }).collect();
            judge(relation, Margin::Absolute(1.0), &samples, false)
        };
        let high = judged(Relation::Equal, &[10.0, 11.0, 12.0], 10.5);
        assert_eq!((high.verdict, high.runs_needed), (Verdict::Undecided, Some(18)), "0.5 below the upper end");
        assert_eq!(judged(Relation::Equal, &[10.0, 11.0, 12.0], 10.0).runs_needed, None, "the mean is on the bound");
        assert_eq!(judged(Relation::AtMost, &[10.0, 11.0, 12.0], 20.0).runs_needed, None, "it is decided");
    }

    #[test]
    fn what_is_required_is_said_in_words() {
        for (relation, margin, text) in [
            (Relation::Equal, 0.5, "9.5 to 10.5"),
            (Relation::Equal, 0.0, "exactly 10"),
            (Relation::AtMost, 0.5, "at most 10.5"),
            (Relation::Less, 0.0, "less than 10"),
            (Relation::AtLeast, 0.5, "at least 9.5"),
            (Relation::More, 0.0, "more than 10"),
        ] {
            assert_eq!(Required::new(relation, 10.0, margin).to_string(), text);
        }
    }
}
