//! What a measure of the statistics is.
//!
//! A measure is kept for each task and for each CPU, and takes what happened to it. Measures add up: to those of a
//! node, of a group, of the whole. What they add up to is given as figures, a struct whose fields are the keys in the
//! JSON. Such a measure is a file of its own and a line in the registry, `measures.rs`; its figures then stand in
//! every row of the report.

use crate::noted::Noted;
use schedlab_base::{Nanos, TaskState};

/// What is kept of a task or of a CPU. What a measure does not look at costs nothing.
pub(crate) trait Measure: Default {
    /// How the report has it.
    type Figures;
    /// The task ran, or the CPU ran a task.
    #[inline]
    fn ran(&mut self, _time: Nanos) {}
    /// The task waited, or one waited for the CPU. `finished`: the wait ended before the trace did.
    #[inline]
    fn waited(&mut self, _time: Nanos, _finished: bool) {}
    /// The task, which had been waiting, got a CPU; or such a task got this CPU.
    #[inline]
    fn served(&mut self, _delay: &Noted) {}
    /// The task got a CPU, or the CPU a task.
    #[inline]
    fn started(&mut self) {}
    /// The task left its CPU in this state.
    #[inline]
    fn stopped(&mut self, _state: TaskState) {}
    /// The task was moved, or one was moved to the CPU.
    #[inline]
    fn moved(&mut self) {}

    /// Adds another's.
    fn add(&mut self, other: &Self);
    /// For the report.
    fn figures(&self) -> Self::Figures;
}

/// Nanoseconds in microseconds, the unit of all reported times.
pub(crate) fn us(nanos: Nanos) -> f64 {
    nanos as f64 / 1e3
}
