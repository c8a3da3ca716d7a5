//! Work conservation by looking now and then: what can be afforded on a live machine.
//!
//! # Idea
//! Following every event of a busy machine costs too much to be left on for ever. So the checker of *A Decade of Wasted
//! Cores* (section 4.1) looks once a second whether some CPU is idle while another has two or more runnable tasks of
//! which one could move there. Most such states are gone in a moment, as they should be. So it watches, and reports
//! what is still there after 100 ms.
//!
//! # Rule
//! A look finds the CPUs that are idle while some task waits on another, busy CPU and may run on the idle one. If there
//! are any, the watch begins: [`SAMPLES`] more looks, at uneven distances, so that nothing periodic is met in the same
//! phase each time. A CPU that is not idle at more than two of them is dropped, because on a live machine hardly a CPU
//! is left alone for 100 ms. All are dropped if nobody waits at one of them. A CPU that is idle at the end, while a
//! task waits that may run there, is a violation.
//!
//! # What it misses
//! A violation that lasts for `L` is found if a look falls into its first `L - M`, where `M` is the watch: never if it
//! is shorter than `M`, with the probability `(L - M) / S` if looks are `S` apart, and surely from `S + M` on. What
//! happens between two looks is not seen: a CPU that runs something for a moment does not end a violation, as it does
//! in the exact check ([`crate::Check`]).
//!
//! # State
//! The same [`Sampler`] is fed by a live machine and, through [`SampledCheck`], by a trace.

mod machine;
mod sampler;
mod trace;

pub use machine::{CpuNow, Looked, WaitingNow};
pub use sampler::{Finding, SAMPLES, Sampler, Timing, WaitingThere, Work};
pub use trace::{SampledCheck, SampledReport};
