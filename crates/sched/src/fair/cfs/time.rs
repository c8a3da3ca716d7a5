//! Virtual runtimes: the `min_vruntime` of a queue, the slices of entities, and where entities are placed.

use super::Cfs;
use crate::fair::Fair;
use crate::fair::entity::{Entity, EntityId, Flags, QueueId};
use crate::fair::load::{Arithmetic, NICE_0};
use crate::fair::timeline::before;
use schedlab_base::Nanos;
use schedlab_sim::Core;

impl Fair<Cfs> {
    /// Raises `min_vruntime` to the least virtual runtime on the queue (`update_min_vruntime`).
    #[inline]
    pub(super) fn update_min_vruntime(&mut self, q: QueueId) {
        let queue = &self.rqs.queues[q as usize];
        let counts = |e: &EntityId| self.d.rules.change_moves_min || self.rqs.entities[*e as usize].on_rq;
        let curr = queue.curr.filter(counts).map(|e| self.rqs.entities[e as usize].vruntime);
        let first = queue.tree.first_key();
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
        let queue = &mut self.rqs.queues[q as usize];
        if before(queue.min_vruntime, least) {
            queue.min_vruntime = least;
        }
    }

    /// The slice of an entity (`sched_slice`), in ns: its part of the period over all levels. It need not be queued
    /// yet.
    #[inline]
    pub(super) fn slice(&mut self, e: EntityId) -> Nanos {
        let q = self.rqs.entities[e as usize].queue;
        let root = self.rqs.cpu_of(q);
        let nr = if self.d.rules.alt_period {
            self.rqs.queues[root as usize].h_nr
        } else {
            self.rqs.queues[q as usize].nr_queued
        };
        let mut slice = self.d.period(nr + u32::from(!self.rqs.entities[e as usize].on_rq));
        let arithmetic = self.d.rules.slices;
        let mut at = Some(e);
        while let Some(x) = at {
            let entity = &self.rqs.entities[x as usize];
            let queue = &mut self.rqs.queues[entity.queue as usize];
            slice = if entity.on_rq {
                queue.load.scale(slice, entity.load.weight(), arithmetic)
            } else {
                let mut load = queue.load;
                load.add(entity.load);
                load.scale(slice, entity.load.weight(), arithmetic)
            };
            // 2.6.24 only considers one level.
            at = if arithmetic == Arithmetic::Divide { None } else { self.rqs.parent(x) };
        }
        if !self.d.rules.base_slice {
            return slice;
        }
        let queue = &self.rqs.queues[q as usize];
        let all_idle = queue.nr_queued > 0 && queue.nr_idle == queue.nr_queued;
        if self.d.rules.idle_granularity && self.rqs.entities[e as usize].idle && !all_idle {
            slice.max(self.d.tunables.idle_min_granularity)
        } else {
            slice.max(self.d.tunables.min_granularity)
        }
    }

    /// From where an entity is placed on a queue: `min_vruntime`, or what 2.6.24 takes for the average of the others.
    #[inline]
    fn origin(&self, q: QueueId, e: EntityId) -> u64 {
        let (queue, on) = (&self.rqs.queues[q as usize], self.d.rules.features);
        if on.tree_avg || on.approx_avg { self.middle(q, e) } else { queue.min_vruntime }
    }

    #[cold]
    fn middle(&self, q: QueueId, e: EntityId) -> u64 {
        let (queue, entity) = (&self.rqs.queues[q as usize], &self.rqs.entities[e as usize]);
        let min = queue.min_vruntime;
        if self.d.rules.features.tree_avg {
            // The kernel adds the two and halves the sum, which is wrong as long as `min_vruntime` has not passed 0, in
            // the first millisecond after it has booted. Here a load can begin in it.
            let last = queue.tree.last().map_or(min, |last| self.rqs.entities[last as usize].vruntime);
            return min.wrapping_add_signed((last.wrapping_sub(min) as i64) >> 1);
        }
        let (mut others, mut load) = (queue.nr_queued, queue.load);
        if entity.on_rq {
            others -= 1;
            load.sub(entity.load);
        }
        if others == 0 {
            return min;
        }
        min.wrapping_add(load.scale(self.d.period(others), NICE_0, Arithmetic::Divide) / 2)
    }

    /// Sets the virtual runtime of an entity that is new (`initial`) or was asleep (`place_entity`).
    #[inline]
    pub(super) fn place(&mut self, q: QueueId, e: EntityId, initial: bool) {
        let mut vruntime = self.origin(q, e);
        if initial {
            if self.d.rules.features.start_debit {
                vruntime = vruntime.wrapping_add(self.virtual_slice(q, e));
            }
        } else if self.d.rules.features.fair_sleepers && (e >= self.rqs.first_task || self.d.rules.credits_groups) {
            let idle = self.d.rules.idle_granularity && self.rqs.entities[e as usize].idle;
            let mut credit = if idle { self.d.tunables.min_granularity } else { self.d.tunables.latency };
            if self.d.rules.features.normalized_sleeper && !self.rqs.entities[e as usize].idle {
                credit = self.virtual_time(e, credit);
            }
            vruntime = vruntime.wrapping_sub(credit >> u32::from(self.d.rules.features.gentle_fair_sleepers));
        }
        let entity = &mut self.rqs.entities[e as usize];
        if before(entity.vruntime, vruntime) || (initial && self.d.rules.new_task_from_min) {
            entity.vruntime = vruntime;
        }
    }

    /// The virtual time of a new task's first slice (`sched_vslice`).
    pub(super) fn virtual_slice(&mut self, q: QueueId, e: EntityId) -> Nanos {
        if self.d.rules.slices != Arithmetic::Divide {
            let slice = self.slice(e);
            return self.virtual_time(e, slice);
        }
        let queue = &self.rqs.queues[q as usize];
        let mut load = queue.load;
        load.add(self.rqs.entities[e as usize].load);
        load.scale(self.d.period(queue.nr_queued + 1), NICE_0, Arithmetic::Divide)
    }

    /// How far the virtual runtime of `a` is ahead of that of `b`, in ns.
    #[inline]
    pub(super) fn ahead(&self, a: EntityId, b: EntityId) -> i64 {
        self.rqs.entities[a as usize].vruntime.wrapping_sub(self.rqs.entities[b as usize].vruntime) as i64
    }

    /// Whether the tick preempts `e` because it is more than a slice ahead of `first`.
    #[inline]
    pub(super) fn is_far_ahead(&self, e: EntityId, first: EntityId, ideal: Nanos) -> bool {
        let ahead = self.ahead(e, first);
        if self.d.rules.behind_is_far_ahead { ahead as u64 > ideal } else { ahead > ideal as i64 }
    }

    /// By how much `e` must be behind `curr` to preempt it: less if it soon wakes another and `curr` has run for long
    /// (`adaptive_gran`). Groups wake none, and need not be behind by anything.
    #[inline]
    fn wakeup_granularity(&self, curr: EntityId, e: EntityId) -> Nanos {
        let most = self.d.tunables.wakeup_granularity;
        if !self.d.rules.features.adaptive_gran {
            return most;
        }
        let Entity { queue, sum_exec, prev_sum_exec, .. } = self.rqs.entities[curr as usize];
        let queue = &self.rqs.queues[queue as usize];
        if queue.curr.is_none() {
            return most;
        }
        let mean = e.checked_sub(self.rqs.first_task).map_or(0, |p| self.places.mean_to_wakeup(p));
        let expected = 2 * mean * u64::from(queue.nr_queued);
        expected.saturating_sub(sum_exec - prev_sum_exec).min(most)
    }

    /// Whether `e` is far enough behind `curr` to preempt it (`wakeup_preempt_entity` == 1).
    #[inline]
    pub(super) fn should_preempt(&self, curr: EntityId, e: EntityId) -> bool {
        let scaled_by = if self.d.rules.granularity_by_current { curr } else { e };
        let granularity = self.virtual_time(scaled_by, self.wakeup_granularity(curr, e));
        if self.d.rules.plain_compare {
            let v = |e: EntityId| self.rqs.entities[e as usize].vruntime;
            return v(e).wrapping_add(granularity) < v(curr);
        }
        self.ahead(curr, e) > granularity as i64
    }

    /// Places the running entity just behind the last one, by raising its virtual runtime beyond what it has used.
    pub(super) fn go_last(&mut self, q: QueueId, e: EntityId) {
        let Some(last) = self.rqs.queues[q as usize].tree.last() else { return };
        if self.ahead(e, last) <= 0 {
            self.rqs.entities[e as usize].vruntime = self.rqs.entities[last as usize].vruntime.wrapping_add(1);
        }
    }

    /// With `sched_child_runs_first`, swaps the virtual runtimes of parent and child if the parent's is less.
    pub(super) fn child_first(&mut self, cx: &mut Core, q: QueueId, child: EntityId) {
        let Some(curr) = self.rqs.queues[q as usize].curr else { return };
        let cpu = self.rqs.cpu_of(q);
        let parents = self.rqs.entities[child as usize].forked_on.checked_sub(1);
        if parents.is_some_and(|parents| u32::from(parents) != cpu) {
            return;
        }
        let (a, b) = (self.rqs.entities[curr as usize].vruntime, self.rqs.entities[child as usize].vruntime);
        if self.d.tunables.child_runs_first && (if self.d.rules.plain_compare { a < b } else { before(a, b) }) {
            self.rqs.entities[curr as usize].vruntime = b;
            self.rqs.entities[child as usize].vruntime = a;
            cx.resched(cpu);
        }
    }

    /// Places a new task: no earlier than the running one, and a slice after the others.
    pub(super) fn place_new(&mut self, cx: &mut Core, q: QueueId, e: EntityId) {
        if let Some(curr) = self.rqs.queues[q as usize].curr {
            self.rqs.entities[e as usize].vruntime = self.rqs.entities[curr as usize].vruntime;
        }
        if self.d.rules.new_task_from_min {
            cx.resched(self.rqs.cpu_of(q));
        }
        self.place(q, e, true);
        self.child_first(cx, q, e);
    }

    /// Makes the virtual runtime of a migrated task absolute again, relative to the `min_vruntime` of its new queue.
    #[inline]
    pub(super) fn land(&mut self, q: QueueId, e: EntityId) {
        let min = self.rqs.queues[q as usize].min_vruntime;
        let entity = &mut self.rqs.entities[e as usize];
        if entity.flags.take(Flags::RELATIVE) {
            entity.vruntime = entity.vruntime.wrapping_add(min);
        }
    }

    /// Makes the virtual runtime of an entity relative to the `min_vruntime` of the queue that it leaves.
    #[inline]
    pub(super) fn take_off_min(&mut self, q: QueueId, e: EntityId) {
        let min = self.rqs.queues[q as usize].min_vruntime;
        let entity = &mut self.rqs.entities[e as usize];
        if self.d.rules.moves_relative && !entity.flags.has(Flags::RELATIVE) {
            entity.flags.set(Flags::RELATIVE, true);
            entity.vruntime = entity.vruntime.wrapping_sub(min);
        }
    }

    /// A task that is asleep leaves its group or the class, or (`joins`) comes to another, and takes along its place in
    /// relation to the queue. If it is `placed`, as on leaving the class and from 4.3 on its group, it gets no more
    /// credit than if it woke now.
    pub(super) fn moves_asleep(&mut self, q: QueueId, e: EntityId, joins: bool, placed: bool) {
        if joins {
            self.land(q, e);
        } else if !self.rqs.entities[e as usize].flags.has(Flags::RELATIVE) {
            if placed {
                self.place(q, e, false);
            }
            self.take_off_min(q, e);
        }
    }
}
