//! Domains worked out by hand.

use super::*;
use crate::kernels::{self, Kernel};
use schedlab_base::v2_6;
use schedlab_machine::MachineFile;
use schedlab_machine::presets;

/// The machine of a preset.
fn preset(name: &str) -> Machine {
    presets::find(name).unwrap().machine()
}

fn nodes(cores: u32, distances: &[&[u32]]) -> Machine {
    let distances: Vec<Vec<u32>> = distances.iter().map(|row| row.to_vec()).collect();
    MachineFile { distances, ..MachineFile::flat("m", 0, cores, 1) }.with_a_socket_a_node()
}

trait SocketANode {
    fn with_a_socket_a_node(self) -> Machine;
}

impl SocketANode for MachineFile {
    fn with_a_socket_a_node(self) -> Machine {
        Self { sockets: self.distances.len() as u32, ..self }.build().unwrap()
    }
}

fn builder_of<'m>(kernel: &str, machine: &'m Machine, fixes: Fixes) -> Builder<'m> {
    kernels::find(kernel).unwrap().domains(machine, fixes).unwrap()
}

fn build(kernel: &str, machine: &Machine) -> Domains {
    builder_of(kernel, machine, Fixes::default()).build()
}

/// The kernels that have domains, each with its domains for a machine.
fn all(machine: &Machine) -> impl Iterator<Item = (&'static Kernel, Domains)> + '_ {
    let built = |kernel: &&'static Kernel| Some((*kernel, kernel.domains(machine, Fixes::default()).ok()?.build()));
    kernels::KERNELS.iter().filter_map(built)
}

/// The nodes of a span, on a machine where each node has two consecutive CPUs.
fn pairs(domains: &Domains, span: SpanId) -> Vec<u32> {
    let mut nodes: Vec<u32> = domains.span(span).cpus.iter().map(|cpu| cpu / 2).collect();
    nodes.dedup();
    nodes
}

fn levels(domains: &Domains, cpu: CpuId) -> Vec<&'static str> {
    domains.of(cpu).iter().map(|domain| domains.name(domain)).collect()
}

fn spans(domains: &Domains, domain: &Domain) -> Vec<Vec<CpuId>> {
    domains.groups(domain).map(|group| domains.span(domains.group(group).span).cpus.to_vec()).collect()
}

#[test]
fn one_cpu_has_no_domain() {
    for (kernel, domains) in all(&preset("up")).filter(|(kernel, _)| kernel.release > Some(v2_6(11))) {
        // 2.6.18 and 2.6.24 only compare every other parent, so that one domain remains.
        let left = usize::from(kernel.release < Some(v2_6(32)));
        assert_eq!(domains.of(0).len(), left, "{}", kernel.name);
        assert!(domains.of(0).iter().all(|domain| domains.group_len(domain) == 1));
    }
}

#[test]
fn a_level_of_one_group_stays_where_a_release_finds_a_use_for_it() {
    let left = |kernel: &str| levels(&build(kernel, &preset("z800")), 0);
    assert_eq!(left("linux-2.6.18"), ["MC", "NODE"], "MC and CPU are the same");
    assert_eq!(left("linux-2.6.24"), ["MC", "NODE"]);
    assert_eq!(left("linux-2.6.32"), ["MC", "NODE"]);
    assert_eq!(left("linux-3.10"), ["MC", "CPU", "NUMA"], "CPU prefers siblings, MC does not");
    assert_eq!(left("linux-4.1"), ["MC", "NUMA"]);
    let domains = build("linux-4.1", &preset("z800"));
    assert!(domains.of(0)[0].flags.has(Flags::PREFER_SIBLING), "it has it from DIE");
}

#[test]
fn every_release_gives_every_cpu_groups_that_cover_its_domains() {
    for machine in ["dual", "quad-smt", "z800", "bulldozer-64", "epyc-2x64-smt", "dl580"].map(preset) {
        for (kernel, domains) in all(&machine) {
            for cpu in 0..domains.cpus() {
                let mut below = CpuSet::of(&[cpu]);
                for domain in domains.of(cpu) {
                    let span = &domains.span(domain.span).set;
                    assert!(below.is_subset(span), "{} {} CPU {cpu}", machine.name, kernel.name);
                    let union = domains
                        .groups(domain)
                        .fold(CpuSet::none(), |sum, group| sum.or(&domains.span(domains.group(group).span).set));
                    assert_eq!(&union, span, "{} {} CPU {cpu}", machine.name, kernel.name);
                    let own = domains.group(domains.local(domain));
                    assert!(domains.span(own.span).contains(cpu), "{} {} CPU {cpu}", machine.name, kernel.name);
                    below = span.clone();
                }
                assert_eq!(below.count(), domains.cpus(), "{} {} CPU {cpu}", machine.name, kernel.name);
            }
        }
    }
}

/// "A Decade of Wasted Cores", section 3.2: all CPUs have the groups that core 0 sees in the widest domain.
#[test]
fn group_construction_is_wrong_in_4_1_and_right_with_its_fix() {
    let machine = preset("bulldozer-64");
    let node_list = |domains: &Domains, cpu: CpuId| -> Vec<Vec<u32>> {
        let top = domains.of(cpu).last().unwrap();
        let nodes = |cpus: &[CpuId]| {
            let mut nodes: Vec<u32> = cpus.iter().map(|cpu| cpu / 8).collect();
            nodes.dedup();
            nodes
        };
        spans(domains, top).iter().map(|cpus| nodes(cpus)).collect()
    };
    let wrong = build("linux-4.1", &machine);
    for cpu in 0..64 {
        let mut groups = node_list(&wrong, cpu);
        groups.sort();
        assert_eq!(groups, [vec![0, 1, 2, 4, 6], vec![1, 2, 3, 4, 5, 7]], "CPU {cpu}");
    }
    // Nodes 1 and 2 are two hops apart and are both in each group.
    assert_eq!(machine.distances[1][2], 22);
    let fixes = Fixes { group_construction: true, ..Fixes::default() };
    let right = builder_of("linux-4.1", &machine, fixes).build();
    assert_eq!(node_list(&right, 0), node_list(&wrong, 0));
    let of_node_1 = node_list(&right, 8);
    assert_eq!(of_node_1[0], [0, 1, 3, 5, 7], "its own group first");
    assert!(of_node_1[1..].iter().any(|group| group.contains(&2) && !group.contains(&1)), "{of_node_1:?}");
}

/// Section 3.4: after a CPU went offline and came back, no domain spans several nodes.
#[test]
fn a_returning_cpu_costs_4_1_its_domains_across_nodes() {
    let machine = preset("bulldozer-64");
    let mut builder = builder_of("linux-4.1", &machine, Fixes::default());
    assert_eq!(levels(&builder.build(), 0), ["MC", "NUMA", "NUMA"]);
    assert_eq!(levels(&builder.offline(3), 0), ["MC", "NUMA", "NUMA"]);
    assert_eq!(levels(&builder.online(3), 0), ["MC"]);
    let fixes = Fixes { missing_domains: true, ..Fixes::default() };
    let mut fixed = builder_of("linux-4.1", &machine, fixes);
    let before = fixed.build();
    fixed.offline(3);
    assert_eq!(fixed.online(3).of(0), before.of(0));
    // The package level is lost too: the kernel falls back to the levels for packages with several nodes.
    let llcs = MachineFile { llc_cores: Some(2), ..MachineFile::flat("m", 2, 4, 1) };
    let llcs = MachineFile { distances: vec![vec![10, 21], vec![21, 10]], ..llcs };
    let machine_of = |said| MachineFile { nodes_per_package: said, ..llcs.clone() }.build().unwrap();
    for (said, left) in [(None, &["MC"][..]), (Some(1), &["MC", "DIE", "NUMA"])] {
        let machine = machine_of(said);
        let mut builder = builder_of("linux-4.1", &machine, Fixes::default());
        assert_eq!(levels(&builder.build(), 0), ["MC", "DIE", "NUMA"]);
        builder.offline(3);
        assert_eq!(levels(&builder.online(3), 0), left, "{said:?} nodes a package");
    }
    let mut new = builder_of("linux-6.12", &machine, Fixes::default());
    new.offline(3);
    assert_eq!(levels(&new.online(3), 0), levels(&new.build(), 0));
}

/// The comment above `build_overlap_sched_groups` works out the groups for a line of four nodes.
#[test]
fn a_line_of_four_nodes_has_the_groups_that_the_kernels_comment_gives() {
    let line = nodes(2, &[&[10, 20, 30, 40], &[20, 10, 20, 30], &[30, 20, 10, 20], &[40, 30, 20, 10]]);
    let domains = build("linux-6.1", &line);
    let groups = |cpu: CpuId, level: usize| -> Vec<Vec<u32>> {
        let domain = &domains.of(cpu)[level];
        domains.groups(domain).map(|group| pairs(&domains, domains.group(group).span)).collect()
    };
    assert_eq!(levels(&domains, 0), ["MC", "NUMA", "NUMA", "NUMA"]);
    assert_eq!(levels(&domains, 2), ["MC", "NUMA", "NUMA"]);
    assert_eq!(groups(0, 1), [[0], [1]]);
    assert_eq!(groups(2, 1), [[1], [2], [0]]);
    // Node 2's domain one level below, {1, 2, 3}, reaches beyond node 0's span {0, 1, 2}, so node 2 alone takes its
    // place.
    assert_eq!(groups(0, 2), [vec![0, 1], vec![2]]);
    assert_eq!(groups(2, 2), [vec![0, 1, 2], vec![2, 3]]);
    assert_eq!(groups(0, 3), [vec![0, 1, 2], vec![1, 2, 3]]);
    // 4.1 and 5.10 let it reach beyond the span; 5.13 fixed that.
    let second = |kernel: &str| -> Vec<Vec<u32>> {
        let old = build(kernel, &line);
        old.groups(&old.of(0)[2]).map(|group| pairs(&old, old.group(group).span)).collect()
    };
    assert_eq!(second("linux-4.1"), [vec![0, 1], vec![1, 2, 3]]);
    assert_eq!(second("linux-5.10"), [vec![0, 1], vec![1, 2, 3]]);
    assert_eq!(second("linux-5.15"), groups(0, 2));
}

/// CPUs are left out of a balance mask if they are beyond the span for which the group is first built
/// (`build_group_mask`, the same from 3.6 to 4.12).
#[test]
fn balance_masks_before_4_13() {
    let line = nodes(2, &[&[10, 20, 30, 40], &[20, 10, 20, 30], &[30, 20, 10, 20], &[40, 30, 20, 10]]);
    for kernel in ["linux-3.10", "linux-3.18", "linux-4.1"] {
        let domains = build(kernel, &line);
        let [.., second, _] = domains.of(0) else { panic!("three domains across nodes") };
        let ours: Vec<_> = domains.groups(second).map(|group| pairs(&domains, domains.group(group).mask)).collect();
        assert_eq!(ours, [vec![0, 1], vec![1, 2]], "{kernel}");
    }
}

/// Nodes 1 and 3 of a ring of four are in both groups of every CPU's widest domain, as node 0 sees it.
#[test]
fn a_ring_of_four_nodes_has_the_groups_of_its_first_until_4_13() {
    let ring = nodes(2, &[&[10, 20, 30, 20], &[20, 10, 20, 30], &[30, 20, 10, 20], &[20, 30, 20, 10]]);
    let widest = |kernel: &str, cpu: CpuId| -> Vec<Vec<u32>> {
        let domains = build(kernel, &ring);
        let top = domains.of(cpu).last().unwrap();
        domains.groups(top).map(|group| pairs(&domains, domains.group(group).span)).collect()
    };
    for kernel in ["linux-3.10", "linux-3.18", "linux-4.1"] {
        let (first, second) = (vec![0, 1, 3], vec![1, 2, 3]);
        assert_eq!(widest(kernel, 0), [first.clone(), second.clone()], "{kernel}");
        assert_eq!(widest(kernel, 3), [first.clone(), second.clone()], "{kernel}");
        // A ring starts with the group that the CPU balances, and CPU 2 is in the mask of the second.
        assert_eq!(widest(kernel, 2), [second.clone(), first.clone()], "{kernel}");
        assert_eq!(widest(kernel, 4), [second.clone(), first.clone()], "{kernel}");
        assert_eq!(widest(kernel, 6), [first, second], "{kernel}");
    }
    assert_eq!(widest("linux-6.1", 2), [vec![0, 1, 2], vec![0, 2, 3]]);
}

#[test]
fn far_nodes_are_left_to_periodic_balancing() {
    let machine = nodes(2, &[&[10, 30, 31], &[30, 10, 30], &[31, 30, 10]]);
    for kernel in ["linux-3.10", "linux-4.1", "linux-6.1", "linux-6.12"] {
        let domains = build(kernel, &machine);
        let far: Vec<bool> = domains.of(0).iter().map(|domain| !domain.flags.has(Flags::BALANCE_FORK)).collect();
        assert_eq!(far.last(), Some(&true), "{kernel}");
        assert_eq!(far.iter().filter(|far| **far).count(), 1, "{kernel}");
    }
}

#[test]
fn from_5_4_on_the_machine_says_how_far_forks_go() {
    let usual = Machine { reclaim_distance: schedlab_machine::RECLAIM_DISTANCE, ..preset("epyc-2x64-smt") };
    for kernel in ["linux-4.1", "linux-5.10", "linux-6.1", "linux-6.12", "linux-6.18"] {
        let near = |machine: &Machine| build(kernel, machine).of(0).last().unwrap().flags.has(Flags::BALANCE_FORK);
        assert_eq!((near(&usual), near(&preset("epyc-2x64-smt"))), (false, kernel != "linux-4.1"), "{kernel}");
    }
}

#[test]
fn before_5_13_a_distance_that_node_0_does_not_see_has_no_level() {
    let machine = nodes(2, &[&[10, 20, 20], &[20, 10, 30], &[20, 30, 10]]);
    assert_eq!(build("linux-4.1", &machine).distances(), [20]);
    assert_eq!(build("linux-6.1", &machine).distances(), [10, 20, 30]);
    let old = build("linux-4.1", &machine);
    assert_eq!(pairs(&old, old.of(2).last().unwrap().span), [0, 1], "node 1 never balances with node 2");
}

#[test]
fn big_and_little_cpus_are_told_apart() {
    let capacities = [[462; 4], [1024; 4]].concat();
    let file = MachineFile { capacities, llc_cores: Some(4), ..MachineFile::flat("big.LITTLE", 1, 8, 1) };
    let domains = build("linux-6.12", &file.build().unwrap());
    assert_eq!(levels(&domains, 0), ["MC", "PKG"]);
    let [mc, pkg] = domains.of(0) else { panic!("two domains") };
    assert!(!mc.flags.has(Flags::ASYM_CPUCAPACITY) && !mc.flags.has(Flags::PREFER_SIBLING));
    let names: Vec<_> = domains.flag_names(pkg.flags).collect();
    assert!(names.contains(&"SD_ASYM_CPUCAPACITY") && names.contains(&"SD_ASYM_CPUCAPACITY_FULL"), "{names:?}");
    let capacity: Vec<_> = domains.groups(pkg).map(|group| domains.group(group).capacity).collect();
    assert_eq!(capacity, [4 * 462, 4096]);
    assert_eq!(domains.lowest(5, Flags::ASYM_CPUCAPACITY_FULL), Some(1));
}

/// Two little CPUs, two middle ones that share a cache with them, and four big ones. Until 5.13 the lowest level at
/// which every CPU sees one of the greatest capacity got the flag for all CPUs, and so did all levels above it.
#[test]
fn until_5_13_unequal_cpus_are_found_by_level() {
    let capacities = [vec![300; 2], vec![600; 2], vec![1024; 4]].concat();
    let file = MachineFile { capacities, llc_cores: Some(4), ..MachineFile::flat("three", 1, 8, 1) };
    let machine = file.build().unwrap();
    let of = |kernel: &str, cpu: CpuId| {
        let domains = build(kernel, &machine);
        let of_cpu = domains.of(cpu).iter();
        let names = of_cpu.map(|domain| domains.flag_names(domain.flags).filter(|name| name.contains("ASYM")).count());
        (names.collect::<Vec<_>>(), domains.lowest(cpu, domains.all_capacities()))
    };
    // MC shows the middle CPUs to CPU 0, but only DIE shows the big ones to CPU 2.
    assert_eq!(of("linux-5.10", 0), (vec![0, 1], Some(1)));
    // From 5.14 on the flag of each domain depends on its own CPUs; DIE has all capacities.
    assert_eq!(of("linux-5.15", 0), (vec![1, 2], Some(1)));
    assert_eq!(of("linux-6.1", 0), of("linux-5.15", 0));
}

#[test]
fn clusters_are_a_level_from_5_16_on_and_the_numa_imbalance_is_counted_from_5_18_on() {
    let clusters = MachineFile { cluster_cores: Some(2), ..MachineFile::flat("clusters", 1, 8, 1) }.build().unwrap();
    let all = ["linux-5.10", "linux-5.15", "linux-6.1"].map(|kernel| levels(&build(kernel, &clusters), 0));
    assert_eq!(all, [vec!["MC"], vec!["MC"], vec!["CLS", "MC"]]);
    let imbalance = |kernel: &str| build(kernel, &preset("dl580")).of(0).last().unwrap().imb_numa_nr;
    assert_eq!(["linux-5.10", "linux-5.15", "linux-6.1"].map(imbalance), [0, 0, 3]);
}

#[test]
fn old_kernels_have_the_parameters_of_their_headers() {
    let domains = build("linux-2.6.11", &preset("dl580"));
    assert_eq!(levels(&domains, 0), ["SIBLING", "CPU", "NODE"]);
    let [sibling, cpu, node] = domains.of(0) else { panic!("three domains") };
    assert_eq!((domains.params(sibling).per_cpu_gain, domains.params(sibling).busy_factor), (25, 8));
    assert_eq!((domains.params(cpu).cache_hot_time_ns, domains.params(cpu).max_interval_ms), (2_500_000, 4));
    assert_eq!((domains.params(node).max_interval_ms, domains.params(node).busy_factor), (32, 32));
    assert_eq!(domains.group(domains.local(sibling)).capacity, 128);
    assert_eq!(domains.group(domains.local(cpu)).capacity, 140);
    assert_eq!(domains.group(domains.local(node)).capacity, 15 * 140);
    let flat = build("linux-2.6.11", &preset("dual"));
    assert_eq!(levels(&flat, 0), ["CPU"]);
    assert_eq!(spans(&flat, &flat.of(1)[0]), [[1], [0]]);
}

#[test]
fn kernels_of_2_6_18_to_2_6_32_join_the_sixteen_nearest_nodes() {
    let apart = |i: usize, j: usize| if i == j { 10 } else { 10 + i.abs_diff(j) as u32 };
    let distances: Vec<Vec<u32>> = (0..18).map(|i| (0..18).map(|j| apart(i, j)).collect()).collect();
    let machine = MachineFile { distances, ..MachineFile::flat("m", 18, 2, 1) }.build().unwrap();
    for kernel in ["linux-2.6.18", "linux-2.6.24", "linux-2.6.32"] {
        let domains = build(kernel, &machine);
        assert_eq!(levels(&domains, 0)[1..], ["NODE", "ALLNODES"], "{kernel}");
        let node = &domains.of(34)[1];
        assert_eq!(pairs(&domains, node.span), (2..18).collect::<Vec<_>>(), "{kernel}");
        let order: Vec<_> = domains.groups(node).map(|group| pairs(&domains, domains.group(group).span)[0]).collect();
        assert_eq!(order, [17, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], "{kernel}");
        assert_eq!(domains.params(&domains.of(0)[2]).max_interval_ms, 64 * 36, "{kernel}");
    }
}

#[test]
fn a_core_of_siblings_is_worth_what_each_release_says() {
    let top = |kernel: &str| {
        let domains = build(kernel, &preset("quad-smt"));
        let domain = *domains.of(0).last().unwrap();
        domains.group(domains.local(&domain)).capacity
    };
    let all = ["linux-2.6.24", "linux-2.6.32", "linux-3.10", "linux-4.1", "linux-6.12"].map(top);
    assert_eq!(all, [1024, 1178, 1178, 1178, 2048]);
}

#[test]
fn numa_imbalance_allows_an_eighth_of_a_node_or_a_task_a_cache() {
    let allowed = |machine: &Machine| {
        let domains = build("linux-6.12", machine);
        domains.of(0).iter().map(|domain| domain.imb_numa_nr).collect::<Vec<_>>()
    };
    assert_eq!(allowed(&preset("dl580")), [0, 0, 3], "30 CPUs >> 3");
    assert_eq!(allowed(&preset("epyc-2x64-smt")), [0, 0, 8, 8], "8 caches a node");
}

#[test]
fn the_nearest_cpu_is_looked_for_by_distance() {
    let domains = build("linux-6.1", &preset("bulldozer-64"));
    assert_eq!(domains.numa_kind(), NumaKind::GluelessMesh);
    assert_eq!(domains.closest(&CpuSet::of(&[25, 33]), 0), Some(33), "node 4 is one hop from node 0, node 3 two");
    assert_eq!(domains.closest(&CpuSet::none(), 0), None);
    assert_eq!(build("linux-6.1", &preset("z800")).numa_kind(), NumaKind::Direct);
}
