//! Placement of tasks that wake or are new, as the releases do it.
//!
//! # Idea
//! A task runs best on a CPU that is idle, close to its cached data, or close to the task that woke it. The releases
//! differ in how much they search for each.
//!
//! # Rule
//! [`Placing`] selects the release's method: `early` (2.6.24 and 2.6.32), `affine` (whether the task moves to the
//! waker's CPU), `sibling` (an idle CPU nearby), `energy` (the CPU with the least energy, on machines whose CPUs
//! differ), `idlest` (for new tasks: down the domains to the idlest CPU of the idlest group).
//!
//! # State
//! For each task: the task that it last woke, how often that changed, and a recent CPU. For each CPU: when it became
//! idle. For each last-level cache: how many CPUs a search may look at.
//!
//! # Differences from the kernel
//! All idle states are equal. A task woken by a timer is woken from the CPU where it last ran, and the task running
//! there counts as the waker, as in the kernel.
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
mod overlap;
mod overutilized;
mod pack;
mod sibling;

use super::Setup;
use super::pelt::Pelt;
use super::rqs::Runqueues;
use crate::balance::domains::{Domain, Domains, Flags, Params, Span};
use crate::balance::fair::{Balancer, Features};
use crate::balance::numa::{Node, Numa};
use crate::paged::Paged;
use bound::TimeLeft;
use schedlab_base::{CpuId, Looking, Nanos, Release, v, v2_6};
use schedlab_machine::Machine;
use schedlab_sim::{Core, TaskId};

/// The method by which a release places tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placing {
    /// 2.6.24: the waker's CPU or the last one, depending on their loads, and then an idle CPU nearby.
    V2_6_24,
    /// 2.6.32: an affine candidate at each domain level.
    V2_6_32,
    /// 3.10: an idle sibling wherever an affine domain spans both CPUs.
    V3_10,
    /// 3.18 and 4.1: the same, but not if the waker wakes many tasks (`wake_wide`).
    V3_18,
    /// 5.10 to 6.12: group types for new tasks, idle cores, bounded searches. (4.3 to 5.4 have only parts of this.)
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

/// The wake-up habits of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Habits {
    /// How often the task that it wakes has changed, halved every second (`wakee_flips`).
    flips: u32,
    halved: Nanos,
    /// One more than the task that it last woke; 0 if there is none.
    last_wakee: u32,
}

/// The state for placing tasks.
#[derive(Debug)]
pub(super) struct Places {
    pub release: Release,
    pub how: Placing,
    pub features: Features,
    /// `sched_migration_cost`, in ns.
    migration_cost: i64,
    /// Whether `fix.overload_on_wakeup` is enabled.
    pub fix_overload: bool,
    /// `sched_vcpu_pack`: which tasks are packed; 0 is off.
    vcpu_pack: u32,
    tasks: Paged<Habits>,
    /// For each task, the CPU before its last migration, at first its parent's (`recent_used_cpu`). Until 5.14, the CPU
    /// on which it last woke another task.
    recent: Vec<CpuId>,
    /// The overlap of each task with those that it wakes, in releases that count it.
    overlaps: Paged<overlap::Overlap>,
    /// The habits of each CPU's idle task.
    idle_tasks: Vec<Habits>,
    /// For each CPU, when it became idle.
    idle_since: Vec<Nanos>,
    /// For each last-level cache, by its first CPU: how many CPUs a search may look at (`nr_idle_scan`), and whether it
    /// may have an idle core (`has_idle_cores`).
    scan: Vec<u32>,
    idle_cores: Vec<bool>,
    /// For each CPU, the average cost of its searches in ns (`avg_scan_cost`), and what they may take.
    scan_cost: Vec<Nanos>,
    time_left: Vec<TimeLeft>,
    /// Whether the CPUs' capacities differ.
    asymmetric: bool,
    /// The energy model, and the last energy comparison.
    perfs: Vec<energy::Perf>,
    weighed: Option<energy::Weighed>,
}

impl Places {
    /// Creates the state for a fair scheduler. A task of which nothing is known counts as waking others after `usual`.
    pub fn new(setup: &Setup<'_>, usual: Nanos) -> Self {
        let capacities = || setup.machine.cpus.iter().map(|cpu| cpu.place.capacity);
        let cpus = setup.machine.cpus.len();
        Self {
            release: setup.balancing.release,
            how: Placing::of(setup.balancing.release),
            features: setup.balancing.features,
            migration_cost: setup.balancing.migration_cost,
            fix_overload: setup.overload_on_wakeup_fixed,
            vcpu_pack: setup.balancing.vcpu_pack,
            tasks: Paged::new(Habits::default()),
            recent: Vec::new(),
            overlaps: Paged::new(overlap::Overlap::new(usual)),
            idle_tasks: vec![Habits::default(); cpus],
            idle_since: vec![0; cpus],
            scan: idle_scans(setup.machine),
            scan_cost: vec![0; cpus],
            time_left: vec![TimeLeft::default(); cpus],
            // Each CPU was idle once the machine had started.
            idle_cores: vec![true; cpus],
            perfs: energy::perf_domains(setup.balancing.release, setup.machine),
            weighed: None,
            asymmetric: capacities().max() != capacities().min(),
        }
    }

    /// Makes room for a new task. It has the habits of its parent, as `dup_task_struct` copies it and nothing resets
    /// them. `parent` is who that is, and where it runs.
    pub fn grow(&mut self, p: TaskId, parent: Option<(TaskId, CpuId)>) {
        self.tasks.set(p, parent.map_or_else(Habits::default, |(parent, _)| self.tasks[parent]));
        if self.how >= Placing::V6 {
            self.recent.resize(self.recent.len().max(p as usize + 1), 0);
            self.recent[p as usize] = parent.map_or(0, |(_, cpu)| cpu);
        }
    }

    fn waker(&mut self, waker: Option<TaskId>, cpu: CpuId) -> &mut Habits {
        match waker {
            Some(p) => &mut self.tasks[p],
            None => &mut self.idle_tasks[cpu as usize],
        }
    }
}

/// One placement request.
#[derive(Clone, Copy, Debug)]
struct Ask {
    p: TaskId,
    /// The CPU where it last ran, or its parent's CPU.
    prev: CpuId,
    /// The CPU on which the request is made.
    here: CpuId,
    wakes: bool,
    /// Whether the task runs on `prev`, and becomes another program.
    execs: bool,
    /// Whether the waker is about to sleep (`WF_SYNC`).
    sync: bool,
}

impl Ask {
    /// The flag of the domains that take part.
    fn flag(self) -> Flags {
        match (self.wakes, self.execs) {
            (true, _) => Flags::WAKE_BALANCE,
            (false, true) => Flags::BALANCE_EXEC,
            (false, false) => Flags::BALANCE_FORK,
        }
    }
}

/// What placement works with: its own state and the loads sampled by ticks, which it changes, and the queues, averages
/// and balancers, which it only reads.
pub(super) struct Select<'a> {
    pub places: &'a mut Places,
    pub rqs: &'a Runqueues,
    pub pelt: &'a mut Pelt,
    /// `None` on a single CPU.
    pub balancer: Option<&'a Balancer>,
    pub numa: Option<&'a Numa>,
}

impl Select<'_> {
    /// Whether a CPU runs nothing and has nothing waiting (`idle_cpu`). In old releases, until a change between 3.1 and
    /// 3.6, a CPU for which a task was just woken still counts as idle until it has switched.
    fn is_idle(&self, cx: &Core, cpu: CpuId) -> bool {
        let waits = || self.rqs.nr_running(cpu) > self.rqs.queues[cpu as usize].h_nr_delayed;
        cx.curr(cpu).is_none() && cx.online(cpu) && (self.places.how <= Placing::V2_6_32 || !waits())
    }

    /// The fix of the overload-on-wakeup bug: the last CPU if it is idle, or otherwise the CPU that has been idle
    /// longest.
    fn longest_idle(&self, cx: &Core, ask: Ask) -> Option<CpuId> {
        let allowed = &cx.task(ask.p).allowed;
        if allowed.contains(ask.prev) && self.is_idle(cx, ask.prev) {
            return Some(ask.prev);
        }
        let idle = (0..self.rqs.cpus).filter(|c| allowed.contains(*c) && self.is_idle(cx, *c));
        idle.min_by_key(|c| (self.places.idle_since[*c as usize], *c))
    }

    /// The utilisation of a CPU by fair tasks if a waking task is placed on `to`, or on no CPU (`cpu_util`). With
    /// `boost`, the time that tasks wait there counts as well.
    fn util_with(&self, cx: &Core, cpu: CpuId, p: TaskId, to: Option<CpuId>, boost: bool) -> u64 {
        let whole = self.capacity_of(cpu).1;
        self.pelt.cpu_util_with(self.rqs, cx, (cpu, whole), p, to, boost)
    }

    /// Whether wake-ups currently go by energy: there is an energy model, and no CPU is overutilised.
    fn saves_energy(&self) -> bool {
        self.balancer.is_some_and(Balancer::saves_energy)
    }

    /// The preferred node of a task, from NUMA balancing.
    fn preferred_node(&self, p: TaskId) -> Option<Node> {
        self.numa?.task(p).preferred
    }

    /// The node of a CPU, if NUMA balancing is on.
    fn numa_node(&self, cpu: CpuId) -> Option<Node> {
        self.numa.map(|numa| numa.node_of(cpu))
    }

    /// What was left of a CPU's capacity at its last update, and its original capacity (`capacity_of`,
    /// `capacity_orig_of`).
    fn capacity_of(&self, cpu: CpuId) -> (u64, u64) {
        self.balancer.map_or((1024, 1024), |balancer| balancer.capacity(cpu))
    }

    /// Records in the trace which CPUs were looked at.
    fn looked(cx: &mut Core, ask: Ask, cpus: &[CpuId]) {
        let why = if ask.wakes { Looking::Wake } else { Looking::Fork };
        cx.trace_considered(ask.here, why, Some(ask.p), cpus.iter().copied());
    }
}

/// For each CPU, the number of CPUs of its last-level cache: what `update_idle_cpu_scan` finds while all are idle, as
/// they are before the load begins.
fn idle_scans(machine: &Machine) -> Vec<u32> {
    let cache = |cpu: &schedlab_machine::Cpu| cpu.place.llc;
    let mut sizes = vec![0; machine.cpus.iter().map(|cpu| cache(cpu) as usize + 1).max().unwrap_or(0)];
    machine.cpus.iter().for_each(|cpu| sizes[cache(cpu) as usize] += 1);
    machine.cpus.iter().map(|cpu| sizes[cache(cpu) as usize]).collect()
}

/// 100 percent plus half of the imbalance that a domain tolerates.
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

/// The CPUs that share a cache below the last level with a CPU (`SD_CLUSTER`), from 6.7 on.
fn cluster(domains: &Domains, cpu: CpuId) -> Option<&Span> {
    let domain = domains.of(cpu).iter().find(|d| d.flags.has(Flags::CLUSTER))?;
    Some(domains.span(domain.span))
}

/// Whether two CPUs of one last-level cache share the closest cache that CPUs share (`cpus_share_resources`). Without
/// clusters that is the last-level cache.
fn share_resources(domains: &Domains, a: CpuId, b: CpuId) -> bool {
    a == b || cluster(domains, a).is_none_or(|span| span.set.contains(b))
}

/// The domain of a CPU's last-level cache (`sd_llc`).
fn cache(domains: &Domains, cpu: CpuId) -> Option<&Domain> {
    domains.cache(cpu).map(|level| &domains.of(cpu)[level])
}
