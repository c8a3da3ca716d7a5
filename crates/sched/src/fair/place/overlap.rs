//! How long tasks go on after they have woken another, and how long they run before they do (`avg_overlap` and
//! `avg_wakeup`, until 2.6.34).
//!
//! A task that says that it is about to sleep, but goes on for long, is not believed (`SYNC_LESS`). A task that never
//! says so, but sleeps soon, can be treated as if it did (`SYNC_MORE`). A task that soon wakes another preempts more
//! easily (`ADAPTIVE_GRAN`).

use super::{Ask, Places, Placing, Select};
use crate::fair::entity::Entity;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

/// A task's overlap with those that it wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Overlap {
    /// The average time from a wake-up to its sleep, of its own CPU time (`avg_overlap`).
    mean: Nanos,
    /// Its CPU time when it last woke another; 0 if it has slept since (`last_wakeup`).
    woke: Nanos,
    /// The average CPU time until it wakes another (`avg_wakeup`).
    to_wakeup: Nanos,
    /// Its CPU time when it last woke itself (`start_runtime`).
    began: Nanos,
    /// The average time for which it ran when it left its CPU, where each sleep counts as one more run of no time
    /// (`avg_running`).
    run: Nanos,
}

impl Overlap {
    /// That of a new task: it counts as waking others after `usual`, the wake-up granularity (`__sched_fork`).
    pub fn new(usual: Nanos) -> Self {
        Self { to_wakeup: usual, ..Self::default() }
    }
}

/// Adds a sample to an average (`update_avg`).
fn add(mean: &mut Nanos, sample: Nanos) {
    *mean = mean.wrapping_add_signed((sample.wrapping_sub(*mean) as i64) >> 3);
}

impl Places {
    /// Whether the release counts overlaps.
    #[inline]
    pub fn counts_overlaps(&self) -> bool {
        self.how == Placing::V2_6_32
    }

    /// Notes that a task is new.
    pub fn overlap_is_new(&mut self, p: TaskId, usual: Nanos) {
        self.overlaps.set(p, Overlap::new(usual));
    }

    /// Notes that a task wakes (`enqueue_task`).
    #[inline(always)]
    pub fn overlap_restarts(&mut self, p: TaskId, entity: &Entity) {
        if self.overlaps[p].began != entity.sum_exec {
            self.overlaps[p].began = entity.sum_exec;
        }
    }

    /// Notes that a task goes to sleep (`dequeue_task`). If it has woken no other, it counts as if it had after
    /// `usual`.
    pub fn overlap_ends(&mut self, p: TaskId, entity: &Entity, usual: Nanos) {
        let overlap = &mut self.overlaps[p];
        if overlap.woke > 0 {
            let since = std::mem::take(&mut overlap.woke);
            add(&mut overlap.mean, entity.sum_exec - since);
        } else {
            add(&mut overlap.to_wakeup, usual);
        }
    }

    /// The average CPU time until a task wakes another.
    pub fn mean_to_wakeup(&self, p: TaskId) -> Nanos {
        self.overlaps[p].to_wakeup
    }

    /// Notes that a task leaves its CPU (`put_prev_task`). `runnable` says that it would go on.
    pub fn overlap_goes_on(&mut self, p: TaskId, entity: &Entity, runnable: bool) {
        let (ran, most) = (entity.sum_exec - entity.prev_sum_exec, (2 * self.migration_cost) as u64);
        let overlap = &mut self.overlaps[p];
        add(&mut overlap.run, ran);
        if runnable {
            add(&mut overlap.mean, ran.min(most));
        } else {
            add(&mut overlap.run, 0);
        }
    }

    /// Whether a task used to sleep soon after its wake-ups.
    pub fn sleeps_soon(&self, p: TaskId) -> bool {
        self.overlaps[p].mean < self.migration_cost as u64
    }

    /// The average time for which a task ran when it left its CPU.
    pub fn mean_run(&self, p: TaskId) -> Nanos {
        self.overlaps[p].run
    }
}

impl Select<'_> {
    /// Notes that the running task of a CPU has woken another, which was placed on `to` (`try_to_wake_up`).
    pub(super) fn overlap_begins(&mut self, cx: &Core, ask: Ask, to: CpuId) {
        let Some(waker) = cx.curr(ask.here).filter(|_| ask.wakes && !cx.in_interrupt()) else { return };
        let e = self.rqs.entity(waker);
        let entity = &self.rqs.entities[e as usize];
        // Only an enqueue on its own queue brings its account up to date. This account has no time in other classes.
        let counts = to == ask.here && self.rqs.running[ask.here as usize] == Some(e);
        let more = if counts { cx.now() - entity.exec_start } else { 0 };
        let now = entity.sum_exec + more;
        let overlap = &mut self.places.overlaps[waker];
        let since = if overlap.woke > 0 { overlap.woke } else { overlap.began };
        add(&mut overlap.to_wakeup, now.wrapping_sub(since));
        overlap.woke = now;
    }

    /// Whether a wake-up counts as synchronous: it said so, and neither the waker nor the woken task used to go on for
    /// long after its wake-ups.
    pub(super) fn counts_as_sync(&self, waker: TaskId, ask: Ask) -> bool {
        if !self.places.counts_overlaps() {
            return ask.sync;
        }
        let (cost, on) = (self.places.migration_cost as u64, self.places.features);
        let both = [waker, ask.p];
        if ask.sync && on.sync_wakeups {
            !on.sync_less || both.iter().all(|p| self.places.overlaps[*p].mean <= cost)
        } else {
            on.sync_more && both.iter().all(|p| self.places.sleeps_soon(*p))
        }
    }
}
