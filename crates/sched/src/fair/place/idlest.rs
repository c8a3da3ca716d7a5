//! The walk down the domains to the idlest CPU of the idlest group (`find_idlest_group`, `find_idlest_cpu`).

use super::{Ask, Placing, half_pct};
use crate::balance::domains::{Domain, Domains, Flags, GroupId};
use crate::balance::fair::{
    backports::{ALLOWED_BY_LOCAL, WAKEUP_STATS_OF_ALLOWED},
    by_capacity,
};
use crate::fair::place::Select;
use schedlab_base::{CpuId, Release, v};
use schedlab_sim::Core;

/// The type of a group, from idle to busy (`enum group_type`, 5.5 on). Types for packing are not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    HasSpare,
    FullyBusy,
    Misfit,
    Imbalanced,
    Overloaded,
}

/// The statistics of a group for placing a new task (`update_sg_wakeup_stats`).
#[derive(Clone, Copy, Debug)]
struct Standing {
    kind: Kind,
    /// The load divided by the capacity, if the group is busy.
    average: f64,
    idle: u32,
    running: u32,
    util: f64,
    most: u64,
}

impl Select<'_> {
    /// Walks down from the domain of the asking CPU at `level` to a single CPU.
    pub(super) fn descend(
        &mut self,
        cx: &mut Core,
        domains: &Domains,
        ask: Ask,
        level: usize,
    ) -> (CpuId, &'static str) {
        let (mut cpu, mut chosen) = (ask.here, ask.here);
        let mut at = Some(level);
        while let Some(level) = at {
            let domain = domains.of(cpu)[level];
            let below = level.checked_sub(1);
            if !domain.flags.has(ask.flag()) {
                at = below;
                continue;
            }
            Self::looked(cx, ask, &domains.span(domain.span).cpus);
            let Some(group) = self.idlest_group(cx, domains, &domain, ask, cpu) else {
                at = below;
                continue;
            };
            let Some(found) = self.idlest_cpu(cx, domains, group, ask, cpu).filter(|found| *found != cpu) else {
                // 6.x chooses the CPU itself here. So do the older releases, which then look below it.
                at = below;
                continue;
            };
            (cpu, chosen) = (found, found);
            let weight = domains.span(domain.span).weight();
            let smaller = domains.of(cpu).iter().take_while(|d| domains.span(d.span).weight() < weight);
            at = smaller.enumerate().filter_map(|(level, d)| d.flags.has(ask.flag()).then_some(level)).last();
        }
        (chosen, "down the domains to the idlest group's idlest CPU")
    }

    fn idlest_group(&mut self, cx: &Core, domains: &Domains, domain: &Domain, ask: Ask, cpu: CpuId) -> Option<GroupId> {
        if self.places.how == Placing::V6 {
            self.idlest_by_kind(cx, domains, domain, ask, cpu)
        } else {
            self.idlest_by_load(cx, domains, domain, ask, cpu)
        }
    }

    /// The group with the least load per capacity, if that is clearly less than the local group's (until 5.4).
    fn idlest_by_load(
        &mut self,
        cx: &Core,
        domains: &Domains,
        domain: &Domain,
        ask: Ask,
        cpu: CpuId,
    ) -> Option<GroupId> {
        let params = domains.params(domain);
        let index = if ask.wakes { params.wake_idx } else { params.forkexec_idx };
        let pct = half_pct(params);
        let (mut least, mut here, mut idlest) = (u64::MAX, 0, None);
        for group in domains.groups(domain) {
            let of = domains.group(group);
            let span = domains.span(of.span);
            if !span.cpus.iter().any(|c| cx.task(ask.p).allowed.contains(*c)) {
                continue;
            }
            let local = span.set.contains(cpu);
            let load: u64 = span.cpus.iter().map(|c| self.biased_load(cx, *c, index, !local) as u64).sum();
            let average = by_capacity(self.places.release, load * 1024, self.group_capacity(group));
            if local {
                here = average;
            } else if average < least {
                (least, idlest) = (average, Some(group));
            }
        }
        idlest.filter(|_| 100 * here >= pct * least)
    }

    /// The idlest group by type (5.5 on); `None` if that is the local group.
    fn idlest_by_kind(
        &mut self,
        cx: &Core,
        domains: &Domains,
        domain: &Domain,
        ask: Ask,
        cpu: CpuId,
    ) -> Option<GroupId> {
        let mut local = None;
        let mut idlest: Option<(GroupId, Standing)> = None;
        for group in domains.groups(domain) {
            let span = domains.span(domains.group(group).span);
            if !span.cpus.iter().any(|c| cx.task(ask.p).allowed.contains(*c)) {
                continue;
            }
            let standing = self.standing(cx, domains, domain, group, ask);
            if span.set.contains(cpu) {
                local = Some((group, standing));
            } else if idlest.is_none_or(|(_, best)| idler(&standing, &best)) {
                idlest = Some((group, standing));
            }
        }
        let (group, idlest) = idlest?;
        let Some((own, local)) = local else { return Some(group) };
        if local.kind != idlest.kind {
            return (local.kind > idlest.kind).then_some(group);
        }
        if local.kind == Kind::HasSpare && domain.flags.has(Flags::NUMA) {
            // If both groups have spare capacity, the preferred node comes first.
            let preferred = self.preferred_node(ask.p);
            let first = domains.span(domains.group(group).span).cpus.first();
            if preferred.is_some() && preferred == self.numa_node(cpu) {
                return None;
            }
            if preferred.is_some() && preferred == first.and_then(|first| self.numa_node(*first)) {
                return Some(group);
            }
        }
        let params = domains.params(domain);
        let better = match local.kind {
            Kind::Overloaded | Kind::FullyBusy => {
                let pct = f64::from(params.imbalance_pct);
                let slack = 1024.0 * (pct - 100.0) / 100.0;
                let far = domain.flags.has(Flags::NUMA) && idlest.average + slack >= local.average;
                !far && idlest.average < local.average + slack && 100.0 * local.average > pct * idlest.average
            }
            Kind::Misfit => local.most < idlest.most,
            Kind::Imbalanced => false,
            Kind::HasSpare => self.spare_elsewhere(cx, domains, domain, ask, own, &local, &idlest),
        };
        better.then_some(group)
    }

    /// Whether the other group is better if both have spare capacity: it has more idle CPUs, and across nodes the
    /// allowed imbalance is exceeded.
    #[allow(clippy::too_many_arguments, reason = "one comparison of two groups, with all that it rests on")]
    fn spare_elsewhere(
        &self,
        cx: &Core,
        domains: &Domains,
        domain: &Domain,
        ask: Ask,
        own: GroupId,
        local: &Standing,
        idlest: &Standing,
    ) -> bool {
        if domain.flags.has(Flags::NUMA) {
            let allowed = &cx.task(ask.p).allowed;
            let span = domains.span(domains.group(own).span);
            let mut imbalance = domain.imb_numa_nr;
            if !allowed.is_all() && self.places.release >= v(6, 0) {
                imbalance = imbalance.min(span.cpus.iter().filter(|c| allowed.contains(**c)).count() as u32);
            }
            let weights = (span.weight(), domains.span(domain.span).weight());
            if stays_on_node(self.places.release, local, idlest.idle, weights, imbalance) {
                return false;
            }
        }
        local.idle < idlest.idle
    }

    fn group_capacity(&self, group: GroupId) -> u64 {
        self.balancer.as_ref().map_or(1024, |balancer| balancer.group_capacity(group))
    }

    fn standing(&self, cx: &Core, domains: &Domains, domain: &Domain, group: GroupId, ask: Ask) -> Standing {
        let (now, of) = (cx.now(), domains.group(group));
        let asymmetric = domain.flags.has(Flags::ASYM_CPUCAPACITY);
        let allowed = &cx.task(ask.p).allowed;
        let (mut load, mut util, mut runnable, mut running, mut idle) = (0.0, 0.0, 0.0, 0, 0);
        let (mut misfit, mut most) = (asymmetric, 0);
        let span = domains.span(of.span);
        let all = !WAKEUP_STATS_OF_ALLOWED.is_in(self.places.release);
        for &cpu in span.cpus.iter().filter(|c| all || allowed.contains(**c)) {
            let (l, r) = if (ask.wakes || ask.execs) && cpu == ask.prev {
                (self.pelt.task_load(self.rqs, ask.p, now), self.pelt.task_runnable(self.rqs, ask.p, now))
            } else {
                (0.0, 0.0)
            };
            load += (self.pelt.load_avg(self.rqs, cpu, now) - l).max(0.0);
            util += self.util_with(cx, cpu, ask.p, None, false) as f64;
            runnable += (self.pelt.runnable_avg(cpu, now) - r).max(0.0);
            // A task that becomes another program does not count where it runs.
            let here = u32::from(ask.execs && cpu == ask.prev);
            let others = self.rqs.nr_running(cpu) - here;
            running += others;
            idle += u32::from(if here > 0 { others == 0 } else { self.is_idle(cx, cpu) });
            most = most.max(self.capacity_of(cpu).0);
            misfit &= !(asymmetric && self.fits(cx, ask, cpu));
        }
        let (capacity, pct) = (self.group_capacity(group) as f64, f64::from(domains.params(domain).imbalance_pct));
        let weight = span.weight();
        let overloaded = running > weight && (capacity * 100.0 < util * pct || capacity * pct < runnable * 100.0);
        let room = running < weight || (capacity * pct >= runnable * 100.0 && capacity * 100.0 > util * pct);
        let imbalanced = self.balancer.is_some_and(|balancer| balancer.is_imbalanced(group));
        let kind = match (overloaded, misfit, room) {
            (true, ..) => Kind::Overloaded,
            _ if imbalanced => Kind::Imbalanced,
            (_, true, _) => Kind::Misfit,
            (_, _, false) => Kind::FullyBusy,
            _ => Kind::HasSpare,
        };
        Standing { kind, average: load * 1024.0 / capacity.max(1.0), idle, running, util, most }
    }

    fn idlest_cpu(&self, cx: &Core, domains: &Domains, group: GroupId, ask: Ask, here: CpuId) -> Option<CpuId> {
        let span = domains.span(domains.group(group).span);
        let modern = self.places.how == Placing::V6;
        if modern && span.weight() == 1 {
            return span.cpus.first().copied();
        }
        // Until 3.17 an idle CPU just counts as one without load.
        let by_idleness = self.places.how >= Placing::V3_18;
        let (mut least, mut best) = (f64::INFINITY, None);
        let (mut latest, mut idle) = (0, None);
        for &cpu in span.cpus.iter().filter(|c| cx.task(ask.p).allowed.contains(**c)) {
            if modern && self.rqs.is_sched_idle(cpu) {
                return Some(cpu);
            }
            if by_idleness && self.is_idle(cx, cpu) {
                let since = self.places.idle_since[cpu as usize];
                if idle.is_none() || since > latest {
                    (latest, idle) = (since, Some(cpu));
                }
            } else if idle.is_none() {
                let load = self.pelt.load_avg(self.rqs, cpu, cx.now());
                if load < least || (!modern && load == least && cpu == here) {
                    (least, best) = (load, Some(cpu));
                }
            }
        }
        idle.or(best)
    }
}

/// Whether a new task stays on its node although another node has more idle CPUs (`find_idlest_group`). `weights` holds
/// the numbers of CPUs of the local group and of the domain, and `allowed` is the imbalance that the domain allows from
/// 5.18 on.
///
///
/// - Until 5.10 it stays as long as the local group has an idle CPU.
/// - 5.11 to 5.17: it stays as long as the local tasks are fewer than a quarter of the domain's CPUs (23e6082a522e,
///   "sched: Limit the amount of NUMA imbalance that can exist at fork time"). In the stable tree of 5.15 it is a
///   quarter of the local CPUs, and the new task counts.
/// - From 5.18 on the domain's allowed imbalance decides (e496132ebedd, "sched/fair: Adjust the allowed NUMA imbalance
///   when SD_NUMA spans multiple LLCs"), and from 6.0 on only if the groups differ by at most two idle CPUs.
fn stays_on_node(release: Release, local: &Standing, idle: u32, weights: (u32, u32), allowed: u32) -> bool {
    if release >= v(6, 0) {
        local.running < allowed && local.idle.abs_diff(idle) <= 2
    } else if release >= v(5, 18) {
        local.running < allowed
    } else if ALLOWED_BY_LOCAL.is_in(release) {
        local.running + 1 < weights.0 / 4
    } else if release >= v(5, 11) {
        local.running < weights.1 / 4
    } else {
        local.idle > 0
    }
}

/// Whether a group is idler than the idlest one so far (`update_pick_idlest`).
fn idler(new: &Standing, best: &Standing) -> bool {
    if new.kind != best.kind {
        return new.kind < best.kind;
    }
    match new.kind {
        Kind::Imbalanced => false,
        Kind::Overloaded | Kind::FullyBusy => new.average < best.average,
        Kind::Misfit => best.most < new.most,
        Kind::HasSpare => new.idle > best.idle || (new.idle == best.idle && new.util < best.util),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `update_pick_idlest` takes no group that affinity kept uneven for idler than another one of these, and any group
    /// that is less busy instead (`enum group_type`).
    #[test]
    fn uneven_groups_are_not_compared() {
        let group = |kind, average| Standing { kind, average, idle: 0, running: 4, util: 0.0, most: 1024 };
        let uneven = group(Kind::Imbalanced, 1.0);
        assert!(!idler(&uneven, &group(Kind::Imbalanced, 2.0)));
        assert!(idler(&group(Kind::FullyBusy, 9.0), &uneven) && idler(&uneven, &group(Kind::Overloaded, 0.5)));
    }

    #[test]
    fn a_new_task_stays_on_its_node_for_a_while() {
        let local =
            |idle, running| Standing { kind: Kind::HasSpare, average: 0.0, idle, running, util: 0.0, most: 1024 };
        let stays = |release, idle, running| stays_on_node(release, &local(idle, running), 16, (16, 32), 4);
        // 5.10.223: if (local_sgs.idle_cpus) return NULL.
        assert_eq!([1, 0].map(|idle| stays(v(5, 10), idle, 16 - idle)), [true, false]);
        // 5.15.100: allow_numa_imbalance(local_sgs.sum_nr_running + 1, local_sgs.group_weight), below 16 / 4.
        assert_eq!([2, 3].map(|running| stays(v(5, 15), 16 - running, running)), [true, false]);
        // 6.1: adjust_numa_imbalance(abs(local idle - idlest idle), local + 1, 4), up to 2.
        assert_eq!([2, 3].map(|running| stays(v(6, 1), 16 - running, running)), [true, false]);
    }
}
