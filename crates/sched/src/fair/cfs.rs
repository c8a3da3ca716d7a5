//! The completely fair scheduler, 2.6.24 to 6.5.
//!
//! # Idea
//! An ideal CPU would run all tasks at once, each at its weight's share. Every task's *virtual runtime*
//! grows with its CPU time, the slower the heavier it is; running the task whose virtual runtime is
//! least keeps all of them near to what the ideal CPU would have given.
//!
//! # Rule
//! The leftmost task of a tree ordered by virtual runtime runs next. At the tick it is preempted when it has
//! had its slice: its weight's part of a period in which each task runs once. A task that wakes is placed
//! a little before the others (it slept) and preempts if it is behind by more than the wake-up granularity.
//!
//! # State
//! For each CPU: the tree, `min_vruntime`, the sum of the weights, the buddies (next, last, skip).
//! For each task: virtual runtime, CPU time, weight.
//!
//! # Tunables
//! Latency (the period), minimum granularity (the least slice), wake-up granularity, and the features
//! in [`Rules`]; names and defaults by release in the registry of kernels.
//!
//! # Differences from the kernel
//! One queue of tasks a CPU: no group entities. Balancing is the plain one of [`crate::balance`].
//! No hrtick. 2.6.24's TREE_AVG and APPROX_AVG, off by default, are left out.
//!
//! # Reference
//! kernel/sched_fair.c of 2.6.24 and 2.6.32, kernel/sched/fair.c of 3.10, 3.18, 4.1 and 6.1.

use super::load::{Arithmetic, Load, NICE_0};
use super::timeline::{Arena, Timeline, before};
use crate::balance::{Balancer, Queues, with_balancer};
use crate::classes::{Class, move_waiting, sync};
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{Attributes, Core, Dequeue, Enqueue, Placement, State, TaskId, Ticks};

/// What differs between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Fixed-point arithmetic of virtual time.
    pub arithmetic: Arithmetic,
    /// The arithmetic of slices: exact division in 2.6.24.
    pub slices: Arithmetic,
    /// The weight of a SCHED_IDLE task: 2, and 3 from 2.6.29 on.
    pub idle_weight: u64,
    /// `min_vruntime` at boot.
    pub initial_min_vruntime: u64,
    /// `min_vruntime` moves only with the running task's account, and then always; later also when a task leaves,
    /// but not when no time has passed (2.6.24).
    pub min_moves_with_account: bool,
    /// The period of many tasks is `latency * nr / (latency / min granularity)` (2.6.24), later `min granularity * nr`.
    pub period_by_ratio: bool,
    /// The tick also preempts a task that is a slice ahead of the leftmost (2.6.33 on).
    pub preempt_if_ahead: bool,
    /// The running task stays in the running when the next is picked, and keeps its slice if it wins
    /// (3.15 on); before, it was put back and picked anew.
    pub pick_with_current: bool,
    /// A task that is picked is no longer a buddy, even if it was running already (until 5.13).
    pub pick_clears_buddies: bool,
    /// A slice is at least the minimum granularity (`BASE_SLICE`, 5.13 on).
    pub base_slice: bool,
    /// A new task is placed by `min_vruntime` alone and its start always reschedules (2.6.24); later it starts no
    /// earlier than its parent.
    pub new_task_from_min: bool,
    /// The wake-up granularity is scaled by the running task's weight, not the woken one's (until 2.6.27).
    pub granularity_by_current: bool,
    /// Wake-ups and forks compare virtual runtimes as plain numbers, which errs until they have passed 0: in the
    /// first millisecond (2.6.24).
    pub plain_compare: bool,
    /// SCHED_IDLE tasks give way to every other and preempt none (2.6.29 on); before, only their weight told.
    pub idle_gives_way: bool,
    /// A wake-up that preempts makes the woken task the next buddy (2.6.38 on).
    pub buddy_on_preempt: bool,
    /// The running task becomes the last buddy at every wake-up and fork that checks for preemption, and the tick
    /// leaves it one: it is preferred once more after its slice (2.6.32-rc3; later kernels set it only when it is
    /// preempted, among many tasks, and the tick clears it).
    pub early_last_buddy: bool,
    /// Who yields is passed over once (2.6.39 on); before, `sched_yield()` only brought the account up to date, or,
    /// for SCHED_BATCH and with `sched_compat_yield`, went behind the last.
    pub skip_on_yield: bool,
    /// A running task counts for `min_vruntime` even as it leaves its queue, to sleep or for a new nice level
    /// (until 4.9).
    pub change_moves_min: bool,
    /// A new nice level reschedules the CPU when it is better, or the task runs (until 5.7); later a waiting task
    /// must earn it as at a wake-up.
    pub nice_rescheds: bool,
    /// A new nice level gives the running task a new slice (4.10 on).
    pub change_renews_slice: bool,
    /// The features.
    pub features: Features,
}

impl Rules {
    /// CFS in its last form; what an older release did otherwise stands in its profile.
    pub const LAST: Self = Self {
        arithmetic: Arithmetic::Calc,
        slices: Arithmetic::Calc,
        idle_weight: 3,
        initial_min_vruntime: (-(1i64 << 20)) as u64,
        min_moves_with_account: false,
        period_by_ratio: false,
        preempt_if_ahead: true,
        pick_with_current: true,
        pick_clears_buddies: false,
        base_slice: true,
        new_task_from_min: false,
        granularity_by_current: false,
        plain_compare: false,
        idle_gives_way: true,
        buddy_on_preempt: true,
        early_last_buddy: false,
        skip_on_yield: true,
        change_moves_min: false,
        nice_rescheds: false,
        change_renews_slice: true,
        features: Features {
            fair_sleepers: true,
            gentle_fair_sleepers: true,
            start_debit: true,
            wakeup_preemption: true,
            next_buddy: false,
            last_buddy: true,
        },
    };
}

/// `sched_features` that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Features {
    pub fair_sleepers: bool,
    pub gentle_fair_sleepers: bool,
    pub start_debit: bool,
    pub wakeup_preemption: bool,
    pub next_buddy: bool,
    pub last_buddy: bool,
}

/// The tunables, after scaling by the number of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// `sched_latency_ns`.
    pub latency: Nanos,
    /// `sched_min_granularity_ns`.
    pub min_granularity: Nanos,
    /// `sched_wakeup_granularity_ns`.
    pub wakeup_granularity: Nanos,
    /// `sched_child_runs_first`.
    pub child_runs_first: bool,
    /// `sched_compat_yield` (until 2.6.38).
    pub compat_yield: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entity {
    vruntime: u64,
    exec_start: Nanos,
    sum_exec: Nanos,
    prev_sum_exec: Nanos,
    load: Load,
    on_rq: bool,
    /// The CPU of the task that created it.
    forked_on: Option<CpuId>,
}

#[derive(Clone, Debug, Default)]
struct Rq {
    tree: Timeline,
    curr: Option<TaskId>,
    min_vruntime: u64,
    load: Load,
    nr_running: u32,
    next: Option<TaskId>,
    last: Option<TaskId>,
    skip: Option<TaskId>,
}

/// The scheduler.
#[derive(Debug)]
pub struct Cfs {
    rules: Rules,
    tunables: Tunables,
    nr_latency: u32,
    arena: Arena,
    entities: Vec<Entity>,
    queues: Vec<Rq>,
    balancer: Option<Balancer>,
}

impl Cfs {
    /// A scheduler for `machine` by the given rules.
    #[must_use]
    pub fn new(machine: &Machine, rules: Rules, tunables: Tunables) -> Self {
        let nr_latency = tunables.latency.div_ceil(tunables.min_granularity.max(1)) as u32;
        let rq = Rq { min_vruntime: rules.initial_min_vruntime, ..Rq::default() };
        Self {
            rules,
            tunables,
            nr_latency,
            arena: Arena::default(),
            entities: Vec::new(),
            queues: vec![rq; machine.cpus.len()],
            balancer: (machine.cpus.len() > 1).then(|| Balancer::new(machine)),
        }
    }

    fn load_of(&self, attributes: &Attributes) -> Load {
        Load::with_idle(attributes, self.rules.idle_weight)
    }

    fn virtual_time(&self, p: TaskId, delta: Nanos) -> Nanos {
        self.entities[p as usize].load.virtual_time(delta, self.rules.arithmetic)
    }

    /// Brings the account of the running task up to `now` (`update_curr`).
    fn account(&mut self, cpu: CpuId, now: Nanos) {
        let Some(p) = self.queues[cpu as usize].curr else { return };
        let e = &mut self.entities[p as usize];
        let delta = now - e.exec_start;
        if delta == 0 && !self.rules.min_moves_with_account {
            return;
        }
        e.exec_start = now;
        e.sum_exec += delta;
        e.vruntime = e.vruntime.wrapping_add(e.load.virtual_time(delta, self.rules.arithmetic));
        self.update_min_vruntime(cpu);
    }

    fn update_min_vruntime(&mut self, cpu: CpuId) {
        let rq = &mut self.queues[cpu as usize];
        let curr = rq.curr.filter(|p| self.entities[*p as usize].on_rq).map(|p| self.entities[p as usize].vruntime);
        let first = rq.tree.first().map(|p| self.entities[p as usize].vruntime);
        let least = match (curr, first) {
            (Some(a), Some(b)) => {
                if before(b, a) {
                    b
                } else {
                    a
                }
            }
            (Some(v), None) | (None, Some(v)) => v,
            (None, None) => return,
        };
        if before(rq.min_vruntime, least) {
            rq.min_vruntime = least;
        }
    }

    /// The time in which each of `nr` tasks runs once (`__sched_period`).
    fn period(&self, nr: u32) -> Nanos {
        let Tunables { latency, min_granularity, .. } = self.tunables;
        if nr <= self.nr_latency {
            latency
        } else if self.rules.period_by_ratio {
            latency * Nanos::from(nr) / Nanos::from(self.nr_latency)
        } else {
            min_granularity * Nanos::from(nr)
        }
    }

    /// The part of the period that is a task's (`sched_slice`); `p` need not be queued yet.
    fn slice(&mut self, cpu: CpuId, p: TaskId) -> Nanos {
        let queued = self.entities[p as usize].on_rq;
        let own = self.entities[p as usize].load;
        let period = self.period(self.queues[cpu as usize].nr_running + u32::from(!queued));
        let arithmetic = self.rules.slices;
        let slice = if queued {
            self.queues[cpu as usize].load.scale(period, own.weight, arithmetic)
        } else {
            let mut load = self.queues[cpu as usize].load;
            load.add(&own);
            load.scale(period, own.weight, arithmetic)
        };
        if self.rules.base_slice { slice.max(self.tunables.min_granularity) } else { slice }
    }

    /// Where a new task, or one that slept, joins the others (`place_entity`).
    fn place(&mut self, cpu: CpuId, p: TaskId, initial: bool) {
        let mut vruntime = self.queues[cpu as usize].min_vruntime;
        if initial {
            if self.rules.features.start_debit {
                vruntime = vruntime.wrapping_add(self.virtual_slice(cpu, p));
            }
        } else if self.rules.features.fair_sleepers {
            let credit = self.tunables.latency >> u32::from(self.rules.features.gentle_fair_sleepers);
            vruntime = vruntime.wrapping_sub(credit);
        }
        let e = &mut self.entities[p as usize];
        if before(e.vruntime, vruntime) || (initial && self.rules.new_task_from_min) {
            e.vruntime = vruntime;
        }
    }

    /// The virtual time of a new task's first slice (`sched_vslice`).
    fn virtual_slice(&mut self, cpu: CpuId, p: TaskId) -> Nanos {
        if self.rules.slices != Arithmetic::Divide {
            let slice = self.slice(cpu, p);
            return self.virtual_time(p, slice);
        }
        let mut load = self.queues[cpu as usize].load;
        load.add(&self.entities[p as usize].load);
        load.scale(self.period(self.queues[cpu as usize].nr_running + 1), NICE_0, Arithmetic::Divide)
    }

    fn queue(&mut self, cpu: CpuId, p: TaskId) {
        let v = self.entities[p as usize].vruntime;
        self.queues[cpu as usize].tree.insert(&mut self.arena, p, v, v);
    }

    fn unqueue(&mut self, cpu: CpuId, p: TaskId) {
        self.queues[cpu as usize].tree.remove(&mut self.arena, p);
    }

    fn account_enqueue(&mut self, cpu: CpuId, p: TaskId) {
        let rq = &mut self.queues[cpu as usize];
        rq.load.add(&self.entities[p as usize].load);
        rq.nr_running += 1;
        self.entities[p as usize].on_rq = true;
    }

    fn account_dequeue(&mut self, cpu: CpuId, p: TaskId) {
        let rq = &mut self.queues[cpu as usize];
        rq.load.sub(&self.entities[p as usize].load);
        rq.nr_running -= 1;
        self.entities[p as usize].on_rq = false;
    }

    fn clear_buddies(&mut self, cpu: CpuId, p: TaskId) {
        let rq = &mut self.queues[cpu as usize];
        for buddy in [&mut rq.next, &mut rq.last, &mut rq.skip] {
            if *buddy == Some(p) {
                *buddy = None;
            }
        }
    }

    /// The slice is used up, or (2.6.33 on) the task is a slice ahead (`check_preempt_tick`).
    fn check_preempt_tick(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let ideal = self.slice(cpu, p);
        let e = self.entities[p as usize];
        let ran = e.sum_exec - e.prev_sum_exec;
        if ran > ideal {
            cx.resched(cpu);
            if !self.rules.early_last_buddy {
                self.clear_buddies(cpu, p);
            }
        } else if self.rules.preempt_if_ahead
            && ran >= self.tunables.min_granularity
            && let Some(first) = self.queues[cpu as usize].tree.first()
        {
            let ahead = e.vruntime.wrapping_sub(self.entities[first as usize].vruntime) as i64;
            if ahead > ideal as i64 {
                cx.resched(cpu);
            }
        }
    }

    /// Whether `p` is so far behind `curr` that it may preempt (`wakeup_preempt_entity` == 1).
    fn should_preempt(&self, curr: TaskId, p: TaskId) -> bool {
        let granularity = self.granularity(if self.rules.granularity_by_current { curr } else { p });
        if self.rules.plain_compare {
            let v = |q: TaskId| self.entities[q as usize].vruntime;
            return v(p).wrapping_add(granularity) < v(curr);
        }
        self.ahead(curr, p) > granularity as i64
    }

    fn ahead(&self, a: TaskId, b: TaskId) -> i64 {
        self.entities[a as usize].vruntime.wrapping_sub(self.entities[b as usize].vruntime) as i64
    }

    fn granularity(&self, p: TaskId) -> Nanos {
        self.virtual_time(p, self.tunables.wakeup_granularity)
    }

    /// The leftmost, but for buddies (`pick_next_entity`). `curr` is the running task where it takes part.
    fn pick(&self, cpu: CpuId, curr: Option<TaskId>) -> Option<TaskId> {
        let rq = &self.queues[cpu as usize];
        let v = |p: TaskId| self.entities[p as usize].vruntime;
        let sooner = |other: Option<TaskId>| match (curr, other) {
            (Some(c), Some(o)) => Some(if before(v(c), v(o)) { c } else { o }),
            (c, o) => o.or(c),
        };
        let left = sooner(rq.tree.first())?;
        let mut best = left;
        let fair = |p: TaskId| !self.should_preempt(p, left);
        if rq.skip == Some(left) {
            let second = if curr == Some(left) { rq.tree.first() } else { sooner(rq.tree.next(&self.arena, left)) };
            if let Some(second) = second.filter(|p| fair(*p)) {
                best = second;
            }
        }
        if let Some(next) = rq.next.filter(|p| fair(*p)) {
            best = next;
        } else if let Some(last) = rq.last.filter(|p| fair(*p)) {
            best = last;
        }
        Some(best)
    }

    fn put_prev(&mut self, cpu: CpuId, p: TaskId, now: Nanos) {
        if self.entities[p as usize].on_rq {
            self.account(cpu, now);
            self.queue(cpu, p);
        }
        self.queues[cpu as usize].curr = None;
    }

    fn set_next(&mut self, cpu: CpuId, p: TaskId, now: Nanos) {
        self.clear_buddies(cpu, p);
        self.unqueue(cpu, p);
        self.queues[cpu as usize].curr = Some(p);
        let e = &mut self.entities[p as usize];
        e.exec_start = now;
        e.prev_sum_exec = e.sum_exec;
    }
}

impl Class for Cfs {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, _how: Start) {
        self.arena.grow(p);
        let mut e = Entity { load: self.load_of(&cx.task(p).attributes), ..Entity::default() };
        if let Some(parent) = parent {
            let cpu = cx.task(parent).cpu;
            sync(self, cx, cpu);
            self.account(cpu, cx.now());
            e.vruntime = self.entities[parent as usize].vruntime;
            e.forked_on = Some(cpu);
        }
        if self.entities.len() <= p as usize {
            self.entities.resize(p as usize + 1, Entity::default());
        }
        self.entities[p as usize] = e;
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        match &self.balancer {
            Some(balancer) => balancer.select(self, cx, p, prev, why),
            None => prev,
        }
    }

    fn migrate_task_rq(&mut self, _cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        let (old, new) = (self.queues[from as usize].min_vruntime, self.queues[to as usize].min_vruntime);
        let e = &mut self.entities[p as usize];
        e.vruntime = e.vruntime.wrapping_sub(old).wrapping_add(new);
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        self.account(cpu, cx.now());
        match how {
            Enqueue::New => {
                if let Some(curr) = self.queues[cpu as usize].curr {
                    self.entities[p as usize].vruntime = self.entities[curr as usize].vruntime;
                }
                if self.rules.new_task_from_min {
                    cx.resched(cpu);
                }
                self.place(cpu, p, true);
                self.child_first(cx, cpu, p);
                self.account_enqueue(cpu, p);
            }
            Enqueue::Wakeup => {
                self.account_enqueue(cpu, p);
                self.place(cpu, p, false);
            }
            Enqueue::Migrated => self.account_enqueue(cpu, p),
        }
        self.queue(cpu, p);
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Dequeue) -> bool {
        self.account(cpu, cx.now());
        self.clear_buddies(cpu, p);
        if self.queues[cpu as usize].curr != Some(p) {
            self.unqueue(cpu, p);
        }
        if self.rules.change_moves_min {
            self.update_min_vruntime(cpu);
        }
        self.account_dequeue(cpu, p);
        if !self.rules.change_moves_min && !self.rules.min_moves_with_account {
            self.update_min_vruntime(cpu);
        }
        true
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(p) = self.queues[cpu as usize].curr else { return };
        if self.queues[cpu as usize].nr_running == 1 {
            return;
        }
        self.clear_buddies(cpu, p);
        let batch = cx.task(p).attributes.policy == Policy::Batch;
        if !self.rules.skip_on_yield && (batch || self.tunables.compat_yield) {
            self.go_last(cpu, p);
            return;
        }
        self.account(cpu, cx.now());
        if self.rules.skip_on_yield {
            self.queues[cpu as usize].skip = Some(p);
        }
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let Some(curr) = self.queues[cpu as usize].curr else { return };
        self.account(cpu, cx.now());
        let scale = self.queues[cpu as usize].nr_running >= self.nr_latency;
        let features = self.rules.features;
        let mut marked = false;
        if features.next_buddy && scale && how != Enqueue::New {
            self.queues[cpu as usize].next = Some(p);
            marked = true;
        }
        let curr_queued = self.entities[curr as usize].on_rq;
        if self.rules.early_last_buddy && features.last_buddy && curr != p && curr_queued {
            self.queues[cpu as usize].last = Some(curr);
        }
        if curr == p || cx.need_resched(cpu) {
            return;
        }
        let policy = |q: TaskId| cx.task(q).attributes.policy;
        let idle = |q: TaskId| self.rules.idle_gives_way && policy(q) == Policy::Idle;
        let (curr_idle, p_idle) = (idle(curr), idle(p));
        if !curr_idle || p_idle {
            if p_idle || policy(p) == Policy::Batch || !features.wakeup_preemption || !self.should_preempt(curr, p) {
                return;
            }
            if self.rules.buddy_on_preempt && !marked {
                self.queues[cpu as usize].next = Some(p);
            }
        }
        cx.resched(cpu);
        if !self.rules.early_last_buddy && features.last_buddy && scale && curr_queued && !curr_idle {
            self.queues[cpu as usize].last = Some(curr);
        }
    }

    fn has_runnable(&self, cpu: CpuId) -> bool {
        self.queues[cpu as usize].nr_running > 0
    }

    fn is_running(&self, cpu: CpuId) -> bool {
        self.queues[cpu as usize].curr.is_some()
    }

    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        self.put_prev(cpu, p, cx.now());
    }

    fn switched_from(&mut self, cx: &mut Core, p: TaskId) {
        let cpu = cx.task(p).cpu;
        if self.entities[p as usize].on_rq {
            self.account(cpu, cx.now());
            self.clear_buddies(cpu, p);
            if self.queues[cpu as usize].curr == Some(p) {
                self.queues[cpu as usize].curr = None;
            } else {
                self.unqueue(cpu, p);
            }
            self.account_dequeue(cpu, p);
            self.update_min_vruntime(cpu);
        }
    }

    fn switched_to(&mut self, cx: &mut Core, p: TaskId) {
        self.entities[p as usize].load = Load::of(&cx.task(p).attributes);
        if cx.task(p).state == State::Runnable {
            let cpu = cx.task(p).cpu;
            self.enqueue_task(cx, cpu, p, Enqueue::Wakeup);
            if cx.curr(cpu) == Some(p) {
                self.set_next(cpu, p, cx.now());
            }
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let now = cx.now();
        if self.queues[cpu as usize].nr_running == 0 && self.balancer.is_some() {
            with_balancer(self, |balancer, me| {
                balancer.newidle(me, cx, cpu);
            });
        }
        if self.rules.pick_with_current {
            let curr = prev.filter(|p| self.entities[*p as usize].on_rq);
            if curr.is_some() {
                self.account(cpu, now);
            }
            let next = self.pick(cpu, curr);
            if self.rules.pick_clears_buddies
                && let Some(p) = next
            {
                self.clear_buddies(cpu, p);
            }
            if next != curr || next.is_none() {
                if let Some(p) = prev {
                    self.put_prev(cpu, p, now);
                }
                if let Some(p) = next {
                    self.set_next(cpu, p, now);
                }
            }
            return next;
        }
        if let Some(p) = prev {
            self.put_prev(cpu, p, now);
        }
        let next = self.pick(cpu, None)?;
        self.set_next(cpu, next, now);
        Some(next)
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cpu, cx.now());
        if let Some(p) = self.queues[cpu as usize].curr
            && self.queues[cpu as usize].nr_running > 1
        {
            self.check_preempt_tick(cx, cpu, p);
        }
    }

    fn balance(&mut self, cx: &mut Core, cpu: CpuId) {
        with_balancer(self, |balancer, me| balancer.tick(me, cx, cpu));
    }

    fn next_balance(&self, cpu: CpuId) -> Nanos {
        self.balancer.as_ref().map_or(Nanos::MAX, |b| b.next_decision(cpu))
    }

    fn catch_up(&mut self, _cx: &Core, cpu: CpuId, ticks: Ticks) {
        self.account(cpu, ticks.first.max(self.curr_start(cpu)));
        let Some(p) = self.queues[cpu as usize].curr else { return };
        let more = ticks.count - 1;
        let step = self.virtual_time(p, ticks.period);
        let e = &mut self.entities[p as usize];
        e.exec_start += more * ticks.period;
        e.sum_exec += more * ticks.period;
        e.vruntime = e.vruntime.wrapping_add(more * step);
        self.update_min_vruntime(cpu);
    }

    fn next_decision(&mut self, _cx: &Core, cpu: CpuId) -> Nanos {
        let Some(p) = self.queues[cpu as usize].curr else { return Nanos::MAX };
        if self.queues[cpu as usize].nr_running < 2 {
            return Nanos::MAX;
        }
        let ideal = self.slice(cpu, p);
        let e = &self.entities[p as usize];
        let ran = e.sum_exec - e.prev_sum_exec;
        let mut at = e.exec_start.saturating_add((ideal + 1).saturating_sub(ran));
        if self.rules.preempt_if_ahead
            && let Some(first) = self.queues[cpu as usize].tree.first()
        {
            let behind = ideal as i64 - self.ahead(p, first);
            let real = e.load.real_time_at_least(behind.max(0) as Nanos);
            let min = self.tunables.min_granularity.saturating_sub(ran);
            at = at.min(e.exec_start.saturating_add(real.max(min)));
        }
        at
    }

    fn queue_load(&self, cpu: CpuId) -> (u32, u64) {
        (Queues::nr_running(self, cpu), Queues::load(self, cpu))
    }

    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cpu, cx.now());
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let cpu = cx.task(p).cpu;
        let load = self.load_of(&cx.task(p).attributes);
        let running = self.queues[cpu as usize].curr == Some(p);
        if !self.entities[p as usize].on_rq {
            self.entities[p as usize].load = load;
            return;
        }
        // As set_user_nice(): off the queue, new weight, on again, at the same virtual runtime.
        self.account(cpu, cx.now());
        self.clear_buddies(cpu, p);
        if !running {
            self.unqueue(cpu, p);
        }
        if self.rules.change_moves_min {
            self.update_min_vruntime(cpu);
        }
        self.account_dequeue(cpu, p);
        self.entities[p as usize].load = load;
        self.account_enqueue(cpu, p);
        if !running {
            self.queue(cpu, p);
        } else if self.rules.change_renews_slice {
            let e = &mut self.entities[p as usize];
            e.prev_sum_exec = e.sum_exec;
        }
        let worse = cx.task(p).attributes.prio() > old.prio();
        if self.rules.nice_rescheds {
            if cx.task(p).attributes.prio() != old.prio() && (running || !worse) {
                cx.resched(cpu);
            }
        } else if self.queues[cpu as usize].nr_running > 1 {
            if !running {
                self.wakeup_preempt(cx, cpu, p, Enqueue::Wakeup);
            } else if worse {
                cx.resched(cpu);
            }
        }
    }
}

impl Cfs {
    fn curr_start(&self, cpu: CpuId) -> Nanos {
        self.queues[cpu as usize].curr.map_or(0, |p| self.entities[p as usize].exec_start)
    }

    /// Puts the running task just behind the last, by a virtual runtime that it has not had.
    fn go_last(&mut self, cpu: CpuId, p: TaskId) {
        let Some(last) = self.queues[cpu as usize].tree.last(&self.arena) else { return };
        if self.ahead(p, last) <= 0 {
            self.entities[p as usize].vruntime = self.entities[last as usize].vruntime.wrapping_add(1);
        }
    }

    /// `sched_child_runs_first`: the child takes the parent's place.
    fn child_first(&mut self, cx: &mut Core, cpu: CpuId, child: TaskId) {
        let Some(curr) = self.queues[cpu as usize].curr else { return };
        if self.entities[child as usize].forked_on.is_some_and(|parents| parents != cpu) {
            return;
        }
        let (a, b) = (self.entities[curr as usize].vruntime, self.entities[child as usize].vruntime);
        if self.tunables.child_runs_first && (if self.rules.plain_compare { a < b } else { before(a, b) }) {
            self.entities[curr as usize].vruntime = b;
            self.entities[child as usize].vruntime = a;
            cx.resched(cpu);
        }
    }
}

impl Queues for Cfs {
    fn balancer(&mut self) -> &mut Option<Balancer> {
        &mut self.balancer
    }

    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.queues[cpu as usize].nr_running
    }

    fn load(&self, cpu: CpuId) -> u64 {
        self.queues[cpu as usize].load.weight
    }

    fn pull(&mut self, cx: &mut Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        sync(self, cx, from);
        sync(self, cx, to);
        let mut at = self.queues[from as usize].tree.first();
        while let Some(p) = at {
            let e = &self.entities[p as usize];
            if e.load.weight <= max_load && cx.task(p).allowed.contains(to) {
                move_waiting(self, cx, p, from, to);
                return Some(p);
            }
            at = self.queues[from as usize].tree.next(&self.arena, p);
        }
        None
    }
}
