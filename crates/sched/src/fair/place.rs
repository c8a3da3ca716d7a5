//! Where a task that wakes or is new is queued, generation by generation.
//!
//! # Idea
//! A task is best off on a CPU that is idle, near to what it has in the cache, or near to who woke it. The releases
//! differ in how much they look for the one or the other.
//!
//! # Rule
//! [`Placing`] says which release's way: `early` (2.6.24 and 2.6.32), `affine` (whether to come to the waker's side),
//! `sibling` (the idle CPU beside), `energy` (where it costs the least, on machines whose CPUs differ), `idlest` (for
//! new tasks: down the domains, to the idlest group's idlest CPU).
//!
//! # State
//! For each task whom it woke of late and how often that changed, and the CPU before the last; for each CPU since when
//! it is idle; for each last-level cache how many CPUs a search may look at.
//!
//! # Differences from the kernel
//! No wake-up is synchronous (`WF_SYNC`): the engine's tasks do not say that they will sleep. All idle states are
//! alike. What the timer woke is woken where the task last ran, and there whoever runs counts as the waker, as in the
//! kernel.
//!
//! # Reference
//! `select_task_rq_fair` in kernel/sched_fair.c of 2.6.32 and kernel/sched/fair.c of 3.10 to 6.12; `try_to_wake_up` and
//! `sched_balance_self` in kernel/sched.c of 2.6.24.

mod affine;
mod bound;
mod early;
mod energy;
mod idlest;
mod sibling;

use super::{Discipline, Fair, Setup};
use crate::balance::domains::{Domain, Domains, Flags, Params};
use crate::balance::fair::Queues;
use schedlab_base::{CpuId, Looking, Nanos, Release, v, v2_6};
use schedlab_sim::{Choice, Core, Decision, Placement, TaskId};

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
            release if release < v2_6(35) => Self::V2_6_32,
            release if release < v(3, 12) => Self::V3_10,
            release if release < v(4, 3) => Self::V3_18,
            _ => Self::V6,
        }
    }
}

/// A task's habits.
#[derive(Clone, Copy, Debug, Default)]
struct Habits {
    /// How often whom it wakes changed, halved each second.
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

impl<D: Discipline> Fair<D> {
    /// The CPU for a task that wakes or is new (`select_task_rq_fair`).
    pub(super) fn choose_cpu(
        &mut self,
        cx: &mut Core,
        domains: &Domains,
        p: TaskId,
        prev: CpuId,
        why: Placement,
    ) -> CpuId {
        self.clock = cx.now();
        let ask = match why {
            Placement::Wake { from } => Ask { p, prev, here: from, wakes: true },
            Placement::Fork { from } => Ask { p, prev, here: from, wakes: false },
        };
        self.places.weigh_anew();
        let (cpu, rule) = self.by_release(cx, domains, ask);
        // select_task_rq() takes no CPU that is not allowed.
        let allowed = &cx.task(p).allowed;
        let (cpu, rule) = if allowed.contains(cpu) {
            (cpu, rule)
        } else {
            let near = domains.of(prev).iter().flat_map(|d| domains.span(d.span).cpus.iter().copied());
            let all = near.chain(0..self.cpus);
            (all.into_iter().find(|c| allowed.contains(*c)).unwrap_or(prev), "the first CPU that it may use")
        };
        let weighed = self.places.weighed;
        cx.explain(|_| {
            let mut numbers = vec![(None, "previous_cpu", prev.into()), (None, "waking_cpu", ask.here.into())];
            if let Some(weighed) = weighed {
                numbers.push((Some(p), "utilisation", weighed.need as i64));
                numbers.extend(weighed.prev.map(|uw| (None, "on_previous_cpu_uw", uw as i64)));
                if let Some((other, uw)) = weighed.other {
                    numbers.extend([(None, "other_cpu", other.into()), (None, "on_other_cpu_uw", uw as i64)]);
                }
            } else if self.energy_is_passed_over() {
                numbers.push((None, "over_utilised", 1));
            }
            Decision { time: 0, cpu, choice: Choice::Place, who: Some(p), over: Vec::new(), rule, numbers }
        });
        cpu
    }

    fn by_release(&mut self, cx: &mut Core, domains: &Domains, ask: Ask) -> (CpuId, &'static str) {
        if self.places.fix_overload
            && let Some(cpu) = self.longest_idle(cx, ask)
        {
            return (
                cpu,
                "fix.overload_on_wakeup: where it last ran if that is idle, else the CPU that is idle longest",
            );
        }
        match self.places.how {
            Placing::V2_6_24 => self.place_2_6_24(cx, domains, ask),
            Placing::V2_6_32 => self.place_2_6_32(cx, domains, ask),
            Placing::V3_10 | Placing::V3_18 => self.place_affine(cx, domains, ask),
            Placing::V6 => self.place_6(cx, domains, ask),
        }
    }

    /// Whether a CPU runs nothing and, from 3.2 on, nothing waits there (`idle_cpu`): before, one that is woken is idle
    /// still until it has switched.
    fn is_idle(&self, cx: &Core, cpu: CpuId) -> bool {
        let waits = || self.nr_running(cpu) > self.queues[cpu as usize].h_nr_delayed;
        cx.curr(cpu).is_none() && cx.online(cpu) && (self.places.how <= Placing::V2_6_32 || !waits())
    }

    /// Whether a CPU has SCHED_IDLE tasks only (`sched_idle_cpu`).
    fn is_sched_idle(&self, cpu: CpuId) -> bool {
        let root = &self.queues[cpu as usize];
        root.h_nr > 0 && root.h_nr == root.h_nr_idle
    }

    /// The wasted-cores repair: the last CPU if it is idle, else the one that has been idle longest.
    fn longest_idle(&self, cx: &Core, ask: Ask) -> Option<CpuId> {
        let allowed = &cx.task(ask.p).allowed;
        if allowed.contains(ask.prev) && self.is_idle(cx, ask.prev) {
            return Some(ask.prev);
        }
        let idle = (0..self.cpus).filter(|c| allowed.contains(*c) && self.is_idle(cx, *c));
        idle.min_by_key(|c| (self.places.idle_since[*c as usize], *c))
    }

    /// What is left of a CPU's capacity as balancing last found it, and the whole (`capacity_of`, `capacity_orig_of`).
    pub(in crate::fair) fn capacity_of(&self, cpu: CpuId) -> (u64, u64) {
        self.balancer.as_ref().map_or((1024, 1024), |balancer| balancer.capacity(cpu))
    }

    /// Traces which CPUs were looked at.
    fn looked(cx: &mut Core, ask: Ask, cpus: &[CpuId]) {
        let why = if ask.wakes { Looking::Wake } else { Looking::Fork };
        cx.trace_considered(ask.here, why, Some(ask.p), cpus.iter().copied());
    }

    /// 3.10 to 4.1.
    fn place_affine(&mut self, cx: &mut Core, domains: &Domains, ask: Ask) -> (CpuId, &'static str) {
        if ask.wakes && self.places.how == Placing::V3_18 {
            self.record_wakee(cx, ask);
        }
        let allowed = cx.task(ask.p).allowed.contains(ask.here);
        let mut top = None;
        let mut affine = None;
        for (level, domain) in domains.of(ask.here).iter().enumerate() {
            if ask.wakes && allowed && spans(domains, domain, Flags::WAKE_AFFINE, ask.prev) {
                affine = Some(*domain);
                break;
            }
            if domain.flags.has(ask.flag()) {
                top = Some(level);
            }
        }
        let mut target = ask.prev;
        if let Some(domain) = affine
            && ask.here != ask.prev
            && self.comes_over(cx, domains, &domain, ask)
        {
            target = ask.here;
        }
        let beside = if self.places.how == Placing::V3_10 { affine.is_some() } else { ask.wakes };
        if beside {
            return (
                self.idle_sibling_4(cx, domains, ask, target),
                "an idle core or CPU of the cache, else the target",
            );
        }
        match top {
            Some(level) => self.descend(cx, domains, ask, level),
            None if ask.wakes => (ask.prev, "where it last ran"),
            None => (ask.here, "where its parent runs"),
        }
    }

    /// 5.5 on.
    fn place_6(&mut self, cx: &mut Core, domains: &Domains, ask: Ask) -> (CpuId, &'static str) {
        let mut wants = false;
        if ask.wakes {
            self.record_wakee(cx, ask);
            if self.saves_energy()
                && let Some(cpu) = self.efficient_cpu(cx, domains, ask)
            {
                let rule = if cpu == ask.prev {
                    "energy: where it last ran, for no other CPU saves any"
                } else {
                    "energy: another CPU, where it costs less"
                };
                return (cpu, rule);
            }
            wants = !self.wakes_widely(cx, domains, ask) && cx.task(ask.p).allowed.contains(ask.here);
        }
        let (mut target, mut top) = (ask.prev, None);
        for (level, domain) in domains.of(ask.here).iter().enumerate() {
            if wants && spans(domains, domain, Flags::WAKE_AFFINE, ask.prev) {
                if ask.here != ask.prev {
                    target = self.affine_target(cx, domains, domain, ask);
                }
                top = None;
                break;
            }
            if domain.flags.has(ask.flag()) {
                top = Some(level);
            } else if !wants {
                break;
            }
        }
        match top {
            Some(level) => self.descend(cx, domains, ask, level),
            None if ask.wakes => {
                let cpu = self.idle_sibling_6(cx, domains, ask, target);
                if wants && self.places.release < v(5, 15) {
                    self.places.waker(cx.curr(ask.here), ask.here).recent_cpu = ask.here;
                }
                (cpu, "an idle CPU of the target's cache, else the target")
            }
            None => (ask.prev, "no domain balances new tasks"),
        }
    }
}

/// Half of what is borne of imbalance, and the rest, in percent.
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
