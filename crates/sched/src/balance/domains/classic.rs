//! The domains of 2.6.0 to 2.6.32: a fixed list of levels, with distant nodes only ordered by distance.

use super::Ask;
use super::flags::Flags;
use super::model::{Domain, GroupId, Params, SpanId};
use super::pool::Pool;
use schedlab_base::{CpuId, Release, v2_6};
use std::collections::{BTreeMap, BTreeSet};

/// A NODE domain spans at most this many nodes (`SD_NODES_PER_DOMAIN`). If the machine has more, a domain over all
/// nodes is built above it.
const NODES_PER_DOMAIN: u32 = 16;

/// One level, before any domain is removed.
struct Level {
    name: &'static str,
    flags: Flags,
    params: Params,
    /// The span of each CPU's domain.
    spans: Vec<SpanId>,
    /// For each CPU, its group at this level.
    parts: Vec<SpanId>,
    /// Whether the groups are ordered starting from the CPU's own node, instead of from the lowest CPU.
    from_own_node: bool,
    /// The capacity of a group: the function's value for each class of CPUs in it, given the class's size.
    worth: (Vec<SpanId>, fn(u32) -> u32),
}

/// The CPUs that each CPU shares a core, a cache and a node with.
struct Shared {
    cpu: Vec<SpanId>,
    core: Vec<SpanId>,
    cache: Vec<SpanId>,
    node: Vec<SpanId>,
    all: SpanId,
}

impl Shared {
    fn of(pool: &mut Pool, ask: &Ask<'_>) -> Self {
        let place = |cpu: CpuId| ask.online.contains(cpu).then(|| &ask.machine.cpus[cpu as usize].place);
        let cpus = ask.cpus();
        let wide = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        Self {
            cpu: pool.classes(cpus, |cpu| place(cpu).map(|p| u64::from(p.cpu))),
            core: pool.classes(cpus, |cpu| place(cpu).map(|p| wide(p.core, p.node))),
            cache: pool.classes(cpus, |cpu| place(cpu).map(|p| wide(p.llc, p.node))),
            node: pool.classes(cpus, |cpu| place(cpu).map(|p| u64::from(p.node))),
            all: pool.span(ask.online.clone()),
        }
    }

    fn everywhere(&self) -> Vec<SpanId> {
        vec![self.all; self.cpu.len()]
    }
}

/// Builds the domains of all CPUs, before any is removed.
pub(super) fn build(pool: &mut Pool, ask: &Ask<'_>) -> Vec<Vec<Domain>> {
    let shared = Shared::of(pool, ask);
    let levels = match ask.release {
        r if r < v2_6(11) => levels_2_6_0(ask, &shared),
        r if r < v2_6(18) => levels_2_6_11(ask, &shared),
        _ => levels_2_6_18(pool, ask, &shared),
    };
    let mut rings = BTreeMap::new();
    let mut built = vec![Vec::new(); ask.cpus() as usize];
    for cpu in ask.online.iter() {
        let node = shared.node[cpu as usize];
        for (l, level) in levels.iter().enumerate() {
            let far = pool.weight(shared.all) > NODES_PER_DOMAIN * pool.weight(node);
            if level.name == "ALLNODES" && !far {
                continue;
            }
            let span = level.spans[cpu as usize];
            let key = (l, span, level.from_own_node.then_some(node));
            let ring = *rings.entry(key).or_insert_with(|| ring(pool, ask, level, l as u8, cpu));
            let own = level.parts[cpu as usize];
            let is_own = |group: &GroupId| pool.groups[group.index()].span == own;
            let start = pool.rings[ring as usize].iter().position(is_own).expect("a CPU has its own group");
            let kind = pool.kind(level.name, level.params);
            let domain = Domain { span, flags: level.flags, imb_numa_nr: 0, ring, start: start as u32, kind };
            built[cpu as usize].push(domain);
        }
    }
    built
}

/// Builds the groups of a domain (`init_sched_build_groups`). For NODE it is the kernel's loop over the nodes, starting
/// from the CPU's own.
fn ring(pool: &mut Pool, ask: &Ask<'_>, level: &Level, number: u8, cpu: CpuId) -> u32 {
    let mut parts: Vec<SpanId> = Vec::new();
    let span = level.spans[cpu as usize];
    for i in pool.get(span).cpus.iter() {
        let part = level.parts[*i as usize];
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    if level.from_own_node {
        let node = |part: &SpanId| ask.machine.cpus[pool.get(*part).cpus[0] as usize].place.node;
        let (own, nodes) = (ask.machine.cpus[cpu as usize].place.node, ask.machine.distances.len() as u32);
        parts.sort_by_key(|part| (node(part) + nodes - own) % nodes);
    }
    let groups = parts
        .into_iter()
        .map(|part| {
            let classes: BTreeSet<SpanId> = pool.get(part).cpus.iter().map(|i| level.worth.0[*i as usize]).collect();
            let capacity = classes.into_iter().map(|class| (level.worth.1)(pool.weight(class))).sum();
            pool.group(number, part, part, || (capacity, Flags::NONE))
        })
        .collect();
    pool.ring(groups)
}

const BALANCING: Flags = Flags::all(&[Flags::LOAD_BALANCE, Flags::BALANCE_NEWIDLE, Flags::BALANCE_EXEC]);

/// 2.6.0 has no domains. An idle CPU looks for work on its node every 1 ms, and a busy one every 200 ms. Every fifth
/// time an idle CPU looks, and every second time a busy one does, it looks at the node with the most running tasks per
/// CPU (`node_nr_running`). This is represented as a domain of a node's CPUs and a domain of nodes, both without flags.
fn levels_2_6_0(ask: &Ask<'_>, shared: &Shared) -> Vec<Level> {
    let level = |name, min, busy_factor, spans, parts| Level {
        name,
        flags: Flags::NONE,
        params: Params { first_interval_ms: min, ..Params::fixed(min, min, busy_factor, 125) },
        spans,
        parts,
        from_own_node: false,
        worth: (shared.cpu.clone(), |cpus| cpus),
    };
    let mut levels = vec![level("node", 1, 200, shared.node.clone(), shared.cpu.clone())];
    if ask.machine.nodes() > 1 {
        levels.push(level("nodes", 5, 80, shared.everywhere(), shared.node.clone()));
    }
    levels
}

/// The capacity of a core: a tenth more for each further sibling.
fn with_a_tenth(cpus: u32) -> u32 {
    128 + 128 * (cpus - 1) / 10
}

/// The levels of 2.6.11 (`arch_init_sched_domains`), configured for the machine: `CONFIG_SCHED_SMT` if it has SMT
/// siblings, `CONFIG_NUMA` if it has several nodes.
fn levels_2_6_11(ask: &Ask<'_>, shared: &Shared) -> Vec<Level> {
    let level = |name, flags, params, spans: &Vec<SpanId>, parts: &Vec<SpanId>, worth| Level {
        name,
        flags,
        params,
        spans: spans.clone(),
        parts: parts.clone(),
        from_own_node: false,
        worth,
    };
    let waking = Flags::WAKE_AFFINE.with(Flags::WAKE_IDLE);
    let mut levels = Vec::new();
    if ask.machine.threads() > 1 {
        let flags = BALANCING.with(waking).with(Flags::SHARE_CPUCAPACITY);
        let params = Params { per_cpu_gain: 25, ..Params::fixed(1, 2, 8, 110) };
        let worth: (Vec<SpanId>, fn(u32) -> u32) = (shared.cpu.clone(), |_| 128);
        levels.push(level("SIBLING", flags, params, &shared.core, &shared.cpu, worth));
    }
    let by_core = || -> (Vec<SpanId>, fn(u32) -> u32) { (shared.core.clone(), with_a_tenth) };
    let whole = |params| Params { per_cpu_gain: 100, ..tries(params, 1) };
    let flags = BALANCING.with(waking).with(Flags::WAKE_BALANCE);
    let params = Params { cache_hot_time_ns: 2_500_000, ..whole(Params::fixed(1, 4, 64, 125)) };
    levels.push(level("CPU", flags, params, &shared.node, &shared.core, by_core()));
    if ask.machine.nodes() > 1 {
        let flags = BALANCING.with(Flags::WAKE_IDLE).with(Flags::WAKE_BALANCE);
        let params = Params { cache_hot_time_ns: 10_000_000, ..whole(Params::fixed(8, 32, 32, 125)) };
        levels.push(level("NODE", flags, params, &shared.everywhere(), &shared.node, by_core()));
    }
    levels
}

/// The levels of 2.6.18 to 2.6.32 (`build_sched_domains`) on x86-64, with all of them configured.
fn levels_2_6_18(pool: &mut Pool, ask: &Ask<'_>, shared: &Shared) -> Vec<Level> {
    let release = ask.release;
    let worths = worths(release, shared);
    let near = near_nodes(pool, ask);
    let spans = [shared.core.clone(), shared.cache.clone(), shared.node.clone(), near, shared.everywhere()];
    let parts = [&shared.cpu, &shared.core, &shared.cache, &shared.node, &shared.node];
    let names = ["SIBLING", "MC", "CPU", "NODE", "ALLNODES"];
    let online = ask.online.count();
    let rows = spans.into_iter().zip(parts).zip(worths).enumerate();
    rows.map(|(l, ((spans, parts), worth))| {
        let (flags, params) = match release {
            r if r < v2_6(24) => row_2_6_18(l, online),
            r if r < v2_6(32) => row_2_6_24(l, online),
            _ => row_2_6_32(l, online),
        };
        Level { name: names[l], flags, params, spans, parts: parts.clone(), from_own_node: l == 3, worth }
    })
    .collect()
}

type Worth = (Vec<SpanId>, fn(u32) -> u32);

/// The capacities of the groups of each level. 2.6.18 and 2.6.24 count all CPUs that share a cache as one, so that they
/// aim for one task per cache. 2.6.32 counts cores, with SMT siblings worth 1178 together.
fn worths(release: Release, shared: &Shared) -> [Worth; 5] {
    let by = |classes: &Vec<SpanId>, worth: fn(u32) -> u32| (classes.clone(), worth);
    match release {
        r if r < v2_6(24) => [
            by(&shared.cpu, |_| 128),
            by(&shared.core, with_a_tenth),
            by(&shared.cache, |_| 128),
            by(&shared.cache, |_| 128),
            by(&shared.cache, |_| 128),
        ],
        // "sched: Provide arch_scale_freq_power" and related patches (2.6.32).
        r if r < v2_6(32) => [
            by(&shared.cpu, |_| 1024),
            by(&shared.core, |_| 1024),
            by(&shared.cache, |_| 1024),
            by(&shared.cache, |_| 1024),
            by(&shared.cache, |_| 1024),
        ],
        _ => {
            let whole: fn(u32) -> u32 = |siblings| if siblings > 1 { 1178 / siblings * siblings } else { 1024 };
            let one: fn(u32) -> u32 = |siblings| if siblings > 1 { 1178 / siblings } else { 1024 };
            [
                by(&shared.core, one),
                by(&shared.core, whole),
                by(&shared.core, whole),
                by(&shared.core, whole),
                by(&shared.core, whole),
            ]
        }
    }
}

/// A node and the nodes nearest to it, 16 in all (`sched_domain_node_span`).
fn near_nodes(pool: &mut Pool, ask: &Ask<'_>) -> Vec<SpanId> {
    let table = &ask.machine.distances;
    let node_of = |cpu: CpuId| ask.machine.cpus[cpu as usize].place.node as usize;
    let mut cpus: Vec<Vec<CpuId>> = vec![Vec::new(); table.len()];
    ask.online.iter().for_each(|cpu| cpus[node_of(cpu)].push(cpu));
    let near = |node: usize| {
        let mut others: Vec<usize> = (0..table.len()).filter(|n| !cpus[*n].is_empty() && *n != node).collect();
        // Among nodes at the same distance, the next one by number comes first.
        others.sort_by_key(|n| (table[node][*n], (n + table.len() - node) % table.len()));
        others.truncate(NODES_PER_DOMAIN as usize - 1);
        others.push(node);
        others.iter().flat_map(|n| cpus[*n].iter().copied()).collect::<Vec<_>>()
    };
    let spans: Vec<SpanId> = (0..table.len()).map(|node| pool.of(&near(node))).collect();
    let none = pool.of(&[]);
    let mine = |cpu: CpuId| if ask.online.contains(cpu) { spans[node_of(cpu)] } else { none };
    (0..ask.cpus()).map(mine).collect()
}

/// Sets the `cpu_load[]` indices for a busy CPU, an idle CPU, a newly idle CPU, wake-ups, and fork and exec.
fn idx(params: Params, [busy, idle, newidle, wake, forkexec]: [u8; 5]) -> Params {
    let params = Params { busy_idx: busy, idle_idx: idle, newidle_idx: newidle, ..params };
    Params { wake_idx: wake, forkexec_idx: forkexec, ..params }
}

fn tries(params: Params, cache_nice_tries: u32) -> Params {
    Params { cache_nice_tries, ..params }
}

fn all_nodes(online: u32) -> Params {
    let params = Params { first_interval_ms: 64, ..Params::fixed(64, 64 * online, 128, 133) };
    idx(tries(params, 1), [3, 3, 0, 0, 0])
}

fn row_2_6_18(level: usize, online: u32) -> (Flags, Params) {
    let (flags, params) = match level {
        0 => (
            BALANCING.with(Flags::all(&[Flags::WAKE_AFFINE, Flags::WAKE_IDLE, Flags::SHARE_CPUCAPACITY])),
            idx(Params::fixed(1, 2, 8, 110), [0, 0, 1, 0, 0]),
        ),
        1 | 2 => (BALANCING.with(Flags::WAKE_AFFINE), idx(tries(Params::fixed(1, 4, 64, 125), 1), [2, 1, 2, 1, 1])),
        3 => (
            Flags::all(&[Flags::LOAD_BALANCE, Flags::BALANCE_FORK, Flags::BALANCE_EXEC, Flags::WAKE_BALANCE]),
            idx(tries(Params::fixed(8, 32, 32, 125), 2), [3, 2, 0, 1, 1]),
        ),
        _ => (Flags::LOAD_BALANCE, all_nodes(online)),
    };
    (flags, Params { per_cpu_gain: if level == 0 { 25 } else { 100 }, ..params })
}

fn row_2_6_24(level: usize, online: u32) -> (Flags, Params) {
    let waking = Flags::WAKE_AFFINE.with(Flags::WAKE_IDLE);
    match level {
        0 => (BALANCING.with(waking).with(Flags::SHARE_CPUCAPACITY), Params::fixed(1, 2, 64, 110)),
        1 => (
            BALANCING.with(waking).with(Flags::SHARE_LLC),
            idx(tries(Params::fixed(1, 4, 64, 125), 1), [2, 0, 0, 1, 1]),
        ),
        2 => (BALANCING.with(Flags::WAKE_AFFINE), idx(tries(Params::fixed(1, 4, 64, 125), 1), [2, 1, 2, 1, 1])),
        3 => (
            Flags::all(&[
                Flags::LOAD_BALANCE,
                Flags::BALANCE_FORK,
                Flags::BALANCE_EXEC,
                Flags::SERIALIZE,
                Flags::WAKE_BALANCE,
            ]),
            idx(tries(Params::fixed(8, 32, 32, 125), 2), [3, 2, 0, 1, 1]),
        ),
        _ => (Flags::LOAD_BALANCE.with(Flags::SERIALIZE), all_nodes(online)),
    }
}

fn row_2_6_32(level: usize, online: u32) -> (Flags, Params) {
    let flags = BALANCING.with(Flags::BALANCE_FORK).with(Flags::WAKE_AFFINE);
    match level {
        0 => (flags.with(Flags::SHARE_CPUCAPACITY), Params { smt_gain: 1178, ..Params::fixed(1, 2, 64, 110) }),
        1 => (
            flags.with(Flags::SHARE_LLC).with(Flags::PREFER_SIBLING),
            idx(tries(Params::fixed(1, 4, 64, 125), 1), [2, 0, 0, 0, 0]),
        ),
        2 => (flags.with(Flags::PREFER_SIBLING), idx(tries(Params::fixed(1, 4, 64, 125), 1), [2, 1, 0, 0, 0])),
        3 => (flags.with(Flags::SERIALIZE), idx(tries(Params::fixed(8, 32, 32, 125), 2), [3, 2, 0, 0, 0])),
        _ => {
            let flags = Flags::all(&[Flags::LOAD_BALANCE, Flags::BALANCE_NEWIDLE, Flags::SERIALIZE]);
            (flags, all_nodes(online))
        }
    }
}
