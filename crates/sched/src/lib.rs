//! The schedulers, one module each, and the registry of kernels.

pub mod balance;
pub mod bfs;
pub mod classes;
pub mod epoch;
pub mod fair;
pub mod kernels;
pub mod mlfq;
pub mod o1;
mod paged;
pub mod staircase;
pub mod stride;
pub mod tunables;
