//! How well simulations as recorded repeat the recording.

use super::Doubts;
use crate::as_recorded::Setup;
use schedlab_measure::validation::{Errors, Validation};
use serde::Serialize;

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
    pub fn new(setup: &Setup, validation: Validation, doubts: Doubts) -> Self {
        let trust = trust(&validation.errors);
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
