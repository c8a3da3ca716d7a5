//! Whether a machine that was read from elsewhere than a machine file is possible.

use crate::file::CostsFile;
use crate::model::{Cpu, MAX_CPUS, Machine};
use schedlab_base::{Error, Result};
use std::collections::BTreeMap;

/// The largest cache that a machine file may have, in KiB.
const MOST_KIB: u32 = 16_777_216;

/// A number of a CPU's place.
type Number = fn(&Cpu) -> u32;

impl Machine {
    /// Checks that this machine is possible: its numbers have no gaps, a core is in one place, and costs and sizes are
    /// within their bounds. A machine with an energy model is refused, because only a file can give it one.
    ///
    /// # Errors
    /// When something is not as it can be; the error says what.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::input(format!("the machine \"{}\" is not possible: {what}", self.name)));
        if self.cpus.is_empty() || self.cpus.len() > MAX_CPUS as usize {
            return wrong("it has no CPU, or more than 8192");
        }
        if self.cpus.iter().enumerate().any(|(number, cpu)| cpu.place.cpu as usize != number) {
            return wrong("its CPUs are not in order");
        }
        let numbers: [(&str, Number); 4] = [
            ("cores", |c| c.place.core),
            ("last-level caches", |c| c.place.llc),
            ("packages", |c| c.place.package),
            ("clusters", |c| c.cluster),
        ];
        for (what, number) in numbers {
            let mut all: Vec<u32> = self.cpus.iter().map(number).collect();
            all.sort_unstable();
            all.dedup();
            if all.iter().enumerate().any(|(place, number)| place != *number as usize) {
                return wrong(&format!("the numbers of its {what} have gaps"));
            }
        }
        let mut cores = BTreeMap::new();
        for cpu in &self.cpus {
            let place = (cpu.cluster, cpu.place.llc, cpu.place.package, cpu.place.node);
            if *cores.entry(cpu.place.core).or_insert(place) != place {
                return wrong("a core is in two places");
            }
            if cpu.place.node as usize >= self.nodes() || !(1..=1024).contains(&cpu.place.capacity) {
                return wrong("a CPU has no such node, or a capacity that is not 1 to 1024");
            }
        }
        let row = |(node, row): (usize, &Vec<u32>)| {
            row.len() == self.nodes()
                && row.iter().enumerate().all(|(other, d)| {
                    (10..=254).contains(d)
                        && (*d == 10) == (node == other)
                        && self.distances[other].get(node) == Some(d)
                })
        };
        if !self.distances.iter().enumerate().all(row) {
            return wrong("its distances are not those of nodes");
        }
        let sizes = [self.caches.l2_kib, self.caches.llc_kib].iter().all(|kib| (1..=MOST_KIB).contains(kib));
        if !sizes || CostsFile::of(&self.costs).too_large().is_some() {
            return wrong("a cache or a cost is too large");
        }
        if !self.energy.is_empty() || self.nodes_per_package == Some(0) {
            return wrong("it has an energy model, or packages without nodes");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::presets::PRESETS;

    #[test]
    fn every_preset_without_energy_is_possible_and_changed_ones_are_not() {
        for preset in PRESETS {
            let machine = preset.machine();
            assert_eq!(machine.check().is_ok(), machine.energy.is_empty(), "{}", preset.name);
        }
        let machine = crate::load("2x2x2").unwrap();
        machine.check().unwrap();
        let mut apart = machine.clone();
        for (number, cpu) in apart.cpus.iter_mut().enumerate() {
            cpu.place.core = number as u32 % 4;
            cpu.cluster = cpu.place.core;
            cpu.place.package = cpu.place.core / 2;
            cpu.place.llc = cpu.place.package;
        }
        apart.check().unwrap();
        for change in [
            (|m| m.cpus.clear()) as fn(&mut crate::Machine),
            |m| m.cpus[1].place.cpu = 7,
            |m| m.cpus[7].place.core = 9,
            |m| m.cpus[0].place.node = 1,
            |m| m.cpus[1].place.llc = 1,
            |m| m.cpus[1].place.capacity = 0,
            |m| m.distances[0][0] = 11,
            |m| m.distances.clear(),
            |m| m.costs.smt_loss_percent = 51,
            |m| m.caches.l2_kib = 0,
        ] {
            let mut changed = machine.clone();
            change(&mut changed);
            assert!(changed.check().is_err(), "{changed:?}");
        }
    }
}
