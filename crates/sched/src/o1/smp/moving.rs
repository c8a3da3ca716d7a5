//! Moving tasks from one CPU to another (`move_tasks`): in which order, and who stays.

use super::super::O1;
use super::super::array::MAX_PRIO;
use super::super::release::Balancing;
use crate::balance::domains::{Domain, Domains};
use crate::balance::sync;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Choice, Core, Decision, TaskId};

/// Until when a task's cache is held to be warm, so that it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heat {
    /// Nobody's is.
    Cold,
    /// So long after it was queued or left the CPU (2.6.0).
    SinceQueued(Nanos),
    /// So long before the last tick it left the CPU, or it did after that tick.
    SinceRan(Nanos),
}

/// What is to be moved.
#[derive(Clone, Copy, Debug)]
pub struct Haul {
    pub from: CpuId,
    pub to: CpuId,
    /// How many tasks at most.
    pub most: u64,
    /// How much weight, at most and at least.
    pub weight: i64,
    pub heat: Heat,
    /// Who runs on `from`, and stays.
    pub running: Option<TaskId>,
}

impl O1<'_> {
    /// Moves tasks: how many were, and whether all that were looked at were pinned elsewhere. The expired go first,
    /// then the best priority, the last of its list.
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

    /// The priority of who runs where tasks come from; the stopper's is the best there is.
    fn running_prio(&self, haul: &Haul) -> u8 {
        match haul.running {
            Some(p) => self.task(p).prio,
            None => 0,
        }
    }

    /// `rq_best_prio`.
    fn best_prio(&self, cpu: CpuId, running: u8) -> u8 {
        running.min(self.queues[cpu as usize].best_expired_prio)
    }

    /// `can_migrate_task`.
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

    /// Whether who left `cpu` at `last_ran` is within `time` of the last tick there (`task_hot`).
    pub(super) fn is_warm(cx: &Core, cpu: CpuId, last_ran: Option<Nanos>, time: Nanos) -> bool {
        last_ran.is_some_and(|ran| (Self::last_tick(cx, cpu) as i64) - (ran as i64) < time as i64)
    }

    /// How long a cache keeps warm in a domain's eyes (`cache_hot_time`). 2.6.18 measures when it boots what moving
    /// costs: that is next to nothing within one cache, and taken to be four times as much between nodes as between
    /// caches, as 2.6.11 has it.
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

    /// `pull_task`.
    fn pull(&mut self, cx: &mut Core, haul: &Haul, p: TaskId, side: usize) {
        let Haul { from, to, .. } = *haul;
        let expired = side == self.queues[from as usize].expired() && self.rules.release().moved_stay_expired;
        self.take(from, p);
        cx.set_task_cpu(p, to);
        let rq = &self.queues[to as usize];
        let side = if expired { rq.expired() } else { rq.active };
        self.push(to, p, side);
        if self.rules.release().balancing != Balancing::ByLength {
            // As if clocks differed by what the last ticks do; but the ticks of one instant come one after the other.
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

/// The best priorities here and there. A task that would be the best here is moved however heavy it is, unless it is
/// the only one of the best there.
struct Best {
    here: u8,
    there: u8,
    /// One of the best there was seen to stay.
    seen: bool,
}

impl Best {
    fn outdoes(&self, prio: u8) -> bool {
        prio < self.here && (self.seen || prio != self.there)
    }
}
