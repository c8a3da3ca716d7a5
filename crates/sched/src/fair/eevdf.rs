//! Earliest eligible virtual deadline first, the fair scheduler from 6.6 on.
//!
//! # Idea
//! As in CFS, virtual runtime measures how much each task has had. The weighted average of all is the time
//! of the ideal CPU; a task behind it has *lag* to its credit and is *eligible*. Each request for a slice has
//! a virtual deadline, and among the eligible the earliest deadline runs: short slices are served
//! sooner, without getting more.
//!
//! # Rule
//! Pick the earliest deadline among those with non-negative lag. A task keeps its CPU until its slice is
//! consumed (run to parity), unless one with a shorter slice wakes. Who sleeps keeps its lag, and one that owes
//! time stays queued until it no longer does (delayed dequeue).
//!
//! # State
//! For each CPU: a tree by deadline in which each node knows the least virtual runtime below it; the sums
//! from which the average follows. For each task: virtual runtime, deadline, slice, lag.
//!
//! # Tunables
//! `base_slice_ns`, a task's own slice (`sched_attr::sched_runtime`), the features in [`Features`].
//!
//! # Differences from the kernel
//! One queue of tasks a CPU: no group entities, no fair server. Balancing is the plain one of
//! [`crate::balance`]. No hrtick.
//!
//! # Reference
//! kernel/sched/fair.c of 6.6 and 6.12. I. Stoica, H. Abdel-Wahab, Earliest Eligible Virtual Deadline First, 1995.

use super::load::{Arithmetic, Load};
use super::timeline::{Arena, Timeline, before};
use crate::balance::{Balancer, Queues, with_balancer};
use crate::classes::{Class, move_waiting, sync};
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{Attributes, Core, Dequeue, Enqueue, Placement, State, TaskId, Ticks};

/// `sched_features` that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Features {
    pub place_lag: bool,
    pub place_deadline_initial: bool,
    pub place_rel_deadline: bool,
    pub run_to_parity: bool,
    pub preempt_short: bool,
    pub delay_dequeue: bool,
    pub delay_zero: bool,
    pub wakeup_preemption: bool,
    /// A task may ask for its own slice (6.12 on).
    pub custom_slice: bool,
    /// `sched_yield()` gives up the rest of the request by moving the virtual deadline a slice away, eligible or not
    /// (6.6); later the virtual runtime goes to the deadline.
    pub yield_moves_deadline: bool,
    /// A SCHED_IDLE task that a wake-up preempts also loses its protection; in 6.6 it keeps the CPU until it is no
    /// longer eligible.
    pub idle_loses_protection: bool,
    /// The tree is ordered by virtual runtime, and searched for the least deadline; later by deadline. It decides
    /// between equal deadlines only (6.6).
    pub tree_by_vruntime: bool,
}

/// Bounds of a task's own slice (`__setparam_fair`: 0.1 to 100 ms).
const CUSTOM_SLICE: std::ops::RangeInclusive<Nanos> = 100_000..=100_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Entity {
    vruntime: u64,
    deadline: u64,
    vlag: i64,
    slice: Nanos,
    custom_slice: bool,
    rel_deadline: bool,
    delayed: bool,
    /// Runs to parity: its slice is not consumed and nothing has cancelled the protection.
    protected: bool,
    exec_start: Nanos,
    load: Load,
    on_rq: bool,
}

#[derive(Clone, Debug, Default)]
struct Rq {
    tree: Timeline,
    curr: Option<TaskId>,
    /// The sum of (v - zero) * w over the tree, and of w.
    sum: i64,
    weight: i64,
    zero: u64,
    /// Queued entities, the running and the delayed ones included.
    nr_queued: u32,
    /// Of them, those that are delayed.
    nr_delayed: u32,
    load: u64,
}

/// The scheduler.
#[derive(Debug)]
pub struct Eevdf {
    features: Features,
    base_slice: Nanos,
    tick: Nanos,
    arena: Arena,
    entities: Vec<Entity>,
    queues: Vec<Rq>,
    balancer: Option<Balancer>,
}

impl Eevdf {
    /// A scheduler for `machine`; `base_slice` after scaling, `tick` the time between two ticks.
    #[must_use]
    pub fn new(machine: &Machine, features: Features, base_slice: Nanos, tick: Nanos) -> Self {
        Self {
            features,
            base_slice,
            tick,
            arena: Arena::default(),
            entities: Vec::new(),
            queues: vec![Rq::default(); machine.cpus.len()],
            balancer: (machine.cpus.len() > 1).then(|| Balancer::new(machine)),
        }
    }

    fn virtual_time(&self, p: TaskId, delta: Nanos) -> Nanos {
        self.entities[p as usize].load.virtual_time(delta, Arithmetic::Calc)
    }

    fn key(&self, cpu: CpuId, p: TaskId) -> i64 {
        self.entities[p as usize].vruntime.wrapping_sub(self.queues[cpu as usize].zero) as i64
    }

    fn weight(&self, p: TaskId) -> i64 {
        self.entities[p as usize].load.weight as i64
    }

    /// The running task, if it is still queued.
    fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.queues[cpu as usize].curr.filter(|p| self.entities[*p as usize].on_rq)
    }

    /// Sums over the tree and the running task: of (v - zero) * w, and of w.
    fn sums(&self, cpu: CpuId) -> (i64, i64) {
        let rq = &self.queues[cpu as usize];
        self.running(cpu).map_or((rq.sum, rq.weight), |p| {
            let w = self.weight(p);
            (rq.sum.wrapping_add(self.key(cpu, p).wrapping_mul(w)), rq.weight + w)
        })
    }

    /// The virtual time of the ideal CPU (`avg_vruntime`): rounds down; `zero` moves there.
    fn average(&mut self, cpu: CpuId) -> u64 {
        let (sum, weight) = self.sums(cpu);
        if weight > 0 {
            let delta = sum.div_euclid(weight);
            let rq = &mut self.queues[cpu as usize];
            rq.sum = rq.sum.wrapping_sub(rq.weight.wrapping_mul(delta));
            rq.zero = rq.zero.wrapping_add(delta as u64);
        }
        self.queues[cpu as usize].zero
    }

    /// Whether a task at `vruntime` has had no more than its share.
    fn is_eligible(&self, cpu: CpuId, vruntime: u64) -> bool {
        let (sum, weight) = self.sums(cpu);
        let key = vruntime.wrapping_sub(self.queues[cpu as usize].zero) as i64;
        i128::from(sum) >= i128::from(key) * i128::from(weight)
    }

    fn eligible(&self, cpu: CpuId, p: TaskId) -> bool {
        self.is_eligible(cpu, self.entities[p as usize].vruntime)
    }

    fn update_lag(&mut self, cpu: CpuId, p: TaskId) {
        let average = self.average(cpu);
        let e = &self.entities[p as usize];
        let limit = self.virtual_time(p, (2 * e.slice).max(self.tick)) as i64;
        let lag = average.wrapping_sub(e.vruntime) as i64;
        self.entities[p as usize].vlag = lag.clamp(-limit, limit);
    }

    /// A consumed request is renewed (`update_deadline`); whether it was.
    fn update_deadline(&mut self, cpu: CpuId, p: TaskId) -> bool {
        let base = self.base_slice;
        let e = &mut self.entities[p as usize];
        if before(e.vruntime, e.deadline) {
            return false;
        }
        if !e.custom_slice {
            e.slice = base;
        }
        e.deadline = e.vruntime.wrapping_add(e.load.virtual_time(e.slice, Arithmetic::Calc));
        e.protected = false;
        self.average(cpu);
        true
    }

    /// Advances the running task to `now`; whether its request was consumed.
    fn advance(&mut self, cpu: CpuId, now: Nanos) -> Option<bool> {
        let p = self.queues[cpu as usize].curr?;
        let e = &mut self.entities[p as usize];
        let delta = now - e.exec_start;
        if delta == 0 {
            return None;
        }
        e.exec_start = now;
        e.vruntime = e.vruntime.wrapping_add(e.load.virtual_time(delta, Arithmetic::Calc));
        Some(self.update_deadline(cpu, p))
    }

    /// `update_curr`: advances the running task and asks for rescheduling when its slice is consumed, or
    /// when it lost its protection and is no longer eligible.
    fn account(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(consumed) = self.advance(cpu, cx.now()) else { return };
        if self.queues[cpu as usize].nr_queued > 1 && (consumed || self.preempted_by_short(cpu)) {
            cx.resched(cpu);
        }
    }

    fn preempted_by_short(&self, cpu: CpuId) -> bool {
        let Some(p) = self.queues[cpu as usize].curr else { return false };
        self.features.preempt_short && !self.entities[p as usize].protected && !self.eligible(cpu, p)
    }

    fn queue(&mut self, cpu: CpuId, p: TaskId) {
        let (key, w) = (self.key(cpu, p), self.weight(p));
        let e = &self.entities[p as usize];
        let rq = &mut self.queues[cpu as usize];
        rq.sum = rq.sum.wrapping_add(key.wrapping_mul(w));
        rq.weight += w;
        let (key, value) =
            if self.features.tree_by_vruntime { (e.vruntime, e.deadline) } else { (e.deadline, e.vruntime) };
        rq.tree.insert(&mut self.arena, p, key, value);
    }

    fn unqueue(&mut self, cpu: CpuId, p: TaskId) {
        let (key, w) = (self.key(cpu, p), self.weight(p));
        let rq = &mut self.queues[cpu as usize];
        rq.tree.remove(&mut self.arena, p);
        rq.sum = rq.sum.wrapping_sub(key.wrapping_mul(w));
        rq.weight -= w;
    }

    /// Where a task joins the others: at the lag it left with (`place_entity`).
    fn place(&mut self, cpu: CpuId, p: TaskId, initial: bool) {
        let average = self.average(cpu);
        if !self.entities[p as usize].custom_slice {
            self.entities[p as usize].slice = self.base_slice;
        }
        let mut vslice = self.virtual_time(p, self.entities[p as usize].slice);
        let mut lag = 0;
        if self.features.place_lag && self.queues[cpu as usize].nr_queued > 0 {
            let load = self.sums(cpu).1.max(1);
            // Joining moves the average: the lag is inflated so that it is what it was afterwards.
            lag = self.entities[p as usize].vlag.wrapping_mul(load + self.weight(p)) / load;
        }
        let e = &mut self.entities[p as usize];
        e.vruntime = average.wrapping_sub(lag as u64);
        if self.features.place_rel_deadline && e.rel_deadline {
            e.deadline = e.deadline.wrapping_add(e.vruntime);
            e.rel_deadline = false;
            return;
        }
        if self.features.place_deadline_initial && initial {
            vslice /= 2;
        }
        e.deadline = e.vruntime.wrapping_add(vslice);
    }

    /// Puts an entity on the queue of `cpu` (`enqueue_entity`).
    fn join(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, initial: bool) {
        self.account(cx, cpu);
        self.place(cpu, p, initial);
        let w = self.entities[p as usize].load.weight;
        let rq = &mut self.queues[cpu as usize];
        rq.nr_queued += 1;
        rq.load += w;
        self.queue(cpu, p);
        self.entities[p as usize].on_rq = true;
    }

    /// Takes an entity off the queue of `cpu` (`dequeue_entity`, past the delaying).
    fn leave(&mut self, cpu: CpuId, p: TaskId, sleeps: bool) {
        self.update_lag(cpu, p);
        let e = &mut self.entities[p as usize];
        if self.features.place_rel_deadline && !sleeps {
            e.deadline = e.deadline.wrapping_sub(e.vruntime);
            e.rel_deadline = true;
        }
        if self.queues[cpu as usize].curr != Some(p) {
            self.unqueue(cpu, p);
        }
        let e = &mut self.entities[p as usize];
        e.on_rq = false;
        let rq = &mut self.queues[cpu as usize];
        rq.nr_queued -= 1;
        rq.load -= e.load.weight;
        if e.delayed {
            e.delayed = false;
            rq.nr_delayed -= 1;
            if self.features.delay_zero && e.vlag > 0 {
                e.vlag = 0;
            }
        }
    }

    /// The earliest eligible virtual deadline (`pick_eevdf`).
    fn pick(&self, cpu: CpuId) -> Option<TaskId> {
        let rq = &self.queues[cpu as usize];
        let running = self.running(cpu);
        if rq.nr_queued == 1 {
            return running.or(rq.tree.first());
        }
        let (sum, weight) = self.sums(cpu);
        let holds = |v: u64| i128::from(sum) >= i128::from(v.wrapping_sub(rq.zero) as i64) * i128::from(weight);
        let curr = running.filter(|p| holds(self.entities[*p as usize].vruntime));
        if let Some(p) = curr
            && self.features.run_to_parity
            && self.entities[p as usize].protected
        {
            return curr;
        }
        if self.features.tree_by_vruntime {
            return rq.tree.least_where(&self.arena, holds, curr.map(|p| (p, self.entities[p as usize].deadline)));
        }
        let best = rq.tree.first_where(&self.arena, holds);
        match (curr, best) {
            (Some(c), Some(b)) => {
                let deadline = |p: TaskId| self.entities[p as usize].deadline;
                Some(if before(deadline(c), deadline(b)) { c } else { b })
            }
            (c, b) => b.or(c),
        }
    }

    fn set_next(&mut self, cpu: CpuId, p: TaskId, now: Nanos) {
        self.unqueue(cpu, p);
        self.queues[cpu as usize].curr = Some(p);
        let e = &mut self.entities[p as usize];
        e.protected = true;
        e.exec_start = now;
    }

    /// Whether the woken `p`, with its shorter slice, overrides the running task's protection.
    fn overrides(&self, cpu: CpuId, p: TaskId, curr: TaskId) -> bool {
        let (pse, se) = (&self.entities[p as usize], &self.entities[curr as usize]);
        self.features.preempt_short
            && pse.slice < se.slice
            && self.eligible(cpu, p)
            && (before(pse.deadline, se.deadline) || !self.eligible(cpu, curr))
    }

    /// Takes the slice that a task asked for itself.
    fn set_slice(&mut self, p: TaskId, a: &Attributes) {
        let custom = self.features.custom_slice && a.runtime != 0 && matches!(a.policy, Policy::Other | Policy::Batch);
        let e = &mut self.entities[p as usize];
        e.custom_slice = custom;
        e.slice = if custom { a.runtime.clamp(*CUSTOM_SLICE.start(), *CUSTOM_SLICE.end()) } else { self.base_slice };
    }

    /// When the running task will have consumed its request, at the earliest.
    fn consumed_at(&self, p: TaskId) -> Nanos {
        let e = &self.entities[p as usize];
        let left = e.deadline.wrapping_sub(e.vruntime) as i64;
        e.exec_start.saturating_add(e.load.real_time_at_least(left.max(0) as Nanos))
    }
}

impl Class for Eevdf {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, _parent: Option<TaskId>, _how: Start) {
        self.arena.grow(p);
        let attributes = cx.task(p).attributes;
        if self.entities.len() <= p as usize {
            self.entities.resize(p as usize + 1, Entity::default());
        }
        self.entities[p as usize] = Entity { load: Load::of(&attributes), ..Entity::default() };
        self.set_slice(p, &attributes);
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        match &self.balancer {
            Some(balancer) => balancer.select(self, cx, p, prev, why),
            None => prev,
        }
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        self.join(cx, cpu, p, how == Enqueue::New);
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) -> bool {
        self.account(cx, cpu);
        if self.features.delay_dequeue && how == Dequeue::Sleep && !self.eligible(cpu, p) {
            self.entities[p as usize].delayed = true;
            self.queues[cpu as usize].nr_delayed += 1;
            return false;
        }
        self.leave(cpu, p, how != Dequeue::Migrated);
        true
    }

    fn wake_delayed(&mut self, cx: &mut Core, p: TaskId) -> bool {
        if !self.entities[p as usize].delayed {
            return false;
        }
        let cpu = cx.task(p).cpu;
        // ttwu_runnable() updates the queue's clock only: the running task is not accounted for.
        if self.features.delay_zero {
            self.update_lag(cpu, p);
            if self.entities[p as usize].vlag > 0 {
                self.queues[cpu as usize].nr_queued -= 1;
                let queued = self.queues[cpu as usize].curr != Some(p);
                if queued {
                    self.unqueue(cpu, p);
                }
                self.entities[p as usize].vlag = 0;
                self.place(cpu, p, false);
                if queued {
                    self.queue(cpu, p);
                }
                self.queues[cpu as usize].nr_queued += 1;
            }
        }
        self.entities[p as usize].delayed = false;
        self.queues[cpu as usize].nr_delayed -= 1;
        true
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(p) = self.queues[cpu as usize].curr else { return };
        if self.nr_running(cpu) == 1 {
            return;
        }
        self.account(cx, cpu);
        if self.features.yield_moves_deadline {
            let e = &mut self.entities[p as usize];
            e.deadline = e.deadline.wrapping_add(e.load.virtual_time(e.slice, Arithmetic::Calc));
            e.protected = false;
        } else if self.eligible(cpu, p) {
            let e = &mut self.entities[p as usize];
            e.vruntime = e.deadline;
            self.update_deadline(cpu, p);
        }
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        let Some(curr) = self.queues[cpu as usize].curr else { return };
        if curr == p || cx.need_resched(cpu) || !self.features.wakeup_preemption {
            return;
        }
        let idle = |q: TaskId| cx.task(q).attributes.policy == Policy::Idle;
        let (curr_idle, p_idle) = (idle(curr), idle(p));
        if curr_idle && !p_idle {
            if self.features.idle_loses_protection {
                self.entities[curr as usize].protected = false;
            }
            cx.resched(cpu);
            return;
        }
        if curr_idle != p_idle || cx.task(p).attributes.policy != Policy::Other {
            return;
        }
        self.account(cx, cpu);
        if self.overrides(cpu, p, curr) {
            self.entities[curr as usize].protected = false;
        }
        if self.pick(cpu) == Some(p) {
            cx.resched(cpu);
        }
    }

    fn has_runnable(&self, cpu: CpuId) -> bool {
        self.queues[cpu as usize].nr_queued > 0
    }

    fn is_running(&self, cpu: CpuId) -> bool {
        self.queues[cpu as usize].curr.is_some()
    }

    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        if self.entities[p as usize].on_rq {
            self.advance(cpu, cx.now());
            self.queue(cpu, p);
        }
        self.queues[cpu as usize].curr = None;
    }

    fn switched_from(&mut self, cx: &mut Core, p: TaskId) {
        let cpu = cx.task(p).cpu;
        if self.entities[p as usize].on_rq {
            self.account(cx, cpu);
            self.leave(cpu, p, false);
            if self.queues[cpu as usize].curr == Some(p) {
                self.queues[cpu as usize].curr = None;
            }
        }
    }

    fn switched_to(&mut self, cx: &mut Core, p: TaskId) {
        let new = cx.task(p).attributes;
        self.entities[p as usize].load = Load::of(&new);
        self.set_slice(p, &new);
        if cx.task(p).state == State::Runnable {
            let cpu = cx.task(p).cpu;
            self.join(cx, cpu, p, false);
            if cx.curr(cpu) == Some(p) {
                self.set_next(cpu, p, cx.now());
            }
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let now = cx.now();
        let mut pulled = self.balancer.is_none();
        let next = loop {
            if self.queues[cpu as usize].nr_queued == 0 {
                if std::mem::replace(&mut pulled, true) {
                    break None;
                }
                with_balancer(self, |balancer, me| {
                    balancer.newidle(me, cx, cpu);
                });
                continue;
            }
            if self.running(cpu).is_some() {
                self.account(cx, cpu);
            }
            let p = self.pick(cpu).expect("a queue that is not empty has an eligible task");
            if !self.entities[p as usize].delayed {
                break Some(p);
            }
            self.account(cx, cpu);
            self.leave(cpu, p, true);
        };
        if next != prev || next.is_none() {
            if let Some(p) = prev
                && self.entities[p as usize].on_rq
                && self.queues[cpu as usize].curr == Some(p)
            {
                self.advance(cpu, now);
                self.queue(cpu, p);
            }
            self.queues[cpu as usize].curr = None;
            if let Some(p) = next {
                self.set_next(cpu, p, now);
            }
        }
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
    }

    fn balance(&mut self, cx: &mut Core, cpu: CpuId) {
        with_balancer(self, |balancer, me| balancer.tick(me, cx, cpu));
    }

    fn next_balance(&self, cpu: CpuId) -> Nanos {
        self.balancer.as_ref().map_or(Nanos::MAX, |b| b.next_decision(cpu))
    }

    fn catch_up(&mut self, _cx: &Core, cpu: CpuId, ticks: Ticks) {
        let Some(p) = self.queues[cpu as usize].curr else { return };
        let first = ticks.first.max(self.entities[p as usize].exec_start);
        self.advance(cpu, first);
        for n in 1..ticks.count {
            self.advance(cpu, ticks.first + n * ticks.period);
        }
    }

    fn next_decision(&mut self, _cx: &Core, cpu: CpuId) -> Nanos {
        let Some(p) = self.queues[cpu as usize].curr else { return Nanos::MAX };
        if self.queues[cpu as usize].nr_queued < 2 {
            return Nanos::MAX;
        }
        let lost = self.features.preempt_short && !self.entities[p as usize].protected;
        if lost { 0 } else { self.consumed_at(p) }
    }

    fn queue_load(&self, cpu: CpuId) -> (u32, u64) {
        (Queues::nr_running(self, cpu), Queues::load(self, cpu))
    }

    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
    }

    fn clock_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        match self.queues[cpu as usize].curr {
            Some(p) if self.queues[cpu as usize].nr_queued > 1 => {
                let lost = self.features.preempt_short && !self.entities[p as usize].protected;
                if lost { cx.now() } else { self.consumed_at(p) }
            }
            _ => Nanos::MAX,
        }
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let cpu = cx.task(p).cpu;
        let new = cx.task(p).attributes;
        let load = Load::of(&new);
        let running = self.queues[cpu as usize].curr == Some(p);
        let queued = self.entities[p as usize].on_rq;
        if queued {
            self.account(cx, cpu);
            self.leave(cpu, p, false);
            if running {
                self.queues[cpu as usize].curr = None;
            }
        }
        let e = &mut self.entities[p as usize];
        if e.load != load {
            // The lag is kept in weighted terms (reweight_entity).
            e.vlag = e.vlag.wrapping_mul(e.load.weight as i64) / load.weight as i64;
            e.load = load;
        }
        if (new.runtime, new.policy) != (old.runtime, old.policy) {
            self.set_slice(p, &new);
        }
        if queued {
            self.join(cx, cpu, p, false);
            if running {
                self.set_next(cpu, p, cx.now());
            }
            if self.queues[cpu as usize].nr_queued > 1 {
                if !running {
                    self.wakeup_preempt(cx, cpu, p, Enqueue::Wakeup);
                } else if new.prio() > old.prio() {
                    cx.resched(cpu);
                }
            }
        }
    }
}

impl Queues for Eevdf {
    fn balancer(&mut self) -> &mut Option<Balancer> {
        &mut self.balancer
    }

    fn nr_running(&self, cpu: CpuId) -> u32 {
        let rq = &self.queues[cpu as usize];
        rq.nr_queued - rq.nr_delayed
    }

    fn load(&self, cpu: CpuId) -> u64 {
        self.queues[cpu as usize].load
    }

    fn pull(&mut self, cx: &mut Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        sync(self, cx, from);
        sync(self, cx, to);
        let mut at = self.queues[from as usize].tree.first();
        while let Some(p) = at {
            let e = &self.entities[p as usize];
            if !e.delayed && e.load.weight <= max_load && cx.task(p).allowed.contains(to) {
                move_waiting(self, cx, p, from, to);
                return Some(p);
            }
            at = self.queues[from as usize].tree.next(&self.arena, p);
        }
        None
    }
}
