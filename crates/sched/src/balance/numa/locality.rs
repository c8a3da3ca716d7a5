//! What NUMA balancing says to the load balancer: whom to leave alone, and whom to take.

use super::{Node, Numa};
use schedlab_base::{CpuId, v};
use schedlab_sim::TaskId;

/// What is to be thought of moving a task between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// It is moved, warm cache or not.
    Better,
    /// It is left where it is, as if its cache were warm, unless that failed too often.
    Worse,
    /// Its cache decides.
    Equal,
}

impl Numa {
    /// What moving a task from one CPU to another comes to, in balancing a domain across nodes
    /// (`migrate_improves_locality`, `migrate_degrades_locality`). `leaves`: the CPU has runnable tasks that are not on
    /// their preferred node; `idle`: the destination idles.
    #[must_use]
    pub fn locality(&self, p: TaskId, from: CpuId, to: CpuId, leaves: bool, idle: bool) -> Locality {
        let (from, to) = (self.node_of(from), self.node_of(to));
        let Some(of) = self.tasks.get(p as usize) else { return Locality::Equal };
        let Some(faults) = of.faults.as_deref().filter(|_| from != to) else { return Locality::Equal };
        // "sched/numa: Prefer NUMA hotness over cache hotness" (4.3). What follows is as "sched/numa: Use group_weights
        // to identify if migration degrades locality" (4.19) left it.
        if self.release < v(4, 3) {
            // NUMA_RESIST_LOWER is off: nobody is kept.
            let better = match self.group_of(p) {
                Some(group) if group.active[from as usize] => false,
                Some(group) => group.active[to as usize] || group.on(to) > group.on(from),
                None => of.preferred == Some(to) || faults.on(to) > faults.on(from),
            };
            return if better { Locality::Better } else { Locality::Equal };
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
        if weight(to) < weight(from) { Locality::Worse } else { Locality::Better }
    }

    /// A task goes to another CPU, awake or asleep: where that takes it off its preferred node, its memory is scanned
    /// sooner (`update_scan_period`; "sched/numa: Reset scan rate whenever task moves across nodes", 4.19).
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
