//! The verbs. Each module has `Args` and `run`.

pub mod check;
pub mod delays;
pub mod diff;
pub mod doctor;
pub mod exec;
pub mod export;
pub mod fidelity;
pub mod gantt;
pub mod heatmap;
pub mod import;
pub mod kernels;
pub mod machines;
pub mod model;
pub mod record;
pub mod run;
pub mod schema;
pub mod sim;
pub mod stats;
pub mod test;
pub mod tunables;
pub mod vm;
pub mod whatif;
pub mod workloads;
