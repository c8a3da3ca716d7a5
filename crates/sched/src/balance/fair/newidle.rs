//! Newly idle balancing: `idle_balance`, later `newidle_balance`.

use super::backports::PROPORTIONAL_NEWIDLE;
use super::load_balance::{Moved, Work};
use super::queues::Queues;
use crate::balance::domains::Flags;
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Nanos, v, v2_6};
use schedlab_machine::Machine;

/// The assumed cost of balancing a domain of these CPUs, for a CPU of a node. The kernel measures this cost and stops
/// when it exceeds the CPU's expected idle time; it reads the averages of every CPU of the domain, and what is on
/// another node takes longer by its distance. The cost only feeds that rule: balancing takes no simulated time.
pub(super) fn assumed_cost(machine: &Machine, cpus: &[CpuId], node: u32) -> Nanos {
    let costs = &machine.costs;
    let beyond = |cpu: &CpuId| {
        let there = machine.cpus[*cpu as usize].place.node;
        Nanos::from(machine.distances[node as usize][there as usize].saturating_sub(10)) * costs.remote_percent
    };
    let of_cpus: Nanos = cpus.iter().map(|cpu| costs.newidle_cpu_ns * (1000 + beyond(cpu)) / 1000).sum();
    costs.newidle_domain_ns + of_cpus
}

impl<Q: Queues> Work<'_, Q> {
    /// Called when `cpu` has nothing to run. Pulls tasks.
    pub fn newly_idle(&mut self, cpu: CpuId) {
        let release = self.b.rules.release();
        let now = self.cx.jiffies();
        self.note_misfit(cpu, None);
        // "sched: Rate-limit newidle" is in mainline from 2.6.33, and the stable trees of 2.6.32 took it over.
        if release >= v2_6(32) {
            self.b.of_cpu[cpu as usize].idle_since = Some(self.cx.now());
        }
        if !self.cx.online(cpu) {
            return;
        }
        let mut next = now + self.b.hz();
        if self.has_no_time(cpu) {
            if release >= v(3, 16) && !self.b.domains.of(cpu).is_empty() {
                next = next.min(self.due(cpu, 0));
                self.bring_forward(cpu, next);
            }
            return;
        }
        // The change came somewhere between 3.6 and 3.9.
        if release >= v(3, 9) {
            self.q.decay_blocked(self.cx, cpu);
        }
        let (mut pulled, next) = self.pull(cpu, next);
        if release >= v(3, 15) && pulled == Moved::Nothing {
            pulled = Moved::of(self.q.nr_running(cpu));
        }
        if release >= v(3, 16) {
            self.bring_forward(cpu, next);
        } else if pulled != Moved::Nothing || now > self.b.of_cpu[cpu as usize].next_balance {
            self.b.of_cpu[cpu as usize].next_balance = next;
        }
        if pulled != Moved::Nothing {
            self.b.of_cpu[cpu as usize].idle_since = None;
        }
    }

    /// Balances one domain after another, until there is something to run or the expected idle time is used up. Returns
    /// what was pulled, and the tick at which the first of the visited domains is due, but at most `next`.
    fn pull(&mut self, cpu: CpuId, mut next: u64) -> (Moved, u64) {
        let release = self.b.rules.release();
        let now = self.cx.jiffies();
        // The change came somewhere between 2.6.24 and 2.6.29.
        let mut pulled = if release < v2_6(29) { Moved::NotNeeded } else { Moved::Nothing };
        let mut spent = 0;
        for level in 0..self.b.domains.of(cpu).len() {
            if release >= v(5, 16) {
                next = next.min(self.due(cpu, level));
            }
            let state = &self.b.of_cpu[cpu as usize];
            // From 3.13 on the cost of balancing is taken into account.
            if release >= v(3, 13)
                && state.avg_idle < spent + self.b.of_domain[self.b.domains.index(cpu, level)].max_cost
            {
                next = next.min(self.due(cpu, level));
                break;
            }
            if self.b.domain(cpu, level).flags.has(Flags::BALANCE_NEWIDLE) {
                let Some(weight) = self.throw_dice(cpu, level) else { continue };
                pulled = self.balance_domain(cpu, level, Idleness::Newly).moved;
                if release >= v(3, 13) {
                    spent += self.note_cost(cpu, level, if pulled == Moved::Nothing { 0 } else { weight }, now);
                }
            }
            if release < v(5, 16) {
                next = next.min(self.due(cpu, level));
            }
            if pulled != Moved::Nothing || release >= v(3, 16) && self.q.nr_running(cpu) > 0 {
                break;
            }
        }
        let state = &mut self.b.of_cpu[cpu as usize];
        state.max_idle_cost = state.max_idle_cost.max(spent);
        (pulled, next)
    }

    /// Whether the CPU will not be idle for long enough, or no CPU of the machine has a task to spare.
    fn has_no_time(&self, cpu: CpuId) -> bool {
        let release = self.b.rules.release();
        let idle = self.b.of_cpu[cpu as usize].avg_idle;
        // The kernel compares with an unsigned 32-bit value, so -1 is longer than any idle time.
        let short = idle < Nanos::from(self.b.rules.migration_cost as u32);
        if release >= v(5, 16) {
            // c5b0a7eefc70, "sched/fair: Remove sysctl_sched_migration_cost condition".
            let list = self.b.domains.of(cpu);
            return list.is_empty()
                || !self.b.is_overloaded()
                || idle < self.b.of_domain[self.b.domains.index(cpu, 0)].max_cost;
        }
        release >= v2_6(32) && short || release >= v(3, 17) && !self.b.is_overloaded()
    }

    /// The tick at which a domain of an idle CPU is due.
    pub fn due(&self, cpu: CpuId, level: usize) -> u64 {
        self.b.of_domain[self.b.domains.index(cpu, level)].round.due(self.b.interval(cpu, level, false))
    }

    fn bring_forward(&mut self, cpu: CpuId, next: u64) {
        let state = &mut self.b.of_cpu[cpu as usize];
        state.next_balance = state.next_balance.min(next);
    }

    /// Decides at random whether to balance a domain, with a probability of about its recent rate of success
    /// (`NI_RANDOM`). Returns how much a success then counts; `None` skips the domain.
    fn throw_dice(&mut self, cpu: CpuId, level: usize) -> Option<u32> {
        if !PROPORTIONAL_NEWIDLE.is_in(self.b.rules.release()) || !self.b.rules.features.ni_random {
            return Some(1);
        }
        let thrown = self.b.rng.below(1024) as u32;
        let sd = self.b.sd(cpu, level);
        let weight = 1 + sd.ratio;
        if thrown > weight {
            sd.count_newly(0);
            return None;
        }
        Some((1024 + weight / 2) / weight)
    }

    /// Records the cost of balancing a domain and whether it succeeded. Returns the cost in ns.
    fn note_cost(&mut self, cpu: CpuId, level: usize, success: u32, now: u64) -> Nanos {
        let (release, hz) = (self.b.rules.release(), self.b.hz());
        let sd = self.b.sd(cpu, level);
        if PROPORTIONAL_NEWIDLE.is_in(release) {
            sd.count_newly(success);
        }
        // e60b56e46b38, "sched/fair: Wait before decaying max_newidle_lb_cost".
        if release >= v(5, 16) {
            sd.update_cost(sd.newidle_ns, now, hz);
        } else {
            sd.max_cost = sd.max_cost.max(sd.newidle_ns);
        }
        sd.newidle_ns
    }
}
