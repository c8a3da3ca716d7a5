//! Distribution of a group's shares over the CPUs: the weight of its entity on each CPU.
//!
//! A group with tasks on several CPUs has an entity on each. Their weights together should equal the group's shares,
//! each in proportion to the part of the group's load on its CPU. On a single CPU the entity's weight is the shares.

use super::entity::{EntityId, QueueId};
use super::load::{Load, NICE_0};
use super::pelt::Pelt;
use super::rqs::Runqueues;
use super::{Discipline, Fair};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::Core;

/// The minimum weight of a group's entity (`MIN_SHARES`, and that of `scale_load_down`).
const LEAST: u64 = 2;

/// By how many bits 64-bit kernels since 4.7 distribute shares more finely than weights are used
/// (`SCHED_FIXEDPOINT_SHIFT`).
const FINE: u32 = 10;

/// The method by which a release distributes shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// Every entity has the whole shares as its weight, on however many CPUs (2.6.24).
    Whole,
    /// Distributed when domains are balanced, at most once per `every`, and only where the weight changes by more than
    /// `threshold` (`tg_shares_up`, 2.6.26 to 2.6.37).
    Sampled {
        /// The minimum interval (`sched_shares_ratelimit`), in ns.
        every: Nanos,
        /// The minimum change of the weight (`sched_shares_thresh`).
        threshold: u64,
        /// Whether a CPU without a task of the group has a part of the shares as if it had one. 2.6.33 divides them by
        /// the weight that is queued.
        empty_count: bool,
    },
    /// Distributed by the queued weights, at every change and tick (`calc_cfs_shares`, 2.6.38 to 4.2).
    ByWeight,
    /// Distributed by the greater of the queued weight and the load average (`calc_group_shares`, 4.3 on), as 64-bit
    /// kernels do from 4.7 on: in steps of 1/1024 of a weight. Virtual time, slices and averages take whole weights,
    /// but every step is a change of weight, which places the entity anew.
    ByLoad,
}

/// The state of a group on a CPU when its shares were last distributed there; zero if none of its tasks was queued
/// (`cfs_rq->shares`, `cfs_rq->rq_weight`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub shares: u64,
    pub weight: u64,
}

/// The state of distributing shares.
#[derive(Debug)]
pub(super) struct Spread {
    /// The samples by group entity.
    samples: Vec<Sample>,
    /// The weights of group entities in the resolution in which shares are distributed.
    exact: Vec<u64>,
    /// For each domain, when its shares were last distributed, in ns (`sd->last_update`).
    last: Vec<Nanos>,
}

impl Spread {
    /// Creates the state for a number of group entities.
    pub fn new(entities: u32) -> Self {
        let entities = entities as usize;
        Self { samples: vec![Sample::default(); entities], exact: vec![0; entities], last: Vec::new() }
    }

    /// Called after the domains were rebuilt.
    pub fn rebuilt(&mut self) {
        self.last.clear();
    }
}

impl Runqueues {
    /// By how many bits shares are distributed more finely than weights are used.
    fn finer(&self) -> u32 {
        if self.rules.shares == Shares::ByLoad { FINE } else { 0 }
    }

    /// Notes the weight with which a group's entity begins.
    pub(super) fn begin_shares(&mut self, e: EntityId) {
        self.spread.exact[e as usize] = self.entities[e as usize].load.weight() << self.finer();
    }

    /// The weight that the entity of a group on one CPU should have, in that resolution.
    fn due(&self, pelt: &Pelt, e: EntityId, now: Nanos) -> u64 {
        let q = e + self.cpus;
        let group = &self.groups.all[self.group_of(q)];
        let whole = group.shares << self.finer();
        if self.cpus == 1 {
            return whole;
        }
        let own = self.queues[q as usize].load.weight;
        let (load, all) = if self.rules.shares == Shares::ByLoad {
            let (average, all) = pelt.group_averages(self, q, now);
            let load = own.max(average);
            (load, all - average + load)
        } else {
            (own, group.load)
        };
        (whole * load / all.max(1)).max(LEAST).min(whole)
    }

    /// Whether a group's entity has a different weight than it should.
    #[inline]
    pub(super) fn is_stale(&self, pelt: &Pelt, e: EntityId, now: Nanos) -> bool {
        e < self.first_task
            && self.cpus > 1
            && matches!(self.rules.shares, Shares::ByWeight | Shares::ByLoad)
            && !self.is_cut_off(e + self.cpus)
            && self.spread.exact[e as usize] != self.due(pelt, e, now)
    }

    /// Whether the weight of a group's entity should change just by the passing of time, because averages are still
    /// moving.
    #[inline]
    pub(super) fn will_be_stale(&self, pelt: &Pelt, e: EntityId, now: Nanos) -> bool {
        e < self.first_task
            && self.cpus > 1
            && self.rules.shares == Shares::ByLoad
            && (!pelt.group_is_settled(self, e + self.cpus, now) || pelt.has_news(self, e + self.cpus, now))
    }

    /// Updates the load of a group after that of one of its queues changed.
    #[inline]
    pub(super) fn load_changed(&mut self, q: QueueId, old: u64) {
        if q >= self.cpus {
            let g = self.group_of(q);
            let new = self.queues[q as usize].load.weight;
            let group = &mut self.groups.all[g];
            group.load = group.load + new - old;
        }
    }

    /// Called when something changed in the group of `e`. Makes the CPUs on which its entities are running take their
    /// next ticks, which update their weights.
    #[inline]
    pub(super) fn touch_group(&self, cx: &mut Core, e: EntityId) {
        if self.cpus > 1 && self.first_task > 0 {
            self.touch_queue(cx, self.entities[e as usize].queue);
        }
    }

    /// The same for the group of a queue.
    pub(super) fn touch_queue(&self, cx: &mut Core, q: QueueId) {
        let mut at = q.checked_sub(self.cpus);
        while let Some(group) = at {
            let first = group - group % self.cpus;
            for cpu in 0..self.cpus {
                let other = first + cpu;
                if self.queues[self.entities[other as usize].queue as usize].curr == Some(other) {
                    cx.touch(cpu);
                }
            }
            at = self.parent(group);
        }
    }

    /// The state of a group on a CPU when its shares were last distributed there.
    pub(super) fn sample(&self, q: QueueId) -> Sample {
        self.spread.samples[(q - self.cpus) as usize]
    }

    /// The load that a queue contributes to its CPU's root (`cfs_rq->h_load`, until 3.10).
    pub(super) fn root_load_of(&self, q: QueueId) -> u64 {
        let Some(group) = q.checked_sub(self.cpus) else { return self.queues[q as usize].load.weight };
        let above = self.entities[group as usize].queue;
        let part = match self.rules.shares {
            Shares::Sampled { .. } => self.sample(q).shares,
            _ => self.entities[group as usize].load.weight(),
        };
        self.root_load_of(above) * part / (self.queues[above as usize].load.weight + 1)
    }
}

impl<D: Discipline> Fair<D> {
    /// Updates the weight of a group's entity (`update_cfs_group`).
    #[inline]
    pub(super) fn update_group(&mut self, cx: &mut Core, e: EntityId) {
        if e >= self.rqs.first_task || !matches!(self.rqs.rules.shares, Shares::ByWeight | Shares::ByLoad) {
            return;
        }
        let own = &self.rqs.queues[(e + self.rqs.cpus) as usize];
        if self.rqs.is_cut_off(e + self.rqs.cpus) || (D::keeps_weight_when_empty(&self.d) && own.load.weight == 0) {
            return;
        }
        let due = self.rqs.due(&self.pelt, e, cx.now());
        if self.rqs.spread.exact[e as usize] != due {
            self.reweight(cx, e, due);
        }
    }

    /// Changes the weight of a group's entity to one in the resolution in which shares are distributed.
    fn reweight(&mut self, cx: &mut Core, e: EntityId, exact: u64) {
        let before = std::mem::replace(&mut self.rqs.spread.exact[e as usize], exact);
        let weight = (exact >> self.rqs.finer()).max(LEAST);
        D::reweight(self, cx, e, Load::with_weight(weight, self.d.arithmetic()), (before, exact));
    }

    /// Distributes every group's shares over a domain's CPUs, unless that was done there recently (`update_shares`,
    /// 2.6.26 to 2.6.37).
    pub(super) fn sample_shares(&mut self, cx: &mut Core, domain: usize, cpus: &[CpuId], top: bool) {
        let Shares::Sampled { every, threshold, empty_count } = self.rqs.rules.shares else { return };
        if self.rqs.cpus == 1 || self.rqs.groups.all.is_empty() {
            return;
        }
        if self.rqs.spread.last.len() <= domain {
            self.rqs.spread.last.resize(domain + 1, 0);
        }
        if cx.now() - self.rqs.spread.last[domain] < every {
            return;
        }
        self.rqs.spread.last[domain] = cx.now();
        // Child groups come first (walk_tg_tree up). A group's number is greater than its parent's.
        for g in (0..self.rqs.groups.all.len() as u32).rev() {
            self.spread(cx, g, (threshold, empty_count), cpus, top);
        }
    }

    /// Distributes the shares that the domain had last time by the weights that are queued there now (`tg_shares_up`).
    fn spread(&mut self, cx: &mut Core, g: u32, (threshold, empty_count): (u64, bool), cpus: &[CpuId], top: bool) {
        let (first, all) = ((g + 1) * self.rqs.cpus, self.rqs.groups.all[g as usize].shares);
        // An empty queue counts as if it had a task of average weight, so that the next task is not delayed.
        let weigh = |me: &Self, cpu: CpuId| match me.rqs.queues[(first + cpu) as usize].load.weight {
            0 => NICE_0,
            weight => weight,
        };
        let queued: u64 = cpus.iter().map(|cpu| self.rqs.queues[(first + cpu) as usize].load.weight).sum();
        let sum = if empty_count || queued == 0 { cpus.iter().map(|cpu| weigh(self, *cpu)).sum() } else { queued };
        let own: u64 = cpus.iter().map(|cpu| self.rqs.sample(first + cpu).shares).sum();
        let shares = if top || own == 0 || own > all { all } else { own };
        for &cpu in cpus {
            let e = g * self.rqs.cpus + cpu;
            let weight = self.rqs.queues[(first + cpu) as usize].load.weight;
            let due = (shares * weigh(self, cpu) / sum).clamp(LEAST, 1 << 18);
            if due.abs_diff(self.rqs.entities[e as usize].load.weight()) > threshold {
                let sample = if weight == 0 { Sample::default() } else { Sample { shares: due, weight } };
                self.rqs.spread.samples[e as usize] = sample;
                crate::classes::sync(self, cx, cpu);
                self.reweight(cx, e, due);
                cx.touch(cpu);
            }
        }
    }
}
