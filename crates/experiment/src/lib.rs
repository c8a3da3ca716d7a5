//! Experiments: files, backends, expectations, verdicts, reports.
//!
//! [`Experiment::open`] reads a file, [`run_experiments`] runs it on a [`backend`] and judges, [`text::table`] and
//! [`report::experiments`] show the outcome. Modules use only modules that come before them in that order;
//! ARCHITECTURE.md draws it.

pub mod as_recorded;
pub mod backend;
mod baseline;
pub mod battery;
pub mod calibrate;
pub mod catalogue;
mod compare;
pub mod diff;
pub mod documents;
mod experiment;
mod expr;
pub mod fidelity;
mod figures;
mod file;
pub mod fitted;
pub mod inspected;
mod judge;
pub mod junit;
mod look;
mod lower;
pub mod measured;
mod measures;
mod outcome;
mod parallel;
mod part;
mod points;
pub mod prediction;
pub mod report;
mod roles;
mod run;
mod scalar;
mod scatter;
pub mod schema;
mod side_by_side;
mod tables;
pub mod text;
mod verdict;
pub mod whatif;

pub use backend::Backend;
pub use baseline::{Baseline, Compared};
pub use experiment::{Experiment, Selection};
pub use file::ExperimentFile;
pub use look::{Look, Subject, look, look_among};
pub use outcome::{Judged, Outcome, run_experiments, run_keeping, run_parts};
pub use part::{Part, parts};
pub use verdict::Verdict;
