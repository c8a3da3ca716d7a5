//! Experiments: files, backends, expectations, verdicts, reports.
//!
//! [`Experiment::open`] reads a file, [`run_experiments`] runs and judges, [`text::table`] and
//! [`report::experiments`] tell what came out.

pub mod backend;
pub mod catalogue;
mod compare;
mod experiment;
pub mod expr;
pub mod file;
mod judge;
pub mod lower;
pub mod measures;
mod names;
mod outcome;
mod points;
pub mod report;
mod run;
mod scalar;
pub mod side_by_side;
mod tables;
pub mod text;
mod verdict;

pub use backend::Backend;
pub use compare::Case;
pub use experiment::Experiment;
pub use outcome::{Judged, Outcome, Row, run_experiments};
pub use run::{Run, RunResult};
pub use scalar::Scalar;
pub use verdict::Verdict;
