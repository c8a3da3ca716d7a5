//! The completely fair scheduler (CFS), 2.6.24 to 6.5.
//!
//! # Idea
//! An ideal CPU would run all tasks at once, each at a speed in proportion to its weight. The *virtual runtime* of a
//! task grows with its CPU time, more slowly the greater its weight. Always running the task with the least virtual
//! runtime keeps every task close to what the ideal CPU would have given it.
//!
//! # Rule
//! The leftmost task of a tree sorted by virtual runtime runs next. The tick preempts it when it has used its slice,
//! which is its share by weight of a period in which each task runs once. A task that wakes is placed slightly before
//! the others as a credit for its sleep, and preempts the running task if it is behind by more than the wake-up
//! granularity.
//!
//! # State
//! For each queue: the tree, `min_vruntime`, the sum of the weights, and the buddies (next, last, skip). For each
//! entity, which is a task or a group: virtual runtime, CPU time and weight.
//!
//! # Tunables
//! Latency (the period), minimum granularity (the minimum slice), wake-up granularity, and the features in [`Rules`].
//! Names and defaults for each release are in the registry of kernels.
//!
//! # Differences from the kernel
//! Those of [`crate::fair`].
//!
//! # Reference
//! kernel/sched_fair.c of 2.6.24 and 2.6.32, kernel/sched/fair.c of 3.10, 3.18, 4.1 and 6.1.

mod buddies;
mod rules;
mod time;

pub use rules::{Features, Rules, Tunables};

use super::entity::{EntityId, Flags, Leave, Queue, QueueId};
use super::load::{Arithmetic, Load};
use super::shares::Shares;
use super::timeline::Search;
use super::{Discipline, Fair};
use crate::tunables::Values;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::program::Policy;
use schedlab_sim::{Attributes, Core, Enqueue, TaskId, Ticks, View};

/// The CFS discipline, by the rules of a release.
#[derive(Debug)]
pub struct Cfs {
    rules: Rules,
    tunables: Tunables,
    read: fn(&Values) -> Tunables,
    nr_latency: u32,
}

impl Cfs {
    /// Creates the discipline. `read` extracts its tunables from the values of the release.
    #[must_use]
    pub fn new(rules: Rules, values: &Values, read: fn(&Values) -> Tunables) -> Self {
        let tunables = read(values);
        let fitting = tunables.latency.div_ceil(tunables.min_granularity.max(1)) as u32;
        let nr_latency = rules.fixed_nr_latency.unwrap_or(fitting);
        Self { rules, tunables, read, nr_latency }
    }

    /// The period in which each of `nr` tasks runs once, in ns (`__sched_period`).
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
}

impl Discipline for Cfs {
    const TICKS_END_TURNS: bool = true;

    fn name(&self) -> &'static str {
        "CFS"
    }

    fn retune(&mut self, values: &Values) {
        // The number of tasks that fit in the latency stays unchanged, because only a write to the files recomputes it.
        self.tunables = (self.read)(values);
    }

    fn show_queue(f: &Fair<Self>, q: QueueId) -> Vec<(&'static str, View)> {
        vec![("min_vruntime_ns", (f.rqs.queues[q as usize].min_vruntime as i64).into())]
    }

    fn show_entity(f: &Fair<Self>, _q: QueueId, e: EntityId) -> Vec<(&'static str, View)> {
        let entity = &f.rqs.entities[e as usize];
        vec![("ran_since_picked_ns", (entity.sum_exec - entity.prev_sum_exec).into())]
    }

    fn numbers(f: &Fair<Self>, _q: QueueId, e: EntityId) -> [(&'static str, i64); 2] {
        let entity = &f.rqs.entities[e as usize];
        [("vruntime_ns", entity.vruntime as i64), ("weight", entity.load.weight() as i64)]
    }

    fn pick_rule(f: &Fair<Self>, q: QueueId, curr: Option<EntityId>, picked: EntityId) -> &'static str {
        let queue = &f.rqs.queues[q as usize];
        let first = queue.tree.first().is_none_or(|first| f.ahead(picked, first) <= 0);
        if first && curr.is_none_or(|curr| curr == picked || f.ahead(picked, curr) <= 0) {
            "the least virtual runtime"
        } else if queue.skip.is_some() && queue.skip != Some(picked) {
            "a task that yielded is passed over"
        } else {
            "a buddy is preferred while it is not too far ahead"
        }
    }

    fn wakeup_rule(
        f: &Fair<Self>,
        curr: EntityId,
        e: EntityId,
        preempts: bool,
        numbers: &mut Vec<(Option<TaskId>, &'static str, i64)>,
    ) -> &'static str {
        if f.rqs.entities[curr as usize].idle != f.rqs.entities[e as usize].idle {
            return if preempts { "an idle-policy task gives way" } else { "an idle-policy task preempts no other" };
        }
        let by = if f.d.rules.granularity_by_current { curr } else { e };
        let granularity = f.virtual_time(by, f.d.tunables.wakeup_granularity);
        numbers.push((None, "wakeup_granularity_ns", granularity as i64));
        if preempts {
            "it is behind by more than the wake-up granularity"
        } else if f.should_preempt(curr, e) {
            "its policy does not preempt"
        } else {
            "it is not behind by more than the wake-up granularity"
        }
    }

    #[inline]
    fn arithmetic(&self) -> Arithmetic {
        self.rules.arithmetic
    }

    fn queue(&self) -> Queue {
        Queue { min_vruntime: self.rules.initial_min_vruntime, ..Queue::default() }
    }

    fn search(&self) -> Search {
        Search::None
    }

    fn moves_in_tree_order(&self) -> bool {
        self.rules.plain_compare
    }

    fn charges_nothing(&self) -> bool {
        self.rules.min_moves_with_account
    }

    fn picks_with_current(&self) -> bool {
        self.rules.pick_with_current
    }

    fn picks_again(&self) -> bool {
        false
    }

    fn heads_list_when_picked(&self) -> bool {
        self.rules.heads_list
    }

    fn keeps_weight_when_empty(&self) -> bool {
        false
    }

    fn change_puts(&self) -> bool {
        self.rules.change_renews_slice
    }

    fn set_attributes(f: &mut Fair<Self>, e: EntityId, a: &Attributes) {
        f.rqs.entities[e as usize].load = Load::with_idle(a, f.d.rules.idle_weight).into();
    }

    fn fork(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, parent: Option<(EntityId, CpuId)>, fair: bool) {
        if let Some((parent, cpu)) = parent {
            f.rqs.entities[e as usize].vruntime = f.rqs.entities[parent as usize].vruntime;
            f.rqs.entities[e as usize].forked_on = cpu as u16 + 1;
        }
        if !f.d.rules.moves_relative {
            return;
        }
        if !fair {
            let entity = &mut f.rqs.entities[e as usize];
            entity.vruntime = 0;
            entity.flags.set(Flags::RELATIVE, true);
        } else if let Some((parent, _)) = parent {
            // Since 2.6.33 it is placed where its parent is, and takes its place along to its first CPU
            // (task_fork_fair).
            let q = f.rqs.entities[parent as usize].queue;
            f.place_new(cx, q, e);
            f.take_off_min(q, e);
        }
    }

    #[inline]
    fn charge(f: &mut Fair<Self>, q: QueueId, e: EntityId, delta: Nanos) -> bool {
        let entity = &mut f.rqs.entities[e as usize];
        entity.vruntime = entity.vruntime.wrapping_add(entity.load.get().virtual_time(delta, f.d.rules.arithmetic));
        f.update_min_vruntime(q);
        false
    }

    #[inline]
    fn join(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId, how: Enqueue) {
        let is_curr = f.rqs.is_curr(q, e);
        let placed = f.rqs.entities[e as usize].flags.has(Flags::RELATIVE);
        if is_curr || f.d.rules.lands_before_account {
            f.land(q, e);
        }
        f.update_curr(cx, q);
        f.land(q, e);
        if how == Enqueue::New && !placed {
            f.place_new(cx, q, e);
        }
        f.update_group(cx, e);
        f.count_in(q, e, cx.now());
        if how == Enqueue::Wakeup {
            f.place(q, e, false);
        }
        if !is_curr {
            Self::insert(f, q, e);
        }
        if f.rqs.queues[q as usize].nr_queued == 1 {
            f.check_join(cx, q);
        }
    }

    #[inline]
    fn leave(f: &mut Fair<Self>, q: QueueId, e: EntityId, how: Leave, now: Nanos) -> bool {
        f.clear_buddies(e);
        if !f.rqs.is_curr(q, e) {
            Self::remove(f, q, e);
        }
        f.count_out(q, e, now);
        if !how.sleep {
            f.take_off_min(q, e);
        }
        true
    }

    #[inline]
    fn left(f: &mut Fair<Self>, q: QueueId, _e: EntityId, how: Leave) {
        let rules = &f.d.rules;
        if !rules.min_moves_with_account && (rules.change_moves_min || !how.save) {
            f.update_min_vruntime(q);
        }
    }

    #[inline]
    fn insert(f: &mut Fair<Self>, q: QueueId, e: EntityId) {
        let v = f.rqs.entities[e as usize].vruntime;
        f.rqs.queues[q as usize].tree.insert(&mut f.rqs.arena, e, v, v);
    }

    #[inline]
    fn remove(f: &mut Fair<Self>, q: QueueId, e: EntityId) {
        f.rqs.queues[q as usize].tree.remove(&mut f.rqs.arena, e);
    }

    /// The leftmost entity, unless a buddy is preferred (`pick_next_entity`).
    #[inline(always)]
    fn pick(f: &mut Fair<Self>, q: QueueId, curr: Option<EntityId>) -> Option<EntityId> {
        let best = f.pick_entity(q, curr)?;
        if f.d.rules.pick_clears_buddies {
            f.clear_buddies(best);
        }
        Some(best)
    }

    #[inline]
    fn taken(f: &mut Fair<Self>, q: QueueId, e: EntityId, _picked: bool) {
        f.clear_buddies(e);
        if f.rqs.entities[e as usize].on_rq {
            Self::remove(f, q, e);
        }
    }

    fn goes_on(f: &mut Fair<Self>, e: EntityId) {
        if f.d.rules.group_goes_on {
            f.set_next_buddy(e);
        }
    }

    fn reweight(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, load: Load, _exact: (u64, u64)) {
        let q = f.rqs.entities[e as usize].queue;
        if f.rqs.entities[e as usize].on_rq && f.rqs.is_curr(q, e) {
            f.update_curr(cx, q);
        }
        f.set_load(e, load, cx.now());
    }

    /// Preempts an entity that has used up its slice, or is a slice ahead of the leftmost one (2.6.32-rc6 on;
    /// `check_preempt_tick`).
    #[inline]
    fn tick(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId) {
        let ideal = f.slice(e);
        let entity = &f.rqs.entities[e as usize];
        let ran = entity.sum_exec - entity.prev_sum_exec;
        if ran > ideal {
            f.explain_turn(cx, q, e, "it has had its slice", Some(ideal));
            cx.resched(f.rqs.cpu_of(q));
            Self::turn_ended(f, e);
        } else if f.d.rules.preempt_if_ahead
            && ran >= f.d.tunables.min_granularity
            && let Some(first) = f.rqs.queues[q as usize].tree.first()
            && f.is_far_ahead(e, first, ideal)
        {
            f.explain_turn(cx, q, e, "it is more than a slice ahead of the first waiting task", Some(ideal));
            cx.resched(f.rqs.cpu_of(q));
        }
    }

    #[inline]
    fn skip_ticks(f: &mut Fair<Self>, q: QueueId, e: EntityId, ticks: Ticks) {
        let arithmetic = f.d.rules.arithmetic;
        let more = ticks.count - 1;
        let entity = &mut f.rqs.entities[e as usize];
        let first = ticks.first.saturating_sub(entity.exec_start);
        let step = entity.load.get().virtual_time(ticks.period, arithmetic);
        let ran = first + more * ticks.period;
        entity.exec_start += ran;
        entity.sum_exec += ran;
        entity.vruntime = entity.vruntime.wrapping_add(entity.load.get().virtual_time(first, arithmetic) + more * step);
        f.update_min_vruntime(q);
    }

    #[inline(always)]
    fn turn_due(f: &mut Fair<Self>, q: QueueId, e: EntityId) -> (Nanos, Nanos) {
        let ideal = f.slice(e);
        let entity = &f.rqs.entities[e as usize];
        let ran = entity.sum_exec - entity.prev_sum_exec;
        let ends = entity.exec_start.saturating_add((ideal + 1).saturating_sub(ran));
        let mut at = ends;
        if f.d.rules.preempt_if_ahead
            && let Some(first) = f.rqs.queues[q as usize].tree.first()
        {
            let ahead = f.ahead(e, first);
            let now = ahead < 0 && f.d.rules.behind_is_far_ahead;
            let behind = if now { 0 } else { ideal as i64 - ahead };
            let real = entity.load.get().real_time_at_least(behind.max(0) as Nanos);
            let min = f.d.tunables.min_granularity.saturating_sub(ran);
            at = at.min(entity.exec_start.saturating_add(real.max(min)));
        }
        (at, ends)
    }

    #[inline]
    fn turn_ended(f: &mut Fair<Self>, e: EntityId) {
        if !f.d.rules.early_last_buddy {
            f.clear_buddies(e);
        }
    }

    fn hrtick_slice(f: &mut Fair<Self>, e: EntityId) -> Nanos {
        f.slice(e)
    }

    fn hrtick_follows(f: &Fair<Self>, q: QueueId) -> bool {
        f.rqs.queues[q as usize].nr_queued < f.d.nr_latency
    }

    fn usual_time_to_wakeup(&self) -> Nanos {
        self.tunables.wakeup_granularity
    }

    fn clock_decision(_f: &mut Fair<Self>, _q: QueueId, _e: EntityId) -> Nanos {
        Nanos::MAX
    }

    fn wakeup_preempt(f: &mut Fair<Self>, cx: &mut Core, curr: EntityId, e: EntityId, how: Enqueue) {
        f.check_preempt(cx, curr, e, how);
    }

    fn yields(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId) {
        f.clear_buddies(e);
        let batch = cx.task(e - f.rqs.first_task).attributes.policy == Policy::Batch;
        if f.d.rules.skip_on_yield {
            if !batch {
                f.update_curr(cx, q);
            }
            f.set_skip_buddy(e);
        } else if batch || f.d.tunables.compat_yield {
            f.go_last(q, e);
        } else {
            f.update_curr(cx, q);
        }
    }

    #[inline]
    fn others(f: &Fair<Self>, q: QueueId) -> u32 {
        if f.d.rules.skip_on_yield {
            f.rqs.queues[f.rqs.cpu_of(q) as usize].h_nr - 1
        } else {
            f.rqs.queues[q as usize].nr_queued - 1
        }
    }

    fn migrate(f: &mut Fair<Self>, e: EntityId, from: QueueId, to: QueueId) {
        if f.d.rules.moves_relative {
            f.take_off_min(from, e);
            return;
        }
        let (old, new) = (f.rqs.queues[from as usize].min_vruntime, f.rqs.queues[to as usize].min_vruntime);
        let entity = &mut f.rqs.entities[e as usize];
        entity.vruntime = entity.vruntime.wrapping_sub(old).wrapping_add(new);
    }

    fn change_group(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, joins: bool, queued: bool) {
        let q = f.rqs.entities[e as usize].queue;
        if f.d.rules.moves_relative {
            if !queued {
                f.moves_asleep(q, e, joins, f.rqs.rules.shares == Shares::ByLoad);
            }
        } else if joins && !f.d.rules.min_moves_with_account {
            // 2.6.32 places it like a new task (moved_group_fair). 2.6.24 leaves it the virtual runtime of the other
            // queue.
            f.update_curr(cx, q);
            f.place(q, e, true);
        }
    }

    fn change_class(f: &mut Fair<Self>, e: EntityId, joins: bool) {
        let q = f.rqs.entities[e as usize].queue;
        if f.d.rules.moves_relative {
            f.moves_asleep(q, e, joins, true);
        }
    }

    fn changed(f: &mut Fair<Self>, cx: &mut Core, p: TaskId, old: &Attributes, running: bool) {
        let (new, cpu) = (cx.task(p).attributes.prio(), cx.task(p).cpu);
        let worse = new > old.prio();
        if f.d.rules.nice_rescheds {
            if new != old.prio() && (running || !worse) {
                cx.resched(cpu);
            }
        } else if f.rqs.queues[cpu as usize].nr_queued > 1 {
            if running {
                if worse {
                    cx.resched(cpu);
                }
            } else if let Some(curr) = f.rqs.running[cpu as usize] {
                let e = f.rqs.entity(p);
                f.check_preempt(cx, curr, e, Enqueue::Wakeup);
            }
        }
    }
}
