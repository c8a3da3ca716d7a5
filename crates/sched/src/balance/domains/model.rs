//! The built domains of each CPU, and the spans, groups and rings that they share.

use super::flags::{Flags, Words};
use schedlab_base::CpuId;
use schedlab_sim::CpuSet;

/// The id of a set of CPUs in [`Domains`]. Equal sets have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanId(pub(super) u32);

/// The id of a group in [`Domains`]. A group corresponds to the kernel's `sched_group_capacity`: CPUs whose domains
/// contain the same group share its state. Ids count from 0 to [`Domains::group_count`], so that a balancer can keep
/// arrays indexed by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId(pub(super) u32);

impl GroupId {
    /// The index of the group in an array of all groups.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of CPUs, stored both as a bit set and as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The CPUs as a bit set.
    pub set: CpuSet,
    /// The CPUs in ascending order.
    pub cpus: Box<[CpuId]>,
}

impl Span {
    /// The number of CPUs.
    #[inline]
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// Whether the span contains `cpu`.
    #[inline]
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.set.contains(cpu)
    }
}

/// A part of a domain. Balancing the domain compares groups as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The CPUs of the group.
    pub span: SpanId,
    /// The CPUs whose own domain below is this group, and which may therefore balance on its behalf (the balance mask).
    /// Unless groups overlap, these are all CPUs of the group.
    pub mask: SpanId,
    /// The sum of the CPUs' capacities in the release's own unit: 128 per CPU until 2.6.18 (less for an SMT sibling, by
    /// the release's own rule), and 1024 after that.
    pub capacity: u32,
    /// The flags of the child domain that the group consists of; none for a group that is a single CPU.
    pub flags: Flags,
    /// The topology level of the group, counted from the smallest and including removed levels.
    pub(super) level: u8,
}

/// The parameters of a domain. Parameters that a release does not have are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Params {
    /// The shortest interval between two balancing passes, in ms. A domain starts with [`Params::first_interval_ms`].
    pub min_interval_ms: u32,
    /// The longest interval between two balancing passes, in ms.
    pub max_interval_ms: u32,
    /// The interval before the first balancing, in ms (`balance_interval`).
    pub first_interval_ms: u32,
    /// The factor by which the interval of a busy CPU is longer.
    pub busy_factor: u32,
    /// The busier side's load must exceed this percentage of the other's.
    pub imbalance_pct: u32,
    /// The number of failed attempts after which cache-hot tasks are migrated too.
    pub cache_nice_tries: u32,
    /// The `cpu_load[]` index that a busy CPU uses (until 5.2).
    pub busy_idx: u8,
    /// The `cpu_load[]` index that an idle CPU uses.
    pub idle_idx: u8,
    /// The `cpu_load[]` index that a newly idle CPU uses.
    pub newidle_idx: u8,
    /// The `cpu_load[]` index that a wake-up uses.
    pub wake_idx: u8,
    /// The `cpu_load[]` index that fork and exec use.
    pub forkexec_idx: u8,
    /// A task is cache-hot for this long after it ran, in ns (2.6.11; 2.6.18 measures it at boot).
    pub cache_hot_time_ns: u64,
    /// The capacity of a CPU that shares its core with siblings, in percent (2.6.11 and 2.6.18).
    pub per_cpu_gain: u32,
    /// The capacity of a core with SMT siblings, where 1024 is a core without (2.6.32 to 4.1).
    pub smt_gain: u32,
}

impl Params {
    /// Parameters with intervals that grow with the number of CPUs.
    pub(super) fn of_weight(weight: u32, busy_factor: u32, imbalance_pct: u32) -> Self {
        Self {
            min_interval_ms: weight,
            max_interval_ms: 2 * weight,
            first_interval_ms: weight,
            busy_factor,
            imbalance_pct,
            ..Self::default()
        }
    }

    /// Parameters with fixed intervals.
    pub(super) fn fixed(min: u32, max: u32, busy_factor: u32, imbalance_pct: u32) -> Self {
        Self {
            min_interval_ms: min,
            max_interval_ms: max,
            first_interval_ms: 1,
            busy_factor,
            imbalance_pct,
            ..Self::default()
        }
    }
}

/// A domain of one CPU. Its span, groups and parameters are shared and stored in [`Domains`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The CPUs of the domain.
    pub span: SpanId,
    /// The flags of the domain.
    pub flags: Flags,
    /// The number of tasks that a node may have before NUMA imbalance counts (`imb_numa_nr`, from 5.18 on).
    pub imb_numa_nr: u32,
    pub(super) ring: u32,
    pub(super) start: u32,
    pub(super) kind: u16,
}

/// A level's name and parameters, shared by all domains that have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub name: &'static str,
    pub params: Params,
}

/// The NUMA topology of a machine (`sched_numa_topology_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaKind {
    /// All nodes are directly connected, or there is only one.
    Direct,
    /// Distant nodes are reached through other nodes.
    GluelessMesh,
    /// Distant nodes are reached through a backplane, which is not itself a node.
    Backplane,
}

/// The domains of all CPUs for one set of online CPUs.
#[derive(Clone, Debug)]
pub struct Domains {
    pub(super) online: CpuSet,
    /// The index in `domains` at which each CPU's domains begin, with one more entry for the end.
    pub(super) begin: Vec<u32>,
    pub(super) domains: Vec<Domain>,
    pub(super) kinds: Vec<Kind>,
    pub(super) spans: Vec<Span>,
    pub(super) groups: Vec<Group>,
    pub(super) rings: Vec<Box<[GroupId]>>,
    pub(super) words: &'static Words,
    pub(super) all_capacities: Flags,
    pub(super) distances: Vec<u32>,
    pub(super) numa: NumaKind,
    /// For each of `distances`, the CPUs within that distance of each node.
    pub(super) hops: Vec<Vec<SpanId>>,
    /// For each CPU, how many of its domains, from the lowest, lie within its last-level cache.
    pub(super) cached: Vec<u8>,
}

impl Domains {
    /// The CPUs that were online when the domains were built.
    #[must_use]
    pub fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The domains of a CPU, smallest first. Empty if the CPU is offline or has no other CPU to balance with.
    #[inline]
    #[must_use]
    pub fn of(&self, cpu: CpuId) -> &[Domain] {
        let at = cpu as usize;
        &self.domains[self.begin[at] as usize..self.begin[at + 1] as usize]
    }

    /// The number of CPUs of the machine, including offline ones.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.begin.len() as u32 - 1
    }

    /// The index of the domain of `cpu` at `level` among the domains of all CPUs, for a balancer's own arrays of length
    /// [`Domains::count`].
    #[inline]
    #[must_use]
    pub fn index(&self, cpu: CpuId, level: usize) -> usize {
        self.begin[cpu as usize] as usize + level
    }

    /// The number of domains of all CPUs together.
    #[must_use]
    pub fn count(&self) -> usize {
        self.domains.len()
    }

    /// The name of a domain's level in the release, for example `MC`.
    #[must_use]
    pub fn name(&self, domain: &Domain) -> &'static str {
        self.kinds[usize::from(domain.kind)].name
    }

    /// The parameters of a domain.
    #[inline]
    #[must_use]
    pub fn params(&self, domain: &Domain) -> &Params {
        &self.kinds[usize::from(domain.kind)].params
    }

    /// The names of flags in this release.
    pub fn flag_names(&self, flags: Flags) -> impl Iterator<Item = &'static str> {
        flags.names(self.words)
    }

    /// The span with an id.
    #[inline]
    #[must_use]
    pub fn span(&self, id: SpanId) -> &Span {
        &self.spans[id.0 as usize]
    }

    /// The group with an id.
    #[inline]
    #[must_use]
    pub fn group(&self, id: GroupId) -> &Group {
        &self.groups[id.index()]
    }

    /// The number of groups.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// The groups of a domain in the order in which the kernel visits them: the local group first, then around the
    /// ring.
    #[inline]
    pub fn groups(&self, domain: &Domain) -> impl Iterator<Item = GroupId> + '_ {
        let (before, from) = self.rings[domain.ring as usize].split_at(domain.start as usize);
        from.iter().chain(before).copied()
    }

    /// The group at position `n` in the order of [`Domains::groups`].
    #[inline]
    #[must_use]
    pub fn nth_group(&self, domain: &Domain, n: usize) -> GroupId {
        let ring = &self.rings[domain.ring as usize];
        let at = domain.start as usize + n;
        ring[if at < ring.len() { at } else { at - ring.len() }]
    }

    /// Whether a group contains `cpu`.
    #[inline]
    #[must_use]
    pub fn has(&self, group: GroupId, cpu: CpuId) -> bool {
        self.span(self.group(group).span).contains(cpu)
    }

    /// The number of groups of a domain.
    #[inline]
    #[must_use]
    pub fn group_len(&self, domain: &Domain) -> usize {
        self.rings[domain.ring as usize].len()
    }

    /// The local group of a domain: the one that contains the domain's CPU.
    #[inline]
    #[must_use]
    pub fn local(&self, domain: &Domain) -> GroupId {
        self.rings[domain.ring as usize][domain.start as usize]
    }

    /// The CPU that balances on behalf of a group if none of its CPUs is idle (`group_balance_cpu`): the first of its
    /// mask.
    #[must_use]
    pub fn balance_cpu(&self, group: GroupId) -> Option<CpuId> {
        self.span(self.group(group).mask).cpus.first().copied()
    }

    /// The level of the highest domain such that it and all domains below it have `flag` (`highest_flag_domain`, which
    /// the kernel uses for `sd_llc`).
    #[must_use]
    pub fn highest(&self, cpu: CpuId, flag: Flags) -> Option<usize> {
        self.of(cpu).iter().take_while(|domain| domain.flags.has(flag)).count().checked_sub(1)
    }

    /// The level of the domain of a CPU's last-level cache (`sd_llc`): `highest` for [`Flags::SHARE_LLC`].
    #[inline]
    #[must_use]
    pub fn cache(&self, cpu: CpuId) -> Option<usize> {
        usize::from(self.cached[cpu as usize]).checked_sub(1)
    }

    /// The level of the lowest domain with `flag` (`lowest_flag_domain`, which the kernel uses for `sd_numa` and
    /// `sd_asym_cpucapacity`).
    #[must_use]
    pub fn lowest(&self, cpu: CpuId, flag: Flags) -> Option<usize> {
        self.of(cpu).iter().position(|domain| domain.flags.has(flag))
    }

    /// The flag of domains that cover all CPU capacities. Until 5.13 it is the flag of domains with different
    /// capacities.
    #[must_use]
    pub fn all_capacities(&self) -> Flags {
        self.all_capacities
    }

    /// The distances between nodes that have CPUs, in ascending order. Empty before 3.10, where kernels do not use
    /// them.
    #[must_use]
    pub fn distances(&self) -> &[u32] {
        &self.distances
    }

    /// The NUMA topology, as NUMA balancing uses it.
    #[must_use]
    pub fn numa_kind(&self) -> NumaKind {
        self.numa
    }

    /// The first CPU of `wanted` at the smallest distance from `node` (`sched_numa_find_closest`).
    #[must_use]
    pub fn closest(&self, wanted: &CpuSet, node: u32) -> Option<CpuId> {
        self.hops.iter().find_map(|by_node| {
            let near = by_node.get(node as usize)?;
            self.span(*near).cpus.iter().copied().find(|cpu| wanted.contains(*cpu))
        })
    }
}
