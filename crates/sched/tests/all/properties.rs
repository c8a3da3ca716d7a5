//! Properties that hold for every load: on random loads, with ticks skipped and taken, and against naive references.

mod bounds;
mod engine;
mod every_kernel;
#[cfg(debug_assertions)]
mod invariants;
mod reference;
mod ticks;
