//! This machine: its CPUs, its kernel and what decides how that schedules.

use crate::{facts, procfs, sys};
use schedlab_base::{CpuId, CpuPlace, Meta};
use std::fs;
use std::path::Path;

/// The metadata that a recording of this machine would have: its kernel, its CPUs, and what decides how it schedules.
#[must_use]
pub fn host() -> Meta {
    let (cpus, distances) = places();
    let tasks = procfs::tasks(Path::new("/proc"), &[]);
    let system = Some(facts::of(Path::new("/"), procfs::base_slice(&tasks), sys::tick()));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    Meta { machine: "host".to_owned(), kernel, cpus, distances, system, ..Meta::default() }
}

/// The places of this machine's CPUs (at least their numbers), and the distances between its nodes.
pub(crate) fn places() -> (Vec<CpuPlace>, Vec<Vec<u32>>) {
    match schedlab_machine::host() {
        Ok(machine) => (machine.cpus.into_iter().map(|cpu| cpu.place).collect(), machine.distances),
        Err(_) => {
            let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as CpuId);
            let place = |cpu| CpuPlace { cpu, core: cpu, capacity: 1024, ..CpuPlace::default() };
            ((0..cpus).map(place).collect(), Vec::new())
        }
    }
}
