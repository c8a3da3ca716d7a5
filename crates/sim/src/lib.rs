//! The simulation engine: time, the event queue, CPUs, tasks and their programs, and the contract with a scheduler
//! ([`Scheduler`], [`Core`]).
//!
//! The engine is deterministic by construction: it uses no clock, no hashing and no I/O. The same load, machine,
//! scheduler and seed give the same events, whether ticks that can change nothing are skipped or taken.

mod caches;
mod core;
mod cpuset;
mod effects;
mod engine;
mod inspect;
mod invariants;
mod memory;
mod process;
pub mod program;
mod queue;
mod resources;
mod scheduler;
mod stall;
mod task;

pub use crate::core::{Core, Ticks, TimerId};
pub use cpuset::CpuSet;
pub use engine::{Inheritance, Options, Outcome, Stranded, run};
pub use inspect::{Choice, Decision, Inspect, Inspector, View};
pub use invariants::QueueList;
pub use memory::cost;
pub use scheduler::{Dequeue, Due, Enqueue, Placement, Refusal, Scheduler};
pub use task::{Attributes, State, Task, TaskId, tid};
