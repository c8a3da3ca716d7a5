//! NUMA balancing (3.13 on): memory moves to the tasks that use it, and tasks move to their memory.
//!
//! # Idea
//! The kernel cannot see which task uses which page. It therefore periodically unmaps a piece of a process's memory,
//! without freeing it, and observes which task faults on it and from which node. Memory that is used from another node
//! is migrated there, unless several tasks use it. A task moves to the node with most of its memory, if that node has a
//! better place for it than its current one.
//!
//! # Rule
//! *Scan.* When a task has run for a scan period since its last scan and its memory is due, the tick unmaps the next
//! `scan_size` of that memory. The first scan comes after `scan_delay`. After that the period adapts to the faults: it
//! gets longer if they were local or shared and shorter if they were remote, between `scan_period_min` and
//! `scan_period_max`, each divided by the number of such pieces in the memory.
//!
//! *Faults.* A fault on a remote page migrates the page to the faulting task's node, if the same task also faulted on
//! it last time, from this node. A single chance access therefore moves nothing. Tasks that fault on the same pages
//! form a group, and between nodes that a group uses, pages only move to even out the group's memory.
//!
//! *Preferred node.* When all of the memory has been scanned, the old fault counts are halved and the new faults added.
//! The node with the most faults of the task, or of its group if it has one, becomes the preferred node.
//!
//! *Move.* A task that is not on its preferred node looks for a CPU there. That is an idle CPU, if the load stays
//! balanced, or one whose task would be as well or better off on the current node, in which case the two tasks are
//! swapped. The criterion is by how many in 1000 the accesses of both together become more local. If the preferred node
//! has no such CPU, the task tries the other nodes where it would gain.
//!
//! # State
//! [`faults`]: each task's fault counts by node, shared or private. [`groups`]: the tasks that share memory.
//! [`memory`]: how far each memory has been scanned, and which tasks used it last. [`period`]: scan periods. [`choose`]
//! and [`choose_spare`] (5.7 on): where to move. [`place`]: preferred nodes. [`locality`]: what the load balancer asks.
//! [`limit`]: the rate limit on page migration.
//!
//! # Tunables
//! `numa_balancing`; `numa_balancing_scan_delay_ms`, `numa_balancing_scan_period_min_ms`,
//! `numa_balancing_scan_period_max_ms`, `numa_balancing_scan_size_mb` (from 5.13 on
//! `numa_balancing/scan_delay_ms` and so on).
//!
//! # Differences from the kernel
//! - A task uses all of its memory evenly. The faults on a scanned piece are therefore divided among the tasks that
//!   have the memory, in proportion to their CPU time since the last scan. Each task takes its faults at its next tick,
//!   all at once. Faults are counted in whole 4 KiB pages. In the kernel they are random; the counts here are the
//!   kernel's averages.
//! - Which task used a page last is recorded per memory, without distinguishing the nodes that the pages are on.
//! - A page can be migrated unless all of its memory is pinned: a node never runs full.
//! - Scanning and faulting take time from the task, as given by the machine's costs for 4 KiB pages. Huge pages, which
//!   fault once for 512 pages, are not modelled. Consecutive faults are counted at a single instant, except by the rate
//!   limit of 3.18 and 4.1 ([`limit`]), which spaces them by the time that they take.
//! - A memory is a single area (VMA). From 6.6 on the kernel skips areas that the task has not used recently, if there
//!   are others. For a single area only the delay of a new area remains.
//! - Memory tiers (`numa_balancing` 2) are not modelled.
//! - The two migrations of a swap happen one after the other at the same time, and the first CPU is idle in between. A
//!   task that is asleep by then is not moved.
//!
//! # Reference
//! kernel/sched/fair.c of 3.18, 4.1, 6.1, 6.6 and 6.12 (`task_numa_*`, `task_tick_numa`), mm/memory.c and
//! mm/mempolicy.c.

pub mod choose;
pub mod choose_spare;
pub mod faults;
pub mod groups;
pub mod limit;
pub mod locality;
pub mod memory;
pub mod period;
pub mod place;
pub mod sight;
pub mod weigh;
mod work;

#[cfg(test)]
mod tests;

use crate::balance::domains::{Domains, NumaKind};
use faults::Faults;
use groups::Group;
use limit::Limit;
use memory::Space;
use period::Settings;
use schedlab_base::{CpuId, Nanos, Release};
use schedlab_machine::Machine;
use schedlab_sim::TaskId;

/// The number of a node.
pub type Node = u32;

/// The size of a page, in bytes.
pub const PAGE: u64 = 4096;

/// The NUMA balancing state of a task.
#[derive(Clone, Debug, Default)]
pub struct OfTask {
    /// Its fault counts, allocated at its first fault.
    pub faults: Option<Box<Faults>>,
    /// The node on which it should run; `None` if no preferred node is known yet.
    pub preferred: Option<Node>,
    /// The index of the group that it is in.
    pub group: Option<usize>,
    /// Its scan period, in ms.
    pub period_ms: u64,
    /// The longest that the period may become when nothing faults, in ms.
    pub period_max_ms: u64,
    /// The CPU time at which its last scan period ended (`node_stamp`), in ns.
    pub stamp: Nanos,
    /// The pass over its memory at which its fault counts were last updated.
    pub seq: u32,
    /// The tick after which it tries again to move to its preferred node.
    pub retry: u64,
    /// The time at which its fault counts were last updated and its CPU time then, in ns; 0 means never.
    pub placed: (Nanos, Nanos),
    /// The pages that faulted remotely, that faulted locally, and that could not be migrated, since the period was last
    /// adapted.
    pub locality: [u64; 3],
    /// The number of pages migrated for it.
    pub moved: u64,
    /// The memory that it uses, unless the memory is bound.
    pub space: Option<u32>,
    /// For each node, the bytes of scanned memory on which it has yet to fault.
    pub pending: Vec<u64>,
}

/// A migration that waits for a stopper to carry it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The task to migrate.
    pub p: TaskId,
    /// The CPU that it leaves.
    pub from: CpuId,
    /// The CPU that it goes to.
    pub to: CpuId,
    /// Whether it is one half of a swap.
    pub swap: bool,
}

/// The state of NUMA balancing.
#[derive(Debug)]
pub struct Numa {
    release: Release,
    settings: Settings,
    kind: NumaKind,
    distances: Vec<Vec<u32>>,
    farthest: u32,
    /// The node of each CPU.
    nodes: Vec<Node>,
    tasks: Vec<OfTask>,
    groups: Vec<Group>,
    spaces: Vec<Space>,
    /// The migrations that have been requested and not carried out yet.
    moves: Vec<Move>,
    /// The rate limit of page migration to each node (until 4.19).
    limits: Vec<Limit>,
    scratch: Vec<u64>,
}

impl Numa {
    /// Sets up NUMA balancing of a release on a machine with several nodes.
    #[must_use]
    pub fn new(release: Release, machine: &Machine, domains: &Domains, settings: Settings) -> Self {
        let distances = machine.distances.clone();
        let farthest = domains.distances().last().copied().unwrap_or(0);
        Self {
            release,
            settings,
            kind: domains.numa_kind(),
            farthest,
            nodes: machine.cpus.iter().map(|cpu| cpu.place.node).collect(),
            tasks: Vec::new(),
            groups: Vec::new(),
            spaces: Vec::new(),
            moves: Vec::new(),
            limits: vec![Limit::default(); distances.len()],
            scratch: vec![0; distances.len()],
            distances,
        }
    }

    /// The number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.distances.len()
    }

    /// The node of a CPU.
    #[inline]
    #[must_use]
    pub fn node_of(&self, cpu: CpuId) -> Node {
        self.nodes[cpu as usize]
    }

    /// The CPUs of a node, in ascending order.
    pub fn cpus_of(&self, node: Node) -> impl Iterator<Item = CpuId> + '_ {
        (0..self.nodes.len() as CpuId).filter(move |cpu| self.nodes[*cpu as usize] == node)
    }

    /// The NUMA balancing state of a task. Panics if `p` has not been forked.
    #[must_use]
    pub fn task(&self, p: TaskId) -> &OfTask {
        &self.tasks[p as usize]
    }

    /// The group of a task, if it has one.
    #[must_use]
    pub fn group_of(&self, p: TaskId) -> Option<&Group> {
        self.tasks[p as usize].group.map(|g| &self.groups[g])
    }

    fn distance(&self, a: Node, b: Node) -> u32 {
        self.distances[a as usize][b as usize]
    }
}
