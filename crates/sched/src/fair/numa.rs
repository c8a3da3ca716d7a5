//! The fair class's part in NUMA balancing: its ticks, its view of the CPUs, and the migrations.

use super::entity::Entity;
use super::pelt::Pelt;
use super::rqs::Runqueues;
use super::{Discipline, Fair};
use crate::balance::domains::{Domains, Flags};
use crate::balance::fair::{Averages, Balancer, Queues};
use crate::balance::numa::locality::Locality;
use crate::balance::numa::place::Moment;
use crate::balance::numa::sight::{Best, Sight};
use crate::balance::numa::{Move, Node, Numa};
use schedlab_base::{CpuId, Nanos, Release};
use schedlab_sim::{Choice, Core, Decision, State, TaskId, View};

/// The state of the CPUs at one moment.
struct Seen<'a> {
    rqs: &'a Runqueues,
    pelt: &'a Pelt,
    balancer: Option<&'a Balancer>,
    domains: &'a Domains,
    release: Release,
    cx: &'a Core,
}

impl Sight for Seen<'_> {
    fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.cx.curr(cpu)
    }

    fn allowed(&self, p: TaskId, cpu: CpuId) -> bool {
        self.cx.task(p).allowed.contains(cpu)
    }

    fn task_load(&self, p: TaskId) -> i64 {
        self.pelt.task_load(self.rqs, p, self.cx.now()) as i64
    }

    fn load(&self, cpu: CpuId) -> i64 {
        self.pelt.load_avg(self.rqs, cpu, self.cx.now()) as i64
    }

    fn runnable(&self, cpu: CpuId) -> i64 {
        self.pelt.runnable_avg(cpu, self.cx.now()) as i64
    }

    fn util(&self, cpu: CpuId) -> i64 {
        self.pelt.cpu_util_cfs(cpu, self.pelt.capacity(cpu), self.cx.now()) as i64
    }

    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rqs.nr_counted(cpu, self.release)
    }

    fn capacity(&self, cpu: CpuId) -> i64 {
        self.balancer.map_or(1024, |balancer| balancer.capacity(cpu).0 as i64)
    }

    fn is_idle(&self, cpu: CpuId) -> bool {
        let root = &self.rqs.queues[cpu as usize];
        self.cx.curr(cpu).is_none() && root.h_nr == root.h_nr_delayed && self.cx.online(cpu)
    }

    fn core_is_idle(&self, cpu: CpuId) -> bool {
        let smt = self.domains.of(cpu).first().filter(|d| d.flags.has(Flags::SHARE_CPUCAPACITY));
        smt.is_some_and(|d| self.domains.span(d.span).cpus.iter().all(|cpu| self.is_idle(*cpu)))
    }

    fn idle_beside(&self, p: TaskId, cpu: CpuId) -> CpuId {
        if self.is_idle(cpu) {
            return cpu;
        }
        let cache = self.domains.cache(cpu).map(|level| &self.domains.of(cpu)[level]);
        let beside = cache.into_iter().flat_map(|d| self.domains.span(d.span).cpus.iter().copied());
        beside.into_iter().find(|cpu| self.is_idle(*cpu) && self.allowed(p, *cpu)).unwrap_or(cpu)
    }

    fn across_nodes(&self, cpu: CpuId) -> Option<(i64, u32)> {
        let domain = &self.domains.of(cpu)[self.domains.lowest(cpu, Flags::NUMA)?];
        Some((self.domains.params(domain).imbalance_pct.into(), domain.imb_numa_nr))
    }
}

impl<D: Discipline> Fair<D> {
    /// The NUMA balancing work at the tick of a running task whose accounting is up to date.
    pub(super) fn numa_tick(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let Some(mut numa) = self.numa.take() else { return };
        let Entity { exec_start, sum_exec, .. } = self.rqs.entities[self.rqs.entity(p) as usize];
        let at = Moment {
            now: cx.now(),
            jiffies: cx.jiffies(),
            tick: cx.tick_period(),
            cpu,
            account: (exec_start, sum_exec),
            runnable: self.pelt.task_runnable(&self.rqs, p, cx.now()) as u64,
        };
        if numa.tick(cx, p, &at) {
            match self.numa_better(&mut numa, cx, p, &at) {
                Some(best) => {
                    explain(&numa, cx, p, &at, &best);
                    numa.ask(p, cpu, &best);
                    cx.wake_stopper(cpu);
                    if best.with.is_some() {
                        cx.wake_stopper(best.cpu);
                    }
                }
                None => numa.fault(cx, p, cpu),
            }
        }
        self.numa = Some(numa);
    }

    fn numa_better(&mut self, numa: &mut Numa, cx: &mut Core, p: TaskId, at: &Moment) -> Option<Best> {
        for cpu in (0..self.rqs.cpus).filter(|other| *other != at.cpu) {
            self.account(cx, cpu);
        }
        let domains = self.domains.clone()?;
        let (balancer, release) = (self.balancer.as_deref(), self.places.release);
        let seen = Seen { rqs: &self.rqs, pelt: &self.pelt, balancer, domains: &domains, release, cx };
        let best = numa.decide(&seen, p, at);
        best.filter(|best| best.cpu != at.cpu)
    }

    /// When a tick of a running task next has NUMA balancing work.
    pub(super) fn numa_due(&self, cx: &Core, p: TaskId) -> Nanos {
        let Some(numa) = &self.numa else { return Nanos::MAX };
        let Entity { exec_start, sum_exec, .. } = self.rqs.entities[self.rqs.entity(p) as usize];
        numa.due(cx, p, (exec_start, sum_exec))
    }

    /// Called when the stopper of a CPU runs. Migrates the tasks that NUMA balancing moves away from the CPU
    /// (`migration_cpu_stop`, `migrate_swap_stop`).
    pub(super) fn numa_stop(&mut self, cx: &mut Core, cpu: CpuId) {
        while let Some(wanted) = self.numa.as_mut().and_then(|numa| numa.take_move(cpu)) {
            let partner = self.numa.as_ref().and_then(|numa| numa.partner(&wanted));
            let fits = self.can_go(cx, &wanted) && partner.is_none_or(|partner| self.can_go(cx, &partner));
            if fits {
                self.account(cx, wanted.to);
                self.detach(cx, wanted.p, wanted.from, wanted.to);
                self.attach(cx, wanted.p, wanted.to);
            } else if let Some(partner) = partner {
                self.numa.as_mut().and_then(|numa| numa.take_move(partner.from));
            }
        }
    }

    fn can_go(&self, cx: &Core, wanted: &Move) -> bool {
        let task = cx.task(wanted.p);
        let queued = self.rqs.entities[self.rqs.entity(wanted.p) as usize].on_rq;
        let awake = task.state == State::Runnable && queued && !self.is_throttled(wanted.p);
        awake && task.cpu == wanted.from && task.allowed.contains(wanted.to) && cx.online(wanted.to)
    }

    /// Whether migrating a task between nodes improves its NUMA locality.
    pub(super) fn numa_locality(&self, p: TaskId, from: CpuId, to: CpuId, idle: bool) -> Locality {
        let Some(numa) = &self.numa else { return Locality::Equal };
        let node = Some(numa.node_of(from));
        let leaves = self.rqs.tasks.from_tail(from).any(|q| numa.task(q).preferred != node);
        numa.locality(p, (from, to), leaves, idle, &self.places.features)
    }

    /// How many queued tasks of a CPU have a preferred node, and how many of those are on it.
    pub(super) fn numa_preferring(&self, cpu: CpuId) -> (u32, u32) {
        let Some(numa) = &self.numa else { return (0, 0) };
        let node = numa.node_of(cpu);
        let preferred = self.rqs.tasks.from_tail(cpu).filter_map(|p| numa.task(p).preferred);
        preferred.fold((0, 0), |(all, there), preferred| (all + 1, there + u32::from(preferred == node)))
    }

    /// Whether NUMA balancing is about to migrate a task to a CPU, which then does not look for other tasks.
    pub(super) fn numa_expects(&self, cpu: CpuId) -> bool {
        self.numa.as_ref().is_some_and(|numa| numa.is_claimed(cpu))
    }

    /// The NUMA balancing state of a task for display, if it has any.
    pub(super) fn show_numa(&self, p: TaskId) -> Option<View> {
        self.numa.as_ref().map(|numa| numa.show(p)).filter(|view| *view != View::Nothing)
    }
}

fn explain(numa: &Numa, cx: &mut Core, p: TaskId, at: &Moment, best: &Best) {
    let rule = match best.with {
        Some(_) => "NUMA balancing: the two change places, and more of their accesses are local",
        None => "NUMA balancing: it goes to its memory",
    };
    cx.explain(|_| {
        let (from, to) = (numa.node_of(at.cpu), numa.node_of(best.cpu));
        let on = |q: TaskId, node: Node| numa.task(q).faults.as_ref().map_or(0, |faults| faults.on(node));
        let of = |q: TaskId| [(Some(q), "faults here", on(q, from)), (Some(q), "faults there", on(q, to))];
        let mut numbers: Vec<_> = of(p).into_iter().chain(best.with.into_iter().flat_map(of)).collect();
        numbers.extend([
            (None, "from CPU", at.cpu.into()),
            (None, "from node", from.into()),
            (None, "to node", to.into()),
            (None, "gain of 1000", best.gain),
        ]);
        Decision {
            time: 0,
            cpu: best.cpu,
            choice: Choice::Move,
            who: Some(p),
            over: best.with.into_iter().collect(),
            rule,
            numbers,
        }
    });
}
