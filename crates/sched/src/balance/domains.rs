//! Sched domains and groups: the hierarchy in which a kernel balances load, as each release builds it.
//!
//! # Idea
//!
//! Tasks should move between nearby CPUs often and quickly, and between distant ones rarely and for good reason. Each
//! CPU therefore has a list of domains, each a larger set of CPUs around it: its core, its cache, its node, and nodes
//! further and further away. A domain is divided into groups, which are the domains one level below. To balance a
//! domain, the kernel finds the busiest group, then the busiest CPU in that group, and pulls tasks from there.
//!
//! # Rule
//!
//! [`Builder`] takes a release, a machine and the set of online CPUs, and builds [`Domains`]. The releases differ as
//! follows:
//!
//! | release | levels | groups |
//! |---|---|---|
//! | 2.6.0 | none: a node's CPUs, then the node with the most running tasks; shown as two levels without flags | |
//! | 2.6.11 | SIBLING, CPU (a node), NODE (all nodes); all kept | by CPU, core, node |
//! | 2.6.18 to 2.6.32 | SIBLING, MC, CPU, NODE (16 nodes), ALLNODES (beyond 16) | NODE's are nodes, from one's own |
//! | 3.10 | SIBLING, MC, CPU, NUMA by node 0's distances | overlapping, as the lowest CPU of the span sees them |
//! | 3.18, 4.1 | SMT, MC, DIE (if no package holds several nodes), NUMA as before | as before |
//! | 5.10, 5.15 | SMT, MC, DIE, NODE, NUMA by all distances | overlapping, as each CPU sees them, with masks |
//! | 6.1 | the same with CLS (an L2) after SMT | |
//! | 6.6, 6.12 | the same; DIE is PKG | |
//!
//! A domain that adds nothing to the one below it is removed (`prune.rs`) by the rules of that release. Equal spans,
//! groups, rings of groups and parameters are stored once. A machine of 4096 CPUs has some 20,000 domains and fewer
//! than 10,000 groups.
//!
//! # State
//!
//! [`Domains`] is immutable: [`Builder::offline`] and [`Builder::online`] return a new one. A balancer keeps its own
//! state of a domain (last balancing, interval, failures) or of a group (whether it is imbalanced) in arrays of its
//! own, indexed by [`Domains::index`] and [`GroupId::index`]. It resets that state at each rebuild, as the kernel does.
//!
//! # Tunables
//!
//! [`GROUP_CONSTRUCTION`] and [`MISSING_DOMAINS`] are the fixes of two of the four bugs of "A Decade of Wasted Cores".
//! They exist in the profiles of the releases that have these bugs.
//!
//! # Differences from the kernel
//!
//! - The architecture is x86, without packing by priority (ITMT), books or drawers.
//! - Nothing is shared across nodes. A cache that firmware reports as shared counts once per node, as in x86 kernels.
//! - Missing domains: when a CPU comes back, the source falls back to the levels for packages with several nodes, SMT
//!   and MC (`set_cpu_sibling_map`), if the CPU's package is one, as on the paper's machine. A machine file with one
//!   node per socket does not say whether its nodes are dies of one package. The paper describes the bug for NUMA
//!   machines in general, so it is assumed here unless `nodes_per_package = 1` says that each node is a package of its
//!   own.
//! - A group is a single object for all CPUs whose domains at a level contain it. The kernel has several copies of an
//!   overlapping group that share their `sched_group_capacity`. Before 4.13 only rings that had built the group from
//!   the same CPU shared it.
//! - `relax_domain_level` and power saving are not modelled.
//! - 2.6.18 measures cache-hot times at boot; they are not modelled.
//!
//! # Reference
//!
//! `kernel/sched/topology.c` of 6.1, 6.6 and 6.12 (`sched_init_numa`, `sd_init`, `build_sched_groups`,
//! `build_overlap_sched_groups`, `build_balance_mask`, `find_descended_sibling`, `sd_parent_degenerate`,
//! `cpu_attach_domain`); `kernel/sched/core.c` of 3.10, 3.18 and 4.1; `kernel/sched.c` of 2.6.11 to 2.6.32; the
//! `SD_*_INIT` of their `topology.h`; `arch/x86/kernel/smpboot.c`. Lozi et al., "The Linux Scheduler: a Decade of
//! Wasted Cores", EuroSys 2016, sections 3.2 and 3.4. The tests compare 6.1 and 6.12 with the domains that real kernels
//! built on 42 machines, at boot and while CPUs went offline and came back.
//!
//! # How a balancer uses it
//!
//! ```
//! use schedlab_machine::MachineFile;
//! use schedlab_sched::balance::domains::{Fixes, Flags};
//! use schedlab_sched::kernels;
//!
//! let machine = MachineFile::flat("m", 1, 4, 2).build()?;
//! let domains = kernels::find("linux-6.12")?.domains(&machine, Fixes::default())?.build();
//! for domain in domains.of(0) {
//!     let local = domains.local(domain);
//!     for group in domains.groups(domain).filter(|group| *group != local) {
//!         let cpus = &domains.span(domains.group(group).span).cpus;
//!         assert!(!cpus.contains(&0), "a balancer sums up their loads here");
//!     }
//! }
//! assert_eq!(domains.highest(0, Flags::SHARE_LLC), Some(1), "where a wake-up looks for an idle CPU");
//! # Ok::<(), schedlab_base::Error>(())
//! ```

mod asymmetry;
mod classic;
mod flags;
mod levels;
mod model;
mod pool;
mod prune;
mod release;
mod rings;
mod tree;

pub use flags::{Flags, Words};
pub use model::{Domain, Domains, Group, GroupId, NumaKind, Params, Span, SpanId};
pub use release::{Fixes, GROUP_CONSTRUCTION, MISSING_DOMAINS};

use levels::Levels;
use pool::Pool;
use schedlab_base::{CpuId, Release, v};
use schedlab_machine::Machine;
use schedlab_sim::CpuSet;
use std::borrow::Cow;

/// Builds the domains, and rebuilds them when a CPU goes offline or comes online.
#[derive(Clone, Debug)]
pub struct Builder<'a> {
    release: Release,
    machine: Cow<'a, Machine>,
    fixes: Fixes,
    online: CpuSet,
    leaving: Option<CpuId>,
    nodes_lost: bool,
}

impl<'a> Builder<'a> {
    /// Creates the builder for a kernel that booted with all CPUs online.
    #[must_use]
    pub(crate) fn new(release: Release, machine: &'a Machine, fixes: Fixes) -> Self {
        let cpus: Vec<CpuId> = (0..machine.cpus.len() as CpuId).collect();
        let machine = Cow::Borrowed(machine);
        Self { release, machine, fixes, online: CpuSet::of(&cpus), leaving: None, nodes_lost: false }
    }

    /// Converts it into a builder that owns its machine.
    #[must_use]
    pub fn into_owned(self) -> Builder<'static> {
        let Self { release, machine, fixes, online, leaving, nodes_lost } = self;
        Builder { release, machine: Cow::Owned(machine.into_owned()), fixes, online, leaving, nodes_lost }
    }

    /// The CPUs that are online.
    #[must_use]
    pub fn cpus_online(&self) -> &CpuSet {
        &self.online
    }

    /// Takes a CPU offline and rebuilds the domains of the others.
    ///
    /// # Panics
    /// Panics if it is the last online CPU, which no kernel allows to go offline.
    pub fn offline(&mut self, cpu: CpuId) -> Domains {
        let rest = self.online.without(cpu);
        assert!(!rest.is_empty(), "the last CPU stays online");
        self.leaving = self.online.contains(cpu).then_some(cpu);
        self.online = rest;
        self.build()
    }

    /// Brings a CPU online and rebuilds all domains.
    pub fn online(&mut self, cpu: CpuId) -> Domains {
        self.leaving = None;
        self.online = self.online.with(cpu);
        self.nodes_lost |= self.loses_nodes();
        self.build()
    }

    /// Whether the levels across nodes are lost when a CPU comes back. This happens if `set_cpu_sibling_map` finds a
    /// CPU of the same package on another node. A machine file that does not say what its packages contain is assumed
    /// to have such packages.
    fn loses_nodes(&self) -> bool {
        let has_bug = release::loses_levels(self.release) && !self.fixes.missing_domains;
        has_bug && self.machine.nodes() > 1 && self.machine.nodes_per_package != Some(1)
    }

    /// Builds the domains of each partition by itself (`partition_sched_domains`). An isolated CPU has none.
    fn build_parts(&self, ask: &Ask<'_>, mut build: impl FnMut(&Ask<'_>) -> Vec<Vec<Domain>>) -> Vec<Vec<Domain>> {
        let mut lists = vec![Vec::new(); ask.cpus() as usize];
        for part in [self.machine.common_cpus()].iter().chain(&self.machine.partitions) {
            let online = self.online.and(&CpuSet::of(part));
            if online.is_empty() {
                continue;
            }
            let built = build(&Ask { online: &online, ..*ask });
            for cpu in online.iter() {
                lists[cpu as usize].clone_from(&built[cpu as usize]);
            }
        }
        lists
    }

    /// Builds the domains for the current set of online CPUs.
    #[must_use]
    pub fn build(&self) -> Domains {
        let Self { release, fixes, leaving, nodes_lost, .. } = *self;
        let machine = &*self.machine;
        let ask = Ask { release, words: Words::of(release), machine, fixes, online: &self.online, leaving, nodes_lost };
        let mut pool = Pool::default();
        // "sched/numa: Rewrite the CONFIG_NUMA sched domain support" (between 3.1 and 3.6).
        let levels = if release < v(3, 6) { Levels::none() } else { levels::levels(&mut pool, &ask) };
        let mut build = |ask: &Ask<'_>| {
            if release < v(3, 6) { classic::build(&mut pool, ask) } else { tree::build(&mut pool, ask, &levels) }
        };
        let mut lists = if machine.is_split() { self.build_parts(&ask, build) } else { build(&ask) };
        if let Some(rules) = prune::Rules::of(release, machine.nodes()) {
            lists.iter_mut().for_each(|domains| rules.prune(&pool, domains));
        }
        let mut begin = vec![0];
        begin.extend(lists.iter().scan(0, |sum, domains| {
            *sum += domains.len() as u32;
            Some(*sum)
        }));
        let in_cache = |domain: &&Domain| domain.flags.has(Flags::SHARE_LLC);
        Domains {
            cached: lists.iter().map(|list| list.iter().take_while(in_cache).count() as u8).collect(),
            online: self.online.clone(),
            begin,
            domains: lists.concat(),
            kinds: pool.kinds,
            spans: pool.spans,
            groups: pool.groups,
            rings: pool.rings,
            words: ask.words,
            all_capacities: release::all_capacities(release),
            distances: levels.distances,
            numa: levels.numa,
            hops: levels.hops,
        }
    }
}

/// The input for building domains.
struct Ask<'a> {
    release: Release,
    words: &'static Words,
    machine: &'a Machine,
    fixes: Fixes,
    online: &'a CpuSet,
    /// The CPU that is going offline, if any.
    leaving: Option<CpuId>,
    /// Whether the levels across nodes have been lost.
    nodes_lost: bool,
}

impl Ask<'_> {
    fn cpus(&self) -> u32 {
        self.machine.cpus.len() as u32
    }

    /// Whether the kernel's masks still contain a CPU.
    fn counts(&self, cpu: CpuId) -> bool {
        self.online.contains(cpu) || release::counts_the_leaving(self.release) && self.leaving == Some(cpu)
    }
}

#[cfg(test)]
mod tests;
