//! What holds for every load: random ones, with ticks skipped and taken, against naive references.

mod engine;
mod every_kernel;
mod reference;
mod ticks;
