//! Machines: CPUs, SMT, caches, nodes, distances, capacities and costs. They come from presets, files, or this host.
//!
//! [`load()`] takes what a user writes: a preset's name, a shorthand (`4`, `2x6`, `4x15x2`), `host`, or the path of a
//! TOML file. CPUs are numbered as Linux numbers them in a guest, or on a machine whose firmware lists SMT siblings
//! next to each other: first the threads of a core, then the cores of a socket, then the sockets.

mod file;
mod host;
mod load;
mod model;
mod picture;
mod possible;
pub mod presets;
mod recorded;
pub mod tomltext;

pub use file::{CostsFile, MachineFile, PerfDomainFile};
pub use host::host;
pub use load::load;
pub use model::{Caches, Costs, Cpu, Machine, PerfDomain, PerfState, RECLAIM_DISTANCE};
pub use picture::picture;
pub use recorded::recorded;
