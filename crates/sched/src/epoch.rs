//! The schedulers before O(1), which share out the CPU in epochs: every task has a counter of ticks, and when all who
//! can run have used theirs up, everybody gets a new one. [`counting`] is that of 1.2, [`goodness`] those of 2.0 to
//! 2.4, which add real-time policies, goodness and several CPUs.

pub mod counters;
pub mod counting;
pub mod goodness;
