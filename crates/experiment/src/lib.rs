//! Experiments: files, backends, expectations, verdicts, reports.
//!
//! [`Experiment::open`] reads a file, [`run_experiments`] runs it on a [`backend`] and judges, [`text::table`] and
//! [`report::experiments`] show the outcome. Modules use only modules that come before them in that order;
//! ARCHITECTURE.md draws it.

pub mod backend;
pub mod catalogue;
mod compare;
mod experiment;
mod expr;
mod figures;
mod file;
mod judge;
mod lower;
mod measures;
mod outcome;
mod points;
pub mod report;
mod run;
mod scalar;
mod side_by_side;
mod tables;
pub mod text;
mod verdict;

pub use backend::Backend;
pub use experiment::Experiment;
pub use file::ExperimentFile;
pub use outcome::{Judged, Outcome, run_experiments};
pub use verdict::Verdict;
