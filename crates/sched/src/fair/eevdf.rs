//! Earliest eligible virtual deadline first (EEVDF), the fair scheduler from 6.6 on.
//!
//! # Idea
//! As in CFS, the virtual runtime measures how much CPU time each task has had. The weighted average of all virtual
//! runtimes is the virtual time of the ideal CPU. A task behind it has positive *lag* and is *eligible*. Each request
//! for a slice has a virtual deadline, and the eligible task with the earliest deadline runs. Short slices are thus
//! served sooner, without getting more CPU time.
//!
//! # Rule
//! Pick the earliest deadline among the tasks with non-negative lag. A task keeps its CPU until it has consumed its
//! slice (run to parity), unless a task with a shorter slice wakes. A task that sleeps keeps its lag, and one with
//! negative lag stays queued until it no longer owes time (delayed dequeue).
//!
//! # State
//! For each queue: a tree sorted by deadline in which each node has the least virtual runtime below it, and the sums
//! from which the average is computed. For each entity, which is a task or a group: virtual runtime, deadline, slice
//! and lag.
//!
//! # Tunables
//! `base_slice_ns`, a task's own slice (`sched_attr::sched_runtime`), and the features in [`Features`].
//!
//! # Differences from the kernel
//! Those of [`crate::fair`].
//!
//! # Reference
//! kernel/sched/fair.c of 6.6, 6.12 and 6.18. I. Stoica, H. Abdel-Wahab, Earliest Eligible Virtual Deadline First,
//! 1995.

mod features;
mod reweight;
mod time;
mod turn;

pub use features::Features;

use super::entity::{Entity, EntityId, Flags, Leave, Queue, QueueId};
use super::load::{Arithmetic, Load, NICE_0};
use super::timeline::Search;
use super::{Discipline, Fair};
use crate::tunables::{Handle, Values};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::program::Policy;
use schedlab_sim::{Attributes, Core, Enqueue, TaskId, Ticks, View};

/// The bounds of a task's own slice, in ns (`__setparam_fair`: 0.1 to 100 ms).
const CUSTOM_SLICE: std::ops::RangeInclusive<Nanos> = 100_000..=100_000_000;

/// The slice that each request asks for. All releases have it under the same name.
pub const BASE_SLICE: Handle<u64> = Handle::online_ns("base_slice_ns", 700_000, "the slice that each request asks for");

/// The EEVDF discipline.
#[derive(Debug)]
pub struct Eevdf {
    features: Features,
    base_slice: Nanos,
    tick: Nanos,
    /// Whether any task has requested its own slice.
    customs: bool,
}

impl Eevdf {
    /// Creates the discipline. `tick` is the length of a tick, in ns.
    #[must_use]
    pub fn new(features: Features, values: &Values, tick: Nanos) -> Self {
        Self { features, base_slice: values.get(&BASE_SLICE), tick, customs: false }
    }
}

impl Discipline for Eevdf {
    const TICKS_END_TURNS: bool = false;

    fn name(&self) -> &'static str {
        "EEVDF"
    }

    fn retune(&mut self, values: &Values) {
        self.base_slice = values.get(&BASE_SLICE);
    }

    fn show_queue(f: &Fair<Self>, q: QueueId) -> Vec<(&'static str, View)> {
        vec![("average_vruntime_ns", (f.average_now(q) as i64).into())]
    }

    fn show_entity(f: &Fair<Self>, q: QueueId, e: EntityId) -> Vec<(&'static str, View)> {
        let entity = &f.rqs.entities[e as usize];
        let lag = if entity.on_rq { f.average_now(q).wrapping_sub(entity.vruntime) as i64 } else { entity.vlag };
        vec![
            ("deadline_ns", (entity.deadline as i64).into()),
            ("slice_ns", entity.slice().into()),
            ("lag_ns", lag.into()),
            ("eligible", (entity.on_rq && f.eligible(q, e)).into()),
            ("delayed", entity.delayed.into()),
            ("protected", (f.rqs.is_curr(q, e) && f.is_protected(e)).into()),
        ]
    }

    fn numbers(f: &Fair<Self>, q: QueueId, e: EntityId) -> [(&'static str, i64); 2] {
        let entity = &f.rqs.entities[e as usize];
        [("deadline_ns", entity.deadline as i64), ("lag_ns", f.average_now(q).wrapping_sub(entity.vruntime) as i64)]
    }

    fn pick_rule(f: &Fair<Self>, q: QueueId, curr: Option<EntityId>, picked: EntityId) -> &'static str {
        if f.rqs.queues[q as usize].next == Some(picked) && f.d.features.pick_buddy {
            "it is the next buddy: it woke, or a task of its group slept; and it is eligible"
        } else if curr == Some(picked) && f.d.features.protects() && f.is_protected(picked) {
            "it runs to parity: its request is not consumed and it is eligible"
        } else {
            "the earliest deadline of those that are eligible (lag of 0 or more)"
        }
    }

    fn charge_rule(&self) -> &'static str {
        if self.features.protects_least_slice {
            "its request is consumed, or it is no longer protected"
        } else {
            "its request is consumed, or it lost its protection and owes time"
        }
    }

    fn wakeup_rule(
        f: &Fair<Self>,
        curr: EntityId,
        e: EntityId,
        preempts: bool,
        _numbers: &mut Vec<(Option<TaskId>, &'static str, i64)>,
    ) -> &'static str {
        let same = f.rqs.entities[curr as usize].idle == f.rqs.entities[e as usize].idle;
        match (same, preempts) {
            (false, true) => "an idle-policy task gives way",
            (false, false) => "an idle-policy task preempts no other",
            (true, true) => "it would be picked",
            (true, false) => {
                "it would not be picked: not eligible, a later deadline, or the running one runs to parity"
            }
        }
    }

    #[inline]
    fn arithmetic(&self) -> Arithmetic {
        Arithmetic::Calc
    }

    fn queue(&self) -> Queue {
        Queue::default()
    }

    fn search(&self) -> Search {
        if self.features.tree_by_vruntime { Search::Least } else { Search::First }
    }

    fn picks_with_current(&self) -> bool {
        true
    }

    fn picks_again(&self) -> bool {
        self.features.picks_again
    }

    fn heads_list_when_picked(&self) -> bool {
        true
    }

    fn keeps_weight_when_empty(&self) -> bool {
        self.features.empty_keeps_weight
    }

    fn change_puts(&self) -> bool {
        true
    }

    /// Sets the weight, and the slice if the task requests its own.
    fn set_attributes(f: &mut Fair<Self>, e: EntityId, a: &Attributes) {
        let load = Load::of(a);
        let custom = f.d.features.custom_slice && a.runtime != 0 && matches!(a.policy, Policy::Other | Policy::Batch);
        let slice = if custom { a.runtime.clamp(*CUSTOM_SLICE.start(), *CUSTOM_SLICE.end()) } else { f.d.base_slice };
        f.d.customs |= custom;
        let entity = &mut f.rqs.entities[e as usize];
        if entity.load.get() != load {
            // The lag is kept in terms of weight (reweight_entity).
            entity.vlag = entity.vlag.wrapping_mul(entity.load.weight() as i64) / load.weight as i64;
            if entity.flags.has(Flags::RELATIVE) && f.d.features.reweight_places {
                let left = (entity.deadline as i64).wrapping_mul(entity.load.weight() as i64);
                entity.deadline = (left / load.weight as i64) as u64;
            }
            entity.load = load.into();
        }
        // The slice of an idle task is not touched (`fair_policy()` in `__setscheduler_params`).
        if a.policy != Policy::Idle || entity.slice() == 0 {
            entity.flags.set(Flags::OWN_SLICE, custom);
            entity.set_slice(slice);
        }
    }

    fn fork(_f: &mut Fair<Self>, _cx: &mut Core, _e: EntityId, _parent: Option<(EntityId, CpuId)>, _fair: bool) {}

    #[inline]
    fn charge(f: &mut Fair<Self>, q: QueueId, e: EntityId, delta: Nanos) -> bool {
        let entity = &mut f.rqs.entities[e as usize];
        entity.vruntime = entity.vruntime.wrapping_add(entity.load.get().virtual_time(delta, Arithmetic::Calc));
        let consumed = f.update_deadline(q, e);
        let ended = f.rqs.queues[q as usize].nr_queued > 1 && (consumed || f.turn_is_open(q, e));
        if ended {
            f.clear_buddies(e);
        }
        ended
    }

    #[inline]
    fn join(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId, how: Enqueue) {
        let is_curr = f.rqs.is_curr(q, e);
        let initial = how == Enqueue::New;
        if is_curr {
            f.place(q, e, initial);
        }
        f.update_curr(cx, q);
        f.update_group(cx, e);
        if !is_curr {
            f.place(q, e, initial);
        }
        f.count_in(q, e, cx.now());
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
        let may_delay = f.d.features.delay_dequeue && how.sleep && !how.special && !how.delayed;
        if may_delay && !f.eligible(q, e) {
            f.set_delayed(e, true);
            return false;
        }
        f.update_lag(q, e);
        if f.d.features.place_rel_deadline && !how.sleep {
            let entity = &mut f.rqs.entities[e as usize];
            entity.deadline = entity.deadline.wrapping_sub(entity.vruntime);
            entity.flags.set(Flags::RELATIVE, true);
        }
        if !f.rqs.is_curr(q, e) {
            Self::remove(f, q, e);
        }
        f.count_out(q, e, now);
        true
    }

    #[inline]
    fn left(f: &mut Fair<Self>, _q: QueueId, e: EntityId, how: Leave) {
        if how.delayed {
            f.set_delayed(e, false);
            let entity = &mut f.rqs.entities[e as usize];
            if f.d.features.delay_zero && entity.vlag > 0 {
                entity.vlag = 0;
            }
        }
    }

    #[inline(always)]
    fn insert(f: &mut Fair<Self>, q: QueueId, e: EntityId) {
        let (key, w) = (f.key(q, e), f.weight(e));
        let Entity { deadline, vruntime, .. } = f.rqs.entities[e as usize];
        let queue = &mut f.rqs.queues[q as usize];
        queue.sum = queue.sum.wrapping_add(key.wrapping_mul(w));
        queue.weight += w;
        let (key, value) = if f.d.features.tree_by_vruntime { (vruntime, deadline) } else { (deadline, vruntime) };
        queue.tree.insert(&mut f.rqs.arena, e, key, value);
    }

    #[inline(always)]
    fn remove(f: &mut Fair<Self>, q: QueueId, e: EntityId) {
        let (key, w) = (f.key(q, e), f.weight(e));
        let queue = &mut f.rqs.queues[q as usize];
        queue.tree.remove(&mut f.rqs.arena, e);
        queue.sum = queue.sum.wrapping_sub(key.wrapping_mul(w));
        queue.weight -= w;
    }

    #[inline]
    fn pick(f: &mut Fair<Self>, q: QueueId, curr: Option<EntityId>) -> Option<EntityId> {
        if f.d.features.pick_buddy
            && let Some(next) = f.rqs.queues[q as usize].next
            && f.eligible(q, next)
        {
            return Some(next);
        }
        f.pick_eevdf(q, curr, true)
    }

    fn owes(f: &Fair<Self>, q: QueueId, e: EntityId) -> bool {
        f.d.features.place_lag && !f.eligible(q, e)
    }

    #[inline]
    fn taken(f: &mut Fair<Self>, q: QueueId, e: EntityId, picked: bool) {
        f.clear_buddies(e);
        if f.rqs.entities[e as usize].on_rq {
            Self::remove(f, q, e);
            if picked || !f.d.features.protects_least_slice {
                f.protect(q, e);
            }
        }
    }

    fn requeue_delayed(f: &mut Fair<Self>, e: EntityId) {
        let q = f.rqs.entities[e as usize].queue;
        if f.d.features.delay_zero {
            f.update_lag(q, e);
            if f.rqs.entities[e as usize].vlag > 0 {
                f.rqs.queues[q as usize].nr_queued -= 1;
                let queued = !f.rqs.is_curr(q, e);
                if queued {
                    Self::remove(f, q, e);
                }
                f.rqs.entities[e as usize].vlag = 0;
                f.place(q, e, false);
                if queued {
                    Self::insert(f, q, e);
                }
                f.rqs.queues[q as usize].nr_queued += 1;
            }
        }
        f.set_delayed(e, false);
    }

    fn goes_on(f: &mut Fair<Self>, e: EntityId) {
        if !f.d.features.pick_buddy && !f.d.features.next_buddy {
            return;
        }
        let mut at = Some(e);
        while let Some(x) = at {
            let entity = &f.rqs.entities[x as usize];
            if !entity.on_rq || entity.idle {
                return;
            }
            f.rqs.queues[entity.queue as usize].next = Some(x);
            at = f.rqs.parent(x);
        }
    }

    #[inline]
    fn min_slice(f: &Fair<Self>, q: QueueId) -> Nanos {
        if !f.d.customs {
            return f.d.base_slice;
        }
        f.slices(q).min().unwrap_or(Nanos::MAX)
    }

    #[inline]
    fn set_slice(f: &mut Fair<Self>, e: EntityId, slice: Nanos, joins: bool) {
        let entity = &mut f.rqs.entities[e as usize];
        entity.set_slice(slice);
        if joins {
            entity.flags.set(Flags::OWN_SLICE, true);
        }
    }

    /// Rescales lag and deadline so that they stay the same in terms of weight.
    fn reweight(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, load: Load, exact: (u64, u64)) {
        if f.d.features.reweight_places {
            return f.reweight_by_placing(cx, e, load, exact);
        }
        let Entity { queue: q, on_rq, .. } = f.rqs.entities[e as usize];
        let rescaled = |x: i64| x.wrapping_mul(exact.0 as i64) / exact.1 as i64;
        if !on_rq {
            let entity = &mut f.rqs.entities[e as usize];
            entity.vlag = rescaled(entity.vlag);
            f.set_load(e, load, cx.now());
            return;
        }
        f.update_curr(cx, q);
        let average = f.average(q);
        let queued = !f.rqs.is_curr(q, e);
        if queued {
            Self::remove(f, q, e);
        }
        let lag = rescaled(f.lag(average, e));
        let entity = &mut f.rqs.entities[e as usize];
        if average != entity.vruntime {
            entity.vruntime = average.wrapping_sub(lag as u64);
        }
        let left = rescaled(entity.deadline.wrapping_sub(average) as i64);
        entity.deadline = average.wrapping_add(left as u64);
        f.set_load(e, load, cx.now());
        if queued {
            Self::insert(f, q, e);
        }
    }

    fn tick(_f: &mut Fair<Self>, _cx: &mut Core, _q: QueueId, _e: EntityId) {}

    #[inline]
    fn skip_ticks(f: &mut Fair<Self>, q: QueueId, e: EntityId, ticks: Ticks) {
        f.advance(q, ticks.first.max(f.rqs.entities[e as usize].exec_start));
        let mut n = 1;
        while n < ticks.count {
            // Until the request is consumed, only the accounting changes.
            let step = f.virtual_time(e, ticks.period).max(1);
            let entity = &mut f.rqs.entities[e as usize];
            if entity.exec_start == ticks.first + (n - 1) * ticks.period {
                let left = entity.deadline.wrapping_sub(entity.vruntime) as i64;
                let more = ((left - 1).max(0) as u64 / step).min(ticks.count - n);
                entity.exec_start += more * ticks.period;
                entity.sum_exec += more * ticks.period;
                entity.vruntime = entity.vruntime.wrapping_add(more * step);
                n += more;
            }
            if n < ticks.count {
                f.advance(q, ticks.first + n * ticks.period);
                n += 1;
            }
        }
    }

    #[inline]
    fn turn_due(f: &mut Fair<Self>, _q: QueueId, e: EntityId) -> (Nanos, Nanos) {
        let at = f.turn_ends_at(e);
        // At other weights the time is but a lower bound, and a turn that may end at once may also go on.
        let certain = at > 0 && f.rqs.entities[e as usize].load.weight() == NICE_0;
        (at, if certain { at } else { Nanos::MAX })
    }

    fn hrtick_slice(f: &mut Fair<Self>, e: EntityId) -> Nanos {
        f.rqs.entities[e as usize].slice()
    }

    fn clock_decision(f: &mut Fair<Self>, _q: QueueId, e: EntityId) -> Nanos {
        f.turn_ends_at(e)
    }

    fn wakeup_preempt(f: &mut Fair<Self>, cx: &mut Core, curr: EntityId, e: EntityId, how: Enqueue) {
        let there = f.rqs.entities[e as usize].queue;
        let named = f.d.features.next_buddy && how != Enqueue::New && !f.rqs.entities[e as usize].delayed;
        if named && curr != e && f.rqs.queues[there as usize].throttle_count == 0 {
            Self::goes_on(f, e);
        }
        f.check_preempt(cx, curr, e, how);
    }

    fn yields(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId) {
        f.clear_buddies(e);
        f.update_curr(cx, q);
        if f.d.features.yield_moves_deadline {
            let entity = &mut f.rqs.entities[e as usize];
            entity.deadline =
                entity.deadline.wrapping_add(entity.load.get().virtual_time(entity.slice(), Arithmetic::Calc));
        } else if f.eligible(q, e) {
            let entity = &mut f.rqs.entities[e as usize];
            entity.vruntime = entity.deadline;
            f.update_deadline(q, e);
        }
    }

    fn others(f: &Fair<Self>, q: QueueId) -> u32 {
        f.rqs.queues[f.rqs.cpu_of(q) as usize].h_nr - 1
    }

    fn migrate(_f: &mut Fair<Self>, _e: EntityId, _from: QueueId, _to: QueueId) {}

    fn change_group(_f: &mut Fair<Self>, _cx: &mut Core, _e: EntityId, _joins: bool, _queued: bool) {}

    fn change_class(_f: &mut Fair<Self>, _e: EntityId, _joins: bool) {}

    fn changed(f: &mut Fair<Self>, cx: &mut Core, p: TaskId, old: &Attributes, running: bool) {
        let (new, cpu) = (cx.task(p).attributes.prio(), cx.task(p).cpu);
        if f.rqs.queues[cpu as usize].nr_queued < 2 {
            return;
        }
        if running {
            if new > old.prio() {
                cx.resched(cpu);
            }
        } else if let Some(curr) = f.rqs.running[cpu as usize] {
            let e = f.rqs.entity(p);
            f.check_preempt(cx, curr, e, Enqueue::Migrated);
        }
    }
}
