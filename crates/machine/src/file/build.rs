//! Builds a machine's CPUs from its description, and refuses every impossible machine.

use super::{MachineFile, PerfDomainFile};
use crate::model::{Caches, Cpu, MAX_CPUS, Machine, PerfDomain, PerfState, RECLAIM_DISTANCE};
use schedlab_base::{CpuPlace, Error};

/// The largest power of a CPU that the kernel accepts (`EM_MAX_POWER`), in uW.
const MAX_POWER_UW: u32 = 64_000_000;

/// The largest cache, 16 GiB.
const MAX_CACHE_KIB: u32 = 16 << 20;

/// What is wrong with a description, at which key, and how to fix it.
pub(crate) struct Wrong {
    pub(crate) key: &'static str,
    pub(crate) what: String,
    pub mend: Option<String>,
}

impl Wrong {
    fn new(key: &'static str, what: impl Into<String>) -> Self {
        Self { key, what: what.into(), mend: None }
    }

    fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }

    /// The error for a description that does not come from a file.
    pub(crate) fn into_error(self) -> Error {
        let error = Error::input(self.what).key(self.key);
        match self.mend {
            Some(mend) => error.mend(mend),
            None => error,
        }
    }
}

/// Builds the machine; `name` is used if the description has none.
pub(crate) fn build(file: &MachineFile, name: &str) -> Result<Machine, Wrong> {
    check_counts(file)?;
    check_distances(file)?;
    check_shares(file)?;
    check_rest(file)?;
    check_energy(file)?;
    check_split(file)?;
    let cores = file.sockets * file.cores;
    let nodes = node_count(file);
    let llc_cores = llc_cores(file);
    let cluster_cores = file.cluster_cores.unwrap_or(1);
    let place = |cpu: u32| {
        let core = cpu / file.threads;
        Cpu {
            place: CpuPlace {
                cpu,
                core,
                llc: core / llc_cores,
                package: core / file.cores,
                node: core / (cores / nodes),
                capacity: file.capacities.get(core as usize).copied().unwrap_or(1024),
            },
            cluster: core / cluster_cores,
        }
    };
    Ok(Machine {
        name: file.name.clone().unwrap_or_else(|| name.to_owned()),
        cpus: (0..cores * file.threads).map(place).collect(),
        distances: if file.distances.is_empty() { vec![vec![10]] } else { file.distances.clone() },
        nodes_per_package: Some(nodes / file.sockets).filter(|inside| *inside > 1).or(file.nodes_per_package),
        reclaim_distance: file.reclaim_distance.unwrap_or(RECLAIM_DISTANCE),
        caches: Caches {
            l2_kib: file.l2_kib.unwrap_or(Caches::default().l2_kib),
            llc_kib: file.llc_kib.unwrap_or(Caches::default().llc_kib),
        },
        costs: file.costs.costs(),
        energy: file.performance_domains.iter().map(|domain| perf_domain(domain, file.threads)).collect(),
        isolated: in_order(&file.isolcpus),
        partitions: file.partitions.iter().map(|part| in_order(part)).collect(),
    })
}

fn in_order(cpus: &[u32]) -> Vec<u32> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus
}

/// Each CPU is isolated, in one partition, or common, and one is common.
fn check_split(file: &MachineFile) -> Result<(), Wrong> {
    if file.nohz_full.is_some() {
        return Err(Wrong::new("nohz_full", "is not simulated: a CPU with one task keeps its tick")
            .mend("leave it out; isolcpus takes the CPUs out of balancing"));
    }
    let cpus = file.sockets * file.cores * file.threads;
    let mut apart = vec![false; cpus as usize];
    let sets = std::iter::once(("isolcpus", &file.isolcpus)).chain(file.partitions.iter().map(|p| ("partitions", p)));
    for (key, set) in sets {
        if key == "partitions" && set.is_empty() {
            return Err(Wrong::new(key, "a partition has no CPU").mend("write a list of lists: [[2, 3], [4, 5]]"));
        }
        for cpu in set {
            let Some(slot) = apart.get_mut(*cpu as usize) else {
                return Err(Wrong::new(key, format!("there is no CPU {cpu}")).mend(format!("take 0 to {}", cpus - 1)));
            };
            if std::mem::replace(slot, true) {
                let what = format!("CPU {cpu} is isolated or in a partition already");
                return Err(Wrong::new(key, what).mend("name each CPU once"));
            }
        }
    }
    if apart.iter().all(|apart| *apart) {
        let key = if file.partitions.is_empty() { "isolcpus" } else { "partitions" };
        return Err(Wrong::new(key, "no CPU is left for the other tasks").mend("leave one CPU out"));
    }
    Ok(())
}

fn perf_domain(file: &PerfDomainFile, threads: u32) -> PerfDomain {
    let states =
        file.mhz.iter().zip(&file.power_uw).map(|(mhz, power_uw)| PerfState { mhz: *mhz, power_uw: *power_uw });
    let cpus = file.cores.iter().flat_map(|core| core * threads..(core + 1) * threads);
    PerfDomain { cpus: cpus.collect(), states: states.collect() }
}

fn node_count(file: &MachineFile) -> u32 {
    file.distances.len().max(1) as u32
}

/// The cores that share a last-level cache. By default these are all cores of a socket, or all cores of a node if a
/// socket has several nodes.
fn llc_cores(file: &MachineFile) -> u32 {
    let per_node = file.sockets * file.cores / node_count(file);
    file.llc_cores.unwrap_or(file.cores.min(per_node))
}

fn check_counts(file: &MachineFile) -> Result<(), Wrong> {
    for (key, count) in [("sockets", file.sockets), ("cores", file.cores), ("threads", file.threads)] {
        if count == 0 {
            return Err(Wrong::new(key, "a machine has no fewer than one").mend("write 1 or more"));
        }
    }
    if file.threads > 8 {
        return Err(Wrong::new("threads", format!("{} threads a core", file.threads)).mend("no CPU has more than 8"));
    }
    let cpus = u64::from(file.sockets) * u64::from(file.cores);
    let cpus = cpus.saturating_mul(u64::from(file.threads));
    if cpus > u64::from(MAX_CPUS) {
        return Err(Wrong::new("sockets", format!("{cpus} CPUs are too many")).mend(format!("at most {MAX_CPUS}")));
    }
    Ok(())
}

fn check_distances(file: &MachineFile) -> Result<(), Wrong> {
    if file.reclaim_distance.is_some_and(|distance| !(10..=254).contains(&distance)) {
        return Err(Wrong::new("reclaim_distance", "no distance of nodes").mend("write a number from 10 to 254"));
    }
    let wrong = |what: String| Wrong::new("distances", what);
    let nodes = file.distances.len();
    for (i, row) in file.distances.iter().enumerate() {
        if row.len() != nodes {
            return Err(wrong(format!("row {i} has {} of {nodes} entries", row.len())).mend("give a square matrix"));
        }
        if row[i] != 10 {
            return Err(wrong(format!("node {i} is {} from itself", row[i])).mend("a node is 10 from itself"));
        }
        for (j, distance) in row.iter().copied().enumerate() {
            if i != j && !(11..=254).contains(&distance) {
                return Err(wrong(format!("nodes {i} and {j} are {distance} apart")).mend("write 11 to 254"));
            }
        }
    }
    for (i, row) in file.distances.iter().enumerate() {
        for (j, there) in row.iter().enumerate() {
            let back = file.distances[j][i];
            if *there != back {
                return Err(wrong(format!("from node {i} to {j} it is {there}, from {j} to {i} {back}"))
                    .mend("the matrix must be symmetric"));
            }
        }
    }
    Ok(())
}

fn check_shares(file: &MachineFile) -> Result<(), Wrong> {
    let nodes = node_count(file);
    let share = |key, what: String| Err(Wrong::new(key, what).mend("the parts must be equal"));
    let split_sockets = file.sockets.is_multiple_of(nodes);
    let split_cores = nodes.is_multiple_of(file.sockets) && file.cores.is_multiple_of(nodes / file.sockets);
    if !split_sockets && !split_cores {
        let what = format!("{} sockets of {} cores do not divide into {nodes} nodes", file.sockets, file.cores);
        return share("distances", what);
    }
    let inside = (nodes / file.sockets).max(1);
    if let Some(said) = file.nodes_per_package.filter(|said| *said != inside) {
        let what = format!("{said} nodes a package, but {} sockets and {nodes} nodes", file.sockets);
        return Err(Wrong::new("nodes_per_package", what).mend(format!("write {inside}, or other sockets and cores")));
    }
    let per_node = file.sockets * file.cores / nodes;
    let within = file.cores.min(per_node);
    for (key, size, whole) in [
        ("llc_cores", file.llc_cores.unwrap_or(within), within),
        ("cluster_cores", file.cluster_cores.unwrap_or(1), llc_cores(file)),
    ] {
        if size == 0 || !whole.is_multiple_of(size) {
            return share(key, format!("{whole} cores do not divide into groups of {size}"));
        }
    }
    Ok(())
}

fn check_rest(file: &MachineFile) -> Result<(), Wrong> {
    let cores = (file.sockets * file.cores) as usize;
    let given = file.capacities.len();
    if given != 0 && given != cores {
        return Err(Wrong::new("capacities", format!("{given} capacities for {cores} cores")).mend("one a core"));
    }
    if given != 0 && file.capacities.iter().max() != Some(&1024) {
        return Err(Wrong::new("capacities", "the biggest core is not 1024").mend("1024 is the biggest core's"));
    }
    if file.capacities.contains(&0) {
        return Err(Wrong::new("capacities", "a core of capacity 0").mend("write 1 to 1024"));
    }
    if let Some((key, cost, most)) = file.costs.too_large() {
        return Err(Wrong::new(key, format!("{cost} is too much")).mend(format!("write 0 to {most}")));
    }
    for (key, size) in [("l2_kib", file.l2_kib), ("llc_kib", file.llc_kib)] {
        if size.is_some_and(|kib| !(1..=MAX_CACHE_KIB).contains(&kib)) {
            return Err(Wrong::new(key, "no cache has this size").mend(format!("write 1 to {MAX_CACHE_KIB} KiB")));
        }
    }
    if file.name.as_ref().is_some_and(|n| n.is_empty() || n.len() > 128 || n.chars().any(char::is_control)) {
        return Err(Wrong::new("name", "is empty, too long or no text").mend("1 to 128 printable characters"));
    }
    Ok(())
}

/// Checks that every core is in one performance domain, together with cores of the same capacity, and that frequencies
/// and power rise.
fn check_energy(file: &MachineFile) -> Result<(), Wrong> {
    let wrong = |what: String, mend: &str| Err(Wrong::new("performance_domains", what).mend(mend));
    let cores = file.sockets * file.cores;
    let mut domain_of = vec![None; cores as usize];
    for (i, domain) in file.performance_domains.iter().enumerate() {
        let Some(first) = domain.cores.first() else {
            return wrong(format!("domain {i} has no core"), "name its cores");
        };
        for core in &domain.cores {
            let Some(slot) = domain_of.get_mut(*core as usize) else {
                return wrong(format!("domain {i} has core {core} of {cores}"), "cores count from 0");
            };
            if slot.replace(i).is_some() {
                return wrong(format!("core {core} is in two domains"), "each core is in one");
            }
            let capacity = |core: u32| file.capacities.get(core as usize);
            if capacity(*core) != capacity(*first) {
                return wrong(format!("domain {i} has cores of several capacities"), "one kind of core each");
            }
        }
        if domain.mhz.is_empty() || domain.mhz.len() != domain.power_uw.len() {
            let (mhz, power) = (domain.mhz.len(), domain.power_uw.len());
            return wrong(format!("domain {i} has {mhz} frequencies and power for {power}"), "give each its power");
        }
        let rises = |values: &[u32]| values[0] > 0 && values.windows(2).all(|pair| pair[0] < pair[1]);
        if !rises(&domain.mhz) || !rises(&domain.power_uw) {
            return wrong(format!("domain {i} has states that do not rise"), "the lowest frequency first, none 0");
        }
        if domain.power_uw.iter().any(|power| *power > MAX_POWER_UW) {
            return wrong(format!("domain {i} takes more than 64 W a CPU"), "power_uw is in millionths of a watt");
        }
    }
    match domain_of.iter().position(Option::is_none) {
        Some(core) if !file.performance_domains.is_empty() => {
            wrong(format!("core {core} is in no domain"), "an energy model holds every core")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tomltext::TomlText;
    use schedlab_base::Cost;

    fn refuse(change: impl FnOnce(&mut MachineFile)) -> String {
        let mut file = MachineFile::flat("m", 2, 6, 2);
        change(&mut file);
        file.build().unwrap_err().to_string()
    }

    #[test]
    fn siblings_are_numbered_first_then_cores_then_sockets() {
        let machine = MachineFile::flat("m", 2, 2, 2).build().unwrap();
        let of = |what: fn(&CpuPlace) -> u32| machine.cpus.iter().map(|c| what(&c.place)).collect::<Vec<_>>();
        assert_eq!(of(|p| p.cpu), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(of(|p| p.core), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(of(|p| p.package), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(of(|p| p.llc), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(of(|p| p.node), [0; 8]);
    }

    #[test]
    fn a_socket_may_hold_several_nodes() {
        let mut file = MachineFile::flat("m", 1, 4, 1);
        file.distances = vec![vec![10, 12], vec![12, 10]];
        let machine = file.build().unwrap();
        assert_eq!(machine.cpus.iter().map(|c| c.place.node).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!(machine.llcs(), 2);
        assert_eq!(machine.nodes_per_package, Some(2));
        file.nodes_per_package = Some(2);
        assert_eq!(file.build().unwrap(), machine);
    }

    #[test]
    fn with_one_node_a_socket_the_nodes_per_package_are_unknown_unless_given() {
        let mut file = MachineFile::flat("m", 2, 4, 1);
        file.distances = vec![vec![10, 21], vec![21, 10]];
        assert_eq!(file.build().unwrap().nodes_per_package, None);
        file.nodes_per_package = Some(1);
        let machine = file.build().unwrap();
        assert_eq!(machine.nodes_per_package, Some(1));
        assert_eq!(MachineFile::of(&machine), Some(file));
    }

    #[test]
    fn impossible_machines_are_refused() {
        assert_eq!(refuse(|f| f.sockets = 0), "sockets: a machine has no fewer than one; write 1 or more");
        assert!(refuse(|f| f.sockets = 700).contains("8400 CPUs are too many; at most 8192"));
        assert!(refuse(|f| (f.sockets, f.cores) = (u32::MAX, u32::MAX)).contains("too many"));
        assert!(refuse(|f| f.threads = 9).contains("9 threads a core"));
        assert!(refuse(|f| f.distances = vec![vec![10, 20], vec![20]]).contains("row 1 has 1 of 2 entries"));
        assert!(refuse(|f| f.distances = vec![vec![10, 20], vec![21, 10]]).contains("symmetric"));
        assert!(refuse(|f| f.distances = vec![vec![11, 20], vec![20, 10]]).contains("10 from itself"));
        assert!(refuse(|f| f.distances = vec![vec![10, 9], vec![9, 10]]).contains("11 to 254"));
        assert!(refuse(|f| f.distances = vec![vec![10]; 5]).contains("row 0 has 1 of 5"));
        assert!(refuse(|f| f.nodes_per_package = Some(2)).contains("2 nodes a package, but 2 sockets and 1 nodes"));
        assert!(refuse(|f| f.llc_cores = Some(4)).contains("6 cores do not divide into groups of 4"));
        assert!(refuse(|f| f.cluster_cores = Some(0)).contains("groups of 0"));
        assert!(refuse(|f| f.capacities = vec![1024; 3]).contains("3 capacities for 12 cores"));
        assert!(refuse(|f| f.capacities = vec![512; 12]).contains("1024"));
        assert!(
            refuse(|f| f.costs.idle_exit_ns = Some(u64::MAX.into()))
                .contains("idle_exit_ns: 18446744073709551615 is too")
        );
        assert!(refuse(|f| f.costs.smt_loss_percent = Some(51)).contains("51 is too much; write 0 to 50"));
        assert!(refuse(|f| f.l2_kib = Some(0)).contains("l2_kib: no cache has this size"));
    }

    #[test]
    fn a_cost_is_a_number_or_nine_in_ascending_order() {
        let of = |cost: &str| {
            let text = format!("sockets = 1\ncores = 2\nthreads = 1\n[costs]\nidle_exit_ns = {cost}\n");
            MachineFile::parse(&TomlText { file: "m.toml".into(), text }).map(|machine| machine.costs.idle_exit_ns)
        };
        assert_eq!(of("7").unwrap(), Cost::Fixed(7));
        let nine = Cost::Varying([1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(of("[1, 2, 3, 4, 5, 6, 7, 8, 9]").unwrap(), nine);
        let mut file = MachineFile::flat("m", 1, 2, 1);
        file.costs.idle_exit_ns = Some(nine);
        let again = MachineFile::parse(&TomlText { file: "m.toml".into(), text: file.to_toml() }).unwrap();
        assert_eq!(MachineFile::of(&again), Some(file));
        for (wrong, what) in [
            ("[1, 2]", "invalid length 2"),
            ("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "invalid length 10"),
            ("[1, 2, 3, 4, 5, 6, 7, 8, 7]", "a list that descends"),
            ("-3", "is -3, but should be a time in ns"),
            ("\"long\"", "is \"long\", but should be a time in ns"),
            ("[1, 2, 3, 4, 5, 6, 7, 8, 1000000001]", "1000000001 is too much; write 0 to 1000000000"),
        ] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("costs.idle_exit_ns: ") && error.contains(what), "{error}");
        }
    }

    #[test]
    fn impossible_energy_models_are_refused() {
        let domain = |cores: std::ops::Range<u32>, mhz: &[u32], power_uw: &[u32]| PerfDomainFile {
            cores: cores.collect(),
            mhz: mhz.to_vec(),
            power_uw: power_uw.to_vec(),
        };
        let refuse = |domains: Vec<PerfDomainFile>| refuse(|f| f.performance_domains = domains);
        assert!(refuse(vec![domain(0..6, &[1], &[1])]).contains("core 6 is in no domain; an energy model holds every"));
        assert!(refuse(vec![domain(0..13, &[1], &[1])]).contains("domain 0 has core 12 of 12"));
        assert!(refuse(vec![domain(0..12, &[1], &[1]), domain(3..4, &[1], &[1])]).contains("core 3 is in two domains"));
        assert!(refuse(vec![domain(0..0, &[1], &[1])]).contains("no core"));
        assert!(refuse(vec![domain(0..12, &[1, 2], &[1])]).contains("2 frequencies and power for 1"));
        assert!(refuse(vec![domain(0..12, &[], &[])]).contains("0 frequencies"));
        assert!(refuse(vec![domain(0..12, &[2, 1], &[1, 2])]).contains("do not rise"));
        assert!(refuse(vec![domain(0..12, &[0, 1], &[1, 2])]).contains("do not rise"));
        assert!(refuse(vec![domain(0..12, &[1, 2], &[2, 2])]).contains("do not rise"));
        assert!(refuse(vec![domain(0..12, &[1], &[u32::MAX])]).contains("64 W"));
        let mut file = MachineFile::flat("m", 1, 2, 1);
        file.capacities = vec![512, 1024];
        file.performance_domains = vec![domain(0..2, &[1], &[1])];
        assert!(file.build().unwrap_err().to_string().contains("several capacities"));
    }

    #[test]
    fn cpus_are_isolated_in_one_partition_or_common() {
        assert_eq!(refuse(|f| f.isolcpus = vec![24]), "isolcpus: there is no CPU 24; take 0 to 23");
        let twice = |f: &mut MachineFile| (f.isolcpus, f.partitions) = (vec![3], vec![vec![2, 3]]);
        assert_eq!(refuse(twice), "partitions: CPU 3 is isolated or in a partition already; name each CPU once");
        assert!(refuse(|f| f.partitions = vec![vec![]]).starts_with("partitions: a partition has no CPU"));
        assert!(refuse(|f| f.partitions = vec![(0..24).collect()]).contains("no CPU is left for the other tasks"));
        assert!(
            refuse(|f| f.nohz_full = Some("2-3".into()))
                .starts_with("nohz_full: is not simulated: a CPU with one task keeps its tick")
        );
        let mut file = MachineFile::flat("m", 1, 6, 1);
        (file.isolcpus, file.partitions) = (vec![5], vec![vec![3, 2]]);
        let machine = file.build().unwrap();
        assert_eq!((machine.common_cpus(), &machine.partitions[0][..]), (vec![0, 1, 4], &[2, 3][..]));
        assert_eq!(MachineFile::of(&machine).and_then(|file| file.build().ok()), Some(machine));
    }

    #[test]
    fn nodes_that_do_not_divide_the_sockets_are_refused() {
        let three = vec![vec![10, 20, 20], vec![20, 10, 20], vec![20, 20, 10]];
        assert!(refuse(|f| f.distances = three).contains("do not divide into 3 nodes"));
    }
}
