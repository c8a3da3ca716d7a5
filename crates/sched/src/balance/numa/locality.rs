//! What NUMA balancing contributes to the load balancer's choice of tasks.

use super::{Node, Numa};
use crate::balance::fair::Features;
use schedlab_base::{CpuId, v};
use schedlab_sim::TaskId;
use std::cmp::Ordering;

/// How migrating a task between nodes affects the locality of its memory accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// It improves: the task may be migrated even if it is cache-hot.
    Better,
    /// It degrades: the task stays as if it were cache-hot, until balancing has failed too often.
    Worse,
    /// It does not matter: only cache hotness decides.
    Equal,
}

impl Numa {
    /// The effect of migrating a task when a domain across nodes is balanced (`migrate_improves_locality`,
    /// `migrate_degrades_locality`). `leaves` says that the source CPU has runnable tasks that are not on their
    /// preferred node, and `idle` that the destination CPU is idle.
    #[must_use]
    pub fn locality(
        &self,
        p: TaskId,
        (from, to): (CpuId, CpuId),
        leaves: bool,
        idle: bool,
        features: &Features,
    ) -> Locality {
        let (from, to) = (self.node_of(from), self.node_of(to));
        let Some(of) = self.tasks.get(p as usize) else { return Locality::Equal };
        let Some(faults) = of.faults.as_deref().filter(|_| from != to) else { return Locality::Equal };
        // "sched/numa: Prefer NUMA hotness over cache hotness" (4.3). The rest is as of "sched/numa: Use group_weights
        // to identify if migration degrades locality" (4.19).
        if self.release < v(4, 3) {
            // Whether node `a` is better for it than `b`, on which it is or to which it goes.
            let is_better = |a: Node, b: Node| match self.group_of(p) {
                Some(group) if group.active[b as usize] => false,
                Some(group) => group.active[a as usize] || group.on(a) > group.on(b),
                None => of.preferred == Some(a) || faults.on(a) > faults.on(b),
            };
            return if features.numa_favour_higher && is_better(to, from) {
                Locality::Better
            } else if features.numa_resist_lower && is_better(from, to) {
                Locality::Worse
            } else {
                Locality::Equal
            };
        }
        if of.preferred == Some(from) {
            return if leaves { Locality::Worse } else { Locality::Equal };
        }
        if of.preferred == Some(to) {
            return Locality::Better;
        }
        if idle {
            return Locality::Equal;
        }
        let distance = self.distance(from, to);
        let weight = |node: Node| match of.group {
            Some(_) => self.group_weight(p, node, distance),
            None => self.task_weight(p, node, distance),
        };
        match weight(to).cmp(&weight(from)) {
            Ordering::Less => Locality::Worse,
            // "sched/fair: Fix value reported by hot tasks pulled in /proc/schedstat" (6.14).
            Ordering::Equal if self.release >= v(6, 14) => Locality::Equal,
            _ => Locality::Better,
        }
    }

    /// Called when a task changes CPU, awake or asleep. If it leaves its preferred node, its memory is scanned sooner
    /// (`update_scan_period`; "sched/numa: Reset scan rate whenever task moves across nodes", 4.19).
    pub fn moves(&mut self, p: TaskId, from: CpuId, to: CpuId) {
        let (from, to) = (self.node_of(from), self.node_of(to));
        if self.release < v(4, 19) || from == to {
            return;
        }
        let Some(of) = self.tasks.get(p as usize).filter(|of| of.faults.is_some()) else { return };
        let home = |node| of.preferred == Some(node);
        if of.seq > 0 && (home(to) || (of.preferred.is_some() && !home(from))) {
            return;
        }
        self.tasks[p as usize].period_ms = self.first(p);
    }
}
