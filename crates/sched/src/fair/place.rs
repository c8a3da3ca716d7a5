//! Where a task that wakes or is new is queued, generation by generation.
//!
//! # Idea
//! A task is best off on a CPU that is idle, near to what it has in the cache, or near to the task that woke it. The
//! releases differ in how much they look for the one or the other.
//!
//! # Rule
//! [`Placing`] says which release's way: `early` (2.6.24 and 2.6.32), `affine` (whether to come to the waker's side),
//! `sibling` (the idle CPU beside), `energy` (where it costs the least, on machines whose CPUs differ), `idlest` (for
//! new tasks: down the domains, to the idlest group's idlest CPU).
//!
//! # State
//! For each task which task it woke last and how often that changed, and the CPU before the last; for each CPU since
//! when it is idle; for each last-level cache how many CPUs a search may look at.
//!
//! # Differences from the kernel
//! No wake-up is synchronous (`WF_SYNC`): the engine's tasks do not say that they will sleep. All idle states are
//! alike. What the timer woke is woken where the task last ran, and what runs there counts as the waker, as in the
//! kernel.
//!
//! # Reference
//! `select_task_rq_fair` in kernel/sched_fair.c of 2.6.32 and kernel/sched/fair.c of 3.10 to 6.12; `try_to_wake_up` and
//! `sched_balance_self` in kernel/sched.c of 2.6.24.

mod affine;
mod bound;
mod choose;
mod early;
mod energy;
mod idlest;
mod overutilized;
mod sibling;

use super::Setup;
use super::pelt::Pelt;
use super::rqs::Runqueues;
use crate::balance::domains::{Domain, Domains, Flags, Params};
use crate::balance::fair::Balancer;
use crate::balance::numa::{Node, Numa};
use schedlab_base::{CpuId, Looking, Nanos, Release, v, v2_6};
use schedlab_sim::{Core, TaskId};

/// Which release's way of placing tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placing {
    /// 2.6.24: the waker's CPU or the last one by their loads, then an idle one beside.
    V2_6_24,
    /// 2.6.32: affine candidates level by level.
    V2_6_32,
    /// 3.10: an idle sibling wherever an affine domain spans both.
    V3_10,
    /// 3.18 and 4.1: the same, but a task that wakes many is not followed.
    V3_18,
    /// 5.10 to 6.12: group types for new tasks, idle cores, bounded searches. (4.3 to 5.4 have parts of it only.)
    V6,
}

impl Placing {
    fn of(release: Release) -> Self {
        match release {
            release if release < v2_6(32) => Self::V2_6_24,
            // The affine domain and `select_idle_sibling` change between 2.6.34 and 2.6.35.
            release if release < v2_6(35) => Self::V2_6_32,
            // `wake_wide` is in 3.12, and not in 3.11.
            release if release < v(3, 12) => Self::V3_10,
            // `wake_wide` and the walk up the domains change between 4.2 and 4.3.
            release if release < v(4, 3) => Self::V3_18,
            _ => Self::V6,
        }
    }
}

/// A task's habits.
#[derive(Clone, Copy, Debug, Default)]
struct Habits {
    /// How often the task that it wakes changed, halved each second.
    flips: u32,
    halved: Nanos,
    last_wakee: Option<TaskId>,
    /// Where it was before it last moved, or, until 5.14, where it last woke another.
    recent_cpu: CpuId,
}

/// What is remembered for placing.
#[derive(Debug)]
pub(super) struct Places {
    pub release: Release,
    pub how: Placing,
    /// `fix.overload_on_wakeup`.
    pub fix_overload: bool,
    tasks: Vec<Habits>,
    /// The idle tasks', by CPU.
    idle_tasks: Vec<Habits>,
    /// Since when each CPU is idle.
    idle_since: Vec<Nanos>,
    /// By the first CPU of each last-level cache: how many CPUs a search looks at (`nr_idle_scan`), and whether a core
    /// may be idle (`has_idle_cores`).
    scan: Vec<u32>,
    idle_cores: Vec<bool>,
    /// By CPU: what its searches have cost on average, in ns (`avg_scan_cost`, until 5.19).
    scan_cost: Vec<Nanos>,
    /// Whether some CPU is of another capacity than others.
    asymmetric: bool,
    /// The energy model, and what was weighed by it last.
    perfs: Vec<energy::Perf>,
    weighed: Option<energy::Weighed>,
}

impl Places {
    pub fn new(setup: &Setup<'_>) -> Self {
        let capacities = || setup.machine.cpus.iter().map(|cpu| cpu.place.capacity);
        let cpus = setup.machine.cpus.len();
        Self {
            release: setup.balancing.release,
            how: Placing::of(setup.balancing.release),
            fix_overload: setup.overload_on_wakeup_fixed,
            tasks: Vec::new(),
            idle_tasks: vec![Habits::default(); cpus],
            idle_since: vec![0; cpus],
            scan: vec![0; cpus],
            scan_cost: vec![0; cpus],
            idle_cores: vec![false; cpus],
            perfs: energy::perf_domains(setup.balancing.release, setup.machine),
            weighed: None,
            asymmetric: capacities().max() != capacities().min(),
        }
    }

    pub fn grow(&mut self, p: TaskId) {
        if self.tasks.len() <= p as usize {
            self.tasks.resize(p as usize + 1, Habits::default());
        }
        self.tasks[p as usize] = Habits::default();
    }

    fn waker(&mut self, waker: Option<TaskId>, cpu: CpuId) -> &mut Habits {
        match waker {
            Some(p) => &mut self.tasks[p as usize],
            None => &mut self.idle_tasks[cpu as usize],
        }
    }
}

/// One question.
#[derive(Clone, Copy, Debug)]
struct Ask {
    p: TaskId,
    /// Where it last ran, or its parent's CPU.
    prev: CpuId,
    /// On which CPU it is asked.
    here: CpuId,
    wakes: bool,
}

impl Ask {
    /// The flag of the domains that take part.
    fn flag(self) -> Flags {
        if self.wakes { Flags::WAKE_BALANCE } else { Flags::BALANCE_FORK }
    }
}

/// What placement may look at and change: its own memory, and the loads that ticks saw. It reads queues, averages and
/// what the balancers know.
pub(super) struct Select<'a> {
    pub places: &'a mut Places,
    pub rqs: &'a Runqueues,
    pub pelt: &'a mut Pelt,
    /// None on one CPU.
    pub balancer: Option<&'a Balancer>,
    pub numa: Option<&'a Numa>,
}

impl Select<'_> {
    /// Whether a CPU runs nothing and nothing waits there (`idle_cpu`). In old releases, until one between 3.1 and 3.6,
    /// a CPU for which a task was just woken is idle until it has switched.
    fn is_idle(&self, cx: &Core, cpu: CpuId) -> bool {
        let waits = || self.rqs.nr_running(cpu) > self.rqs.queues[cpu as usize].h_nr_delayed;
        cx.curr(cpu).is_none() && cx.online(cpu) && (self.places.how <= Placing::V2_6_32 || !waits())
    }

    /// Whether a CPU has SCHED_IDLE tasks only (`sched_idle_cpu`).
    fn is_sched_idle(&self, cpu: CpuId) -> bool {
        let root = &self.rqs.queues[cpu as usize];
        root.h_nr > 0 && root.h_nr == root.h_nr_idle
    }

    /// The wasted-cores repair: the last CPU if it is idle, else the one that has been idle longest.
    fn longest_idle(&self, cx: &Core, ask: Ask) -> Option<CpuId> {
        let allowed = &cx.task(ask.p).allowed;
        if allowed.contains(ask.prev) && self.is_idle(cx, ask.prev) {
            return Some(ask.prev);
        }
        let idle = (0..self.rqs.cpus).filter(|c| allowed.contains(*c) && self.is_idle(cx, *c));
        idle.min_by_key(|c| (self.places.idle_since[*c as usize], *c))
    }

    /// What fair tasks use of a CPU if a task that wakes is put onto `to`, or nowhere (`cpu_util`); `boost`: the time
    /// in which tasks wait there counts, too.
    fn util_with(&self, cx: &Core, cpu: CpuId, p: TaskId, to: Option<CpuId>, boost: bool) -> u64 {
        let whole = self.capacity_of(cpu).1;
        self.pelt.cpu_util_with(self.rqs, cx, (cpu, whole), p, to, boost)
    }

    /// Whether energy decides now: there is a model, and no CPU is over-utilised.
    fn saves_energy(&self) -> bool {
        self.balancer.is_some_and(Balancer::saves_energy)
    }

    /// The node on which a task should run, by NUMA balancing.
    fn preferred_node(&self, p: TaskId) -> Option<Node> {
        self.numa?.task(p).preferred
    }

    /// The node of a CPU, where NUMA balancing is on.
    fn numa_node(&self, cpu: CpuId) -> Option<Node> {
        self.numa.map(|numa| numa.node_of(cpu))
    }

    /// What is left of a CPU's capacity as balancing last found it, and the whole (`capacity_of`, `capacity_orig_of`).
    fn capacity_of(&self, cpu: CpuId) -> (u64, u64) {
        self.balancer.map_or((1024, 1024), |balancer| balancer.capacity(cpu))
    }

    /// Traces which CPUs were looked at.
    fn looked(cx: &mut Core, ask: Ask, cpus: &[CpuId]) {
        let why = if ask.wakes { Looking::Wake } else { Looking::Fork };
        cx.trace_considered(ask.here, why, Some(ask.p), cpus.iter().copied());
    }
}

/// 100 and half of what a domain allows of imbalance, in percent.
fn half_pct(params: &Params) -> u64 {
    100 + (u64::from(params.imbalance_pct) - 100) / 2
}

fn spans(domains: &Domains, domain: &Domain, flag: Flags, cpu: CpuId) -> bool {
    domain.flags.has(flag) && domains.span(domain.span).set.contains(cpu)
}

/// Whether two CPUs share their last-level cache.
fn share_cache(domains: &Domains, a: CpuId, b: CpuId) -> bool {
    a == b || cache(domains, a).is_some_and(|d| domains.span(d.span).set.contains(b))
}

/// The domain of a CPU's last-level cache (`sd_llc`).
fn cache(domains: &Domains, cpu: CpuId) -> Option<&Domain> {
    domains.cache(cpu).map(|level| &domains.of(cpu)[level])
}
