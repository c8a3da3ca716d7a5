//! Preferred nodes, and the attempts to move tasks to them (`task_numa_placement`, `numa_migrate_preferred`).

use super::faults::Change;
use super::period::{Seen, adapt};
use super::sight::{Best, Sight};
use super::{Node, Numa};
use schedlab_base::{CpuId, Nanos, v};
use schedlab_sim::TaskId;

/// The circumstances of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time.
    pub now: Nanos,
    /// The time as a tick count.
    pub jiffies: u64,
    /// The length of a tick, in ns.
    pub tick: Nanos,
    /// The CPU on which the task faults.
    pub cpu: CpuId,
    /// The time up to which the task's CPU time is accounted, and that CPU time, in ns.
    pub account: (Nanos, Nanos),
    /// The fraction of recent time that the task was runnable, out of 1024.
    pub runnable: u64,
}

impl Moment {
    /// Converts ms to ticks, rounded up.
    pub(super) fn ticks(&self, ms: u64) -> u64 {
        (ms * 1_000_000).div_ceil(self.tick)
    }
}

/// The largest sum that a PELT average can reach (`LOAD_AVG_MAX`).
const LOAD_MAX: u64 = 47_742;

impl Numa {
    /// The size of the memory that a task uses, in bytes.
    pub(super) fn resident(&self, p: TaskId) -> u64 {
        self.tasks[p as usize].space.map_or(0, |space| self.spaces[space as usize].bytes)
    }

    fn shortest(&self, p: TaskId) -> u64 {
        self.settings.shortest(self.resident(p))
    }

    fn longest(&self, p: TaskId) -> u64 {
        self.settings.longest(self.resident(p), self.sharing(p))
    }

    /// The scan period with which scanning starts, in ms.
    pub(super) fn first(&self, p: TaskId) -> u64 {
        self.settings.first(self.resident(p), self.sharing(p))
    }

    /// How long the task ran since its fault counts were last updated, and the length of that time
    /// (`numa_get_avg_runtime`).
    fn ran(&mut self, p: TaskId, at: &Moment) -> (u64, u64) {
        let (now, runtime) = at.account;
        let (before, had) = std::mem::replace(&mut self.tasks[p as usize].placed, (now, runtime));
        if before == 0 { (at.runnable * LOAD_MAX / 1024, LOAD_MAX) } else { (runtime - had, now - before) }
    }

    /// If a pass over its memory is complete, updates the task's fault counts and its preferred node
    /// (`task_numa_placement`).
    pub(super) fn placement(&mut self, p: TaskId, at: &Moment) {
        let Some(space) = self.tasks[p as usize].space else { return };
        let seq = self.spaces[space as usize].seq;
        if std::mem::replace(&mut self.tasks[p as usize].seq, seq) == seq {
            return;
        }
        self.tasks[p as usize].period_max_ms = self.longest(p);
        let [remote, local, _] = self.tasks[p as usize].locality;
        let (runtime, period) = self.ran(p, at);
        let Some(faults) = &mut self.tasks[p as usize].faults else { return };
        let change = faults.decay(runtime, period, remote + local);
        let group = self.tasks[p as usize].group;
        if let Some(group) = group {
            self.groups[group].change(&change);
        }
        let preferred = self.most(p);
        // Until "sched/numa: Update the scan period without holding the numa_group lock" (4.19) the period was adapted
        // first.
        let adapts_last = self.release >= v(4, 19);
        if !adapts_last {
            self.adapt(p, &change, at);
        }
        if let Some(group) = group {
            self.groups[group].update_active();
        }
        if let Some(most) = preferred {
            let node = if group.is_some() { self.preferred_of_group(p, most) } else { most };
            self.tasks[p as usize].preferred = Some(node);
        }
        if adapts_last {
            self.adapt(p, &change, at);
        }
    }

    /// The node with the most faults of the task, or of its group if it has one; `None` without any faults.
    fn most(&self, p: TaskId) -> Option<Node> {
        let of = &self.tasks[p as usize];
        let faults = of.faults.as_deref()?;
        let on = |node: Node| self.group_of(p).map_or_else(|| faults.on(node), |group| group.on(node));
        let nodes = 0..self.node_count() as Node;
        // Until "sched/numa: Use task faults only if numa_group is not yet set up" (4.19) the task itself must have had
        // some faults.
        let own = self.release >= v(4, 19) || nodes.clone().any(|node| faults.on(node) > 0);
        nodes.rev().filter(|node| own && on(*node) > 0).max_by_key(|node| on(*node))
    }

    fn adapt(&mut self, p: TaskId, change: &Change, at: &Moment) {
        let range = (self.shortest(p), self.longest(p));
        let of = &self.tasks[p as usize];
        let [remote, local, failed] = of.locality;
        let [shared, private] = change.fresh.map(|pages| pages as u64);
        let seen = Seen { remote, local, failed, shared, private };
        let adapted = adapt(self.release, of.period_ms, of.period_max_ms, range, seen);
        let of = &mut self.tasks[p as usize];
        of.period_ms = adapted.period_ms;
        if adapted.forget {
            of.locality = [0; 3];
        }
        if adapted.postpone
            && let Some(space) = of.space
        {
            self.spaces[space as usize].next_scan = at.jiffies + at.ticks(adapted.period_ms);
        }
    }

    /// Looks for a CPU for a task that is not on its preferred node (`numa_migrate_preferred`, `task_numa_migrate`).
    /// `None` if the task is already there or no CPU is better.
    pub fn find(&mut self, sight: &impl Sight, p: TaskId, at: &Moment) -> Option<Best> {
        let of = &self.tasks[p as usize];
        let preferred = of.preferred.filter(|_| of.faults.is_some())?;
        let period = (of.period_ms * 1_000_000).div_ceil(at.tick);
        self.tasks[p as usize].retry = at.jiffies + (1_000_000_000 / at.tick).min(period / 16);
        let here = self.node_of(at.cpu);
        if here == preferred {
            return None;
        }
        // "sched/numa: Use similar logic to the load balancer for moving between domains with spare capacity" (5.7).
        if self.release >= v(5, 7) {
            let Some(best) = self.find_6(sight, p, at.cpu, preferred) else {
                self.tasks[p as usize].preferred = Some(here);
                return None;
            };
            self.prefers_found(p, best, here);
            return best;
        }
        let Some((best, last)) = self.find_3_18(sight, p, at.cpu, preferred) else {
            self.tasks[p as usize].preferred = Some(here);
            return None;
        };
        // "sched/numa: Set preferred_node based on best_cpu" (4.19).
        if self.release >= v(4, 19) {
            self.prefers_found(p, best, here);
            return best;
        }
        if let Some(group) = self.group_of(p) {
            let node = if best.is_some() { last } else { here };
            if group.is_active(self.release, node) {
                self.tasks[p as usize].preferred = Some(last);
            }
        }
        if best.is_some() {
            self.tasks[p as usize].period_ms = self.shortest(p);
        }
        best
    }

    /// Makes a task of a group prefer the node where the best CPU was found, or its current node if none was found.
    fn prefers_found(&mut self, p: TaskId, best: Option<Best>, here: Node) {
        if self.tasks[p as usize].group.is_some() {
            let node = best.map_or(here, |best| self.node_of(best.cpu));
            self.tasks[p as usize].preferred = Some(node);
        }
    }
}
