//! Choosing a CPU for a task that is not on its preferred node, from 5.7 on: nodes are classified by their spare
//! capacity, and idle CPUs of nodes with spare capacity come first.

use super::sight::{Best, Sight};
use super::{Node, Numa};
use crate::balance::domains::NumaKind;
use schedlab_base::{CpuId, v};
use schedlab_sim::TaskId;

/// A swap must gain at least this many in 1000 (`SMALLIMP`).
const SMALL: i64 = 30;
/// How many more tasks one of two nodes may have (`NUMA_IMBALANCE_MIN`).
const BEARABLE: i64 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    HasSpare,
    FullyBusy,
    Overloaded,
}

/// The statistics of a node (`struct numa_stats`).
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    load: i64,
    running: i64,
    capacity: i64,
    cpus: i64,
    kind: Kind,
    idle: Option<CpuId>,
}

/// The state of a search (`struct task_numa_env`).
struct Env {
    p: TaskId,
    from: (CpuId, Node),
    to: Node,
    source: Stats,
    target: Stats,
    pct: i64,
    bearable: i64,
    distance: u32,
    best: Option<Best>,
}

impl Env {
    fn gain(&self) -> i64 {
        self.best.map_or(0, |best| best.gain)
    }
}

/// The result of comparing one CPU with the best so far.
enum Verdict {
    No,
    Take(Option<TaskId>, i64),
    /// The task itself is running there, so the search ends.
    Stop,
}

impl Numa {
    /// The best CPU for `p` on its preferred node, or otherwise on any node where it gains. The outer `None` means that
    /// no domain of the CPU spans several nodes.
    pub(super) fn find_6(&self, sight: &impl Sight, p: TaskId, at: CpuId, preferred: Node) -> Option<Option<Best>> {
        let here = self.node_of(at);
        let (pct, bearable) = sight.across_nodes(at)?;
        let pct = 100 + (pct - 100) / 2;
        let distance = self.distance(here, preferred);
        let mut env = Env {
            p,
            from: (at, here),
            to: preferred,
            source: self.stats_6(sight, p, here, pct, false),
            target: self.stats_6(sight, p, preferred, pct, true),
            pct,
            bearable: i64::from(bearable),
            distance,
            best: None,
        };
        self.look_6(sight, &mut env, self.gains(p, here, preferred, distance));
        if env.best.is_none() || self.group_of(p).is_some_and(|group| group.active_count(self.release) > 1) {
            let mut weighed = distance;
            for node in (0..self.node_count() as Node).filter(|node| *node != here && *node != preferred) {
                // As in the kernel, this is the distance to the node that was looked at before.
                let distance = self.distance(here, env.to);
                if self.kind == NumaKind::Backplane && distance != env.distance {
                    weighed = distance;
                }
                let task = self.task_weight(p, node, distance) - self.task_weight(p, here, weighed);
                let group = self.group_weight(p, node, distance) - self.group_weight(p, here, weighed);
                if (task < 0 && group < 0) || self.cpus_of(node).next().is_none() {
                    continue;
                }
                (env.distance, env.to) = (distance, node);
                env.target = self.stats_6(sight, p, node, env.pct, true);
                self.look_6(sight, &mut env, (task, group));
            }
        }
        Some(env.best)
    }

    fn stats_6(&self, sight: &impl Sight, p: TaskId, node: Node, pct: i64, find_idle: bool) -> Stats {
        let mut stats = Stats::default();
        let (mut runnable, mut util, mut idle_core) = (0, 0, None);
        for cpu in self.cpus_of(node) {
            stats.load += sight.load(cpu);
            runnable += sight.runnable(cpu);
            util += sight.util(cpu);
            stats.running += i64::from(sight.nr_running(cpu));
            stats.capacity += sight.capacity(cpu);
            stats.cpus += 1;
            if find_idle && sight.is_idle(cpu) && !self.is_claimed(cpu) && sight.allowed(p, cpu) {
                stats.idle = stats.idle.or(Some(cpu));
                if idle_core.is_none() && sight.core_is_idle(cpu) {
                    idle_core = Some(cpu);
                }
            }
        }
        stats.idle = idle_core.or(stats.idle);
        let much = stats.capacity * 100 < util * pct || stats.capacity * pct < runnable * 100;
        let little = stats.capacity * 100 > util * pct && stats.capacity * pct > runnable * 100;
        stats.kind = match () {
            () if stats.running > stats.cpus && much => Kind::Overloaded,
            () if stats.running < stats.cpus || little => Kind::HasSpare,
            () => Kind::FullyBusy,
        };
        stats
    }

    /// Looks at the CPUs of the target node (`task_numa_find_cpu`).
    fn look_6(&self, sight: &impl Sight, env: &mut Env, gains: (i64, i64)) {
        let mut may_move = false;
        if env.target.kind == Kind::HasSpare {
            may_move = self.has_room_for_one_more(env);
            if may_move && let Some(cpu) = env.target.idle {
                self.assign(sight, env, cpu, None, 0);
                return;
            }
        } else {
            let load = sight.task_load(env.p);
            may_move |= !too_uneven(env, env.source.load - load, env.target.load + load);
        }
        let p = env.p;
        for cpu in self.cpus_of(env.to).filter(|cpu| sight.allowed(p, *cpu)) {
            if self.is_claimed(cpu) {
                continue;
            }
            match self.compare_6(sight, env, cpu, gains, may_move) {
                Verdict::No => continue,
                Verdict::Stop => break,
                Verdict::Take(with, gain) => {
                    let to = if with.is_some() { cpu } else { self.idle_of(sight, env, cpu) };
                    self.assign(sight, env, to, with, gain);
                }
            }
            let Some(best) = env.best else { continue };
            let idle = may_move && best.with.is_none() && sight.is_idle(best.cpu);
            if idle || (!may_move && best.with.is_some_and(|with| self.prefers(with, env.from.1))) {
                break;
            }
        }
    }

    /// Whether the target node may have one more task and the source node one fewer without too much imbalance
    /// (`adjust_numa_imbalance`).
    fn has_room_for_one_more(&self, env: &Env) -> bool {
        let running = env.target.running + 1;
        let more = (running - (env.source.running - 1)).max(0);
        let has_room = match self.release {
            // "sched/fair: Adjust the allowed NUMA imbalance when SD_NUMA spans multiple LLCs" (5.18).
            r if r >= v(5, 18) => running <= env.bearable && more <= BEARABLE,
            // "sched/numa: Allow a floating imbalance between NUMA nodes" (5.11).
            r if r >= v(5, 11) => running < env.target.cpus >> 2 && more <= BEARABLE,
            _ => running <= BEARABLE,
        };
        more == 0 || has_room
    }

    fn idle_of(&self, sight: &impl Sight, env: &Env, cpu: CpuId) -> CpuId {
        let idle = env.target.idle.unwrap_or(cpu);
        match env.best {
            Some(best) if !sight.is_idle(idle) && sight.is_idle(best.cpu) => best.cpu,
            _ => idle,
        }
    }

    fn prefers(&self, p: TaskId, node: Node) -> bool {
        self.tasks[p as usize].preferred == Some(node)
    }

    /// Records a CPU as the best so far (`task_numa_assign`). If a task is already migrating there, takes another idle
    /// CPU of the node.
    fn assign(&self, sight: &impl Sight, env: &mut Env, cpu: CpuId, with: Option<TaskId>, gain: i64) {
        let taken = |cpu: CpuId| env.best.map(|best| best.cpu) != Some(cpu) && self.is_claimed(cpu);
        let cpu = if taken(cpu) {
            let node = self.cpu_list(env.to);
            let start = node.iter().position(|other| *other == cpu).unwrap_or(0);
            let round = node.iter().cycle().skip(start).take(node.len()).copied();
            let fits = |other: &CpuId| {
                env.best.map(|best| best.cpu) != Some(*other)
                    && sight.is_idle(*other)
                    && sight.allowed(env.p, *other)
                    && !self.is_claimed(*other)
            };
            let Some(other) = round.into_iter().find(fits) else { return };
            other
        } else {
            cpu
        };
        env.best = Some(Best { cpu, with, gain });
    }

    /// Compares a CPU with the best so far (`task_numa_compare`).
    fn compare_6(&self, sight: &impl Sight, env: &Env, cpu: CpuId, (own, all): (i64, i64), may_move: bool) -> Verdict {
        let alone = if self.tasks[env.p as usize].group.is_some() { all } else { own };
        let best = env.gain();
        let Some(other) = sight.curr(cpu) else {
            return if may_move && alone >= best { Verdict::Take(None, alone) } else { Verdict::No };
        };
        if other == env.p {
            return Verdict::Stop;
        }
        let here = env.from.1;
        let chosen = env.best.and_then(|best| best.with);
        let wants = |q: TaskId| self.prefers(q, here);
        if !sight.allowed(other, env.from.0) || chosen.is_some_and(|chosen| wants(chosen) && !wants(other)) {
            return Verdict::No;
        }
        let (mine, theirs) = (self.tasks[env.p as usize].group, self.tasks[other as usize].group);
        let distance = env.distance;
        let task = || self.task_weight(other, here, distance) - self.task_weight(other, env.to, distance);
        let mut gain = if mine == theirs {
            // "sched/numa: Do not swap tasks between nodes when spare capacity is available" (6.0): a swap would help
            // one task at the cost of the other.
            if self.release >= v(6, 0) && env.target.kind == Kind::HasSpare {
                return Verdict::No;
            }
            let gain = own + task();
            if mine.is_some() { gain - gain / 16 } else { gain }
        } else if mine.is_some() && theirs.is_some() {
            alone + self.group_weight(other, here, distance) - self.group_weight(other, env.to, distance)
        } else {
            alone + task()
        };
        if self.prefers(other, env.to) {
            gain -= gain / 16;
        }
        if wants(other) {
            gain += gain / 8;
        }
        if may_move && alone > gain && alone > best {
            return Verdict::Take(None, alone);
        }
        if wants(other) && chosen.is_some_and(|chosen| !wants(chosen)) {
            return Verdict::Take(Some(other), gain);
        }
        if gain < SMALL || gain <= best + SMALL / 2 {
            return Verdict::No;
        }
        let load = sight.task_load(env.p) - sight.task_load(other);
        if load != 0 && too_uneven(env, env.source.load - load, env.target.load + load) {
            return Verdict::No;
        }
        Verdict::Take(Some(other), gain)
    }
}

/// Whether the given loads are more imbalanced than the present ones (`load_too_imbalanced`).
fn too_uneven(env: &Env, source: i64, target: i64) -> bool {
    let (from, to) = (env.source.capacity, env.target.capacity);
    let uneven = |source: i64, target: i64| (target * from - source * to).abs();
    uneven(source, target) > uneven(env.source.load, env.target.load)
}

#[cfg(test)]
mod tests {
    use super::super::tests::numa;
    use super::*;

    /// Whether a node of 16 CPUs with `there` tasks has room for one from a node with `here` tasks. The domain's
    /// allowed imbalance, which 6.1 uses, is 2.
    fn has_room(kernel: &str, there: i64, here: i64) -> bool {
        let stats = |running| Stats { running, cpus: 16, ..Stats::default() };
        let (source, target) = (stats(here), stats(there));
        let env = Env { p: 0, from: (0, 0), to: 1, source, target, pct: 112, bearable: 2, distance: 20, best: None };
        numa(kernel, &[]).has_room_for_one_more(&env)
    }

    #[test]
    fn how_uneven_two_nodes_may_become_changed_twice() {
        let all = |there, here| ["linux-5.10", "linux-5.15", "linux-6.1"].map(|kernel| has_room(kernel, there, here));
        assert_eq!(all(1, 1), [true; 3], "2 to 0");
        assert_eq!(all(2, 3), [false, true, false], "3 to 2: more than two tasks, less than a quarter of 16");
        assert_eq!(all(3, 3), [false; 3], "4 to 2");
        assert_eq!(all(3, 6), [true; 3], "4 to 5 is no imbalance");
    }
}
