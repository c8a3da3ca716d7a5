//! Whether a figure changes by more than the model is off and the seeds scatter.

use crate::prediction::amount;
use crate::scatter::{Interval, relative_change};
use schedlab_base::total;
use schedlab_measure::compared::{FIGURES, Unit};
use schedlab_measure::validation::Errors;
use serde::Serialize;

/// Where the model is off by more than this factor, it says nothing of a change.
const MOST_FACTOR: f64 = 2.0;

/// A smaller change than this is none, whatever the seeds say.
const LEAST_CHANGE: f64 = 0.005;

/// An error up to this part of what was recorded is told as it is, also where the difference is too small to count.
const SMALL: f64 = 0.05;

/// What there is to say of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It rises, beyond the model's error and the scatter of the seeds.
    Rises,
    /// It falls by as much.
    Falls,
    /// There is no change worth naming.
    Same,
    /// The change is no larger than the seeds scatter: none that the model could tell.
    Scatters,
    /// The change is no larger than the model is off, or it is off by more than a factor of two: none that it could
    /// tell.
    WithinError,
    /// It rises beyond the scatter, but how far the model is off is not known.
    RisesUnvalidated,
    /// It falls by as much.
    FallsUnvalidated,
}

impl Verdict {
    /// Whether there is a change.
    #[must_use]
    pub fn changes(self) -> bool {
        !matches!(self, Self::Same | Self::Scatters | Self::WithinError)
    }
}

/// A figure, as recorded, simulated as recorded, and simulated as asked. Means over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// As recorded; none where there is no recording.
    pub recorded: Option<f64>,
    /// Simulated as recorded.
    pub baseline: f64,
    /// Simulated as asked.
    pub asked: f64,
    /// The change from one simulation to the other: 0.1 is 10% more.
    pub change: f64,
    /// Its 95% interval by the scatter of the seeds; none with one seed, or if it has no bounds.
    pub interval: Option<[f64; 2]>,
    /// How far the simulation as recorded is from the recording: 0.1 is 10% too much; 0 with `within`.
    pub error: Option<f64>,
    /// Where they differ by more than 5%, but so little that the difference counts as none: below which it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The median size of that error over single tasks, or that of the validation which the model carries.
    pub typical_error: Option<f64>,
    /// What there is to say of the change.
    pub verdict: Verdict,
}

impl Outcome {
    /// How far the model is off, in a cell of a table: here, or where it was validated.
    #[must_use]
    pub fn off_by(&self, unit: Unit) -> Option<String> {
        let part = |off: f64| format!("{:.1}%", off.abs() * 100.0);
        let least = self.within.map(|least| format!("< {}", amount(least, unit)));
        least.or_else(|| self.error.or(self.typical_error).map(part))
    }
}

/// What an outcome is made of.
pub(super) struct Cell {
    pub recorded: Option<f64>,
    /// By seed.
    pub baseline: Vec<f64>,
    /// By seed.
    pub asked: Vec<f64>,
    /// What a smaller value counts as.
    pub floor: f64,
    /// A smaller difference than this is none.
    pub least: f64,
    /// By which part the figure is off elsewhere.
    pub typical: Option<f64>,
}

fn mean(values: &[f64]) -> f64 {
    total(values.iter().copied()) / values.len().max(1) as f64
}

impl Cell {
    /// The model's error, as a part of what was recorded; 0 where that part is large but the difference none.
    pub(super) fn error(&self) -> Option<f64> {
        self.recorded.map(|recorded| if self.is_within(recorded) { 0.0 } else { self.part(recorded) })
    }

    fn part(&self, recorded: f64) -> f64 {
        mean(&self.baseline).max(self.floor) / recorded.max(self.floor) - 1.0
    }

    /// Whether the simulation as recorded is so near to the recording that a large part of it says nothing.
    fn is_within(&self, recorded: f64) -> bool {
        self.part(recorded).abs() > SMALL && (mean(&self.baseline) - recorded).abs() < self.least
    }
}

pub(super) fn judge(cell: &Cell) -> Outcome {
    let floored = |values: &[f64]| values.iter().map(|value| value.max(cell.floor)).collect::<Vec<_>>();
    let (baseline, asked) = (floored(&cell.baseline), floored(&cell.asked));
    let change = mean(&asked) / mean(&baseline) - 1.0;
    let interval = relative_change(&baseline, &asked, 0.95).map(|Interval { low, high, .. }| [low, high]);
    let scattered = match interval {
        Some([low, high]) => low <= 0.0 && high >= 0.0,
        None => baseline.len() > 1,
    };
    let doubt = match (cell.error(), cell.typical) {
        (Some(own), typical) => Some(own.abs().max(typical.unwrap_or(0.0))),
        (None, typical) => typical,
    };
    let verdict = match doubt {
        _ if change.abs() < LEAST_CHANGE || (mean(&asked) - mean(&baseline)).abs() < cell.least => Verdict::Same,
        _ if scattered => Verdict::Scatters,
        Some(doubt) if change.abs() <= doubt => Verdict::WithinError,
        Some(_) if cell.error().is_some_and(too_far) => Verdict::WithinError,
        Some(_) if change > 0.0 => Verdict::Rises,
        Some(_) => Verdict::Falls,
        None if change > 0.0 => Verdict::RisesUnvalidated,
        None => Verdict::FallsUnvalidated,
    };
    Outcome {
        recorded: cell.recorded,
        baseline: mean(&cell.baseline),
        asked: mean(&cell.asked),
        change,
        interval,
        error: cell.error(),
        within: cell.recorded.is_some_and(|recorded| cell.is_within(recorded)).then_some(cell.least),
        typical_error: cell.typical,
        verdict,
    }
}

/// Whether an error is beyond the factor, up or down.
fn too_far(error: f64) -> bool {
    !(1.0 / MOST_FACTOR..=MOST_FACTOR).contains(&(1.0 + error))
}

/// The sizes of the errors that a model carries, by figure.
pub(super) fn stored(errors: &Errors) -> [Option<f64>; FIGURES.len()] {
    let of = |key: &str| match key {
        "run_us" => Some(0.0),
        "wait_us" => errors.task_wait_median.or(errors.wait),
        "slices" | "migrations" | "wakeups" => errors.slices,
        "latency_p50_us" => errors.latency_p50,
        _ => errors.latency_p99,
    };
    std::array::from_fn(|at| of(FIGURES[at].key).map(|error| error.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(recorded: Option<f64>, baseline: &[f64], asked: &[f64]) -> Cell {
        Cell { recorded, baseline: baseline.to_vec(), asked: asked.to_vec(), floor: 1.0, least: 1.0, typical: None }
    }

    #[test]
    fn a_change_counts_beyond_the_error_and_the_scatter() {
        let verdict = |recorded, baseline: &[f64], asked: &[f64]| judge(&cell(recorded, baseline, asked)).verdict;
        let (before, half) = ([100.0, 101.0, 99.0], [50.0, 51.0, 49.0]);
        assert_eq!(verdict(Some(95.0), &before, &half), Verdict::Falls);
        assert_eq!(verdict(Some(95.0), &half, &before), Verdict::Rises);
        // The model is off by as much as the change.
        assert_eq!(verdict(Some(210.0), &before, &half), Verdict::WithinError);
        assert_eq!(verdict(Some(45.0), &before, &half), Verdict::WithinError);
        // It is off by more than a factor of two.
        assert_eq!(verdict(Some(250.0), &before, &[1.0, 1.0, 1.0]), Verdict::WithinError);
        // The seeds scatter by as much.
        assert_eq!(verdict(Some(95.0), &[50.0, 100.0, 150.0], &[45.0, 90.0, 130.0]), Verdict::Scatters);
        assert_eq!(verdict(None, &before, &half), Verdict::FallsUnvalidated);
        assert_eq!(verdict(Some(100.0), &[100.0], &[100.2]), Verdict::Same);
        // Below the floor everything is the same, and a small difference is no error.
        assert_eq!(verdict(Some(0.1), &[0.2], &[0.9]), Verdict::Same);
        assert_eq!(verdict(Some(1.0), &[1.9], &[3.0]), Verdict::Rises);
    }

    #[test]
    fn a_difference_that_is_none_is_no_error() {
        let near = Cell { least: 10.0, ..cell(Some(3.0), &[11.0], &[200.0]) };
        let found = judge(&near);
        assert_eq!((found.verdict, found.error, found.within), (Verdict::Rises, Some(0.0), Some(10.0)));
        let small = judge(&Cell { least: 10.0, ..cell(Some(100.0), &[104.0], &[200.0]) });
        assert!(small.error.is_some_and(|error| (error - 0.04).abs() < 1e-9) && small.within.is_none());
        let far = judge(&Cell { least: 10.0, ..cell(Some(10.0), &[25.0], &[200.0]) });
        assert_eq!((far.error, far.within), (Some(1.5), None));
    }

    #[test]
    fn what_the_model_is_usually_off_counts_too() {
        let lucky = Cell { typical: Some(0.5), ..cell(Some(100.0), &[100.0], &[70.0]) };
        let found = judge(&lucky);
        assert_eq!((found.verdict, found.error), (Verdict::WithinError, Some(0.0)));
        assert!((found.change + 0.3).abs() < 1e-12);
    }
}
