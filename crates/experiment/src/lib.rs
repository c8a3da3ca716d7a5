//! Experiments: files, backends, expectations, verdicts, reports.
//!
//! [`Experiment::open`] reads a file, [`run_experiments`] runs it on a [`backend`] and judges, [`text::table`] and
//! [`report::experiments`] show the outcome. No module depends on one that stands before it in that order.

pub mod backend;
pub mod catalogue;
mod compare;
mod energy;
mod experiment;
mod expr;
mod figures;
pub mod file;
mod idle;
mod judge;
mod lower;
mod measures;
mod outcome;
mod points;
pub mod report;
mod run;
mod scalar;
mod series;
mod side_by_side;
mod tables;
pub mod text;
mod verdict;

pub use backend::Backend;
pub use experiment::Experiment;
pub use outcome::{Judged, Outcome, run_experiments};
pub use verdict::Verdict;
