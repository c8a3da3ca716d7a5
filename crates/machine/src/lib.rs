//! Machines: CPUs, SMT, caches, nodes, distances, capacities and costs; presets; files; this host.

mod model;

pub use model::{Costs, Cpu, Machine};
