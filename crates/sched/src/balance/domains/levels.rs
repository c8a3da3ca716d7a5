//! The topology levels of 3.10 and later: for each level, which CPUs share it with each CPU.

use super::Ask;
use super::model::{NumaKind, SpanId};
use super::pool::Pool;
use super::release::Shares;
use schedlab_base::{CpuId, Release, v};
use schedlab_machine::Cpu;
use std::collections::BTreeSet;

/// One entry of the kernel's `sched_domain_topology`.
pub(super) struct Level {
    pub name: &'static str,
    pub shares: Shares,
    /// The mask of each CPU at this level, before CPUs that no domains are built for are removed.
    pub masks: Vec<SpanId>,
}

impl Level {
    /// Whether the groups at this level may overlap.
    pub fn overlaps(&self) -> bool {
        matches!(self.shares, Shares::Distance(_))
    }
}

/// The levels, smallest first, and the NUMA topology.
pub(super) struct Levels {
    pub levels: Vec<Level>,
    pub distances: Vec<u32>,
    pub numa: NumaKind,
    pub hops: Vec<Vec<SpanId>>,
}

impl Levels {
    /// For kernels that have no list of levels.
    pub fn none() -> Self {
        Self { levels: Vec::new(), distances: Vec::new(), numa: NumaKind::Direct, hops: Vec::new() }
    }
}

/// Builds the levels of a release on a machine.
pub(super) fn levels(pool: &mut Pool, ask: &Ask<'_>) -> Levels {
    let (release, words) = (ask.release, ask.words);
    let mut levels = Vec::new();
    // Nothing counts as shared across nodes, whatever the firmware reports about caches.
    let mut push = |name, shares, of: fn(&Cpu) -> u32| {
        let key = |cpu: CpuId| {
            let place = &ask.machine.cpus[cpu as usize];
            ask.counts(cpu).then(|| u64::from(of(place)) << 32 | u64::from(place.place.node))
        };
        levels.push(Level { name, shares, masks: pool.classes(ask.cpus(), key) });
    };
    push(words.smt, Shares::Core, |cpu| cpu.place.core);
    // "sched: Add cluster scheduler level for x86" (5.16).
    if release >= v(5, 16) {
        push("CLS", Shares::Cluster, |cpu| cpu.cluster);
    }
    push("MC", Shares::Cache, |cpu| cpu.place.llc);
    // Kernels from 3.18 on have no level for a package that contains several nodes ("sched/x86: Add new topology for
    // multi-NUMA-node CPUs").
    if release < v(3, 18) || !ask.nodes_lost && ask.machine.nodes_per_package.is_none_or(|nodes| nodes == 1) {
        push(words.package, Shares::Node, |_| 0);
    }
    let mut all = Levels { levels, ..Levels::none() };
    if !ask.nodes_lost {
        across_nodes(pool, ask, &mut all);
    }
    all
}

/// Adds a level for each distance between nodes (`sched_init_numa`).
fn across_nodes(pool: &mut Pool, ask: &Ask<'_>, all: &mut Levels) {
    // "sched/topology: Introduce NUMA identity node sched domain" (4.15).
    let identity = ask.release >= v(4, 15);
    let table = &ask.machine.distances;
    let nodes = NodeCpus::of(ask);
    let distances: BTreeSet<u32> = match ask.release {
        r if r >= NODES_DROP_OUT => nodes.alive().flat_map(|a| nodes.alive().map(move |b| table[a][b])).collect(),
        // "sched/topology: Make sched_init_numa() use a set for the deduplicating sort" (5.12, and 5.10's updates).
        r if r >= v(5, 10) => table.iter().flatten().copied().collect(),
        // Node 0 is assumed to see every distance. A distance that it does not see gets no level.
        _ => table[0].iter().copied().filter(|distance| identity || *distance > table[0][0]).collect(),
    };
    all.distances = distances.into_iter().collect();
    for (at, &distance) in all.distances.iter().enumerate() {
        let by_node: Vec<SpanId> = (0..table.len())
            .map(|a| {
                let near = (0..table.len()).filter(|b| table[a][*b] <= distance);
                let cpus: Vec<CpuId> = near.flat_map(|b| nodes.cpus[b].iter().copied()).collect();
                pool.of(&cpus)
            })
            .collect();
        let masks = ask.machine.cpus.iter().map(|cpu| by_node[cpu.place.node as usize]).collect();
        all.hops.push(by_node);
        // The smallest distance is that of a node to itself.
        let (name, shares) =
            if identity && at == 0 { ("NODE", Shares::Node) } else { ("NUMA", Shares::Distance(distance)) };
        all.levels.push(Level { name, shares, masks });
    }
    all.numa = connection(ask, &nodes, &all.distances);
}

/// "sched/numa: Fix NUMA topology for systems with CPU-less nodes" (5.18): from then on a node without online CPUs does
/// not count.
const NODES_DROP_OUT: Release = v(5, 18);

/// The CPUs of each node that count. From [`NODES_DROP_OUT`] on, a node without online CPUs has none.
struct NodeCpus {
    cpus: Vec<Vec<CpuId>>,
}

impl NodeCpus {
    fn of(ask: &Ask<'_>) -> Self {
        let mut cpus = vec![Vec::new(); ask.machine.distances.len()];
        let mut online = vec![false; cpus.len()];
        for cpu in (0..ask.cpus()).filter(|cpu| ask.counts(*cpu)) {
            let node = ask.machine.cpus[cpu as usize].place.node as usize;
            cpus[node].push(cpu);
            online[node] |= ask.online.contains(cpu);
        }
        if ask.release >= NODES_DROP_OUT {
            cpus.iter_mut().zip(online).filter(|(_, online)| !online).for_each(|(cpus, _)| cpus.clear());
        }
        Self { cpus }
    }

    fn alive(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.cpus.len()).filter(|node| !self.cpus[*node].is_empty())
    }
}

/// Classifies the NUMA topology (`init_numa_topology_type`; "sched/numa: Classify the NUMA topology of a system",
/// 3.19). Until 4.2 it wrongly compared a distance with 1 to detect directly connected nodes, so that it took them for
/// a backplane.
fn connection(ask: &Ask<'_>, nodes: &NodeCpus, distances: &[u32]) -> NumaKind {
    let direct = match ask.release {
        r if r < v(3, 19) => true,
        r if r < v(4, 3) => distances.is_empty(),
        // The distance of a node to itself has been counted since 4.15. That is only allowed for since "sched/topology:
        // Set correct NUMA topology type" (4.19).
        r if r < v(4, 19) => distances.len() <= 1,
        _ => distances.len() <= 2,
    };
    let table = &ask.machine.distances;
    let far = distances.last().copied().unwrap_or(0);
    let mut pairs = nodes.alive().flat_map(|a| nodes.alive().map(move |b| (a, b)));
    match pairs.find(|(a, b)| !direct && table[*a][*b] >= far) {
        None => NumaKind::Direct,
        Some((a, b)) if nodes.alive().any(|c| table[a][c] < far && table[b][c] < far) => NumaKind::GluelessMesh,
        Some(_) => NumaKind::Backplane,
    }
}
