//! What a node is worth to a task: how many in 1000 of its faults, or of its group's, are there.

use super::groups::Group;
use super::{Node, Numa};
use crate::balance::domains::NumaKind;
use schedlab_base::v;
use schedlab_sim::TaskId;

/// The distance of a node to itself.
const LOCAL: u32 = 10;

impl Numa {
    /// The faults on the memory of nodes near `node`, on machines whose nodes are not all at the same distance
    /// (`score_nearby_nodes`).
    fn nearby(&self, node: Node, limit: u32, faults: &dyn Fn(Node) -> i64) -> i64 {
        if self.kind == NumaKind::Direct {
            return 0;
        }
        let mut score = 0;
        for other in 0..self.node_count() as Node {
            let distance = self.distance(node, other);
            // "sched/numa: Fix NUMA topology for systems with CPU-less nodes" (5.18).
            let farthest = if self.release >= v(5, 18) { distance >= self.farthest } else { distance == self.farthest };
            // "sched/numa: Skip nodes that are at 'hoplimit'" (4.19).
            let beyond = if self.release >= v(4, 19) { distance >= limit } else { distance > limit };
            if other == node || farthest || (self.kind == NumaKind::Backplane && beyond) {
                continue;
            }
            let mut on = faults(other);
            if self.kind == NumaKind::GluelessMesh {
                on = on * (i64::from(self.farthest) - i64::from(distance)) / i64::from(self.farthest - LOCAL);
            }
            score += on;
        }
        score
    }

    fn weight(&self, node: Node, limit: u32, total: i64, faults: &dyn Fn(Node) -> i64) -> i64 {
        if total == 0 { 0 } else { 1000 * (faults(node) + self.nearby(node, limit, faults)) / total }
    }

    /// The part of a task's faults on a node's memory, in thousandths (`task_weight`). `distance` is the distance
    /// between the nodes that are compared.
    #[must_use]
    pub fn task_weight(&self, p: TaskId, node: Node, distance: u32) -> i64 {
        let Some(faults) = &self.tasks[p as usize].faults else { return 0 };
        self.weight(node, distance, faults.total, &|node| faults.on(node))
    }

    /// The part of its group's faults on a node's memory, in thousandths (`group_weight`); 0 without a group.
    #[must_use]
    pub fn group_weight(&self, p: TaskId, node: Node, distance: u32) -> i64 {
        let Some(group) = self.group_of(p) else { return 0 };
        self.weight(node, distance, group.total, &|node| group.on(node))
    }

    /// The node that a task of a group prefers, given that `most` has the most faults (`preferred_group_nid`).
    #[must_use]
    pub(super) fn preferred_of_group(&self, p: TaskId, most: Node) -> Node {
        let Some(group) = self.group_of(p) else { return most };
        match self.kind {
            // "sched/numa: Find the preferred nid with complex NUMA topology" (3.19).
            _ if self.release < v(3, 19) => most,
            NumaKind::Direct => most,
            NumaKind::GluelessMesh => {
                let (mut best, mut score) = (most, 0);
                for node in 0..self.node_count() as Node {
                    let weight = self.group_weight(p, node, self.farthest);
                    if weight > score {
                        (best, score) = (node, weight);
                    }
                }
                best
            }
            NumaKind::Backplane => self.down_the_backplane(group, most),
        }
    }

    /// Narrows the nodes down to the set of near nodes with the most faults, then to a set of nearer nodes in it, and
    /// so on.
    fn down_the_backplane(&self, group: &Group, most: Node) -> Node {
        let mut nodes: Vec<Node> = (0..self.node_count() as Node).collect();
        let mut distances: Vec<u32> = self.distances.iter().flatten().copied().filter(|d| *d > LOCAL).collect();
        distances.sort_unstable();
        distances.dedup();
        let mut best = most;
        for &distance in distances.iter().rev() {
            let (mut left, mut faults, mut set) = (nodes.clone(), 0, Vec::new());
            for &a in &nodes {
                if !left.contains(&a) {
                    continue;
                }
                let (near, far): (Vec<Node>, Vec<Node>) = left.iter().partition(|b| self.distance(a, **b) < distance);
                left = far;
                let sum: i64 = near.iter().map(|node| group.on(*node)).sum();
                if sum > faults {
                    (faults, set, best) = (sum, near, a);
                }
            }
            if faults == 0 {
                break;
            }
            nodes = set;
        }
        best
    }
}
