//! Moving tasks from one CPU to another (`move_tasks`): in which order, and which tasks stay.

use super::super::O1;
use super::super::array::MAX_PRIO;
use super::super::release::Balancing;
use crate::balance::domains::{Domain, Domains};
use crate::balance::sync;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Choice, Core, Decision, TaskId};

/// For how long a task's cache counts as warm, so that the task stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heat {
    /// No task's cache is warm.
    Cold,
    /// A cache is warm for this long after the task was queued or left the CPU (2.6.0).
    SinceQueued(Nanos),
    /// A cache is warm if the task left the CPU less than this long before the last tick, or after it.
    SinceRan(Nanos),
}

/// What to move, and where.
#[derive(Clone, Copy, Debug)]
pub struct Haul {
    pub from: CpuId,
    pub to: CpuId,
    /// The greatest number of tasks.
    pub most: u64,
    /// The weight to move: heavier tasks stay, and moving ends when it is reached.
    pub weight: i64,
    pub heat: Heat,
    /// The running task of `from`, which stays.
    pub running: Option<TaskId>,
}

impl O1<'_> {
    /// Moves tasks, expired ones first, each array from its best priority, each list from its end. Returns how many
    /// tasks moved, and whether all that were considered were pinned to other CPUs.
    pub(super) fn move_tasks(&mut self, cx: &mut Core, haul: &Haul) -> (u64, bool) {
        let Haul { from, to, most, weight, .. } = *haul;
        if most == 0 || weight == 0 {
            return (0, false);
        }
        sync(self, cx, from);
        sync(self, cx, to);
        let curr = cx.curr(to);
        let mut best = Best {
            here: self.best_prio(to, curr.map_or(MAX_PRIO, |p| self.task(p).prio)),
            there: self.best_prio(from, self.running_prio(haul)),
            seen: false,
        };
        best.seen = best.there == self.running_prio(haul);
        let (mut moved, mut rest, mut pinned) = (0, weight, true);
        let rq = &self.queues[from as usize];
        for side in [rq.expired(), rq.active] {
            let mut level = self.queues[from as usize].arrays[side].level_from(0);
            while let Some(prio) = level {
                let mut next = self.queues[from as usize].arrays[side].last(prio);
                while let Some(p) = next {
                    next = self.links.before(p);
                    let heavy = self.rules.weight(self.task(p)) as i64 > rest && !best.outdoes(prio);
                    if heavy || !self.can_move(cx, haul, p, &mut pinned) {
                        best.seen |= prio == best.there;
                        continue;
                    }
                    rest = rest.saturating_sub(self.rules.weight(self.task(p)) as i64);
                    self.pull(cx, haul, p, side);
                    moved += 1;
                    if moved >= most || rest <= 0 {
                        return (moved, false);
                    }
                    best.here = best.here.min(prio);
                }
                level = self.queues[from as usize].arrays[side].level_from(prio + 1);
            }
        }
        (moved, pinned)
    }

    /// Returns the priority of the task that runs on the source CPU; the stopper's is the best possible.
    fn running_prio(&self, haul: &Haul) -> u8 {
        match haul.running {
            Some(p) => self.task(p).prio,
            None => 0,
        }
    }

    /// Returns the best priority of a CPU, given that of its running task (`rq_best_prio`).
    fn best_prio(&self, cpu: CpuId, running: u8) -> u8 {
        running.min(self.queues[cpu as usize].best_expired_prio)
    }

    /// Returns whether a task may be moved (`can_migrate_task`).
    fn can_move(&self, cx: &Core, haul: &Haul, p: TaskId, pinned: &mut bool) -> bool {
        if !cx.task(p).allowed.contains(haul.to) {
            return false;
        }
        *pinned = false;
        haul.running != Some(p) && !self.is_hot(cx, haul, p)
    }

    fn is_hot(&self, cx: &Core, haul: &Haul, p: TaskId) -> bool {
        let t = self.task(p);
        match haul.heat {
            Heat::Cold => false,
            Heat::SinceQueued(time) => cx.now() - t.timestamp <= time,
            Heat::SinceRan(time) => Self::is_warm(cx, haul.from, t.last_ran, time),
        }
    }

    /// Returns whether a task that left `cpu` at `last_ran` did so within `time` of the last tick there (`task_hot`).
    pub(super) fn is_warm(cx: &Core, cpu: CpuId, last_ran: Option<Nanos>, time: Nanos) -> bool {
        last_ran.is_some_and(|ran| (Self::last_tick(cx, cpu) as i64) - (ran as i64) < time as i64)
    }

    /// Returns how long a cache stays warm in a domain (`cache_hot_time`). 2.6.18 measures the cost of a migration at
    /// boot. It is close to zero within one cache, and is assumed to be four times as much between nodes as between
    /// caches, which is the ratio in 2.6.11.
    pub(super) fn cache_hot_time(&self, domains: &Domains, domain: &Domain) -> Nanos {
        if self.rules.release().balancing == Balancing::ByLoad {
            return domains.params(domain).cache_hot_time_ns;
        }
        match domains.name(domain) {
            "SIBLING" | "MC" => 0,
            "CPU" => self.rules.migration_cost(),
            _ => 4 * self.rules.migration_cost(),
        }
    }

    /// Moves one task (`pull_task`).
    fn pull(&mut self, cx: &mut Core, haul: &Haul, p: TaskId, side: usize) {
        let Haul { from, to, .. } = *haul;
        let expired = side == self.queues[from as usize].expired() && self.rules.release().moved_stay_expired;
        self.take(from, p);
        cx.set_task_cpu(p, to);
        let rq = &self.queues[to as usize];
        let side = if expired { rq.expired() } else { rq.active };
        self.push(to, p, side);
        if self.rules.release().balancing != Balancing::ByLength {
            // Adjusts for clocks that differ by the times of their last ticks. Here the ticks of one instant come in
            // sequence.
            let t = self.task_mut(p);
            t.timestamp = (t.timestamp + Self::last_tick(cx, to)).wrapping_sub(Self::last_tick(cx, from));
        }
        self.preempt_if_better(cx, to, p);
        cx.explain(|_| {
            let rule = if expired {
                "expired, and last of the best priority"
            } else {
                "active, and last of the best priority"
            };
            Decision::new(to, Choice::Move, Some(p), rule).numbers([
                (None, "from_cpu", i64::from(from)),
                (Some(p), "prio", i64::from(self.task(p).prio)),
                (Some(p), "weight", self.rules.weight(self.task(p)) as i64),
            ])
        });
        cx.touch(from);
        cx.touch(to);
    }
}

/// The best priorities of the two CPUs. A task that would be the best on the target CPU is moved however heavy it is,
/// unless it is the only task of the best priority on the source CPU.
struct Best {
    here: u8,
    there: u8,
    /// Whether a task of the source CPU's best priority has been seen to stay.
    seen: bool,
}

impl Best {
    fn outdoes(&self, prio: u8) -> bool {
        prio < self.here && (self.seen || prio != self.there)
    }
}
