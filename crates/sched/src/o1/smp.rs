//! The O(1) scheduler on several CPUs: load balancing at ticks, by a CPU that runs out of tasks, and by the stopper.
//!
//! # Idea
//! Each CPU has its own arrays, so load has to be balanced between CPUs. A CPU does not give tasks away: a CPU with
//! little load looks for one with much, and pulls tasks from it. It does so at its ticks, often when it is idle and
//! rarely when it is busy, and just before it becomes idle. It pulls tasks that will not run soon and have little in
//! the cache: expired tasks before active ones, and no task that ran a moment ago.
//!
//! # Rule
//! **2.6.0** (`lengths.rs`) counts tasks: the number now or at the last look, whichever is less. It looks within the
//! node, and from time to time at the longest queue of another node: an idle CPU every ms, a busy one every 200 ms. It
//! tolerates a difference of 25% of the longer queue, and pulls half of the difference, or everything it can if that
//! difference is one task. A task stays warm for `cache_decay_ticks` after it ran or was queued, except for an idle
//! CPU.
//!
//! **2.6.11** (`loads.rs`) counts 128 for each task, averaged over ticks. It looks for the busiest group in one domain
//! after another: an idle CPU every 1 to 4 ms, a busy one 64 times less often (for domain `CPU`). It tolerates
//! `imbalance_pct`, and pulls what leads to the average, or one task if that helps. A task stays warm for 2.5 ms (10 ms
//! between nodes), unless the core is idle or balancing has failed twice.
//!
//! **2.6.18** (`loads.rs`) does the same with weights by nice level, and with averages of three lengths. A task stays
//! warm for `migration_cost`, unless balancing has failed twice.
//!
//! After four failures (in 2.6.18, after every second failure from then on) the stopper of the busy CPU pushes a task.
//!
//! `place.rs` chooses the CPU for a wake-up or a fork.
//!
//! # State
//! For each domain of each CPU: when it was last balanced, its interval, and its failures in a row. For each CPU: the
//! averages of its load (in its runqueue) and, in 2.6.0, what it saw of the other CPUs when it last looked.
//!
//! # Reference
//! `rebalance_tick`, `load_balance`, `load_balance_newidle`, `find_busiest_group`, `active_load_balance` in
//! kernel/sched.c.

mod imbalance;
mod lengths;
mod loads;
mod moving;
mod place;

use super::O1;
use super::release::Balancing;
use crate::balance::domains::{Builder, Domain, Domains, Fixes, Flags};
use crate::balance::rounds::{Idleness, Rounds};
use crate::balance::sync;
use lengths::Lengths;
use moving::{Haul, Heat};
use schedlab_base::{CpuId, Looking, Nanos, Release};
use schedlab_machine::Machine;
use schedlab_sim::{Core, View};

/// The state of load balancing on a machine with several CPUs.
#[derive(Debug)]
pub(super) struct Smp<'m> {
    builder: Builder<'m>,
    rounds: Rounds,
    tick: Nanos,
    /// For each CPU, the CPU to which its stopper must push a task (`active_balance`, `push_cpu`).
    push_to: Vec<Option<CpuId>>,
    /// Whether the kernel was built for SMT (`CONFIG_SCHED_SMT`): 2.6.11 if the machine has siblings, 2.6.18 always.
    smt: bool,
    /// What 2.6.0 remembers of queue lengths.
    lengths: Lengths,
}

impl<'m> Smp<'m> {
    /// Creates the state for a machine with several CPUs and a tick every `tick` ns.
    pub fn new(machine: &'m Machine, release: Release, balancing: Balancing, tick: Nanos) -> Self {
        let builder = Builder::new(release, machine, Fixes::default());
        let cpus = machine.cpus.len();
        Self {
            rounds: Rounds::new(builder.build(), 0, tick),
            builder,
            tick,
            push_to: vec![None; cpus],
            smt: match balancing {
                Balancing::ByLength => false,
                Balancing::ByLoad => machine.threads() > 1,
                Balancing::ByWeight => true,
            },
            lengths: Lengths::new(balancing, machine, tick),
        }
    }
}

/// A CPU's look at one of its domains.
#[derive(Clone, Copy)]
struct Look<'d> {
    cpu: CpuId,
    idle: Idleness,
    level: usize,
    domains: &'d Domains,
    domain: &'d Domain,
}

impl Look<'_> {
    /// Returns whether the domain consists of siblings of a core.
    fn among_siblings(&self) -> bool {
        self.domain.flags.has(Flags::SHARE_CPUCAPACITY)
    }
}

impl O1<'_> {
    fn smp(&self) -> &Smp<'_> {
        self.smp.as_ref().expect("only several CPUs balance")
    }

    /// Returns how many tasks are runnable on a CPU, including the running one.
    pub(super) fn nr_running(&self, cpu: CpuId) -> u32 {
        self.queues[cpu as usize].nr_running()
    }

    /// Returns whether loads are averaged over ticks; 2.6.0 has no averages.
    fn averages(&self) -> bool {
        self.smp.is_some() && self.rules.release().balancing != Balancing::ByLength
    }

    /// Updates the load averages of a CPU for this many ticks in a row.
    pub(super) fn average_load(&mut self, cpu: CpuId, ticks: u64) {
        if self.averages() && !self.queues[cpu as usize].is_steady() {
            self.queues[cpu as usize].average_load(ticks);
        }
    }

    /// Balances load at a CPU's tick (`rebalance_tick`).
    pub(super) fn rebalance_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(smp) = &self.smp else { return };
        let idle = self.idleness(smp, cx, cpu);
        self.average_load(cpu, 1);
        if self.rules.release().balancing == Balancing::ByLength {
            self.rebalance_by_length(cx, cpu, idle);
        } else {
            self.rebalance_domains(cx, cpu, idle);
        }
    }

    /// Returns whether a CPU balances as busy or idle. With SMT support, an idle CPU to which a task has just come
    /// counts as busy (`wake_priority_sleeper`).
    fn idleness(&self, smp: &Smp<'_>, cx: &Core, cpu: CpuId) -> Idleness {
        if cx.curr(cpu).is_some() || smp.smt && self.nr_running(cpu) > 0 { Idleness::Busy } else { Idleness::Idle }
    }

    fn rebalance_domains(&mut self, cx: &mut Core, cpu: CpuId, mut idle: Idleness) {
        let domains = self.smp().rounds.domains();
        for (level, domain) in domains.of(cpu).iter().enumerate() {
            if !domain.flags.has(Flags::LOAD_BALANCE) {
                continue;
            }
            let interval = self.smp().rounds.interval(cpu, level, idle == Idleness::Busy);
            if self.smp().rounds.of(cpu, level).last + interval > cx.jiffies() {
                continue;
            }
            let look = Look { cpu, idle, level, domains: &domains, domain };
            if self.load_balance(cx, &look) {
                idle = Idleness::Busy;
            }
            if let Some(smp) = &mut self.smp {
                smp.rounds.of_mut(cpu, level).last += interval;
            }
        }
    }

    /// Balances load for a CPU that is about to become idle (`idle_balance`).
    pub(super) fn balance_newly_idle(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(smp) = &self.smp else { return };
        let domains = smp.rounds.domains();
        if self.rules.release().balancing == Balancing::ByLength {
            if let Some(node) = domains.of(cpu).first() {
                self.balance_by_length(cx, cpu, Idleness::Newly, &domains.span(node.span).cpus);
            }
            return;
        }
        for (level, domain) in domains.of(cpu).iter().enumerate() {
            let look = Look { cpu, idle: Idleness::Newly, level, domains: &domains, domain };
            if domain.flags.has(Flags::BALANCE_NEWIDLE) && self.load_balance_newly_idle(cx, &look) {
                return;
            }
        }
    }

    /// Brings the queues of these CPUs up to date before `cpu` looks at them, and traces that it does.
    fn look_at(&mut self, cx: &mut Core, cpu: CpuId, why: Looking, cpus: &[CpuId]) {
        for &other in cpus {
            // Anything else that ticks change is brought up to date when a task is moved.
            if self.averages() && !self.queues[other as usize].is_steady() {
                sync(self, cx, other);
            }
        }
        cx.trace_considered(cpu, why, None, cpus.iter().copied().filter(|other| *other != cpu));
    }

    /// Returns the time of the next tick at which a CPU balances; `Nanos::MAX` if there is none.
    pub(super) fn next_balance(&self, cx: &Core, cpu: CpuId) -> Nanos {
        let Some(smp) = &self.smp else { return Nanos::MAX };
        let idle = self.idleness(smp, cx, cpu);
        let due = if self.rules.release().balancing == Balancing::ByLength {
            let next = (cx.next_tick(cpu) - cx.tick_time(1)) / cx.tick_period() + 1;
            Some(next.next_multiple_of(smp.lengths.interval(idle)))
        } else {
            smp.rounds.next_due(cpu, idle == Idleness::Busy)
        };
        due.map_or(Nanos::MAX, |tick| cx.tick_time(tick))
    }

    /// Rebuilds the domains after a CPU went offline or came online; their intervals start again.
    pub(super) fn rebuild_domains(&mut self, cx: &mut Core, build: impl FnOnce(&mut Builder<'_>) -> Domains) {
        for cpu in (0..cx.nr_cpus()).filter(|cpu| cx.online(*cpu)).collect::<Vec<_>>() {
            sync(self, cx, cpu);
            cx.touch(cpu);
        }
        self.rules.set_cpus(cx.nr_online());
        if let Some(smp) = &mut self.smp {
            smp.rounds = Rounds::new(build(&mut smp.builder), cx.jiffies(), smp.tick);
        }
    }

    /// Shows what balancing keeps about a CPU: its load averages, and its domains from the smallest up.
    pub(super) fn view_balancing(&self, cpu: CpuId) -> Vec<(&'static str, View)> {
        let Some(smp) = &self.smp else { return Vec::new() };
        let averages = &self.queues[cpu as usize].cpu_load;
        let averages = match self.rules.release().balancing {
            Balancing::ByLength => return Vec::new(),
            Balancing::ByLoad => &averages[1..2],
            Balancing::ByWeight => &averages[..],
        };
        let domains = smp.rounds.domains();
        let show = |(level, domain): (usize, &Domain)| {
            let round = smp.rounds.of(cpu, level);
            View::Map(vec![
                ("level", domains.name(domain).into()),
                ("last_balance_ticks", round.last.into()),
                ("balance_interval_ms", round.interval_ms.into()),
                ("nr_balance_failed", round.failed.into()),
            ])
        };
        vec![
            ("cpu_load", averages.iter().copied().collect()),
            ("domains", View::List(domains.of(cpu).iter().enumerate().map(show).collect())),
        ]
    }

    /// Returns the time of the last tick on a CPU whose queue is up to date (`timestamp_last_tick`).
    fn last_tick(cx: &Core, cpu: CpuId) -> Nanos {
        cx.next_tick(cpu).saturating_sub(cx.tick_period())
    }

    /// Returns whether a CPU and, with SMT support, all its siblings are idle (`cpu_and_siblings_are_idle`).
    fn core_is_idle(&self, cx: &Core, cpu: CpuId) -> bool {
        let idle = |cpu: CpuId| cx.curr(cpu).is_none();
        let smp = self.smp();
        let domains = &smp.rounds.domains();
        let siblings = domains.of(cpu).first().filter(|d| smp.smt && d.flags.has(Flags::SHARE_CPUCAPACITY));
        siblings.map_or_else(|| idle(cpu), |d| domains.span(d.span).cpus.iter().all(|sibling| idle(*sibling)))
    }

    /// Pushes a task away from `from`, whose stopper is running because another CPU could not pull any task
    /// (`active_load_balance`).
    pub(super) fn push_by_stopper(&mut self, cx: &mut Core, from: CpuId) {
        let Some(to) = self.smp.as_mut().and_then(|smp| smp.push_to[from as usize].take()) else { return };
        let domains = self.smp().rounds.domains();
        if self.rules.release().balancing == Balancing::ByWeight {
            // Push to the CPU that asked, if a domain contains both.
            let both = |d: &Domain| d.flags.has(Flags::LOAD_BALANCE) && domains.span(d.span).contains(from);
            if let Some(level) = domains.of(to).iter().position(both) {
                let domain = &domains.of(to)[level];
                let look = Look { cpu: to, idle: Idleness::Idle, level, domains: &domains, domain };
                self.look_at(cx, from, Looking::Active, &[to]);
                self.push_task(cx, from, to, self.heat(cx, &look));
            }
            return;
        }
        // Push to every idle core, the nearest first, as long as there are tasks.
        let mut seen: Option<&Domain> = None;
        for domain in domains.of(from) {
            if !domain.flags.has(Flags::LOAD_BALANCE) {
                return;
            }
            self.look_at(cx, from, Looking::Active, &domains.span(domain.span).cpus);
            for group in domains.groups(domain) {
                for &to in &domains.span(domains.group(group).span).cpus {
                    let known = to == from || seen.is_some_and(|d| domains.span(d.span).contains(to));
                    if !known && self.core_is_idle(cx, to) {
                        self.push_task(cx, from, to, Heat::Cold);
                    }
                }
            }
            seen = Some(domain);
        }
    }

    /// Moves one task; it may have been running until now.
    fn push_task(&mut self, cx: &mut Core, from: CpuId, to: CpuId, heat: Heat) {
        self.move_tasks(cx, &Haul { from, to, most: 1, weight: i64::MAX, heat, running: None });
    }
}
