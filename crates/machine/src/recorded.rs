//! The machine that a trace was recorded on, as far as its metadata describe it.

use crate::file::CostsFile;
use crate::host::{LOCAL, REMOTE};
use crate::model::{EPYC_DISTANCE, RECLAIM_DISTANCE};
use crate::{Caches, Cpu, Machine};
use schedlab_base::{CpuPlace, Error, Meta, Result};
use std::collections::BTreeSet;

/// The machine of a trace: its CPUs and distances, with default caches and costs. CPUs that were offline are left out,
/// and the others, nodes included, are numbered without gaps.
///
/// # Errors
/// When the trace does not list its CPUs, or they are impossible.
pub fn recorded(meta: &Meta) -> Result<Machine> {
    let mut places = meta.cpus.clone();
    if places.is_empty() {
        return Err(Error::input("the trace does not list the machine's CPUs").mend("name a machine with --machine"));
    }
    places.sort_by_key(|place| place.cpu);
    close_gaps(&mut places, |p| &mut p.core);
    close_gaps(&mut places, |p| &mut p.llc);
    close_gaps(&mut places, |p| &mut p.package);
    let nodes: Vec<u32> = places.iter().map(|p| p.node).collect::<BTreeSet<_>>().into_iter().collect();
    close_gaps(&mut places, |p| &mut p.node);
    for (number, place) in (0..).zip(&mut places) {
        place.cpu = number;
        place.capacity = if place.capacity == 0 { 1024 } else { place.capacity };
    }
    let distance = |from: u32, to: u32| {
        let known = meta.distances.get(from as usize).and_then(|row| row.get(to as usize)).copied();
        known.unwrap_or(if from == to { LOCAL } else { REMOTE })
    };
    let machine = Machine {
        name: if meta.machine.is_empty() { "recorded".to_owned() } else { meta.machine.clone() },
        distances: nodes.iter().map(|from| nodes.iter().map(|to| distance(*from, *to)).collect()).collect(),
        cpus: places.into_iter().map(|place| Cpu { cluster: place.core, place }).collect(),
        nodes_per_package: None,
        // The vendor is not in a recording, but the firmware of AMD EPYC reports this distance between two sockets.
        reclaim_distance: if meta.distances.iter().flatten().max() == Some(&EPYC_DISTANCE) {
            EPYC_DISTANCE
        } else {
            RECLAIM_DISTANCE
        },
        caches: Caches::default(),
        costs: CostsFile::default().costs(),
        energy: Vec::new(),
        isolated: Vec::new(),
        partitions: Vec::new(),
    };
    machine.check()?;
    Ok(machine)
}

/// Numbers what the CPUs have in common from 0 on.
fn close_gaps(places: &mut [CpuPlace], number: impl Fn(&mut CpuPlace) -> &mut u32) {
    let used: Vec<u32> = places.iter_mut().map(|p| *number(p)).collect::<BTreeSet<_>>().into_iter().collect();
    for place in places {
        let number = number(place);
        *number = used.binary_search(number).expect("it was collected from them") as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_comes_back_from_the_metadata_of_its_traces() {
        for name in ["up", "dual", "quad-smt", "z800", "2x6", "big-little-4+4"] {
            let machine = crate::load(name).unwrap();
            let cpus = machine.cpus.iter().map(|cpu| cpu.place.clone()).collect();
            let meta = Meta { cpus, distances: machine.distances.clone(), ..Meta::default() };
            let back = recorded(&meta).unwrap();
            assert_eq!((&back.cpus, &back.distances), (&machine.cpus, &machine.distances), "{name}");
        }
    }

    #[test]
    fn offline_cpus_leave_no_gaps() {
        let place = |cpu, node| CpuPlace { cpu, core: cpu, llc: node, package: node, node, capacity: 0 };
        let meta = Meta { cpus: vec![place(7, 3), place(2, 1)], ..Meta::default() };
        let machine = recorded(&meta).unwrap();
        let shape: Vec<_> = machine.cpus.iter().map(|c| (c.place.cpu, c.place.core, c.place.node)).collect();
        assert_eq!((shape, machine.distances), (vec![(0, 0, 0), (1, 1, 1)], vec![vec![10, 20], vec![20, 10]]));
        assert!(recorded(&Meta::default()).unwrap_err().to_string().contains("--machine"));
    }
}
