//! Chooses the CPU of a waking or new task: `try_to_wake_up`, `wake_idle`, `sched_balance_self`.
//!
//! 2.6.0 leaves a task where it last ran, and a new task on its parent's CPU. A task whose waker is about to sleep
//! (`sync`, `x-sync` in a workload) comes to the waker's CPU. Later kernels leave the waker out of account then. In
//! 2.6.11 the waker's CPU takes the task if the task's cache is cold or if the loads are far enough apart; in 2.6.18 if
//! the waker's CPU has little load. On machines with siblings, an idle CPU of the core is searched for next. 2.6.18
//! puts a new task on the idlest CPU of the idlest node; its domains within a node do not balance on fork.
//!
//! A task that becomes another program moves in 2.6.0 from a CPU with three tasks or more to the idlest of the idlest
//! node, if there are several; in 2.6.11 to the least loaded CPU, if its CPU has another task and the loads differ by
//! half of what the widest domain tolerates; in 2.6.18 as a new task.

use super::super::O1;
use super::super::release::Balancing;
use super::imbalance::SCALE;
use crate::balance::domains::{Domain, Domains, Flags, GroupId};
use crate::balance::sync;
use schedlab_base::{CpuId, Looking};
use schedlab_sim::{Choice, Core, Decision, Placement, TaskId};

/// A choice and its reason.
struct Choosing {
    cpu: CpuId,
    rule: &'static str,
    /// The loads that were compared: of the task's previous CPU, and of the waker's.
    loads: Option<[u64; 2]>,
}

impl Choosing {
    fn new(cpu: CpuId, rule: &'static str) -> Self {
        Self { cpu, rule, loads: None }
    }
}

impl O1<'_> {
    /// Chooses the CPU of a waking or new task.
    pub(in super::super) fn place(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        if self.smp.is_none() {
            return prev;
        }
        let mut looked = Vec::new();
        let (from, reason, choice) = match why {
            Placement::Fork { from } => {
                (from, Looking::Fork, self.place_new(cx, p, prev, Flags::BALANCE_FORK, from, &mut looked))
            }
            Placement::Exec { from } => (from, Looking::Fork, self.place_exec(cx, p, from, &mut looked)),
            Placement::Wake { .. } | Placement::Affinity { .. } if !cx.task(p).allowed.contains(prev) => {
                (prev, Looking::Wake, Choosing::new(self.fallback(cx, p, prev), "the first CPU that is allowed"))
            }
            Placement::Wake { from } | Placement::Affinity { from } => {
                (from, Looking::Wake, self.place_woken(cx, p, prev, from, &mut looked))
            }
        };
        if cx.traces_queues() {
            looked.push(choice.cpu);
            cx.trace_considered(from, reason, Some(p), looked);
        }
        let cpu = choice.cpu;
        cx.explain(|_| {
            Decision::new(cpu, Choice::Place, Some(p), choice.rule).numbers(
                [(None, "prev_cpu", i64::from(prev)), (None, "waker_cpu", i64::from(from))].into_iter().chain(
                    choice.loads.into_iter().flat_map(|[theirs, ours]| {
                        [(None, "load_prev", theirs as i64), (None, "load_waker", ours as i64)]
                    }),
                ),
            )
        });
        cpu
    }

    /// The CPU of a task that may not run where it was: where it is if that is allowed, on the same node if that CPU
    /// went offline (`move_task_off_dead_cpu`), or else the lowest that is allowed.
    fn fallback(&self, cx: &Core, p: TaskId, prev: CpuId) -> CpuId {
        if cx.task(p).allowed.contains(prev) {
            return prev;
        }
        let places = &cx.machine().cpus;
        let near = |cpu: &CpuId| places[*cpu as usize].place.node == places[prev as usize].place.node;
        let allowed = || (0..cx.nr_cpus()).filter(|cpu| cx.online(*cpu) && cx.task(p).allowed.contains(*cpu));
        let same_node = if cx.online(prev) { None } else { allowed().find(near) };
        same_node.or_else(|| allowed().next()).unwrap_or(prev)
    }

    fn place_woken(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, from: CpuId, looked: &mut Vec<CpuId>) -> Choosing {
        let sync_waker = cx.sync_waker();
        if self.rules.release().balancing == Balancing::ByLength {
            if sync_waker == Some(from) && prev != from && cx.task(p).allowed.contains(from) {
                sync(self, cx, from);
                return Choosing::new(from, "to the waker, which is about to sleep");
            }
            return Choosing::new(prev, "where it last ran");
        }
        let mut choice = Choosing::new(prev, "where it last ran: it was woken there");
        if prev != from && cx.task(p).allowed.contains(from) {
            sync(self, cx, prev);
            sync(self, cx, from);
            if cx.traces_queues() {
                looked.extend([prev, from]);
            }
            choice = if self.rules.release().balancing == Balancing::ByLoad {
                self.woken_by_load(cx, p, prev, from)
            } else {
                self.woken_by_weight(cx, p, prev, from)
            };
        }
        let idle = self.wake_idle(cx, p, choice.cpu, looked);
        if idle != choice.cpu {
            (choice.cpu, choice.rule) = (idle, "an idle CPU of the core, or near it");
        }
        choice
    }

    /// 2.6.11: chooses the waker's CPU, unless that would move the task from an idle CPU to a busy one, if the task's
    /// cache is cold in a domain of both CPUs, or if the loads differ by half of a domain's tolerated imbalance.
    fn woken_by_load(&self, cx: &Core, p: TaskId, prev: CpuId, from: CpuId) -> Choosing {
        let (load, here) = (self.source_load(prev, 2), self.target_load(from, 2));
        let here = if cx.sync_waker().is_some() { here.saturating_sub(SCALE) } else { here };
        let choose = |cpu, rule| Choosing { cpu, rule, loads: Some([load, here]) };
        if load < SCALE / 2 && here > SCALE / 2 {
            return choose(prev, "where it last ran: that CPU is idle and the waker's is not");
        }
        let domains = self.smp().rounds.domains();
        for domain in domains.of(from) {
            let pct = u64::from(domains.params(domain).imbalance_pct);
            let spans = domains.span(domain.span).contains(prev);
            let warm = Self::is_warm(cx, prev, self.task(p).last_ran, self.cache_hot_time(&domains, domain));
            if domain.flags.has(Flags::WAKE_AFFINE) && !warm {
                if spans {
                    return choose(from, "to the waker: its cache is cold");
                }
            } else if domain.flags.has(Flags::WAKE_BALANCE) && (pct + (pct - 100) / 2) * here <= 100 * load && spans {
                return choose(from, "to the waker: there is less load");
            }
        }
        choose(prev, "where it last ran: its cache is warm, and loads are even")
    }

    /// 2.6.18: chooses the waker's CPU if the load there is at most one task's, or small compared with the previous
    /// CPU's.
    fn woken_by_weight(&self, cx: &Core, p: TaskId, prev: CpuId, from: CpuId) -> Choosing {
        let domains = self.smp().rounds.domains();
        let both = domains.of(from).iter().find(|domain| domains.span(domain.span).contains(prev));
        let Some(domain) = both else { return Choosing::new(prev, "where it last ran: the waker is too far away") };
        let params = domains.params(domain);
        let pct = 100 + u64::from(params.imbalance_pct - 100) / 2;
        let (load, here) = (self.source_load(prev, params.wake_idx), self.target_load(from, params.wake_idx));
        let choose = |cpu, rule| Choosing { cpu, rule, loads: Some([load, here]) };
        if domain.flags.has(Flags::WAKE_AFFINE) {
            let running = u64::from(self.nr_running(from));
            let per_task = self.queues[from as usize].load.checked_div(running).unwrap_or(SCALE);
            let leaves = cx.sync_waker().and_then(|cpu| cx.curr(cpu)).map_or(0, |q| self.rules.weight(self.task(q)));
            let here = here.saturating_sub(leaves);
            let one = here <= load && here + self.target_load(prev, params.wake_idx) <= per_task;
            if one || 100 * (here + self.rules.weight(self.task(p))) <= pct * load {
                return choose(from, "to the waker: there is little load");
            }
        }
        if domain.flags.has(Flags::WAKE_BALANCE) && pct * here <= 100 * load {
            return choose(from, "to the waker: there is less load");
        }
        choose(prev, "where it last ran: the waker's CPU is loaded")
    }

    /// Looks for an idle CPU in the domains with `WAKE_IDLE`, from the smallest up (`wake_idle`). It has no effect
    /// without siblings.
    fn wake_idle(&self, cx: &Core, p: TaskId, cpu: CpuId, looked: &mut Vec<CpuId>) -> CpuId {
        let smp = self.smp();
        if !smp.smt || cx.curr(cpu).is_none() {
            return cpu;
        }
        let domains = smp.rounds.domains();
        for domain in domains.of(cpu).iter().take_while(|domain| domain.flags.has(Flags::WAKE_IDLE)) {
            for &other in domains.span(domain.span).cpus.iter().filter(|cpu| cx.task(p).allowed.contains(**cpu)) {
                if cx.traces_queues() {
                    looked.push(other);
                }
                if cx.curr(other).is_none() {
                    return other;
                }
            }
        }
        cpu
    }

    /// Chooses the CPU of a new task, from the widest domain that balances by `flag` down to the smallest
    /// (`sched_balance_self`).
    fn place_new(
        &mut self,
        cx: &mut Core,
        p: TaskId,
        prev: CpuId,
        flag: Flags,
        from: CpuId,
        looked: &mut Vec<CpuId>,
    ) -> Choosing {
        let domains = &self.smp().rounds.domains();
        let forks = |cpu: CpuId, below: u32| {
            let smaller = domains.of(cpu).iter().take_while(move |d| domains.span(d.span).weight() < below);
            smaller.filter(|d| d.flags.has(flag)).last()
        };
        let mut cpu = from;
        let mut widest = forks(cpu, u32::MAX);
        while let Some(domain) = widest {
            let span = domains.span(domain.span);
            for other in &span.cpus {
                sync(self, cx, *other);
            }
            if cx.traces_queues() {
                looked.extend(span.cpus.iter().filter(|cpu| cx.task(p).allowed.contains(**cpu)));
            }
            if let Some(group) = self.idlest_group(cx, domains, domain, p) {
                cpu = self.idlest_cpu(cx, domains, group, p, cpu).unwrap_or(cpu);
            }
            widest = forks(cpu, span.weight());
        }
        if !cx.task(p).allowed.contains(cpu) {
            return Choosing::new(self.fallback(cx, p, prev), "the first CPU that is allowed");
        }
        let rule = if cpu == from { "where it is, or its parent" } else { "the idlest CPU of the idlest group" };
        Choosing::new(cpu, rule)
    }

    /// Chooses the CPU of a task that becomes another program (`sched_exec`, `sched_balance_exec` in 2.6.0).
    fn place_exec(&mut self, cx: &mut Core, p: TaskId, from: CpuId, looked: &mut Vec<CpuId>) -> Choosing {
        let stays = Choosing::new(from, "where it is");
        let least = match self.rules.release().balancing {
            Balancing::ByWeight => return self.place_new(cx, p, from, Flags::BALANCE_EXEC, from, looked),
            Balancing::ByLength => 3,
            Balancing::ByLoad => 2,
        };
        if self.nr_running(from) < least {
            return stays;
        }
        let found = if self.rules.release().balancing == Balancing::ByLength {
            self.shortest_of_nodes(cx)
        } else {
            self.least_loaded(cx, p, from, looked)
        };
        found.filter(|cpu| cx.task(p).allowed.contains(*cpu)).map_or(stays, |cpu| Choosing::new(cpu, "the idlest CPU"))
    }

    /// 2.6.0: the CPU with the fewest tasks of the node that has the fewest for each CPU (`sched_best_cpu`); `None` if
    /// there is one node.
    fn shortest_of_nodes(&self, cx: &Core) -> Option<CpuId> {
        let node = |cpu: CpuId| cx.machine().cpus[cpu as usize].place.node;
        let of = |n| (0..cx.nr_cpus()).filter(move |cpu| cx.online(*cpu) && node(*cpu) == n);
        let length = |cpu: &CpuId| self.nr_running(*cpu);
        let nodes = (0..cx.machine().nodes() as u32).filter(|n| of(*n).next().is_some());
        let load = |n: &u32| 10 * of(*n).map(|cpu| length(&cpu)).sum::<u32>() / of(*n).count() as u32;
        let idlest = if cx.machine().nodes() > 1 { nodes.min_by_key(load) } else { None };
        of(idlest?).min_by_key(length)
    }

    /// 2.6.11: the CPU with the least load of the widest domain that balances on exec, or the first without any, if it
    /// is clearly less than the load of `from` with one task more (`find_idlest_cpu`).
    fn least_loaded(&mut self, cx: &mut Core, p: TaskId, from: CpuId, looked: &mut Vec<CpuId>) -> Option<CpuId> {
        let domains = &self.smp().rounds.domains();
        let domain = domains.of(from).iter().rfind(|d| d.flags.has(Flags::BALANCE_EXEC))?;
        let cpus = &domains.span(domain.span).cpus;
        cpus.iter().for_each(|cpu| sync(self, cx, *cpu));
        let allowed = cpus.iter().copied().filter(|cpu| cx.task(p).allowed.contains(*cpu));
        let (load, cpu) = allowed.map(|cpu| (self.target_load(cpu, 2), cpu)).min()?;
        if cx.traces_queues() {
            looked.extend(cpus);
        }
        let pct = 100 + u64::from(domains.params(domain).imbalance_pct - 100) / 2;
        (load * pct < (self.source_load(from, 2) + SCALE) * 100).then_some(cpu)
    }

    /// Returns the group with the least load, if that is below the local group's by half of the tolerated imbalance.
    fn idlest_group(&self, cx: &Core, domains: &Domains, domain: &Domain, p: TaskId) -> Option<GroupId> {
        let params = domains.params(domain);
        let local = domains.local(domain);
        let (mut here, mut idlest) = (0, None);
        for id in domains.groups(domain) {
            let group = domains.group(id);
            let cpus = &domains.span(group.span).cpus;
            if !cpus.iter().any(|cpu| cx.task(p).allowed.contains(*cpu)) {
                continue;
            }
            let index = params.forkexec_idx;
            let load = |cpu: &CpuId| {
                if id == local { self.source_load(*cpu, index) } else { self.target_load(*cpu, index) }
            };
            let load = cpus.iter().map(load).sum::<u64>() * SCALE / u64::from(group.capacity);
            if id == local {
                here = load;
            } else if idlest.is_none_or(|(least, _)| load < least) {
                idlest = Some((load, id));
            }
        }
        let imbalance = 100 + u64::from(params.imbalance_pct - 100) / 2;
        idlest.filter(|(least, _)| 100 * here >= imbalance * least).map(|(_, group)| group)
    }

    /// Returns the CPU of a group with the least load now; among equals `from`, then the lowest.
    fn idlest_cpu(&self, cx: &Core, domains: &Domains, group: GroupId, p: TaskId, from: CpuId) -> Option<CpuId> {
        let cpus = domains.span(domains.group(group).span).cpus.iter().copied();
        let allowed = cpus.filter(|cpu| cx.task(p).allowed.contains(*cpu));
        allowed.min_by_key(|cpu| (self.queues[*cpu as usize].load, *cpu != from, *cpu))
    }
}
