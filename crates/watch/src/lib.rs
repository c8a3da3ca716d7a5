//! Watches a live kernel for CPUs that are idle while tasks wait that could run there.
//!
//! The checker itself is in `schedlab-measure` ([`schedlab_measure::Sampler`]). This crate feeds it the state of the
//! running kernel, by eBPF ([`Ebpf`]) or by /proc ([`Proc`]), and adds to a violation a profile of what went on
//! ([`Profile`]).

mod ebpf;
mod live;
mod metrics;
mod proc;
mod profile;
mod sys;

pub use ebpf::Ebpf;
pub use live::{Alarm, By, Live, Options, Summary};
pub use proc::Proc;
pub use profile::{CpuProfile, Profile, Ran, Woken};
