//! Whether a task comes to the side of who wakes it.

use super::{Ask, Placing, cache, share_cache};
use crate::balance::domains::{Domain, Domains};
use crate::fair::{Discipline, Fair};
use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

const SECOND: u64 = 1_000_000_000;

impl<D: Discipline> Fair<D> {
    /// The waker wakes this one now (`record_wakee`, 3.12 on).
    pub(super) fn record_wakee(&mut self, cx: &Core, ask: Ask) {
        let (now, waker) = (cx.now(), cx.curr(ask.here));
        let habits = self.places.waker(waker, ask.here);
        if now > habits.halved + SECOND {
            (habits.flips, habits.halved) = (habits.flips / 2, now);
        }
        if habits.last_wakee != Some(ask.p) {
            habits.last_wakee = Some(ask.p);
            habits.flips += 1;
        }
    }

    /// Whether waker and woken are a server and one of many (`wake_wide`).
    pub(super) fn wakes_widely(&mut self, cx: &Core, domains: &Domains, ask: Ask) -> bool {
        let factor = cache(domains, ask.here).map_or(1, |d| domains.span(d.span).weight());
        let waker = self.places.waker(cx.curr(ask.here), ask.here).flips;
        let woken = self.places.tasks[ask.p as usize].flips;
        if self.places.how < Placing::V6 {
            return woken > factor && waker > factor * woken;
        }
        let (master, slave) = (waker.max(woken), waker.min(woken));
        slave >= factor && master >= slave * factor
    }

    /// The load of a CPU of late, taken low (`source_load`) or high (`target_load`).
    pub(super) fn biased_load(&mut self, cx: &Core, cpu: CpuId, index: u8, high: bool) -> f64 {
        let now = self.load_avg_at(cpu, cx.now());
        if index == 0 {
            return now;
        }
        let before = self.tick_load_at(cpu, index - 1, cx.now()) as f64;
        if high { now.max(before) } else { now.min(before) }
    }

    /// What the root of a CPU weighs more when a task of the same group joins there that weighs `here`, where the whole
    /// group has `all` more (`effective_load`, 2.6.26 to 4.2).
    pub(super) fn effective_load(&self, cx: &Core, p: TaskId, cpu: CpuId, here: i64, all: i64) -> i64 {
        let (mut here, mut all) = (here, all);
        let mut q = self.queue_of(cx, p, cpu);
        while let Some(group) = q.checked_sub(self.cpus) {
            let of = &self.groups.all[self.group_of(q)];
            let sum = all + of.load as i64;
            let own = self.queues[q as usize].load.weight as i64 + here;
            let shares = of.shares as i64;
            let due = if sum > 0 && own < sum { own * shares / sum } else { shares };
            here = due.max(2) - self.entities[group as usize].load.weight as i64;
            all = 0;
            q = self.entities[group as usize].queue;
        }
        here
    }

    /// 2.6.32 to 4.1: by the loads of both CPUs with the task there (`wake_affine`).
    pub(super) fn comes_over(&mut self, cx: &Core, domains: &Domains, domain: &Domain, ask: Ask) -> bool {
        if self.places.how == Placing::V3_18 {
            self.record_wakee(cx, ask);
            if self.wakes_widely(cx, domains, ask) {
                return false;
            }
        }
        let params = domains.params(domain);
        let (index, pct) = (params.wake_idx, 100 + (i64::from(params.imbalance_pct) - 100) / 2);
        let load = self.biased_load(cx, ask.prev, index, false) as i64;
        let this_load = self.biased_load(cx, ask.here, index, true) as i64;
        let weight = self.entities[self.entity(ask.p) as usize].load.weight as i64;
        let capacity = |me: &Self, cpu: CpuId| i64::from(me.places.capacities[cpu as usize]);
        let with = this_load + self.effective_load(cx, ask.p, ask.here, weight, weight);
        let without = load + self.effective_load(cx, ask.p, ask.prev, 0, weight);
        let balanced =
            this_load == 0 || 100 * capacity(self, ask.prev) * with <= pct * capacity(self, ask.here) * without;
        if balanced || self.places.how == Placing::V3_18 {
            return balanced;
        }
        let root = &self.queues[ask.here as usize];
        let each = if root.h_nr > 0 { root.load.weight as i64 / i64::from(root.h_nr) } else { 0 };
        this_load <= load && this_load + self.biased_load(cx, ask.prev, index, true) as i64 <= each
    }

    /// 6.1 on: an idle CPU of the two, else the one that would be loaded less (`wake_affine`).
    pub(super) fn affine_target(&mut self, cx: &Core, domains: &Domains, domain: &Domain, ask: Ask) -> CpuId {
        let (here, prev) = (ask.here, ask.prev);
        if self.is_idle(cx, here) && share_cache(domains, here, prev) {
            return if self.is_idle(cx, prev) { prev } else { here };
        }
        if self.is_idle(cx, prev) {
            return prev;
        }
        let now = cx.now();
        let load = self.task_load_at(ask.p, now);
        let pct = 100.0 + (f64::from(domains.params(domain).imbalance_pct) - 100.0) / 2.0;
        let capacity = |cpu: CpuId| f64::from(self.places.capacities[cpu as usize]);
        let with = (self.load_avg_at(here, now) + load) * 100.0 * capacity(prev);
        let without = (self.load_avg_at(prev, now) - load) * pct * capacity(here);
        if with < without { here } else { prev }
    }
}
