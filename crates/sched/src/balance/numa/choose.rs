//! Choosing a CPU for a task that is not on its preferred node, until 5.6 (`task_numa_migrate`, `task_numa_compare`).

use super::sight::{Best, Sight};
use super::{Node, Numa};
use crate::balance::domains::NumaKind;
use schedlab_base::{CpuId, v};
use schedlab_sim::TaskId;

/// The statistics of a node (`struct numa_stats`).
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    running: i64,
    load: i64,
    capacity: i64,
    /// The number of tasks that the node has full cores for.
    tasks: i64,
    room: bool,
}

/// The state of a search (`struct task_numa_env`).
struct Env {
    p: TaskId,
    from: (CpuId, Node),
    to: Node,
    source: Stats,
    target: Stats,
    pct: i64,
    distance: u32,
    best: Option<Best>,
}

impl Env {
    fn gain(&self) -> i64 {
        self.best.map_or(0, |best| best.gain)
    }
}

/// The best CPU, if any, and the node that was looked at last.
pub(super) type Found = (Option<Best>, Node);

impl Numa {
    /// By how many in 1000 the accesses of a task, and those of its group, become more local by moving from one node to
    /// another.
    pub(super) fn gains(&self, p: TaskId, from: Node, to: Node, distance: u32) -> (i64, i64) {
        let task = self.task_weight(p, to, distance) - self.task_weight(p, from, distance);
        (task, self.group_weight(p, to, distance) - self.group_weight(p, from, distance))
    }

    /// The best CPU for `p` on its preferred node, or otherwise on any node where it gains. `None` if no domain of the
    /// CPU spans several nodes.
    pub(super) fn find_3_18(&self, sight: &impl Sight, p: TaskId, at: CpuId, preferred: Node) -> Option<Found> {
        let here = self.node_of(at);
        let (pct, _) = sight.across_nodes(at)?;
        let distance = self.distance(here, preferred);
        let source = self.stats(sight, here);
        let mut env = Env {
            p,
            from: (at, here),
            to: preferred,
            source,
            target: self.stats(sight, preferred),
            pct: 100 + (pct - 100) / 2,
            distance,
            best: None,
        };
        let gains = self.gains(p, here, preferred, distance);
        self.look_3_18(sight, &mut env, gains);
        // The change came somewhere between 3.18 and 3.19.
        let spread =
            self.release >= v(3, 19) && self.group_of(p).is_some_and(|group| group.active_count(self.release) > 1);
        if env.best.is_none() || spread {
            let mut weighed = distance;
            for node in (0..self.node_count() as Node).filter(|node| *node != here && *node != preferred) {
                // As in the kernel, this is the distance to the node that was looked at before.
                let distance = self.distance(here, env.to);
                if self.kind == NumaKind::Backplane && distance != env.distance {
                    weighed = distance;
                }
                let there = |d| (self.task_weight(p, node, d), self.group_weight(p, node, d));
                let (task, group) = there(distance);
                let gains = (task - self.task_weight(p, here, weighed), group - self.group_weight(p, here, weighed));
                if gains.0 < 0 && gains.1 < 0 {
                    continue;
                }
                (env.distance, env.to) = (distance, node);
                env.target = self.stats(sight, node);
                self.look_3_18(sight, &mut env, gains);
            }
        }
        Some((env.best, env.to))
    }

    fn stats(&self, sight: &impl Sight, node: Node) -> Stats {
        let mut stats = Stats::default();
        let mut cpus = 0;
        for cpu in self.cpus_of(node) {
            stats.running += i64::from(sight.nr_running(cpu));
            stats.load += sight.load(cpu);
            stats.capacity += sight.capacity(cpu);
            cpus += 1;
        }
        if cpus > 0 {
            let threads = (1024 * cpus + stats.capacity - 1) / stats.capacity.max(1);
            stats.tasks = (cpus / threads.max(1)).min((stats.capacity + 512) / 1024);
            stats.room = stats.running < stats.tasks;
        }
        stats
    }

    fn look_3_18(&self, sight: &impl Sight, env: &mut Env, gains: (i64, i64)) {
        let p = env.p;
        for cpu in self.cpus_of(env.to).filter(|cpu| sight.allowed(p, *cpu)) {
            if let Some(better) = self.compare_3_18(sight, env, cpu, gains) {
                env.best = Some(better);
            }
        }
    }

    /// The combined gain of two tasks that swap CPUs. `own` and `all` are the gains of the first task and of its group.
    fn swap_gain(&self, env: &Env, other: TaskId, own: i64, all: i64) -> i64 {
        let back = |weight: &dyn Fn(Node) -> i64| weight(env.from.1) - weight(env.to);
        let task = |node| self.task_weight(other, node, env.distance);
        let group = |node| self.group_weight(other, node, env.distance);
        let (mine, theirs) = (self.tasks[env.p as usize].group, self.tasks[other as usize].group);
        if mine == theirs {
            let gain = own + back(&task);
            // Some hysteresis within a group.
            return if mine.is_some() { gain - gain / 16 } else { gain };
        }
        all + if theirs.is_some() { back(&group) } else { back(&task) }
    }

    fn compare_3_18(&self, sight: &impl Sight, env: &Env, cpu: CpuId, (own, all): (i64, i64)) -> Option<Best> {
        let other = sight.curr(cpu);
        if other == Some(env.p) {
            return None;
        }
        let alone = if self.tasks[env.p as usize].group.is_some() { all } else { own };
        let gain = match other {
            Some(other) if !sight.allowed(other, env.from.0) => return None,
            Some(other) => self.swap_gain(env, other, own, alone),
            None => alone,
        };
        if gain <= env.gain() && alone <= env.gain() {
            return None;
        }
        if let Some(other) = other {
            // Balance hardly matters if each CPU has only one task.
            if gain > env.gain() && sight.nr_running(env.from.0) == 1 && sight.nr_running(cpu) == 1 {
                return Some(Best { cpu, with: Some(other), gain });
            }
        } else if env.source.running <= env.source.tasks && !env.target.room {
            return None;
        }
        let load = sight.task_load(env.p);
        let (mut target, mut source) = (env.target.load + load, env.source.load - load);
        if alone > gain && alone > env.gain() && !self.too_uneven(env, source, target) {
            // Slightly less, so that an idle CPU is preferred.
            return Some(Best { cpu, with: None, gain: alone - 1 });
        }
        if gain <= env.gain() {
            return None;
        }
        if let Some(other) = other {
            let load = sight.task_load(other);
            (target, source) = (target - load, source + load);
        }
        if self.too_uneven(env, source, target) {
            return None;
        }
        let cpu = if other.is_none() { sight.idle_beside(env.p, cpu) } else { cpu };
        Some(Best { cpu, with: other, gain })
    }

    /// Whether the given loads are too imbalanced, and more so than at present (`load_too_imbalanced`).
    fn too_uneven(&self, env: &Env, source: i64, target: i64) -> bool {
        let (from, to) = (env.source.capacity, env.target.capacity);
        let uneven = |source: i64, target: i64| source.max(target) * from * 100 - source.min(target) * to * env.pct;
        let imbalance = uneven(source, target);
        if imbalance <= 0 {
            return false;
        }
        // "sched/numa: Do not move past the balance point if unbalanced" (4.1), reverted in 4.2.
        if self.release < v(4, 1) || self.release >= v(4, 2) {
            return imbalance > uneven(env.source.load, env.target.load);
        }
        // The move must go towards the balance point but not past it.
        if env.source.load - source > 0 { source * to < target * from } else { target * from < source * to }
    }
}
