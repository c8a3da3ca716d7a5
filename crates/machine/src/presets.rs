//! The built-in machines.

use crate::file::{MachineFile, PerfDomainFile};
use crate::model::{EPYC_DISTANCE, Machine};

/// A preset.
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    make: fn(&'static str) -> MachineFile,
}

impl Preset {
    /// Builds its machine.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.file().build().expect("a preset is a possible machine")
    }

    /// Its description as a machine file.
    #[must_use]
    pub fn file(&self) -> MachineFile {
        (self.make)(self.name)
    }
}

/// The presets, from small to large.
pub const PRESETS: &[Preset] = &[
    Preset { name: "up", about: "one CPU", make: |name| MachineFile::flat(name, 1, 1, 1) },
    Preset { name: "dual", about: "a dual core", make: |name| MachineFile::flat(name, 1, 2, 1) },
    Preset { name: "quad-smt", about: "a desktop: 4 cores with SMT", make: |name| MachineFile::flat(name, 1, 4, 2) },
    Preset { name: "z800", about: "a workstation of 2010: 2 Xeons of 6 cores", make: z800 },
    Preset { name: "bulldozer-64", about: "the Wasted Cores machine: 8 nodes, some two hops apart", make: bulldozer },
    Preset { name: "dl980", about: "a server of 2010: 8 nodes of 5 cores with SMT, at four distances", make: dl980 },
    Preset { name: "dl580", about: "a server of 2014: 4 Xeons of 15 cores with SMT", make: dl580 },
    Preset {
        name: "epyc-2x64-smt",
        about: "a server of 2021: 2 EPYCs of 64 cores with SMT, 8 cores an L3",
        make: epyc,
    },
    Preset { name: "big-little-4+4", about: "a phone's chip: 4 small cores and 4 big ones", make: big_little },
    Preset { name: "huge-4096", about: "8 chassis of 4 sockets of 64 cores with SMT", make: huge },
];

/// The preset with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// A distance matrix in which all nodes are equally far from each other.
fn equidistant(nodes: usize, remote: u32) -> Vec<Vec<u32>> {
    (0..nodes).map(|i| (0..nodes).map(|j| if i == j { 10 } else { remote }).collect()).collect()
}

/// Xeon X5650: 12 MiB of L3 per socket.
fn z800(name: &'static str) -> MachineFile {
    let file = MachineFile::flat(name, 2, 6, 1);
    MachineFile { distances: equidistant(2, 21), llc_kib: Some(12 << 10), ..file }
}

/// Xeon E7-4890 v2: 37.5 MiB of L3 per socket.
fn dl580(name: &'static str) -> MachineFile {
    let file = MachineFile::flat(name, 4, 15, 2);
    MachineFile { distances: equidistant(4, 21), llc_kib: Some(38_400), ..file }
}

/// Eight Westmere-EX of which five cores are on; two of them are neighbours, and four share a controller. The distances
/// are those that its firmware reports.
fn dl980(name: &'static str) -> MachineFile {
    let distance = |i: usize, j: usize| match i ^ j {
        0 => 10,
        1 => 12,
        2 | 3 => 17,
        _ => 19,
    };
    let distances = (0..8).map(|i| (0..8).map(|j| distance(i, j)).collect()).collect();
    MachineFile { distances, ..MachineFile::flat(name, 8, 5, 2) }
}

/// EPYC 7713: 512 KiB of L2 per core, 32 MiB of L3 for eight cores.
fn epyc(name: &'static str) -> MachineFile {
    let file = MachineFile { distances: equidistant(2, EPYC_DISTANCE), ..MachineFile::flat(name, 2, 64, 2) };
    let file = MachineFile { reclaim_distance: Some(EPYC_DISTANCE), ..file };
    MachineFile { llc_cores: Some(8), l2_kib: Some(512), llc_kib: Some(32 << 10), ..file }
}

/// HiKey 960: four Cortex-A53 and four Cortex-A73. The L2 of each four is their last-level cache. As the kernel does on
/// arm64, such an L2 does not make a cluster, so a core's own cache is its L1. The 2 MiB of L2 are those of the big
/// cores; the small ones have 512 KiB.
///
/// Capacities and power are those that the kernel computes from the board's device tree (hi3660.dtsi): capacities per
/// MHz of 592 and 1024, at most 1844 and 2362 MHz. Power is `dynamic-power-coefficient` (110 and 550) times MHz times
/// the square of the voltage, 0.7 to 1.1 V.
fn big_little(name: &'static str) -> MachineFile {
    let capacities = [[462; 4], [1024; 4]].concat();
    let file = MachineFile { capacities, llc_cores: Some(4), ..MachineFile::flat(name, 1, 8, 1) };
    let domain = |cores: std::ops::Range<u32>, coefficient: u64, mhz: [u32; 5]| {
        let power = |(mhz, mv): (&u32, u64)| (coefficient * mv * mv * u64::from(*mhz) / 1_000_000) as u32;
        let power_uw = mhz.iter().zip([700, 800, 900, 1000, 1100]).map(power).collect();
        PerfDomainFile { cores: cores.collect(), mhz: mhz.to_vec(), power_uw }
    };
    let little = domain(0..4, 110, [533, 999, 1402, 1709, 1844]);
    let big = domain(4..8, 550, [903, 1421, 1805, 2112, 2362]);
    MachineFile { l2_kib: Some(64), llc_kib: Some(2048), performance_domains: vec![little, big], ..file }
}

/// Four sockets per chassis, linked in a ring, and a fabric between the chassis. No such machine was sold; the
/// distances are typical of the firmware of such machines.
fn huge(name: &'static str) -> MachineFile {
    const CHASSIS: [u32; 4] = [10, 16, 19, 16];
    let distance = |i: usize, j: usize| if i / 4 == j / 4 { CHASSIS[(i + 4 - j) % 4] } else { 50 };
    let distances = (0..32).map(|i| (0..32).map(|j| distance(i, j)).collect()).collect();
    MachineFile { distances, l2_kib: Some(512), llc_kib: Some(256 << 10), ..MachineFile::flat(name, 32, 64, 2) }
}

/// Each package has two dies and each die is a node. The preset has eight sockets, and the links between nodes are
/// those in the figure of "A Decade of Wasted Cores". Two cores form a module and share an L2 of 2 MiB. Of the 8 MiB of
/// L3 on a die, the directory of remote lines takes 2.
fn bulldozer(name: &'static str) -> MachineFile {
    const NEIGHBOURS: [&[usize]; 8] = [
        &[1, 2, 4, 6],
        &[0, 3, 5, 7],
        &[0, 3, 4, 6],
        &[1, 2, 4, 5, 7],
        &[0, 2, 3, 5, 6],
        &[1, 3, 4, 7],
        &[0, 2, 4, 7],
        &[1, 3, 5, 6],
    ];
    let distance = |i: usize, j: usize| match (i == j, NEIGHBOURS[i].contains(&j)) {
        (true, _) => 10,
        (false, true) => 16,
        (false, false) => 22,
    };
    MachineFile {
        distances: (0..8).map(|i| (0..8).map(|j| distance(i, j)).collect()).collect(),
        cluster_cores: Some(2),
        l2_kib: Some(2048),
        llc_kib: Some(6144),
        ..MachineFile::flat(name, 8, 8, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_builds_and_has_the_size_it_says() {
        let sizes: Vec<_> = PRESETS.iter().map(|p| (p.name, p.machine().cpus.len(), p.machine().nodes())).collect();
        assert_eq!(
            sizes,
            [
                ("up", 1, 1),
                ("dual", 2, 1),
                ("quad-smt", 8, 1),
                ("z800", 12, 2),
                ("bulldozer-64", 64, 8),
                ("dl980", 80, 8),
                ("dl580", 120, 4),
                ("epyc-2x64-smt", 256, 2),
                ("big-little-4+4", 8, 1),
                ("huge-4096", 4096, 32)
            ]
        );
    }

    #[test]
    fn a_preset_survives_a_round_trip_through_toml() {
        for preset in PRESETS {
            let machine = preset.machine();
            let text = MachineFile::of(&machine).expect("regular").to_toml();
            let read = MachineFile::parse(&crate::tomltext::TomlText::new("x.toml", text)).unwrap();
            assert_eq!(read, machine, "{}", preset.name);
        }
    }

    #[test]
    fn the_nodes_of_the_wasted_cores_machine_are_linked_as_in_the_paper() {
        let distances = find("bulldozer-64").unwrap().machine().distances;
        let near = |node: usize| (0..8).filter(|n| distances[node][*n] < 22).collect::<Vec<_>>();
        assert_eq!((near(0), near(3)), (vec![0, 1, 2, 4, 6], vec![1, 2, 3, 4, 5, 7]));
    }

    #[test]
    fn the_phone_chips_power_is_that_of_its_device_tree() {
        let energy = find("big-little-4+4").unwrap().machine().energy;
        let power = |domain: usize| energy[domain].states.iter().map(|state| state.power_uw).collect::<Vec<_>>();
        assert_eq!(power(0), [28_728, 70_329, 124_918, 187_990, 245_436]);
        assert_eq!(power(1), [243_358, 500_192, 804_127, 1_161_600, 1_571_911]);
    }

    #[test]
    fn epyc_has_sixteen_caches() {
        assert_eq!(find("epyc-2x64-smt").unwrap().machine().llcs(), 16);
    }
}
