//! Workloads: rt-app's JSON with the x- keys, presets, and a workload out of a trace.

mod model;

pub use model::*;
