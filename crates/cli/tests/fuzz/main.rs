//! Fuzzing: mutated inputs for every reader and for the command line, and random loads under every kernel.
//!
//! As a test, each campaign has a fixed seed and takes seconds. `make fuzz` runs each for minutes, with a new seed. A
//! failure names the file with its input and the command that repeats it.

mod arguments;
#[path = "../same_traces/cases.rs"]
mod cases;
mod driver;
mod loads;
mod mutate;
mod readers;
