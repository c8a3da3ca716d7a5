//! The simulation engine.

pub mod program;
