//! What separates two CPUs: the smallest scheduling domain that holds both.

use schedlab_base::{CpuId, CpuPlace, Meta};
use schedlab_track::{MAX_CPUS, row};
use serde::Serialize;

/// The domain level at which a task goes from one CPU to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// They are threads of one core.
    Smt,
    /// They share the last-level cache.
    Mc,
    /// They are in one package.
    Package,
    /// They are in one node, or the machine's topology is not known.
    Machine,
    /// They are in different NUMA nodes.
    Numa,
}

impl Level {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smt => "smt",
            Self::Mc => "mc",
            Self::Package => "package",
            Self::Machine => "machine",
            Self::Numa => "numa",
        }
    }
}

/// The machine's shape, as far as the trace tells.
#[derive(Debug)]
pub(crate) struct Shape {
    places: Vec<Option<CpuPlace>>,
    distances: Vec<Vec<u32>>,
    known: bool,
}

impl Shape {
    pub(crate) fn new(meta: &Meta) -> Self {
        let mut places = Vec::new();
        for place in meta.cpus.iter().filter(|place| place.cpu < MAX_CPUS) {
            *row(&mut places, place.cpu) = Some(place.clone());
        }
        // Where nothing is known, all CPUs bear the same numbers.
        let mut cores: Vec<u32> = meta.cpus.iter().map(|place| place.core).collect();
        cores.dedup();
        Self { places, distances: meta.distances.clone(), known: cores.len() > 1 }
    }

    /// The level that separates two CPUs, and the distance of their nodes where they have different ones and it is
    /// known.
    pub(crate) fn between(&self, a: CpuId, b: CpuId) -> (Level, Option<u32>) {
        let place = |cpu: CpuId| self.places.get(cpu as usize).and_then(Option::as_ref).filter(|_| self.known);
        let (Some(a), Some(b)) = (place(a), place(b)) else { return (Level::Machine, None) };
        if a.node != b.node {
            let row = self.distances.get(a.node as usize);
            return (Level::Numa, row.and_then(|row| row.get(b.node as usize)).copied());
        }
        let level = if a.core == b.core {
            Level::Smt
        } else if a.llc == b.llc {
            Level::Mc
        } else if a.package == b.package {
            Level::Package
        } else {
            Level::Machine
        };
        (level, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_common_domain_separates() {
        let place =
            |cpu| CpuPlace { cpu, core: cpu / 2, llc: cpu / 4, package: cpu / 8, node: cpu / 16, capacity: 1024 };
        let distances = vec![vec![10, 21], vec![21, 10]];
        let meta = Meta { cpus: (0..32).map(place).collect(), distances, ..Meta::default() };
        let shape = Shape::new(&meta);
        let names = [1, 2, 4, 8, 16].map(|cpu| shape.between(0, cpu).0.name());
        assert_eq!(names, ["smt", "mc", "package", "machine", "numa"]);
        assert_eq!(shape.between(3, 20), (Level::Numa, Some(21)));
        assert_eq!(shape.between(0, 99), (Level::Machine, None));
    }

    #[test]
    fn numbers_alone_are_no_topology() {
        let cpus = (0..4).map(|cpu| CpuPlace { cpu, ..CpuPlace::default() }).collect();
        let shape = Shape::new(&Meta { cpus, ..Meta::default() });
        assert_eq!(shape.between(0, 1), (Level::Machine, None));
    }
}
