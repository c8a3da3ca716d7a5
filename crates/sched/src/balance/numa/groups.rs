//! Groups of tasks that fault on the same pages (`struct numa_group`).

use super::faults::{Change, Faults, Pair};
use super::period::Sharing;
use super::{Node, Numa};
use schedlab_base::{CpuId, Release, v};
use schedlab_sim::TaskId;

/// A group of tasks that share memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The task that founded it.
    pub founder: TaskId,
    /// The number of tasks in it.
    pub tasks: u32,
    /// The sum of its tasks' faults on the memory of each node.
    pub memory: Vec<Pair>,
    /// The sum of its tasks' faults from the CPUs of each node.
    pub cpu: Vec<Pair>,
    /// The sum of `memory`.
    pub total: i64,
    /// The nodes that it uses actively (until 4.5).
    pub active: Vec<bool>,
    /// The number of nodes that it uses actively (4.6 on).
    pub active_nodes: u32,
    /// The highest number of faults from one node's CPUs (4.6 on).
    pub most_cpu: i64,
}

/// The release from which a node is active by its part of the most active one: "sched/numa: Spread memory according to
/// CPU and memory use" (4.6).
const BY_A_THIRD: Release = v(4, 6);
/// A node is active if it has more than 1/`ACTIVE` of the faults of the most active node.
const ACTIVE: i64 = 3;

fn add(to: &mut [Pair], what: &[Pair], sign: i64) {
    for (to, what) in to.iter_mut().zip(what) {
        (to[0], to[1]) = (to[0] + sign * what[0], to[1] + sign * what[1]);
    }
}

impl Group {
    /// Creates a group with one task.
    fn of(founder: TaskId, faults: &Faults, node: Node) -> Self {
        let mut active = vec![false; faults.memory.len()];
        active[node as usize] = true;
        let Faults { memory, cpu, total, .. } = faults.clone();
        Self { founder, tasks: 1, memory, cpu, total, active, active_nodes: 1, most_cpu: 0 }
    }

    /// The group's faults on a node's memory.
    #[must_use]
    pub fn on(&self, node: Node) -> i64 {
        self.memory[node as usize].iter().sum()
    }

    /// The group's faults from a node's CPUs.
    #[must_use]
    pub fn from(&self, node: Node) -> i64 {
        self.cpu[node as usize].iter().sum()
    }

    /// Whether the group uses a node actively.
    #[must_use]
    pub fn is_active(&self, release: Release, node: Node) -> bool {
        if release >= BY_A_THIRD { self.from(node) * ACTIVE > self.most_cpu } else { self.active[node as usize] }
    }

    /// The number of nodes that the group uses actively.
    #[must_use]
    pub fn active_count(&self, release: Release) -> u32 {
        if release >= BY_A_THIRD {
            self.active_nodes
        } else {
            self.active.iter().map(|active| u32::from(*active)).sum()
        }
    }

    /// The number of tasks and the shared and private faults, as the scan period needs them.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        let sum = |private: usize| self.memory.iter().map(|pair| pair[private]).sum::<i64>().max(0) as u64;
        Sharing { tasks: u64::from(self.tasks), shared: sum(0), private: sum(1) }
    }

    /// Adds the change of the fault counts of one of its tasks after a pass.
    pub(super) fn change(&mut self, change: &Change) {
        add(&mut self.memory, &change.memory, 1);
        add(&mut self.cpu, &change.cpu, 1);
        self.total += change.memory.iter().flatten().sum::<i64>();
    }

    /// Updates the active nodes: `update_numa_active_node_mask`, which has some hysteresis, and
    /// `numa_group_count_active_nodes`.
    pub(super) fn update_active(&mut self) {
        let nodes = 0..self.memory.len() as Node;
        let most = nodes.clone().map(|node| self.from(node)).max().unwrap_or(0).max(0);
        for node in nodes.clone() {
            let faults = self.from(node);
            let active = self.active[node as usize];
            self.active[node as usize] = if active { faults >= most * 3 / 16 } else { faults > most * 6 / 16 };
        }
        self.active_nodes = nodes.map(|node| u32::from(self.from(node) * ACTIVE > most)).sum();
        self.most_cpu = most;
    }

    fn take(&mut self, faults: &Faults, sign: i64) {
        add(&mut self.memory, &faults.memory, sign);
        add(&mut self.cpu, &faults.cpu, sign);
        self.total += sign * faults.total;
        self.tasks = (i64::from(self.tasks) + sign) as u32;
    }
}

impl Numa {
    /// Called when `p`, on node `node`, faults on a page that `other` faulted on last. `p` joins the group of `other`
    /// if that group is bigger (`task_numa_group`). Both must use the same memory, so they are threads of one process;
    /// `runs` says whether `other` is running on a CPU of the node from which it faulted.
    pub(super) fn meet(&mut self, p: TaskId, node: Node, other: TaskId, runs: bool) {
        if self.tasks[p as usize].group.is_none() {
            let Some(faults) = &self.tasks[p as usize].faults else { return };
            self.groups.push(Group::of(p, faults, node));
            self.tasks[p as usize].group = Some(self.groups.len() - 1);
        }
        let (Some(own), Some(theirs)) = (self.tasks[p as usize].group, self.tasks[other as usize].group) else {
            return;
        };
        if !runs || own == theirs {
            return;
        }
        // Of two groups with the same number of tasks the kernel keeps the one at the higher address. Here it is the
        // older one.
        let (ours, bigger) = (self.groups[own].tasks, self.groups[theirs].tasks);
        if ours > bigger || (ours == bigger && own < theirs) {
            return;
        }
        let Some(faults) = self.tasks[p as usize].faults.take() else { return };
        self.groups[own].take(&faults, -1);
        self.groups[theirs].take(&faults, 1);
        self.tasks[p as usize].faults = Some(faults);
        self.tasks[p as usize].group = Some(theirs);
    }

    /// Removes a task that exits (`task_numa_free`).
    pub fn forget(&mut self, p: TaskId) {
        let Some(of) = self.tasks.get_mut(p as usize) else { return };
        let of = std::mem::take(of);
        if let (Some(group), Some(faults)) = (of.group, &of.faults) {
            self.groups[group].take(faults, -1);
        }
        if let Some(space) = of.space {
            self.spaces[space as usize].users.retain(|(user, _)| *user != p);
        }
        self.moves.retain(|wanted| wanted.p != p);
    }

    /// The group's shared and private faults, in releases where they lengthen the scan period ("sched/numa: Scale scan
    /// period with tasks in group and shared/private", 4.14).
    pub(super) fn sharing(&self, p: TaskId) -> Option<Sharing> {
        if self.release >= v(4, 14) { self.group_of(p).map(Group::sharing) } else { None }
    }

    /// Whether a page on node `from` that several tasks use is migrated to `to`, the node from which `p` faulted on it
    /// (the last part of `should_numa_migrate_memory`).
    #[must_use]
    pub(super) fn group_moves(&self, p: TaskId, from: Node, to: Node) -> bool {
        let Some(group) = self.group_of(p) else { return true };
        if self.release >= BY_A_THIRD {
            return group.from(to) > group.from(from) * ACTIVE
                || group.from(to) * group.on(from) * 3 > group.from(from) * group.on(to) * 4;
        }
        if !group.active[to as usize] {
            return false;
        }
        !group.active[from as usize] || group.on(to) < group.on(from) * 3 / 4
    }

    /// The CPUs of a node, in ascending order, as a list.
    #[must_use]
    pub fn cpu_list(&self, node: Node) -> Vec<CpuId> {
        self.cpus_of(node).collect()
    }
}
