//! The registry of kernels. A named profile consists of a scheduler, its tick, its features and its tunables, with the
//! names, units and defaults of that release. A new kernel is one file and one line in [`KERNELS`].

mod bfs;
mod build;
mod classes;
mod fair;
mod find;
mod lacks;
mod linux_1_2;
mod linux_2_0;
mod linux_2_2;
mod linux_2_4;
mod linux_2_6_0;
mod linux_2_6_11;
mod linux_2_6_18;
mod linux_2_6_24;
mod linux_2_6_32;
mod linux_3_10;
mod linux_3_18;
mod linux_4_1;
mod linux_5_10;
mod linux_5_15;
mod linux_6_1;
mod linux_6_12;
mod linux_6_18;
mod linux_6_6;
mod mlfq;
mod numa;
mod o1;
mod profile;
mod rsdl;
mod run;
mod sd;
mod stride;

pub use build::{Build, Preemption};
pub use find::{find, not_newer_than};
pub use lacks::Feature;
pub use profile::Kernel;
pub use run::How;

use run::Run;

/// All kernels: Linux releases from the oldest to the newest, then schedulers that were never merged into Linux.
pub static KERNELS: &[&Kernel] = &[
    &linux_1_2::KERNEL,
    &linux_2_0::KERNEL,
    &linux_2_2::KERNEL,
    &linux_2_4::KERNEL,
    &linux_2_6_0::KERNEL,
    &linux_2_6_11::KERNEL,
    &linux_2_6_18::KERNEL,
    &rsdl::KERNEL,
    &sd::KERNEL,
    &linux_2_6_24::KERNEL,
    &linux_2_6_32::KERNEL,
    &linux_3_10::KERNEL,
    &linux_3_18::KERNEL,
    &linux_4_1::KERNEL,
    &linux_5_10::KERNEL,
    &linux_5_15::KERNEL,
    &linux_6_1::KERNEL,
    &linux_6_6::KERNEL,
    &linux_6_12::KERNEL,
    &linux_6_18::KERNEL,
    &bfs::KERNEL,
    &mlfq::KERNEL,
    &stride::KERNEL,
];
