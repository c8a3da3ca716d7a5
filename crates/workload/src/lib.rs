//! Workloads: rt-app's JSON with the x- keys, presets, and models made from traces.

mod describe;
pub mod from_trace;
pub mod json;
mod load;
mod model;
mod parse;
mod place;
pub mod plan;
pub mod presets;
mod write;

pub use describe::time;
pub use load::load;
pub use model::*;
pub use parse::{parse, path_of};
pub use write::write;
