//! How well simulations as recorded repeat the recording.

use super::Doubts;
use crate::as_recorded::Setup;
use schedlab_base::duration_text;
use schedlab_chart::number;
use schedlab_measure::compared::{Compared, FIGURES, Unit};
use schedlab_measure::validation::{Errors, Simulated, Validation};
use serde::Serialize;

/// The figures that say how far to trust a model.
const TRUSTED: [&str; 4] = ["wait_us", "slices", "latency_p50_us", "latency_p99_us"];

/// A mean this part off, where single simulations are on both sides of what was recorded, is off by chance.
const BY_CHANCE: f64 = 0.1;

/// A validation, with what is to be said of it.
#[derive(Clone, Debug, Serialize)]
pub struct Validated {
    /// The kernel that was simulated.
    pub kernel: String,
    /// The machine.
    pub machine: String,
    /// The figures.
    #[serde(flatten)]
    pub validation: Validation,
    /// How far to trust the model, in one sentence.
    pub trust: String,
    /// Why its answers would be guesswork, and why the simulation may differ from the recording.
    #[serde(flatten)]
    pub doubts: Doubts,
}

impl Validated {
    /// Adds the sentence.
    #[must_use]
    pub fn new(setup: &Setup, validation: Validation, mut doubts: Doubts) -> Self {
        let trust = trust(&validation.errors);
        doubts.causes.extend(by_chance(&validation));
        Self { kernel: setup.kernel.clone(), machine: setup.machine.name.clone(), validation, trust, doubts }
    }
}

impl Validated {
    /// What the model's file keeps of it.
    #[must_use]
    pub fn kept(&self) -> schedlab_workload::Validation {
        let errors = serde_json::to_value(self.validation.errors).expect("plain data is always JSON");
        let errors = errors.as_object().into_iter().flatten();
        schedlab_workload::Validation {
            kernel: self.kernel.clone(),
            machine: self.machine.clone(),
            trust: self.trust.clone(),
            guesswork: self.doubts.guesswork.clone(),
            errors: errors.filter_map(|(name, error)| Some((name.clone(), error.as_f64()?))).collect(),
        }
    }
}

/// The figures of which the simulations have now less and now more than was recorded.
fn by_chance(validation: &Validation) -> Option<String> {
    let Validation { recorded, simulated: Simulated { mean, least, most }, .. } = validation;
    let [was, is, least, most] = [recorded, mean, least, most].map(Compared::values);
    let floors = recorded.least_differences();
    let chance = |at: usize| {
        let enough = floors[at].max(was[at] * BY_CHANCE);
        let between = (least[at]..=most[at]).contains(&was[at]);
        between && (is[at] - was[at]).abs() > enough
    };
    let named = FIGURES.iter().enumerate().filter(|(at, figure)| TRUSTED.contains(&figure.key) && chance(*at));
    let ranges = named.map(|(at, figure)| {
        let [was, least, most] = [was[at], least[at], most[at]].map(|value| amount(value, figure.unit));
        format!("the {} (recorded: {was}, by seed: {least} to {most})", figure.name)
    });
    let ranges: Vec<_> = ranges.collect();
    (!ranges.is_empty()).then(|| {
        format!(
            "simulations that differ in nothing but the seed scatter around what was recorded: {}",
            ranges.join(", ")
        )
    })
}

/// An amount of a figure, with its unit.
#[must_use]
pub fn amount(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Time => duration_text(value),
        Unit::Count => number(value),
    }
}

/// The errors that a model's file keeps.
#[must_use]
pub fn kept_errors(validation: &schedlab_workload::Validation) -> Errors {
    let known = serde_json::to_value(&validation.errors).expect("plain data is always JSON");
    serde_json::from_value(known).unwrap_or_default()
}

/// How far to trust a model with these errors, in one sentence.
#[must_use]
pub fn trust(errors: &Errors) -> String {
    let signed = |error: f64| format!("{:+.0}%", error * 100.0);
    let mut parts = Vec::new();
    if let Some(wait) = errors.wait {
        parts.push(format!("the wait of all tasks is off by {}", signed(wait)));
    }
    if let (Some(median), Some(p90)) = (errors.task_wait_median, errors.task_wait_p90) {
        parts.push(format!("that of a task by {:.0}% (median; 90%: {:.0}%)", median * 100.0, p90 * 100.0));
    }
    if let Some(slices) = errors.slices {
        parts.push(format!("switches by {}", signed(slices)));
    }
    if let (Some(p50), Some(p99)) = (errors.latency_p50, errors.latency_p99) {
        parts.push(format!("wake-up latency by {} (p50) and {} (p99)", signed(p50), signed(p99)));
    }
    if parts.is_empty() { "no task waited, so there is nothing to compare".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_by_chance_is_said_to_be() {
        let figures = |wait_us, latency_p50_us| Compared { wait_us, latency_p50_us, ..Compared::default() };
        let of = |recorded: Compared, [least, mean, most]: [Compared; 3]| {
            let simulated = Simulated { mean, least, most };
            by_chance(&Validation { seeds: 3, recorded, simulated, tasks: Vec::new(), errors: Errors::default() })
        };
        // A median that is that of one of two places, and a wait that all simulations get wrong.
        let recorded = figures(1_000.0, 5.7);
        let simulated = [figures(2_000.0, 5.0), figures(2_100.0, 800.0), figures(2_200.0, 2_400.0)];
        let expected = "simulations that differ in nothing but the seed scatter around what was recorded: \
                        the p50 of wake-up latency (recorded: 5.700 us, by seed: 5.000 us to 2.400 ms)";
        assert_eq!(of(recorded, simulated).as_deref(), Some(expected));
        let near = [figures(990.0, 5.0), figures(1_010.0, 6.0), figures(1_030.0, 7.0)];
        assert_eq!(of(recorded, near), None);
    }
}
