//! The search for an idle CPU that shares the last-level cache with the target (`select_idle_sibling`).

use super::{Ask, Placing, cache, cluster, share_cache, share_resources};
use crate::balance::domains::{Domain, Domains, Flags};
use crate::balance::fair::{backports::SIS_UTIL, fits};
use crate::fair::place::Select;
use schedlab_base::{CpuId, v};
use schedlab_sim::{Core, CpuSet};

impl Select<'_> {
    /// The search in 3.10 to 4.1: the target, the previous CPU, or the first group within the cache whose CPUs are all
    /// idle.
    pub(super) fn idle_sibling_4(&self, cx: &mut Core, domains: &Domains, ask: Ask, target: CpuId) -> CpuId {
        if self.is_idle(cx, target) {
            return target;
        }
        if ask.prev != target && share_cache(domains, ask.prev, target) && self.is_idle(cx, ask.prev) {
            return ask.prev;
        }
        let Some(top) = domains.cache(target) else { return target };
        Self::looked(cx, ask, &domains.span(domains.of(target)[top].span).cpus);
        for domain in domains.of(target)[..=top].iter().rev() {
            for group in domains.groups(domain) {
                let cpus = &domains.span(domains.group(group).span).cpus;
                let allowed = cpus.iter().copied().find(|c| cx.task(ask.p).allowed.contains(*c));
                if let Some(first) = allowed
                    && cpus.iter().all(|c| *c != target && self.is_idle(cx, *c))
                {
                    return first;
                }
            }
        }
        target
    }

    fn free(&self, cx: &Core, cpu: CpuId) -> bool {
        self.is_idle(cx, cpu) || self.rqs.is_sched_idle(cpu)
    }

    /// Whether a task fits on a CPU (`asym_fits_cpu`). It always does if all CPUs have the same capacity.
    pub(super) fn fits(&self, cx: &Core, ask: Ask, cpu: CpuId) -> bool {
        !self.places.asymmetric || self.fit(cx, ask, cpu) > 0
    }

    /// Like `util_fits_cpu`: 1 if the task fits, 0 if it does not, and -1 if it fits but the CPU is too small for its
    /// uclamp_min.
    fn fit(&self, cx: &Core, ask: Ask, cpu: CpuId) -> i32 {
        let (least, most) = cx.task(ask.p).clamp;
        let (capacity, whole) = self.capacity_of(cpu);
        let util = self.pelt.task_util_est(self.rqs, ask.p, cx.now());
        fits(util, (least.into(), most.into()), capacity, whole)
    }

    /// The search from 5.5 on.
    pub(super) fn idle_sibling_6(&mut self, cx: &mut Core, domains: &Domains, ask: Ask, target: CpuId) -> CpuId {
        let good = |me: &Self, cx: &Core, cpu: CpuId| me.free(cx, cpu) && me.fits(cx, ask, cpu);
        if good(self, cx, target) {
            return target;
        }
        let prev = ask.prev;
        let mut near = None;
        if prev != target && share_cache(domains, prev, target) && good(self, cx, prev) {
            if share_resources(domains, prev, target) {
                return prev;
            }
            near = Some(prev);
        }
        let release = self.places.release;
        let recent = self.places.recent[ask.p as usize];
        // Since a change between 5.14 and 5.15 it is always the previous CPU. Before, it is the waker's CPU, or the
        // previous one once the recent CPU has been chosen.
        if release >= v(5, 15) {
            self.places.recent[ask.p as usize] = prev;
        }
        if recent != prev
            && recent != target
            && share_cache(domains, recent, target)
            && cx.task(ask.p).allowed.contains(recent)
            && good(self, cx, recent)
        {
            self.places.recent[ask.p as usize] = prev;
            if share_resources(domains, recent, target) {
                return recent;
            }
            near = near.or(Some(recent));
        }
        if self.places.asymmetric
            && let Some(level) = domains.lowest(target, domains.all_capacities())
        {
            return self.idle_capacity(cx, domains, ask, &domains.of(target)[level], target);
        }
        let Some(domain) = cache(domains, target).copied() else { return target };
        let key = domains.span(domain.span).cpus[0] as usize;
        let smt = domains.of(target).first().is_some_and(|d| d.flags.has(Flags::SHARE_CPUCAPACITY));
        let cores = smt && self.places.idle_cores[key];
        // 9fe1f127b913, "sched/fair: Merge select_idle_core/cpu()".
        if release < v(5, 12) {
            return self.idle_one_by_one(cx, domains, ask, &domain, target, cores);
        }
        // c722f35b513f, "sched/fair: Bring back select_idle_smt(), but differently".
        if smt
            && release >= v(5, 13)
            && !cores
            && share_cache(domains, prev, target)
            && let Some(cpu) = self.idle_thread(cx, domains, ask, &domain, prev)
        {
            return cpu;
        }
        self.idle_in_cache(cx, domains, ask, &domain, target, cores).or(near).unwrap_or(target)
    }

    /// Searches in turn for an idle core, for an idle CPU among a limited number, and for an idle sibling of the
    /// target. Each search starts from the target (`select_idle_core`, `select_idle_cpu`, `select_idle_smt` until
    /// 5.11).
    fn idle_one_by_one(
        &mut self,
        cx: &mut Core,
        domains: &Domains,
        ask: Ask,
        domain: &Domain,
        target: CpuId,
        cores: bool,
    ) -> CpuId {
        let cpus = &domains.span(domain.span).cpus;
        Self::looked(cx, ask, cpus);
        let allowed = &cx.task(ask.p).allowed;
        let from = cpus.partition_point(|c| *c < target);
        let around = || cpus[from..].iter().chain(&cpus[..from]).copied().filter(|c| allowed.contains(*c));
        if cores {
            let idle = around().find(|cpu| core_of(domains, cpu).iter().all(|c| self.is_idle(cx, *c)));
            if let Some(cpu) = idle {
                return cpu;
            }
            self.places.idle_cores[cpus[0] as usize] = false;
        }
        let on = self.places.features;
        if on.sis_avg_cpu && self.is_search_too_dear(ask.here) {
            return self.idle_thread(cx, domains, ask, domain, target).unwrap_or(target);
        }
        let most = if on.sis_prop { self.scan_by_cost(ask.here, cpus.len() as u64) as usize - 1 } else { usize::MAX };
        let found = around().take(most).position(|cpu| self.free(cx, cpu));
        if let Some(at) = found {
            self.note_scan(ask.here, at as u64 + 1);
            return around().nth(at).unwrap_or(target);
        }
        let all = around().count();
        if most >= all {
            self.note_scan(ask.here, all as u64);
        }
        self.idle_thread(cx, domains, ask, domain, target).unwrap_or(target)
    }

    /// An idle SMT sibling of a CPU (`select_idle_smt`).
    fn idle_thread(&self, cx: &Core, domains: &Domains, ask: Ask, cache: &Domain, prev: CpuId) -> Option<CpuId> {
        let core = domains.of(prev).first().filter(|d| d.flags.has(Flags::SHARE_CPUCAPACITY))?;
        let allowed = &cx.task(ask.p).allowed;
        let within = &domains.span(cache.span).set;
        let threads = domains.span(core.span).cpus.iter().copied();
        threads.into_iter().find(|c| *c != prev && allowed.contains(*c) && within.contains(*c) && self.free(cx, *c))
    }

    /// Searches the cache starting from the target, for an idle core if there may be one, or otherwise for an idle CPU
    /// among as many as the bound allows (`select_idle_cpu`, SIS_UTIL).
    fn idle_in_cache(
        &mut self,
        cx: &mut Core,
        domains: &Domains,
        ask: Ask,
        domain: &Domain,
        target: CpuId,
        cores: bool,
    ) -> Option<CpuId> {
        let cpus = &domains.span(domain.span).cpus;
        let key = cpus[0] as usize;
        let (release, on) = (self.places.release, self.places.features);
        let by_util = SIS_UTIL.is_in(release) && on.sis_util;
        // SIS_PROP went with 6.7.
        let by_cost = on.sis_prop && release < v(6, 7);
        let mut nr = if by_util {
            self.places.scan[key] + 1
        } else if by_cost {
            self.scan_by_time_left(cx, ask.here, cpus.len() as u64)
        } else {
            u32::MAX
        };
        if nr == 1 {
            return None;
        }
        Self::looked(cx, ask, cpus);
        let allowed = &cx.task(ask.p).allowed;
        // Since a change between 5.14 and 5.15 the target itself comes last.
        let after = self.places.release >= v(5, 15);
        let from = cpus.partition_point(|c| *c < target || after && *c == target);
        let whole = cpus[from..].iter().chain(&cpus[..from]).copied().filter(|c| allowed.contains(*c));
        // "sched/fair: Scan cluster before scanning LLC in wake-up path" (6.7).
        let close = cluster(domains, target).map(|span| &span.set);
        let is_close = |cpu: &CpuId| close.is_some_and(|set| set.contains(*cpu));
        let around = whole.clone().filter(is_close).chain(whole.filter(|cpu| !is_close(cpu)));
        let mut idle = None;
        if !cores {
            let mut seen = 0;
            for cpu in around {
                nr -= 1;
                if nr == 0 {
                    return None;
                }
                seen += 1;
                if self.free(cx, cpu) {
                    idle = Some(cpu);
                    break;
                }
            }
            if by_cost {
                self.note_scan(ask.here, seen);
            }
            return idle;
        }
        let turn = |cpu: CpuId| (cpu < target || after && cpu == target, cpu);
        for cpu in around {
            let core = core_of(domains, &cpu);
            if core.iter().any(|c| allowed.contains(*c) && turn(*c) < turn(cpu)) {
                // The core was looked at when it was this sibling's turn.
                continue;
            }
            if core.iter().all(|c| self.is_idle(cx, *c)) {
                return Some(cpu);
            }
            // Of a core that is not idle, the siblings are looked at in order, up to the first that is free or, once a
            // free one is known, the first that is busy (select_idle_core).
            idle = idle.or_else(|| core.iter().copied().find(|c| allowed.contains(*c) && self.free(cx, *c)));
        }
        self.places.idle_cores[key] = false;
        idle
    }

    /// An idle CPU with enough capacity, or otherwise the idle CPU with the most (`select_idle_capacity`).
    fn idle_capacity(&self, cx: &mut Core, domains: &Domains, ask: Ask, domain: &Domain, target: CpuId) -> CpuId {
        let cpus = &domains.span(domain.span).cpus;
        Self::looked(cx, ask, cpus);
        let allowed: &CpuSet = &cx.task(ask.p).allowed;
        let from = cpus.partition_point(|c| *c < target);
        let least = if self.places.release < v(6, 1) { 0 } else { -1 };
        let mut best = (0, 0, target);
        for &cpu in cpus[from..].iter().chain(&cpus[..from]) {
            if !allowed.contains(cpu) || !self.free(cx, cpu) {
                continue;
            }
            // Until 6.0 a task either fits or does not. The stable tree of 6.1 has the rule of 6.3.
            let fits = self.fit(cx, ask, cpu).max(least);
            if fits > 0 {
                return cpu;
            }
            let (left, whole) = self.capacity_of(cpu);
            let capacity = if fits < 0 { whole } else { left };
            if fits < best.0 || (fits == best.0 && capacity > best.1) {
                best = (fits, capacity, cpu);
            }
        }
        best.2
    }

    /// Called when a CPU goes idle. Notes whether its whole core is idle (`update_idle_core`).
    pub(in crate::fair) fn went_idle(&mut self, cx: &Core, domains: &Domains, cpu: CpuId) {
        self.places.idle_since[cpu as usize] = cx.now();
        let core = domains.of(cpu).first().filter(|d| d.flags.has(Flags::SHARE_CPUCAPACITY));
        if self.places.how == Placing::V6
            && let (Some(core), Some(domain)) = (core, cache(domains, cpu))
        {
            let key = domains.span(domain.span).cpus[0] as usize;
            let idle = |c: &CpuId| *c == cpu || self.is_idle(cx, *c);
            if !self.places.idle_cores[key] && domains.span(core.span).cpus.iter().all(idle) {
                self.places.idle_cores[key] = true;
            }
        }
    }
}

/// The SMT siblings of a CPU's core, including the CPU itself.
fn core_of<'a>(domains: &'a Domains, cpu: &'a CpuId) -> &'a [CpuId] {
    let core = domains.of(*cpu).first().filter(|d| d.flags.has(Flags::SHARE_CPUCAPACITY));
    core.map_or(std::slice::from_ref(cpu), |d| &domains.span(d.span).cpus)
}
