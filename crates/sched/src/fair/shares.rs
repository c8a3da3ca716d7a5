//! How a group's shares are spread over the CPUs: the weight of its entity on each.
//!
//! A group with tasks on several CPUs has an entity on each; together they are to weigh its shares, each by the part
//! of the group's load that is there. On one CPU the entity weighs the shares.

use super::entity::{EntityId, QueueId};
use super::load::{Load, NICE_0};
use super::pelt::Pelt;
use super::rqs::Runqueues;
use super::{Discipline, Fair};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::Core;

/// An entity weighs at least this (`MIN_SHARES`).
const LEAST: u64 = 2;

/// Which release's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// Every entity weighs the whole shares, on however many CPUs (2.6.24).
    Whole,
    /// Spread when CPUs are balanced, not more often than this, and only if it changes by more than `threshold`
    /// (`tg_shares_up`, 2.6.26 to 2.6.37).
    Sampled {
        /// `sched_shares_ratelimit`, in ns.
        every: Nanos,
        /// `sched_shares_thresh`.
        threshold: u64,
    },
    /// Spread by the weights that are queued, at every change and tick (`calc_cfs_shares`, 2.6.38 to 4.2).
    ByWeight,
    /// Spread by the greater of what is queued and what was queued lately (`calc_group_shares`, 4.3 on).
    ByLoad,
}

/// How a group stood on a CPU when its shares were last spread there: nothing if none of its tasks was queued
/// (`cfs_rq->shares`, `cfs_rq->rq_weight`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub shares: u64,
    pub weight: u64,
}

/// What is remembered of spreading.
#[derive(Debug)]
pub(super) struct Spread {
    /// By group and CPU.
    samples: Vec<Sample>,
    /// When it was last done in each domain (`sd->last_update`).
    last: Vec<Nanos>,
}

impl Spread {
    /// For a number of groups' entities.
    pub fn new(entities: u32) -> Self {
        Self { samples: vec![Sample::default(); entities as usize], last: Vec::new() }
    }

    /// The domains were built anew.
    pub fn rebuilt(&mut self) {
        self.last.clear();
    }
}

impl Runqueues {
    /// What the entity of a group on one CPU is to weigh.
    fn due(&self, pelt: &Pelt, e: EntityId, now: Nanos) -> u64 {
        let q = e + self.cpus;
        let group = &self.groups.all[self.group_of(q)];
        if self.cpus == 1 {
            return group.shares;
        }
        let own = self.queues[q as usize].load.weight;
        let (load, all) = if self.rules.shares == Shares::ByLoad {
            let (average, all) = pelt.group_averages(self, q, now);
            let load = own.max(average);
            (load, all.saturating_sub(average) + load)
        } else {
            (own, group.load)
        };
        let shares = group.shares * load / all.max(1);
        shares.max(LEAST).min(group.shares)
    }

    /// Whether a group's entity does not weigh what it is to.
    #[inline]
    pub(super) fn is_stale(&self, pelt: &Pelt, e: EntityId, now: Nanos) -> bool {
        e < self.first_task
            && self.cpus > 1
            && matches!(self.rules.shares, Shares::ByWeight | Shares::ByLoad)
            && self.queues[(e + self.cpus) as usize].throttle_count == 0
            && self.entities[e as usize].load.weight != self.due(pelt, e, now)
    }

    /// Whether a group's entity will weigh something else by time alone: averages are under way.
    pub(super) fn will_be_stale(&self, pelt: &Pelt, e: EntityId, now: Nanos) -> bool {
        e < self.first_task
            && self.cpus > 1
            && self.rules.shares == Shares::ByLoad
            && !pelt.group_is_settled(self, e + self.cpus, now)
    }

    /// The load of a queue changed: that of its group does.
    #[inline]
    pub(super) fn load_changed(&mut self, q: QueueId, old: u64) {
        if q >= self.cpus {
            let g = self.group_of(q);
            let new = self.queues[q as usize].load.weight;
            let group = &mut self.groups.all[g];
            group.load = group.load + new - old;
        }
    }

    /// Something in the group of `e` changed: on other CPUs its entities are to weigh something else from the next
    /// tick on.
    #[inline]
    pub(super) fn touch_group(&self, cx: &mut Core, e: EntityId) {
        if self.cpus > 1 && self.first_task > 0 {
            self.touch_cpus(cx, e);
        }
    }

    fn touch_cpus(&self, cx: &mut Core, e: EntityId) {
        let mut at = self.parent(e);
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

    /// How a group stood on a CPU when its shares were last spread there.
    pub(super) fn sample(&self, q: QueueId) -> Sample {
        self.spread.samples[(q - self.cpus) as usize]
    }

    /// What a queue weighs at its CPU's root (`cfs_rq->h_load`, until 3.10).
    pub(super) fn root_load_of(&self, q: QueueId) -> u64 {
        let Some(group) = q.checked_sub(self.cpus) else { return self.queues[q as usize].load.weight };
        let above = self.entities[group as usize].queue;
        let part = match self.rules.shares {
            Shares::Sampled { .. } => self.sample(q).shares,
            _ => self.entities[group as usize].load.weight,
        };
        self.root_load_of(above) * part / (self.queues[above as usize].load.weight + 1)
    }
}

impl<D: Discipline> Fair<D> {
    /// Brings the weight of a group's entity up to date (`update_cfs_group`).
    #[inline]
    pub(super) fn update_group(&mut self, cx: &mut Core, e: EntityId) {
        if e >= self.rqs.first_task || !matches!(self.rqs.rules.shares, Shares::ByWeight | Shares::ByLoad) {
            return;
        }
        let own = &self.rqs.queues[(e + self.rqs.cpus) as usize];
        if own.throttle_count > 0 || (D::keeps_weight_when_empty(&self.d) && own.load.weight == 0) {
            return;
        }
        let due = self.rqs.due(&self.pelt, e, cx.now());
        if self.rqs.entities[e as usize].load.weight != due {
            D::reweight(self, cx, e, Load::with_weight(due, self.d.arithmetic()));
        }
    }

    /// 2.6.26 to 2.6.37: spreads every group's shares over a domain's CPUs anew, if that was not done lately there
    /// (`update_shares`).
    pub(super) fn sample_shares(&mut self, cx: &mut Core, domain: usize, cpus: &[CpuId], top: bool) {
        let Shares::Sampled { every, threshold } = self.rqs.rules.shares else { return };
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
        // The groups below come first (walk_tg_tree up); a group's number is greater than its parent's.
        for g in (0..self.rqs.groups.all.len() as u32).rev() {
            self.spread(cx, g, threshold, cpus, top);
        }
    }

    /// `tg_shares_up`: what the domain has of the shares by the last time, by the weights that are there now.
    fn spread(&mut self, cx: &mut Core, g: u32, threshold: u64, cpus: &[CpuId], top: bool) {
        let (first, all) = ((g + 1) * self.rqs.cpus, self.rqs.groups.all[g as usize].shares);
        // Where nothing is queued, a task of average weight is thought to be, so that the next one is not held up.
        let weigh = |me: &Self, cpu: CpuId| match me.rqs.queues[(first + cpu) as usize].load.weight {
            0 => NICE_0,
            weight => weight,
        };
        let sum: u64 = cpus.iter().map(|cpu| weigh(self, *cpu)).sum();
        let own: u64 = cpus.iter().map(|cpu| self.rqs.sample(first + cpu).shares).sum();
        let shares = if top || own == 0 || own > all { all } else { own };
        for &cpu in cpus {
            let e = g * self.rqs.cpus + cpu;
            let weight = self.rqs.queues[(first + cpu) as usize].load.weight;
            let due = (shares * weigh(self, cpu) / sum).clamp(LEAST, 1 << 18);
            if due.abs_diff(self.rqs.entities[e as usize].load.weight) > threshold {
                let sample = if weight == 0 { Sample::default() } else { Sample { shares: due, weight } };
                self.rqs.spread.samples[e as usize] = sample;
                crate::classes::sync(self, cx, cpu);
                let load = Load::with_weight(due, self.d.arithmetic());
                D::reweight(self, cx, e, load);
                cx.touch(cpu);
            }
        }
    }
}
