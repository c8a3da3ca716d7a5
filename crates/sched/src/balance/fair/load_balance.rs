//! One balancing of one domain of a CPU: `load_balance`, in the forms that it has had.

use super::queue_kind::QueueKind;
use super::queues::Queues;
use super::state::Balancer;
use crate::balance::domains::{Flags, SpanId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Looking, v, v2_6};
use schedlab_sim::Core;

/// What the imbalance counts (5.5 on; before, it is always load).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Load,
    Util,
    Tasks,
    Misfit,
}

/// One balancing (`struct lb_env`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Env {
    /// Whose domain it is, and which.
    pub cpu: CpuId,
    pub level: usize,
    pub dst: CpuId,
    pub src: CpuId,
    pub idle: Idleness,
    pub imbalance: i64,
    pub unit: Unit,
    /// Every task that was looked at may not run on `dst`.
    pub all_pinned: bool,
    /// Some may not; and this other CPU of the group may have one of them.
    pub some_pinned: bool,
    pub other_dst: Option<CpuId>,
    /// How many tasks were looked at, and may be.
    pub looked: u32,
    pub most: u32,
    /// The running task is being pushed.
    pub active: bool,
    /// Of which queues it takes (`fbq_type`, 3.13 on).
    pub kind: QueueKind,
}

impl Env {
    /// A domain of a CPU is about to be balanced.
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

/// The balancer at work on the queues.
pub(super) struct Work<'a, Q> {
    pub b: &'a mut Balancer,
    pub q: &'a mut Q,
    pub cx: &'a mut Core,
}

/// What a balancing has moved to the CPU or its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    Nothing,
    /// Nothing, but the CPU needs no other domain: a sibling runs tasks (until 2.6.37).
    NotNeeded,
    /// Tasks, at least one.
    Tasks(u32),
}

impl Moved {
    /// A number of tasks, perhaps none.
    pub fn of(tasks: u32) -> Self {
        if tasks > 0 { Self::Tasks(tasks) } else { Self::Nothing }
    }
}

/// How the balancing of a domain ended, for the walk over a CPU's domains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Balanced {
    pub moved: Moved,
    /// Another CPU balances for the group.
    pub elsewhere: bool,
}

/// How it ended.
pub(super) enum Found {
    /// Another CPU balances for the group.
    Elsewhere,
    /// There is nothing to do.
    Balanced,
    /// No task may move.
    AllPinned,
    /// The task that runs may not.
    OnePinned,
    /// How many tasks were moved; or the running one is being pushed.
    Moved { tasks: u32, pushed: bool },
}

impl<Q: Queues> Work<'_, Q> {
    /// Whether nothing runs and, in later releases, nothing waits on a CPU (`idle_cpu`).
    #[inline]
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.cx.curr(cpu).is_none() && (self.b.rules.idle_with_waiting() || self.q.nr_running(cpu) == 0)
    }

    /// Whether no sibling of a CPU runs anything (`is_core_idle`).
    pub fn is_core_idle(&self, cpu: CpuId) -> bool {
        self.b.of_cpu[cpu as usize]
            .core
            .is_none_or(|core| self.b.domains.span(core).cpus.iter().all(|other| *other == cpu || self.is_idle(*other)))
    }

    /// The CPUs of a span that this balancing looks at.
    pub fn counts(&self, cpu: CpuId) -> bool {
        !self.b.scratch.out[cpu as usize]
    }

    pub fn span(&self, id: SpanId) -> &[CpuId] {
        &self.b.domains.span(id).cpus
    }

    /// Balances one domain of a CPU.
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

    /// Whether a CPU of a domain has tasks.
    fn some_run(&self, cpu: CpuId, level: usize) -> bool {
        self.span(self.b.domain(cpu, level).span).iter().any(|cpu| self.q.nr_running(*cpu) > 0)
    }

    /// Leaves a CPU out of this balancing.
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

    /// Finds the busiest CPU of the busiest group, and takes tasks from it.
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
                    // The real-time class is asked first, and what it has nothing of is pinned.
                    env.imbalance > 0
                } else {
                    // Each queue that is looked at sets it anew.
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
                    // Until 3.17 this was no case of its own.
                    return if release < v(3, 18) { Found::Balanced } else { Found::AllPinned };
                }
            }
            return self.fall_back(env, moved);
        }
    }

    /// Takes tasks, for other CPUs of the group too where they alone may have them.
    fn take_all(&mut self, env: &mut Env) -> u32 {
        let mut moved = 0;
        loop {
            moved += self.detach_tasks(env);
            match env.other_dst.take() {
                Some(other) if env.imbalance > 0 => {
                    // Until 3.11 it leaves out the new one, which is not looked at anyway.
                    let out = if self.b.rules.release() < v(3, 12) { other } else { env.dst };
                    self.leave_out(out);
                    env.dst = other;
                    env.looked = 0;
                }
                _ => return moved,
            }
        }
    }

    /// Tasks could not be moved for their affinity: the level above is to know (3.13 on).
    fn note_group_imbalance(&mut self, env: &Env) {
        if env.some_pinned
            && env.imbalance > 0
            && self.b.rules.release() >= v(3, 13)
            && let Some(group) = self.b.parent_group(env.cpu, env.level)
        {
            self.b.of_group[group.index()].imbalance = true;
        }
    }

    /// All tasks of the busiest CPU are pinned: whether there may be another.
    fn worth_another(&self, env: &Env) -> bool {
        let domain = self.b.domain(env.cpu, env.level);
        if self.b.rules.release() >= v(4, 13) {
            let ours = &self.b.domains.span(self.b.domains.group(self.b.domains.local(domain)).mask).set;
            return self.span(domain.span).iter().any(|cpu| self.counts(*cpu) && !ours.contains(*cpu));
        }
        // Any CPU of the machine that is left will do, until all of the domain have been tried.
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
        // The patch to the groups' construction lets every CPU balance (wc-02).
        if self.b.rules.fixes.group_construction && (v(3, 18)..=v(4, 1)).contains(&release) {
            return true;
        }
        let domain = self.b.domain(env.cpu, env.level);
        let group = self.b.domains.local(domain);
        let (span, mask) = (self.b.domains.group(group).span, self.b.domains.group(group).mask);
        // Between 3.1 and 3.6.
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
