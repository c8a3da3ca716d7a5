//! Balancing one domain of one CPU: `load_balance`, in the forms that the releases have.

use super::queue_kind::QueueKind;
use super::queues::Queues;
use super::state::Balancer;
use crate::balance::domains::{Flags, SpanId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Looking, v, v2_6};
use schedlab_sim::Core;

/// The unit of the imbalance. Before 5.5 it is always load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Load, by which tasks are weighed.
    Load,
    /// Utilisation.
    Util,
    /// Numbers of tasks.
    Tasks,
    /// Misfit tasks.
    Misfit,
}

/// The state of one balancing pass (`struct lb_env`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Env {
    /// The CPU and the level of the domain that is balanced.
    pub cpu: CpuId,
    pub level: usize,
    /// The CPU that tasks move to. It differs from `cpu` when a pinned task may only run on another CPU of the group.
    pub dst: CpuId,
    /// The CPU that tasks are taken from, once it has been found.
    pub src: CpuId,
    /// How busy the balancing CPU is.
    pub idle: Idleness,
    /// How much is left to move, in units of `unit`.
    pub imbalance: i64,
    /// The unit of the imbalance.
    pub unit: Unit,
    /// No task that was looked at may run on `dst`.
    pub all_pinned: bool,
    /// Some tasks may not run on `dst`, and `other_dst` is another CPU of the local group where one of them may run.
    pub some_pinned: bool,
    pub other_dst: Option<CpuId>,
    /// How many tasks have been looked at, and how many may be.
    pub looked: u32,
    pub most: u32,
    /// The running task is being pushed (active balancing).
    pub active: bool,
    /// Which queues balancing may pull from (`fbq_type`, from 3.13 on).
    pub kind: QueueKind,
}

impl Env {
    /// Starts balancing the domain of `cpu` at `level`, with `cpu` as the destination.
    pub fn new(cpu: CpuId, level: usize, idle: Idleness) -> Self {
        Self {
            cpu,
            level,
            dst: cpu,
            src: cpu,
            idle,
            imbalance: 0,
            unit: Unit::Load,
            all_pinned: false,
            some_pinned: false,
            other_dst: None,
            looked: 0,
            most: 0,
            active: false,
            kind: QueueKind::All,
        }
    }
}

/// The balancer together with the queues and the engine that it works on.
pub(super) struct Work<'a, Q> {
    pub b: &'a mut Balancer,
    pub q: &'a mut Q,
    pub cx: &'a mut Core,
}

/// What balancing has moved to the CPU or its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// It moved nothing.
    Nothing,
    /// It moved nothing, but the CPU needs no other domain because a sibling runs tasks (until 2.6.37).
    NotNeeded,
    /// It moved this many tasks, at least one.
    Tasks(u32),
}

impl Moved {
    /// `Tasks` if any task moved, otherwise `Nothing`.
    pub fn of(tasks: u32) -> Self {
        if tasks > 0 { Self::Tasks(tasks) } else { Self::Nothing }
    }
}

/// How balancing a domain ended, for the loop over a CPU's domains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Balanced {
    pub moved: Moved,
    /// Another CPU balances for the group, so nothing was tried.
    pub elsewhere: bool,
}

/// How `load_balance` ended.
pub(super) enum Found {
    /// Another CPU balances for the group.
    Elsewhere,
    /// The domain is balanced.
    Balanced,
    /// No task may run on the destination.
    AllPinned,
    /// The running task may not run on the destination.
    OnePinned,
    /// This many tasks were moved, or a push of the running task has been requested.
    Moved { tasks: u32, pushed: bool },
}

impl<Q: Queues> Work<'_, Q> {
    /// Whether a CPU runs nothing and, in later releases, has nothing waiting (`idle_cpu`).
    #[inline]
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.cx.curr(cpu).is_none() && (self.b.rules.idle_with_waiting() || self.q.nr_running(cpu) == 0)
    }

    /// Whether all siblings of a CPU are idle (`is_core_idle`). It does not look at `cpu` itself.
    pub fn is_core_idle(&self, cpu: CpuId) -> bool {
        self.b.of_cpu[cpu as usize]
            .core
            .is_none_or(|core| self.b.domains.span(core).cpus.iter().all(|other| *other == cpu || self.is_idle(*other)))
    }

    /// Whether this balancing pass considers a CPU.
    pub fn counts(&self, cpu: CpuId) -> bool {
        !self.b.scratch.out[cpu as usize]
    }

    /// The CPUs of a span, in ascending order.
    pub fn span(&self, id: SpanId) -> &[CpuId] {
        &self.b.domains.span(id).cpus
    }

    /// Balances one domain of a CPU and updates the domain's interval and failure count.
    pub fn balance_domain(&mut self, cpu: CpuId, level: usize, idle: Idleness) -> Balanced {
        let mut env = Env::new(cpu, level, idle);
        let shares_core = self.b.domain(cpu, level).flags.has(Flags::SHARE_CPUCAPACITY);
        let sibling_runs =
            self.b.rules.siblings_answer() && shares_core && (idle == Idleness::Busy || self.some_run(cpu, level));
        let found = self.load_balance(&mut env);
        self.clear_out(cpu, level);
        let moved = if self.b.rules.newly_idle_apart() && idle == Idleness::Newly {
            self.settle_newly(&env, &found, sibling_runs)
        } else {
            self.settle(&env, &found)
        };
        let moved = if moved == Moved::Nothing && sibling_runs { Moved::NotNeeded } else { moved };
        Balanced { moved, elsewhere: matches!(found, Found::Elsewhere) }
    }

    /// Whether any CPU of a domain has runnable tasks.
    fn some_run(&self, cpu: CpuId, level: usize) -> bool {
        self.span(self.b.domain(cpu, level).span).iter().any(|cpu| self.q.nr_running(*cpu) > 0)
    }

    /// Excludes a CPU from this balancing pass.
    fn leave_out(&mut self, cpu: CpuId) {
        self.b.scratch.out[cpu as usize] = true;
        self.b.scratch.some_out = true;
    }

    fn clear_out(&mut self, cpu: CpuId, level: usize) {
        let Balancer { domains, scratch, .. } = &mut *self.b;
        if !std::mem::take(&mut scratch.some_out) {
            return;
        }
        for cpu in &domains.span(domains.of(cpu)[level].span).cpus {
            scratch.out[*cpu as usize] = false;
        }
    }

    /// Finds the busiest CPU of the busiest group and pulls tasks from it.
    fn load_balance(&mut self, env: &mut Env) -> Found {
        let release = self.b.rules.release();
        loop {
            if self.b.rules.siblings_answer() {
                let domains = &self.b.domains;
                let list = domains.of(env.cpu);
                let (span, top) = (domains.span(list[env.level].span), env.level + 1 == list.len());
                self.q.spread_shares(self.cx, domains.index(env.cpu, env.level), &span.cpus, top);
            }
            if !self.should_balance(env) {
                return Found::Elsewhere;
            }
            self.trace(env);
            if self.is_vain(env) {
                self.refresh_capacity(env);
                return Found::Balanced;
            }
            let group = if self.b.rules.typed() { self.busiest_by_type(env) } else { self.busiest_by_load(env) };
            let Some(group) = group else { return Found::Balanced };
            env.kind = self.kind_of_group(env, group);
            let src =
                if self.b.rules.typed() { self.queue_by_unit(env, group) } else { self.queue_by_load(env, group) };
            let Some(src) = src else { return Found::Balanced };
            debug_assert!(src != env.dst, "CPU {src} would balance with itself");
            env.src = src;
            // 8a41dfcda7a3, "sched/fair: Don't set LBF_ALL_PINNED unnecessarily".
            env.all_pinned |= release >= v(5, 12);
            let mut moved = 0;
            if self.q.nr_running(src) > 1 {
                env.all_pinned = if release < v2_6(27) {
                    // Until 2.6.26 the real-time class is asked first, and having nothing to move counts as pinned.
                    env.imbalance > 0
                } else {
                    // Each queue that is looked at sets it again.
                    !self.b.rules.moves_by_queue() || env.all_pinned
                };
                env.looked = 0;
                env.most = self.b.rules.nr_migrate.min(self.q.nr_running(src));
                moved = self.take_all(env);
                self.note_group_imbalance(env);
                if env.all_pinned {
                    self.leave_out(src);
                    if self.worth_another(env) {
                        continue;
                    }
                    if self.b.rules.newly_idle_apart() && env.idle == Idleness::Newly {
                        return Found::Moved { tasks: 0, pushed: false };
                    }
                    // Until 3.17 this case was not distinguished.
                    return if release < v(3, 18) { Found::Balanced } else { Found::AllPinned };
                }
            }
            return self.fall_back(env, moved);
        }
    }

    /// Pulls tasks, retrying with other CPUs of the group as the destination if only those are allowed for a pinned
    /// task.
    fn take_all(&mut self, env: &mut Env) -> u32 {
        let mut moved = 0;
        loop {
            moved += self.detach_tasks(env);
            match env.other_dst.take() {
                Some(other) if env.imbalance > 0 => {
                    // Until 3.11 the new destination is excluded, which has no effect because it is not looked at.
                    let out = if self.b.rules.release() < v(3, 12) { other } else { env.dst };
                    self.leave_out(out);
                    env.dst = other;
                    env.looked = 0;
                }
                _ => return moved,
            }
        }
    }

    /// Marks the parent domain's group as imbalanced if affinity kept tasks from moving (from 3.13 on).
    fn note_group_imbalance(&mut self, env: &Env) {
        if env.some_pinned
            && env.imbalance > 0
            && self.b.rules.release() >= v(3, 13)
            && let Some(group) = self.b.parent_group(env.cpu, env.level)
        {
            self.b.of_group[group.index()].imbalance = true;
        }
    }

    /// Whether another CPU is worth trying after all tasks of the busiest CPU turned out to be pinned.
    fn worth_another(&self, env: &Env) -> bool {
        let domain = self.b.domain(env.cpu, env.level);
        if self.b.rules.release() >= v(4, 13) {
            let ours = &self.b.domains.span(self.b.domains.group(self.b.domains.local(domain)).mask).set;
            return self.span(domain.span).iter().any(|cpu| self.counts(*cpu) && !ours.contains(*cpu));
        }
        // Any CPU of the machine that is left suffices, until all CPUs of the domain have been tried.
        self.span(domain.span).iter().any(|cpu| self.counts(*cpu)) || self.span(domain.span).len() < self.b.of_cpu.len()
    }

    /// Whether this CPU is the one that balances for its group (`should_we_balance`).
    fn should_balance(&self, env: &Env) -> bool {
        let release = self.b.rules.release();
        if env.idle == Idleness::Newly {
            // 792b9f65a568, "sched: Allow newidle balancing to bail out of load_balance".
            return release < v(6, 0) || self.q.nr_running(env.cpu) == 0;
        }
        if release >= v(4, 14) && !self.counts(env.dst) {
            return false;
        }
        // The published patch of the group construction lets every CPU balance (wc-02).
        if self.b.rules.fixes.group_construction && (v(3, 18)..=v(4, 1)).contains(&release) {
            return true;
        }
        let domain = self.b.domain(env.cpu, env.level);
        let group = self.b.domains.local(domain);
        let (span, mask) = (self.b.domains.group(group).span, self.b.domains.group(group).mask);
        // The change came somewhere between 3.1 and 3.6.
        let masked = if release < v(3, 6) { span } else { mask };
        let first = self.span(masked).first().copied();
        let mut idle = self.idle_of(masked);
        // b1bfeab9b002, "sched/fair: Consider the idle state of the whole core for load balance".
        if release < v(6, 6) || domain.flags.has(Flags::SHARE_CPUCAPACITY) {
            return idle.next().or(first) == Some(env.dst);
        }
        let whole = idle.find(|cpu| self.is_core_idle(*cpu));
        whole.or_else(|| self.idle_of(masked).next()).or(first) == Some(env.dst)
    }

    fn trace(&mut self, env: &Env) {
        let why = match env.idle {
            Idleness::Newly => Looking::NewIdle,
            Idleness::Idle => Looking::NoHz,
            Idleness::Busy => Looking::Periodic,
        };
        let Balancer { domains, scratch, .. } = &*self.b;
        let span = &domains.span(domains.of(env.cpu)[env.level].span).cpus;
        self.cx.trace_considered(
            env.cpu,
            why,
            None,
            span.iter().copied().filter(|cpu| *cpu != env.cpu && !scratch.out[*cpu as usize]),
        );
    }
}
