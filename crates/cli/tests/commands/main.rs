//! The verbs through the command line, as a user types them.

mod check;
mod delays;
mod docs;
mod gantt;
mod heatmap;
mod import;
mod machines;
mod model;
mod outputs;
mod run;
mod sim;
mod stats;
mod streams;
mod support;
mod tunables;
mod wasted_cores;
mod workloads;
