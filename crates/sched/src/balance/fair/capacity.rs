//! The capacities of CPUs and groups: at boot, and as balancing updates them.

use super::load_balance::{Env, Work};
use super::queues::Queues;
use super::state::Balancer;
use crate::balance::domains::{Domain, Domains, Flags};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, v2_6};

impl Balancer {
    /// Sets the groups' capacities for releases until 2.6.31, which computed them once when the domains were built.
    pub(super) fn take_boot_power(&mut self) {
        for cpu in 0..self.domains.cpus() {
            for domain in self.domains.of(cpu) {
                for group in self.domains.groups(domain) {
                    let group_capacity = u64::from(self.domains.group(group).capacity);
                    self.of_group[group.index()].capacity = group_capacity;
                    if self.domains.span(self.domains.group(group).span).weight() == 1 {
                        self.least_capacity = self.least_capacity.min(group_capacity);
                    }
                }
            }
        }
    }

    /// Updates the capacity of the CPU's own group in a domain (`update_group_capacity`). `own` is what the higher
    /// classes leave of the CPU's capacity.
    pub(super) fn update_group_capacity(&mut self, cpu: CpuId, level: usize, own: u64, jiffies: u64) {
        let Self { domains, of_group, of_cpu, .. } = self;
        let list = domains.of(cpu);
        let group = domains.local(&list[level]);
        let interval = u64::from(self.of_domain[domains.index(cpu, level)].round.interval_ms) * 1_000_000;
        of_group[group.index()].next_update = jiffies + interval.div_ceil(self.tick_period).clamp(1, self.max_interval);
        let Some(child) = level.checked_sub(1).map(|below| &list[below]) else {
            let smt = list.first().filter(|domain| domain.flags.has(Flags::SHARE_CPUCAPACITY));
            let capacity = (own * sharing(domains, smt) / 1024).max(1);
            of_cpu[cpu as usize].capacity = capacity;
            let state = &mut of_group[group.index()];
            (state.capacity, state.min_capacity, state.max_capacity) = (capacity, capacity, capacity);
            self.least_capacity = self.least_capacity.min(capacity);
            return;
        };
        let (mut sum, mut least, mut most) = (0, u64::MAX, 0);
        if child.flags.has(Flags::OVERLAP) {
            for cpu in &domains.span(domains.group(group).span).cpus {
                let capacity = of_cpu[*cpu as usize].capacity;
                (sum, least, most) = (sum + capacity, least.min(capacity), most.max(capacity));
            }
        } else {
            for below in domains.groups(child) {
                let state = &of_group[below.index()];
                sum += state.capacity;
                (least, most) = (least.min(state.min_capacity), most.max(state.max_capacity));
            }
        }
        let state = &mut of_group[group.index()];
        (state.capacity, state.min_capacity, state.max_capacity) = (sum, least, most);
    }
}

impl<Q: Queues> Work<'_, Q> {
    /// Updates the capacity of the local group if an update is due.
    pub(super) fn refresh_capacity(&mut self, env: &Env) {
        let release = self.b.rules.release();
        let jiffies = self.cx.jiffies();
        let group = self.b.domains.local(self.b.domain(env.cpu, env.level));
        let first = || self.b.domains.span(self.b.domains.group(group).span).cpus.first() == Some(&env.dst);
        let due = match release {
            // `update_group_power` is in 2.6.32 but not in 2.6.31.
            release if release < v2_6(32) => false,
            release if release < v2_6(34) => first(),
            _ => env.idle != Idleness::Newly || jiffies >= self.b.of_group[group.index()].next_update,
        };
        if due && env.dst == env.cpu {
            let own = self.q.capacity(self.cx, env.cpu);
            self.b.update_group_capacity(env.cpu, env.level, own, jiffies);
        }
    }
}

/// The capacity of a CPU that shares its core with siblings, out of 1024 (2.6.32 to 4.1).
pub(super) fn sharing(domains: &Domains, smt: Option<&Domain>) -> u64 {
    smt.map_or(1024, |domain| {
        let gain = u64::from(domains.params(domain).smt_gain);
        if gain == 0 { 1024 } else { gain / u64::from(domains.span(domain.span).weight()) }
    })
}
