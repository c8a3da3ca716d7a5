//! How many CPUs of a cache a search for an idle one may look at.
//!
//! From 6.0 on it depends on how much the cache's CPUs are used (`SIS_UTIL`); before, on how long the waking CPU is
//! idle on average and what its searches have cost (`SIS_PROP`). The kernel measures that; here it is an estimate.

use super::{Placing, cache};
use crate::balance::domains::Domains;
use crate::fair::place::Select;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::Core;

/// What looking at a CPU costs, in ns: an estimate.
const COST_CPU: Nanos = 60;

/// How many CPUs of `weight`, and one more, a CPU may look at that is idle for `idle` ns on average and whose searches
/// cost `cost`: at least four.
fn by_cost(weight: u64, idle: Nanos, cost: Nanos) -> u32 {
    let (span, cost) = (weight * (idle / 512), cost + 1);
    if span > 4 * cost { (span / cost).min(u64::from(u32::MAX)) as u32 } else { 4 }
}

impl Select<'_> {
    /// How many CPUs of a cache a search of the CPU `here` may look at, and one more.
    pub(super) fn scan_by_cost(&self, here: CpuId, weight: u64) -> u32 {
        let idle = self.balancer.as_ref().map_or(0, |balancer| balancer.avg_idle(here));
        by_cost(weight, idle, self.places.scan_cost[here as usize])
    }

    /// A search of the CPU `here` has looked at `seen` CPUs (`update_avg`).
    pub(super) fn note_scan(&mut self, here: CpuId, seen: u64) {
        let cost = &mut self.places.scan_cost[here as usize];
        *cost = cost.wrapping_add_signed(((seen * COST_CPU) as i64 - *cost as i64) / 8);
    }

    /// A CPU that is not going idle balances its last-level cache: how far searches in it may go from what it uses of
    /// late (`update_idle_cpu_scan`).
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
        assert_eq!(by_cost(16, 1_000_000, 499), 62);
        assert_eq!(by_cost(16, 64_000, 499), 4, "2000 is no more than 4 * 500");
        assert_eq!(by_cost(16, 0, 0), 4);
    }
}
