//! The schedulers before O(1), which hand out CPU time in epochs. Every task has a counter of ticks; once all runnable
//! tasks have used theirs up, every task gets a new one. [`counting`] is the scheduler of 1.2; [`goodness`] covers 2.0
//! to 2.4, which add real-time policies, goodness and SMP.

pub mod counters;
pub mod counting;
pub mod goodness;
