//! The bound on how many CPUs of a cache a search for an idle CPU looks at.
//!
//! From 6.0 on it depends on the utilisation of the cache's CPUs (`SIS_UTIL`). Before, and until 6.6 with `SIS_PROP`,
//! it depends on how long the waking CPU is idle on average and on the cost of its searches. The kernel measures that
//! cost; here it is an estimate.

use super::{Placing, cache};
use crate::balance::domains::Domains;
use crate::fair::place::Select;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::Core;

/// The estimated cost of looking at a CPU, in ns.
const COST_CPU: Nanos = 60;

/// One more than the number of CPUs that a search may look at, out of `weight`. `idle` is how long the search may take
/// for each and `cost` the average cost of its searches, in ns. The result is at least 4.
fn by_cost(weight: u64, idle: Nanos, cost: Nanos) -> u32 {
    let (span, cost) = (weight.saturating_mul(idle), cost + 1);
    if span > 4 * cost { (span / cost).min(u64::from(u32::MAX)) as u32 } else { 4 }
}

/// For how long the searches that a CPU asks for may take: half of how long it was idle on average when it last became
/// busy, less what they took since, and halved by each tick ("sched/fair: Age the average idle time", 5.14).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fair) struct TimeLeft {
    /// When the CPU last became busy.
    since: Nanos,
    ns: Nanos,
    /// The tick of which that is (`wake_stamp`).
    tick: u64,
}

impl Select<'_> {
    /// One more than the number of CPUs of a cache that a search by CPU `here` may look at.
    pub(super) fn scan_by_cost(&self, here: CpuId, weight: u64) -> u32 {
        let idle = self.balancer.as_ref().map_or(0, |balancer| balancer.avg_idle(here));
        by_cost(weight, idle / 512, self.places.scan_cost[here as usize])
    }

    /// The same from 5.14 on.
    pub(super) fn scan_by_time_left(&mut self, cx: &Core, here: CpuId, weight: u64) -> u32 {
        let Some(balancer) = self.balancer else { return 4 };
        let left = &mut self.places.time_left[here as usize];
        let since = balancer.busy_since(here);
        if left.since != since {
            *left = TimeLeft { since, ns: balancer.avg_idle(here) / 2, tick: cx.jiffies_at(since) };
        }
        left.ns = left.ns.checked_shr((cx.jiffies() - left.tick) as u32).unwrap_or(0);
        left.tick = cx.jiffies();
        by_cost(weight, left.ns, self.places.scan_cost[here as usize])
    }

    /// Whether a search by CPU `here` costs more than a part of the time for which it is idle on average
    /// (`SIS_AVG_CPU`).
    pub(super) fn is_search_too_dear(&self, here: CpuId) -> bool {
        let idle = self.balancer.as_ref().map_or(0, |balancer| balancer.avg_idle(here));
        idle / 512 < self.places.scan_cost[here as usize] + 1
    }

    /// Records that a search by CPU `here` looked at `seen` CPUs (`update_avg`).
    pub(super) fn note_scan(&mut self, here: CpuId, seen: u64) {
        let cost = &mut self.places.scan_cost[here as usize];
        *cost = cost.wrapping_add_signed(((seen * COST_CPU) as i64 - *cost as i64) / 8);
        let left = &mut self.places.time_left[here as usize].ns;
        *left = left.saturating_sub(seen * COST_CPU);
    }

    /// Updates the bound for a last-level cache from its CPUs' utilisation, after a CPU that is not newly idle has
    /// balanced it (`update_idle_cpu_scan`).
    pub(in crate::fair) fn bound_scan(&mut self, cx: &Core, domains: &Domains, cpu: CpuId) {
        if self.places.how == Placing::V6
            && let Some(domain) = cache(domains, cpu)
        {
            let span = domains.span(domain.span);
            let util: u64 =
                span.cpus.iter().map(|c| self.pelt.cpu_util_cfs(*c, self.pelt.capacity(*c), cx.now())).sum();
            let weight = u64::from(span.weight());
            let pct = u64::from(domains.params(domain).imbalance_pct);
            let x = util / weight.max(1);
            let used = (x * x * pct * pct / (10_000 * 1024)).min(1024);
            self.places.scan[span.cpus[0] as usize] = ((1024 - used) * weight / 1024) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_bounded_by_its_cost() {
        // 5.10.223, select_idle_cpu(): span_avg = 16 * (1,000,000 / 512) = 31248; avg_cost = 499 + 1.
        assert_eq!(by_cost(16, 1_000_000 / 512, 499), 62);
        assert_eq!(by_cost(16, 64_000 / 512, 499), 4, "2000 is no more than 4 * 500");
        assert_eq!(by_cost(16, 0, 0), 4);
    }
}
