//! NUMA balancing (3.13 on): memory moves to the tasks that use it, and tasks to their memory.
//!
//! # Idea
//! The kernel cannot see who uses which page. So now and then it takes a piece of a process's memory away from it
//! (without freeing it) and sees who faults on it, from which node. What is used from elsewhere is moved there, unless
//! several use it; a task moves to the node on which most of its memory is, if there is a better place than its own.
//!
//! # Rule
//! *Scan.* At the tick, when a task has run for a scan period since the last time and its memory's next scan is due,
//! the next `scan_size` of that memory is made to fault. The period begins at `scan_delay`; then it follows what the
//! faults were: longer when they were local or shared, shorter when they were remote, between `scan_period_min` and
//! `scan_period_max` divided by how many such pieces the memory has.
//!
//! *Faults.* A fault on a page of another node moves the page to the faulting task's node: when the same task also
//! faulted on it last time, and from this node, so that a chance use moves nothing. Tasks that fault on the same pages
//! become a group; between nodes that a group uses, pages move only to even them out.
//!
//! *Preferred node.* When all of the memory has been scanned, the faults are halved and the new ones added. The node
//! with the most (of the task's group, if it has one) is the preferred one.
//!
//! *Move.* A task that is not on its preferred node looks there for a CPU: an idle one, where the load stays even, or
//! one whose task would do as well or better on this node: the two are swapped. What counts is by how much of 1000 the
//! accesses become local, of both together. Failing that, it looks at nodes where it is better off than here.
//!
//! # State
//! [`faults`]: what each task's faults were, by node, shared or private. [`groups`]: the tasks that share memory.
//! [`memory`]: how far each memory is scanned, and who used it last. [`period`]: scan periods. [`choose`] and
//! [`choose_spare`] (5.7 on): where to move. [`place`]: preferred nodes. [`locality`]: what the load balancer asks.
//! [`limit`]: how much moves at a time.
//!
//! # Tunables
//! `numa_balancing`; `numa_balancing_scan_delay_ms`, `numa_balancing_scan_period_min_ms`,
//! `numa_balancing_scan_period_max_ms`, `numa_balancing_scan_size_mb` (from 5.13 on
//! `numa_balancing/scan_delay_ms` and so on).
//!
//! # Differences from the kernel
//! - A task uses all of its memory alike, so a scanned piece is used by the tasks that have that memory in the
//!   proportion of their CPU time since the last scan; each of them takes its faults at its next tick, all at once.
//!   Faults are counted in whole numbers of 4 KiB pages, where the kernel draws them: the counts are what it has on
//!   average.
//! - Of the pages of one memory those on one node are not told from those on another by who used them last.
//! - A page can be moved unless all of its memory is pinned: no node runs full.
//! - What a scan and the faults after it take is the task's time (the machine's costs), as of pages of 4 KiB; huge
//!   pages, which would fault once for 512, are not told. Faults that follow one another are counted at one instant,
//!   but for the limit of 3.18 and 4.1 on how much is moved to a node ([`limit`]), which sees them as far apart as they
//!   take.
//! - A memory is one area. From 6.6 on areas that the task has not used of late are left out if there are others; of
//!   one alone what remains is that it is left out while it is new.
//! - Tiers of memory (`numa_balancing` 2) are not modelled.
//! - The two moves of a swap follow one another at the same time, with the first CPU idle between them; a task that
//!   sleeps by then is not moved.
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

/// A node's number.
pub type Node = u32;

/// The size of a page.
pub const PAGE: u64 = 4096;

/// What is remembered of a task.
#[derive(Clone, Debug, Default)]
pub struct OfTask {
    /// Its faults, once it had one.
    pub faults: Option<Box<Faults>>,
    /// The node on which it should run; `None`: none is known yet.
    pub preferred: Option<Node>,
    /// The group that it is in.
    pub group: Option<usize>,
    /// Its scan period, in ms.
    pub period_ms: u64,
    /// The longest that the period may grow to when nothing faults, in ms.
    pub period_max_ms: u64,
    /// The CPU time at which its last period ended (`node_stamp`).
    pub stamp: Nanos,
    /// Which pass over its memory its faults were last added up for.
    pub seq: u32,
    /// The tick after which it tries again to get to its preferred node.
    pub retry: u64,
    /// When its faults were last added up, and its CPU time then; 0: never.
    pub placed: (Nanos, Nanos),
    /// Pages that faulted remotely, locally, and that could not be moved, since the period was last adapted.
    pub locality: [u64; 3],
    /// Pages that were moved for it.
    pub moved: u64,
    /// The memory that it has.
    pub space: Option<u32>,
    /// Bytes of each node on which it is still to fault.
    pub pending: Vec<u64>,
}

/// A move that waits for a stopper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Who is to move.
    pub p: TaskId,
    /// From where.
    pub from: CpuId,
    /// To where.
    pub to: CpuId,
    /// It makes room for another, or takes the room.
    pub swap: bool,
}

/// All that NUMA balancing remembers.
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
    /// Moves that have been asked for.
    moves: Vec<Move>,
    /// How much may still be moved to each node (until 4.19).
    limits: Vec<Limit>,
    scratch: Vec<u64>,
}

impl Numa {
    /// NUMA balancing of a release on a machine with several nodes.
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

    /// How many nodes there are.
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

    /// The CPUs of a node.
    pub fn cpus_of(&self, node: Node) -> impl Iterator<Item = CpuId> + '_ {
        (0..self.nodes.len() as CpuId).filter(move |cpu| self.nodes[*cpu as usize] == node)
    }

    /// What is remembered of a task.
    #[must_use]
    pub fn task(&self, p: TaskId) -> &OfTask {
        &self.tasks[p as usize]
    }

    /// The group of a task.
    #[must_use]
    pub fn group_of(&self, p: TaskId) -> Option<&Group> {
        self.tasks[p as usize].group.map(|g| &self.groups[g])
    }

    fn distance(&self, a: Node, b: Node) -> u32 {
        self.distances[a as usize][b as usize]
    }
}
