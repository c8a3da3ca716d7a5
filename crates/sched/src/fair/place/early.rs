//! Placement in 2.6.24 and 2.6.32: wake-ups compare the loads of two CPUs, and take an idle CPU if a domain's flags
//! allow it.

use super::{Ask, Placing, half_pct, spans};
use crate::balance::domains::{Domain, Domains, Flags};
use crate::balance::fair::Balancer;
use crate::fair::place::Select;
use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

/// The candidates for placement in 2.6.32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidates {
    /// The domain for which `cpu` is the affine candidate, and its level.
    affine: Option<Domain>,
    pub both: Option<usize>,
    /// The level of the highest domain that takes part in placing such tasks.
    pub top: Option<usize>,
    cpu: CpuId,
}

impl Candidates {
    /// No candidate but the asking CPU.
    pub fn none(ask: Ask) -> Self {
        Self { affine: None, both: None, top: None, cpu: ask.here }
    }
}

impl Select<'_> {
    /// Placement in 2.6.24 (`try_to_wake_up` and `sched_balance_self`).
    pub(super) fn place_2_6_24(&mut self, cx: &mut Core, domains: &Domains, ask: Ask) -> (CpuId, &'static str) {
        if !ask.wakes {
            let top = domains.of(ask.here).iter().rposition(|d| d.flags.has(ask.flag()));
            return top.map_or((ask.here, "where its parent runs"), |level| self.descend(cx, domains, ask, level));
        }
        let moves = ask.here != ask.prev && cx.task(ask.p).allowed.contains(ask.here);
        let near = if moves && self.pulls(cx, domains, ask) { ask.here } else { ask.prev };
        (self.wake_idle(cx, domains, ask, near), "the waker's CPU if its load allows it, or an idle one near it")
    }

    /// Whether the CPUs' loads allow the task to move to the waker's CPU.
    fn pulls(&mut self, cx: &Core, domains: &Domains, ask: Ask) -> bool {
        let both = domains.of(ask.here).iter().find(|d| domains.span(d.span).set.contains(ask.prev));
        let Some(domain) = both.copied() else { return false };
        let params = domains.params(&domain);
        let pct = half_pct(params);
        let load = self.biased_load(cx, ask.prev, params.wake_idx, false) as u64;
        let here = self.biased_load(cx, ask.here, params.wake_idx, true) as u64;
        if domain.flags.has(Flags::WAKE_AFFINE) {
            if ask.sync && !self.is_hot(cx, ask.p) {
                return true;
            }
            let each = self.load_per_task(cx, ask.here);
            let weight_of = |p: TaskId| self.rqs.entities[self.rqs.entity(p) as usize].load.weight();
            let leaves = cx.curr(ask.here).filter(|_| ask.sync).map_or(0, weight_of);
            let (here, weight) = (here.saturating_sub(leaves), weight_of(ask.p));
            let light = here <= load && here + self.biased_load(cx, ask.prev, params.wake_idx, true) as u64 <= each;
            if light || 100 * (here + weight) <= pct * load {
                return true;
            }
        }
        domain.flags.has(Flags::WAKE_BALANCE) && pct * here <= 100 * load
    }

    /// Whether a sleeping task ran so recently that it is cache-hot (`task_hot`).
    fn is_hot(&self, cx: &Core, p: TaskId) -> bool {
        match self.balancer.map_or(0, Balancer::migration_cost) {
            -1 => true,
            cost => ((cx.now() - self.rqs.entities[self.rqs.entity(p) as usize].exec_start) as i64) < cost,
        }
    }

    /// An idle CPU in the domains with `SD_WAKE_IDLE`, or `cpu` if it is idle or has several tasks (`wake_idle`).
    fn wake_idle(&self, cx: &mut Core, domains: &Domains, ask: Ask, cpu: CpuId) -> CpuId {
        if self.is_idle(cx, cpu) || self.rqs.nr_running(cpu) > 1 {
            return cpu;
        }
        for domain in domains.of(cpu) {
            if !domain.flags.has(Flags::WAKE_IDLE) {
                break;
            }
            let cpus = &domains.span(domain.span).cpus;
            Self::looked(cx, ask, cpus);
            if let Some(idle) = cpus.iter().find(|c| cx.task(ask.p).allowed.contains(**c) && self.is_idle(cx, **c)) {
                return *idle;
            }
        }
        cpu
    }

    /// The candidates for placement in 2.6.32; `None` in other releases.
    pub(super) fn candidates(&self, cx: &mut Core, domains: &Domains, ask: Ask) -> Option<Candidates> {
        let other = self.places.how != Placing::V2_6_32;
        if other || self.places.fix_overload && self.longest_idle(cx, ask).is_some() {
            return None;
        }
        let affine = self.places.features.affine_wakeups;
        let mut wants_affine = ask.wakes && affine && cx.task(ask.p).allowed.contains(ask.here);
        let mut found = Candidates::none(ask);
        for (level, domain) in domains.of(ask.here).iter().enumerate() {
            if wants_affine && domain.flags.has(Flags::WAKE_AFFINE) {
                let candidate = self.candidate(cx, domains, level, ask);
                if let Some(cpu) = candidate {
                    wants_affine = false;
                    found = Candidates { affine: Some(*domain), both: Some(level), cpu, ..found };
                }
            }
            if domain.flags.has(ask.flag()) {
                found.top = Some(level);
            }
        }
        Some(found)
    }

    /// Placement in 2.6.32 (`select_task_rq_fair`).
    pub(super) fn place_2_6_32(
        &mut self,
        cx: &mut Core,
        domains: &Domains,
        ask: Ask,
        found: Candidates,
    ) -> (CpuId, &'static str) {
        let Candidates { affine, top, cpu, .. } = found;
        if cpu == ask.prev && top.is_none() && ask.wakes && !cx.explaining() {
            // The result is the same whatever the loads are.
            return (ask.prev, "where it last ran");
        }
        if let Some(domain) = affine
            && self.comes_over(cx, domains, &domain, ask)
        {
            return (cpu, "an idle CPU near the waker, or the waker's if its load allows it");
        }
        match top {
            Some(level) => self.descend(cx, domains, ask, level),
            None if ask.wakes => (ask.prev, "where it last ran"),
            None => (ask.here, "where its parent runs"),
        }
    }

    /// The affine candidate at one level: the previous CPU if it is idle, another idle CPU, or the waker's CPU.
    fn candidate(&self, cx: &mut Core, domains: &Domains, level: usize, ask: Ask) -> Option<CpuId> {
        let domain = &domains.of(ask.here)[level];
        let idle = |cpu: CpuId| self.rqs.queues[cpu as usize].nr_queued == 0;
        let both = spans(domains, domain, Flags::WAKE_AFFINE, ask.prev);
        if domain.flags.has(Flags::PREFER_SIBLING) && self.places.features.wakes_to_idle {
            if both && idle(ask.prev) {
                return Some(ask.prev);
            }
            let cpus = &domains.span(domain.span).cpus;
            Self::looked(cx, ask, cpus);
            let found = cpus.iter().copied().find(|c| cx.task(ask.p).allowed.contains(*c) && idle(*c));
            return found.or(both.then_some(ask.here));
        }
        both.then_some(ask.here)
    }
}
