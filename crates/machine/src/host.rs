//! The machine that this program runs on, read from /sys.

use crate::model::{EPYC_DISTANCE, MAX_CPUS, RECLAIM_DISTANCE};
use crate::{Caches, Costs, Cpu, Machine};
use schedlab_base::{CpuId, CpuPlace, Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The distance of a node to itself, and the distance assumed to another node if the firmware does not report it.
pub(crate) const LOCAL: u32 = 10;
pub(crate) const REMOTE: u32 = 20;
/// The capacity of the machine's fastest CPU.
const CAPACITY: u32 = 1024;
/// The caches of a CPU have numbers below this.
const CACHES: u32 = 16;

/// This host with its online CPUs, as /sys shows them.
///
/// # Errors
/// When /sys does not list the online CPUs.
pub fn host() -> Result<Machine> {
    host_at(Path::new("/"))
}

/// The machine whose /sys is under `root`. Missing files mean the plainest machine: one package, one node, full
/// capacity, and for each CPU its own core, last-level cache and cluster.
///
/// # Errors
/// When the list of online CPUs is missing, unreadable or longer than a machine can be.
fn host_at(root: &Path) -> Result<Machine> {
    let sys = Sys { root: root.join("sys/devices/system") };
    let online = sys.root.join("cpu/online");
    let text = fs::read_to_string(&online)
        .map_err(|e| Error::system("cannot find out which CPUs there are", &e).file(&online))?;
    let ids = cpu_list(&text).filter(|cpus| !cpus.is_empty()).ok_or_else(|| {
        let what = format!("\"{}\" is no list of at most {MAX_CPUS} CPUs", text.trim());
        Error::input(what).mend("a list looks like 0-3,8").file(&online)
    })?;
    let (nodes, distances) = sys.nodes(&ids);
    let mut cores = Numbering::default();
    let mut clusters = Numbering::default();
    let mut caches = Numbering::default();
    let mut packages = Numbering::default();
    let cpus: Vec<Cpu> = ids
        .iter()
        .map(|&cpu| {
            let siblings = sys.siblings(cpu, &["core_cpus_list", "thread_siblings_list"]);
            let package = sys.number(cpu, "topology/physical_package_id").unwrap_or(0);
            let cluster = sys.siblings(cpu, &["cluster_cpus_list"]);
            let place = CpuPlace {
                cpu,
                core: cores.of(leader(cpu, siblings.as_deref(), &ids)),
                llc: caches.of(leader(cpu, sys.last_cache(cpu).as_deref(), &ids)),
                package: packages.of(package),
                node: nodes.get(&cpu).copied().unwrap_or(0),
                capacity: sys.number(cpu, "cpu_capacity").map_or(CAPACITY, |c| c.clamp(1, i64::from(CAPACITY)) as u32),
            };
            let cluster = clusters.of(leader(cpu, cluster.as_deref().or(siblings.as_deref()), &ids));
            Cpu { place, cluster }
        })
        .collect();
    Ok(Machine {
        name: "host".to_owned(),
        nodes_per_package: (distances.len() > 1).then(|| nodes_in_a_package(&cpus)),
        reclaim_distance: reclaim_distance(&root.join("proc/cpuinfo")),
        cpus,
        distances,
        caches: sys.caches(ids[0]),
        costs: Costs::measured(),
        energy: Vec::new(),
        isolated: Vec::new(),
        partitions: Vec::new(),
    })
}

/// Beyond which distance the kernel does not place tasks: it is 32 on AMD's and Hygon's Zen (`init_amd_zn`).
fn reclaim_distance(cpuinfo: &Path) -> u32 {
    let text = fs::read_to_string(cpuinfo).unwrap_or_default();
    let first = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
    };
    let zen = match first("vendor_id") {
        Some("AuthenticAMD") => first("cpu family").and_then(|family| family.parse().ok()) >= Some(0x17),
        vendor => vendor == Some("HygonGenuine"),
    };
    if zen { EPYC_DISTANCE } else { RECLAIM_DISTANCE }
}

/// The largest number of nodes in one package.
fn nodes_in_a_package(cpus: &[Cpu]) -> u32 {
    let mut nodes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for cpu in cpus {
        nodes.entry(cpu.place.package).or_default().insert(cpu.place.node);
    }
    nodes.values().map(|inside| inside.len() as u32).max().unwrap_or(1)
}

/// The device tree in /sys.
struct Sys {
    root: PathBuf,
}

impl Sys {
    fn read(&self, cpu: CpuId, file: &str) -> Option<String> {
        fs::read_to_string(self.root.join(format!("cpu/cpu{cpu}")).join(file)).ok()
    }

    fn number(&self, cpu: CpuId, file: &str) -> Option<i64> {
        self.read(cpu, file)?.trim().parse().ok()
    }

    /// The CPUs in the first of these topology files that exists.
    fn siblings(&self, cpu: CpuId, files: &[&str]) -> Option<Vec<CpuId>> {
        files.iter().find_map(|file| cpu_list(&self.read(cpu, &format!("topology/{file}"))?))
    }

    /// The sizes of a CPU's data caches: the last-level one, and the largest below it.
    fn caches(&self, cpu: CpuId) -> Caches {
        let of = |file: &str, index: u32| self.read(cpu, &format!("cache/index{index}/{file}"));
        let mut sizes: Vec<(u32, u32)> = (0..CACHES)
            .filter(|&index| of("type", index).is_some_and(|kind| kind.trim() != "Instruction"))
            .filter_map(|index| {
                let size = of("size", index)?;
                let kib = size.trim().strip_suffix('K')?.parse().ok().filter(|kib| (1..=16 << 20).contains(kib))?;
                Some((of("level", index)?.trim().parse().ok()?, kib))
            })
            .collect();
        sizes.sort_unstable();
        let default = Caches::default();
        let llc_kib = sizes.pop().map_or(default.llc_kib, |(_, kib)| kib);
        Caches { l2_kib: sizes.pop().map_or(default.l2_kib.min(llc_kib), |(_, kib)| kib), llc_kib }
    }

    /// The CPUs that share this CPU's highest-level data cache.
    fn last_cache(&self, cpu: CpuId) -> Option<Vec<CpuId>> {
        let of = |file: &str, index: u32| self.read(cpu, &format!("cache/index{index}/{file}"));
        (0..CACHES)
            .filter(|&index| of("type", index).is_some_and(|kind| kind.trim() != "Instruction"))
            .filter_map(|index| {
                let level: u32 = of("level", index)?.trim().parse().ok()?;
                Some((level, cpu_list(&of("shared_cpu_list", index)?)?))
            })
            .max_by_key(|(level, _)| *level)
            .map(|(_, cpus)| cpus)
    }

    /// Each CPU's node, counted from 0 over the nodes with online CPUs, and the distances between these nodes.
    fn nodes(&self, online: &[CpuId]) -> (BTreeMap<CpuId, u32>, Vec<Vec<u32>>) {
        let dir = self.root.join("node");
        let read = |node: u32, file: &str| fs::read_to_string(dir.join(format!("node{node}/{file}"))).ok();
        let listed = fs::read_to_string(dir.join("online")).ok().and_then(|text| cpu_list(&text)).unwrap_or_default();
        let mut nodes = BTreeMap::new();
        let mut kept: Vec<(usize, u32)> = Vec::new();
        for (position, &node) in listed.iter().enumerate() {
            let cpus = read(node, "cpulist").and_then(|text| cpu_list(&text)).unwrap_or_default();
            let here: Vec<CpuId> =
                cpus.into_iter().filter(|cpu| online.binary_search(cpu).is_ok() && !nodes.contains_key(cpu)).collect();
            if !here.is_empty() {
                nodes.extend(here.into_iter().map(|cpu| (cpu, kept.len() as u32)));
                kept.push((position, node));
            }
        }
        let plain = |from: usize, to: usize| if from == to { LOCAL } else { REMOTE };
        let row = |from: usize, node: u32| -> Vec<u32> {
            let reported: Vec<Option<u32>> = read(node, "distance")
                .map(|text| text.split_whitespace().map(|d| d.parse().ok()).collect())
                .unwrap_or_default();
            let distance = |(to, (position, _)): (usize, &(usize, u32))| {
                reported.get(*position).copied().flatten().filter(|d| *d >= LOCAL).unwrap_or(plain(from, to))
            };
            kept.iter().enumerate().map(distance).collect()
        };
        let mut distances: Vec<Vec<u32>> = kept.iter().enumerate().map(|(from, (_, node))| row(from, *node)).collect();
        if distances.is_empty() {
            distances.push(vec![LOCAL]);
        }
        (nodes, distances)
    }
}

/// The lowest online CPU of a group, which represents it. A CPU that is missing from its own group represents itself.
fn leader(cpu: CpuId, group: Option<&[CpuId]>, online: &[CpuId]) -> i64 {
    let group = group.filter(|cpus| cpus.contains(&cpu)).unwrap_or_default();
    i64::from(group.iter().copied().filter(|c| online.binary_search(c).is_ok()).min().unwrap_or(cpu))
}

/// Numbers things in the order in which they first appear.
#[derive(Default)]
struct Numbering(BTreeMap<i64, u32>);

impl Numbering {
    fn of(&mut self, thing: i64) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(thing).or_insert(next)
    }
}

/// Parses the kernel's lists such as `0-3,8` into sorted, distinct numbers. `None` for any other text, or for numbers
/// beyond what a machine can have.
fn cpu_list(text: &str) -> Option<Vec<CpuId>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (CpuId, CpuId) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MAX_CPUS || cpus.len() > MAX_CPUS as usize {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Creates a tree of files under a temporary root.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join("sys/devices/system").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn a_machine_with_smt_two_packages_and_a_cpu_offline() {
        // Intel's numbering: CPUs n and n+4 are siblings. CPU 7 is offline.
        let mut files = vec![
            ("cpu/online".to_owned(), "0-6\n".to_owned()),
            ("node/online".to_owned(), "0-1\n".to_owned()),
            ("node/node0/cpulist".to_owned(), "0-1,4-5\n".to_owned()),
            ("node/node1/cpulist".to_owned(), "2-3,6-7\n".to_owned()),
            ("node/node0/distance".to_owned(), "10 21\n".to_owned()),
            ("node/node1/distance".to_owned(), "21 10\n".to_owned()),
        ];
        for cpu in 0..7 {
            let (core, package) = (cpu % 4, cpu % 4 / 2);
            let llc = if package == 0 { "0-1,4-5" } else { "2-3,6-7" };
            let pair = format!("{core},{}", core + 4);
            for (file, text) in [
                ("topology/core_cpus_list", pair.as_str()),
                ("topology/physical_package_id", &package.to_string()),
                ("cache/index0/level", "1"),
                ("cache/index0/type", "Data"),
                ("cache/index0/shared_cpu_list", &pair),
                ("cache/index3/level", "3"),
                ("cache/index0/size", "32K"),
                ("cache/index3/size", "12288K"),
                ("cache/index3/type", "Unified"),
                ("cache/index3/shared_cpu_list", llc),
            ] {
                files.push((format!("cpu/cpu{cpu}/{file}"), format!("{text}\n")));
            }
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let machine = host_at(tree(&files).path()).unwrap();
        let of = |cpu: usize| {
            let p = &machine.cpus[cpu].place;
            (p.core, p.llc, p.package, p.node)
        };
        assert_eq!(machine.cpus.len(), 7);
        assert_eq!((of(0), of(4)), ((0, 0, 0, 0), (0, 0, 0, 0)));
        assert_eq!((of(3), of(6)), ((3, 1, 1, 1), (2, 1, 1, 1)));
        assert_eq!(machine.distances, vec![vec![10, 21], vec![21, 10]]);
        assert_eq!((machine.nodes_per_package, machine.reclaim_distance), (Some(1), 30));
        assert_eq!(machine.caches, Caches { l2_kib: 32, llc_kib: 12_288 });
        assert_eq!(machine.cpus[4].cluster, machine.cpus[0].cluster, "no cluster file: the core");
    }

    #[test]
    fn big_and_little_cpus_have_their_capacities_and_clusters() {
        let dir = tree(&[
            ("cpu/online", "0-1"),
            ("cpu/cpu0/cpu_capacity", "430"),
            ("cpu/cpu1/cpu_capacity", "99999999999"),
            ("cpu/cpu0/topology/cluster_cpus_list", "0-1"),
            ("cpu/cpu1/topology/cluster_cpus_list", "0-1"),
        ]);
        let machine = host_at(dir.path()).unwrap();
        assert_eq!(machine.cpus.iter().map(|c| c.place.capacity).collect::<Vec<_>>(), [430, 1024]);
        assert_eq!(machine.cpus[0].cluster, machine.cpus[1].cluster);
        assert_ne!(machine.cpus[0].place.core, machine.cpus[1].place.core);
    }

    #[test]
    fn a_node_without_cpus_is_left_out() {
        let dir = tree(&[
            ("cpu/online", "0-1"),
            ("node/online", "0,2,5"),
            ("node/node0/cpulist", "0"),
            ("node/node2/cpulist", ""),
            ("node/node5/cpulist", "1"),
            ("node/node0/distance", "10 17 28"),
            ("node/node5/distance", "28 rubbish 10"),
        ]);
        let machine = host_at(dir.path()).unwrap();
        assert_eq!(machine.cpus[1].place.node, 1);
        assert_eq!(machine.distances, vec![vec![10, 28], vec![28, 10]]);
    }

    #[test]
    fn lists_are_read_or_refused() {
        assert_eq!(cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
        for bad in ["3-1", "0-4294967295", "x", "0-", "1--2", "-1", "99999999999999999999"] {
            assert_eq!(cpu_list(bad), None, "{bad}");
        }
        for bad in [None, Some(""), Some("0-99999"), Some("zero")] {
            let dir = tree(&bad.map(|text| ("cpu/online", text)).into_iter().collect::<Vec<_>>());
            assert!(host_at(dir.path()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn this_host_is_a_machine() {
        let machine = host().unwrap();
        assert!(!machine.cpus.is_empty());
        let nodes = machine.distances.len();
        assert!(machine.distances.iter().all(|row| row.len() == nodes));
        assert!(machine.cpus.iter().all(|cpu| (cpu.place.node as usize) < nodes));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_tree_panics(texts in proptest::collection::vec("[0-9a-zU, -]{0,12}", 12)) {
            let paths = [
                "cpu/cpu0/topology/core_cpus_list", "cpu/cpu1/topology/core_cpus_list", "cpu/cpu0/cpu_capacity",
                "cpu/cpu0/topology/physical_package_id", "cpu/cpu0/cache/index0/level", "cpu/cpu0/cache/index0/type",
                "cpu/cpu0/cache/index0/shared_cpu_list", "node/online", "node/node0/cpulist", "node/node1/cpulist",
                "node/node0/distance", "node/node1/distance",
            ];
            let mut files: Vec<(&str, &str)> = paths.iter().copied().zip(texts.iter().map(String::as_str)).collect();
            files.push(("cpu/online", "0-3"));
            let machine = host_at(tree(&files).path()).unwrap();
            let nodes = machine.distances.len();
            prop_assert!(nodes >= 1 && machine.distances.iter().all(|row| row.len() == nodes));
            prop_assert!(machine.cpus.iter().all(|cpu| (cpu.place.node as usize) < nodes));
        }
    }

    #[test]
    fn a_zen_places_tasks_as_far_as_32() {
        let of = |vendor: &str, family: u32| {
            let dir = tempfile::tempdir().unwrap();
            let cpuinfo = dir.path().join("cpuinfo");
            let text = format!("processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 1\n");
            std::fs::write(&cpuinfo, text).unwrap();
            reclaim_distance(&cpuinfo)
        };
        assert_eq!((of("AuthenticAMD", 25), of("AuthenticAMD", 23), of("AuthenticAMD", 21)), (32, 32, 30));
        assert_eq!((of("HygonGenuine", 24), of("GenuineIntel", 6)), (32, 30));
        assert_eq!(reclaim_distance(Path::new("/nowhere")), 30);
    }
}
