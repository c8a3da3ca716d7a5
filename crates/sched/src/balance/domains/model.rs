//! What was built: each CPU's domains, and the spans, groups and rings that they share.

use super::flags::{Flags, Words};
use schedlab_base::CpuId;
use schedlab_sim::CpuSet;

/// A set of CPUs of [`Domains`]: equal sets have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanId(pub(super) u32);

/// A group of [`Domains`]. It is what the kernel calls a `sched_group_capacity`: CPUs whose domains hold the same group
/// share what it remembers. Ids count from 0 to [`Domains::group_count`], so that a balancer may keep its own
/// array beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId(pub(super) u32);

impl GroupId {
    /// Its place in an array of all groups.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of CPUs, to be asked and to be gone through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The set.
    pub set: CpuSet,
    /// Its CPUs, the lowest first.
    pub cpus: Box<[CpuId]>,
}

impl Span {
    /// How many CPUs it has.
    #[inline]
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// Whether it has `cpu`.
    #[inline]
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.set.contains(cpu)
    }
}

/// Part of a domain: the CPUs among which load is not told apart when the domain is balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its CPUs.
    pub span: SpanId,
    /// Those of them that can get to it from below, and so may balance on its behalf; all of them unless groups
    /// overlap.
    pub mask: SpanId,
    /// What its CPUs are worth together, in the release's own scale: 128 a CPU until 2.6.18 (with less for a sibling,
    /// as that release counts it), 1024 after.
    pub capacity: u32,
    /// The flags of the domain that it is made of; none where it is made of a CPU.
    pub flags: Flags,
    /// The topology level that it belongs to, from the smallest up, removed levels counted.
    pub(super) level: u8,
}

/// The parameters of a domain. What a release does not have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Params {
    /// The least time between two balancings, in ms. A domain starts with [`Params::first_interval_ms`].
    pub min_interval_ms: u32,
    /// The most time between two balancings, in ms.
    pub max_interval_ms: u32,
    /// The interval before the first balancing, in ms (`balance_interval`).
    pub first_interval_ms: u32,
    /// A busy CPU's interval is so many times as long.
    pub busy_factor: u32,
    /// The busier side must carry so much for 100 of the other.
    pub imbalance_pct: u32,
    /// So many failures before a task whose cache is warm is moved.
    pub cache_nice_tries: u32,
    /// Which decayed load a busy CPU looks at (until 5.1).
    pub busy_idx: u8,
    /// Which decayed load an idle CPU looks at.
    pub idle_idx: u8,
    /// Which decayed load a CPU that becomes idle looks at.
    pub newidle_idx: u8,
    /// Which decayed load a wake-up looks at.
    pub wake_idx: u8,
    /// Which decayed load fork and exec look at.
    pub forkexec_idx: u8,
    /// A task that ran less long ago has a warm cache, in ns (2.6.11; 2.6.18 measures it when it boots).
    pub cache_hot_time_ns: u64,
    /// What a CPU is worth beside its siblings, in percent (2.6.11 and 2.6.18).
    pub per_cpu_gain: u32,
    /// What a core of siblings is worth, of 1024 (2.6.32 to 4.1).
    pub smt_gain: u32,
}

impl Params {
    /// Intervals that grow with the domain's CPUs.
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

    /// Intervals that do not.
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

/// A domain of one CPU. Its span, groups and parameters stand in [`Domains`], shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its CPUs.
    pub span: SpanId,
    /// Its flags.
    pub flags: Flags,
    /// How many tasks a node may have before NUMA imbalance counts (`imb_numa_nr`; 6.x).
    pub imb_numa_nr: u32,
    pub(super) ring: u32,
    pub(super) start: u32,
    pub(super) kind: u16,
}

/// A level's name and parameters, shared by the domains that have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub name: &'static str,
    pub params: Params,
}

/// How a machine's nodes are connected (`sched_numa_topology_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaKind {
    /// Each node reaches each other at once, or there is one.
    Direct,
    /// The way to far nodes leads over other nodes.
    GluelessMesh,
    /// The way to far nodes leads over something that is no node.
    Backplane,
}

/// All CPUs' domains as one set of online CPUs gives them.
#[derive(Clone, Debug)]
pub struct Domains {
    pub(super) online: CpuSet,
    /// Where each CPU's domains begin in `domains`; one more for the end.
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
    /// The CPUs within each of `distances`, by node.
    pub(super) hops: Vec<Vec<SpanId>>,
    /// By CPU, how many of its domains from the bottom are within its last-level cache.
    pub(super) cached: Vec<u8>,
}

impl Domains {
    /// The CPUs that they were built for.
    #[must_use]
    pub fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The domains of a CPU, from the smallest up; none of a CPU that is offline or alone.
    #[inline]
    #[must_use]
    pub fn of(&self, cpu: CpuId) -> &[Domain] {
        let at = cpu as usize;
        &self.domains[self.begin[at] as usize..self.begin[at + 1] as usize]
    }

    /// How many CPUs the machine has, offline ones counted.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.begin.len() as u32 - 1
    }

    /// A domain's place among those of all CPUs, for a balancer's own array beside ([`Domains::count`] long):
    /// the place of the `level`th domain of `cpu`.
    #[inline]
    #[must_use]
    pub fn index(&self, cpu: CpuId, level: usize) -> usize {
        self.begin[cpu as usize] as usize + level
    }

    /// How many domains all CPUs have together.
    #[must_use]
    pub fn count(&self) -> usize {
        self.domains.len()
    }

    /// The name of a domain's level, as the release has it: `MC`.
    #[must_use]
    pub fn name(&self, domain: &Domain) -> &'static str {
        self.kinds[usize::from(domain.kind)].name
    }

    /// A domain's parameters.
    #[inline]
    #[must_use]
    pub fn params(&self, domain: &Domain) -> &Params {
        &self.kinds[usize::from(domain.kind)].params
    }

    /// The names of flags in this release.
    pub fn flag_names(&self, flags: Flags) -> impl Iterator<Item = &'static str> {
        flags.names(self.words)
    }

    /// The CPUs behind an id.
    #[inline]
    #[must_use]
    pub fn span(&self, id: SpanId) -> &Span {
        &self.spans[id.0 as usize]
    }

    /// The group behind an id.
    #[inline]
    #[must_use]
    pub fn group(&self, id: GroupId) -> &Group {
        &self.groups[id.index()]
    }

    /// How many groups there are.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// A domain's groups in the order in which the kernel goes through them: the CPU's own first, then round.
    #[inline]
    pub fn groups(&self, domain: &Domain) -> impl Iterator<Item = GroupId> + '_ {
        let (before, from) = self.rings[domain.ring as usize].split_at(domain.start as usize);
        from.iter().chain(before).copied()
    }

    /// The `n`th of a domain's groups in that order.
    #[inline]
    #[must_use]
    pub fn nth_group(&self, domain: &Domain, n: usize) -> GroupId {
        let ring = &self.rings[domain.ring as usize];
        let at = domain.start as usize + n;
        ring[if at < ring.len() { at } else { at - ring.len() }]
    }

    /// Whether a group has `cpu`.
    #[inline]
    #[must_use]
    pub fn has(&self, group: GroupId, cpu: CpuId) -> bool {
        self.span(self.group(group).span).contains(cpu)
    }

    /// How many groups a domain has.
    #[inline]
    #[must_use]
    pub fn group_len(&self, domain: &Domain) -> usize {
        self.rings[domain.ring as usize].len()
    }

    /// The group of a domain that its own CPU is in.
    #[inline]
    #[must_use]
    pub fn local(&self, domain: &Domain) -> GroupId {
        self.rings[domain.ring as usize][domain.start as usize]
    }

    /// The CPU that balances on behalf of a group when none of its CPUs is idle (`group_balance_cpu`): the first of
    /// its mask.
    #[must_use]
    pub fn balance_cpu(&self, group: GroupId) -> Option<CpuId> {
        self.span(self.group(group).mask).cpus.first().copied()
    }

    /// The highest of the domains from the bottom that all have `flag`: `highest_flag_domain`, which gives `sd_llc`.
    #[must_use]
    pub fn highest(&self, cpu: CpuId, flag: Flags) -> Option<usize> {
        self.of(cpu).iter().take_while(|domain| domain.flags.has(flag)).count().checked_sub(1)
    }

    /// The domain of a CPU's last-level cache (`sd_llc`): `highest` of [`Flags::SHARE_LLC`].
    #[inline]
    #[must_use]
    pub fn cache(&self, cpu: CpuId) -> Option<usize> {
        usize::from(self.cached[cpu as usize]).checked_sub(1)
    }

    /// The lowest domain that has `flag`: `lowest_flag_domain`, which gives `sd_numa` and `sd_asym_cpucapacity`.
    #[must_use]
    pub fn lowest(&self, cpu: CpuId, flag: Flags) -> Option<usize> {
        self.of(cpu).iter().position(|domain| domain.flags.has(flag))
    }

    /// The flag of domains whose CPUs are of every capacity: until 5.13, of different ones.
    #[must_use]
    pub fn all_capacities(&self) -> Flags {
        self.all_capacities
    }

    /// The distances between nodes that have CPUs, the least first (from 3.10 on; older kernels do not look).
    #[must_use]
    pub fn distances(&self) -> &[u32] {
        &self.distances
    }

    /// How the nodes are connected, for NUMA balancing.
    #[must_use]
    pub fn numa_kind(&self) -> NumaKind {
        self.numa
    }

    /// The first of `wanted` among the CPUs nearest to `node` (`sched_numa_find_closest`).
    #[must_use]
    pub fn closest(&self, wanted: &CpuSet, node: u32) -> Option<CpuId> {
        self.hops.iter().find_map(|by_node| {
            let near = by_node.get(node as usize)?;
            self.span(*near).cpus.iter().copied().find(|cpu| wanted.contains(*cpu))
        })
    }
}
