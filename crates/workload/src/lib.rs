//! Workloads: rt-app's JSON with the x- keys, presets, and models made from traces.

mod describe;
pub mod from_trace;
pub mod json;
mod load;
mod model;
mod parse;
mod place;
pub mod plan;
mod policy;
pub mod presets;
mod recorded;
mod write;

pub use describe::time;
pub use load::{load, load_strictly};
pub use model::*;
pub use parse::{parse, parse_strictly, path_of};
pub use policy::Policy;
pub use recorded::{Recorded, SeenCosts};
pub use write::write;

/// The JSON Schema of a workload.
pub const SCHEMA: &str = include_str!("schema.json");
