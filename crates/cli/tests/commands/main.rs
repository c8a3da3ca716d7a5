//! The verbs through the command line, as a user types them.

mod check;
mod delays;
mod diff;
mod docs;
mod export;
mod gantt;
mod heatmap;
mod import;
mod machines;
mod model;
mod outputs;
mod partial;
mod run;
mod sampled;
mod schema;
mod sim;
mod source_outcomes;
mod stats;
mod streams;
mod support;
mod test;
mod tunables;
mod vm;
mod wasted_cores;
mod whatif;
mod workloads;
