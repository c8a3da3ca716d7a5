//! Rebuilding the domains, at boot and when CPUs go offline or come online. All their state is reset.

use super::capacity::sharing;
use super::newidle::assumed_cost;
use super::state::{Balancer, OfDomain, OfGroup};
use crate::balance::domains::Flags;
use crate::balance::rounds::Round;
use schedlab_base::{CpuId, v2_6};
use schedlab_machine::Machine;
use schedlab_sim::Core;
use std::collections::BTreeMap;
use std::rc::Rc;

impl Balancer {
    /// Rebuilds the domains because a CPU goes offline or has come online.
    pub fn rebuild(&mut self, cx: &mut Core, cpu: CpuId, online: bool) {
        self.domains = Rc::new(if online { self.builder.online(cpu) } else { self.builder.offline(cpu) });
        self.start_anew(cx.machine(), cx.jiffies());
        self.nohz.leave(cpu);
        if online {
            // The CPU starts with its idle task, which looks for work.
            cx.resched(cpu);
        }
        // All domains are due at once.
        (0..cx.nr_cpus()).for_each(|cpu| cx.touch(cpu));
    }

    /// Resets the state of all domains, groups and CPUs for newly built domains.
    pub(super) fn start_anew(&mut self, machine: &Machine, jiffies: u64) {
        let Self { domains, of_domain, of_group, of_cpu, least_capacity, rules, .. } = self;
        *least_capacity = u64::MAX;
        of_domain.clear();
        let mut costs = BTreeMap::new();
        for cpu in 0..domains.cpus() {
            let node = machine.cpus[cpu as usize].place.node;
            let mut cost = |span| {
                *costs.entry((node, span)).or_insert_with(|| assumed_cost(machine, &domains.span(span).cpus, node))
            };
            of_domain.extend(domains.of(cpu).iter().map(|domain| OfDomain {
                newidle_ns: cost(domain.span),
                round: Round { last: jiffies, interval_ms: domains.params(domain).first_interval_ms, failed: 0 },
                ticks: [1; 2],
                max_cost: 0,
                cost_changed: jiffies,
                tried: 512,
                helped: rules.newidle_ratio / 2,
                ratio: rules.newidle_ratio,
            }));
        }
        of_group.clear();
        of_group.extend((0..domains.group_count()).map(|_| OfGroup {
            capacity: 1024,
            min_capacity: 1024,
            max_capacity: 1024,
            next_update: jiffies,
            imbalance: false,
            cores: 1,
        }));
        for cpu in 0..domains.cpus() {
            let own = u64::from(machine.cpus[cpu as usize].place.capacity);
            let smt = domains.of(cpu).first().filter(|domain| domain.flags.has(Flags::SHARE_CPUCAPACITY));
            let state = &mut of_cpu[cpu as usize];
            state.core = smt.map(|domain| domain.span);
            state.capacity_orig = own * sharing(domains, smt) / 1024;
            state.capacity = state.capacity_orig.max(1);
            (state.next_balance, state.push_to) = (jiffies, None);
            state.alone = domains.of(cpu).is_empty();
        }
        self.begin_groups(machine);
        let some_have = |flag| (0..self.domains.cpus()).any(|cpu| self.domains.lowest(cpu, flag).is_some());
        let differ = some_have(self.domains.all_capacities());
        self.asymmetric = some_have(Flags::ASYM_CPUCAPACITY);
        self.energy_aware = self.rules.energy_aware && differ && machine.threads() == 1 && !machine.energy.is_empty();
        self.overused = false;
        // `update_group_power` is in 2.6.32 but not in 2.6.31.
        if self.rules.release() < v2_6(32) {
            self.take_boot_power();
        }
        self.set_max_interval();
    }

    /// Computes the groups' initial capacities and counts their cores.
    fn begin_groups(&mut self, machine: &Machine) {
        let Self { domains, of_group, of_cpu, least_capacity, .. } = self;
        let mut seen = vec![false; domains.group_count()];
        for group in (0..domains.cpus()).flat_map(|cpu| domains.of(cpu)).flat_map(|domain| domains.groups(domain)) {
            if std::mem::replace(&mut seen[group.index()], true) {
                continue;
            }
            let span = &domains.span(domains.group(group).span).cpus;
            let capacity = |cpu: &CpuId| of_cpu[*cpu as usize].capacity;
            let mut cores: Vec<u32> = span.iter().map(|cpu| machine.cpus[*cpu as usize].place.core).collect();
            cores.sort_unstable();
            cores.dedup();
            let state = &mut of_group[group.index()];
            state.capacity = span.iter().map(capacity).sum();
            state.min_capacity = span.iter().map(capacity).min().unwrap_or(1);
            state.max_capacity = span.iter().map(capacity).max().unwrap_or(1);
            state.cores = cores.len() as u32;
            if span.len() == 1 {
                *least_capacity = state.capacity.min(*least_capacity);
            }
        }
    }
}
