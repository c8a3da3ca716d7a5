//! What holds for every load: random ones, with ticks skipped and taken, against naive references.

mod bounds;
mod engine;
mod every_kernel;
#[cfg(debug_assertions)]
mod invariants;
mod reference;
mod ticks;
