//! Periodic balancing and when each domain is due: `trigger_load_balance` and `rebalance_domains`.

use super::load_balance::{Moved, Work};
use super::queues::Queues;
use super::state::Visits;
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, v};

impl<Q: Queues> Work<'_, Q> {
    /// The tick of a CPU that is not tickless. Balances if a domain may be due.
    pub fn tick(&mut self, cpu: CpuId) {
        if self.b.domains.of(cpu).is_empty() || self.cx.jiffies() < self.b.of_cpu[cpu as usize].next_balance {
            return;
        }
        let idle = if self.is_idle(cpu) { Idleness::Idle } else { Idleness::Busy };
        self.rebalance(cpu, idle);
    }

    /// Balances the due domains of an idle CPU, on its behalf.
    pub fn rebalance_idle(&mut self, cpu: CpuId, now: u64) {
        let due = self.b.of_cpu[cpu as usize].idle_due;
        if now < due && self.b.rules.release() < v(3, 16) {
            self.b.of_cpu[cpu as usize].next_balance = due;
        } else {
            self.rebalance(cpu, Idleness::Idle);
        }
    }

    /// Balances the due domains of a CPU and sets its next balancing (`rebalance_domains`).
    pub fn rebalance(&mut self, cpu: CpuId, mut idle: Idleness) {
        let now = self.cx.jiffies();
        let release = self.b.rules.release();
        // The change came somewhere between 3.6 and 3.9.
        if release >= v(3, 9) {
            self.q.decay_blocked(self.cx, cpu);
        }
        let mut next = now + 60 * self.b.hz();
        let (mut elsewhere, mut visits, mut any) = (false, Visits::default(), false);
        for level in 0..self.b.domains.of(cpu).len() {
            if release >= v(3, 13) {
                let hz = self.b.hz();
                visits.visit(self.b.sd(cpu, level), now, hz, release);
            }
            if elsewhere {
                if visits.decays {
                    continue;
                }
                break;
            }
            let mut interval = self.b.interval(cpu, level, self.counts_as_busy(cpu, idle));
            if now >= self.b.sd(cpu, level).round.due(interval) {
                let balanced = self.balance_domain(cpu, level, idle);
                elsewhere = balanced.elsewhere;
                if balanced.moved != Moved::Nothing {
                    // The tasks may have moved to another CPU of the group. The change came somewhere between 3.1 and
                    // 3.6.
                    let still = release >= v(3, 6) && self.is_idle(cpu);
                    idle = if still { Idleness::Idle } else { Idleness::Busy };
                }
                self.b.sd(cpu, level).round.last = now;
                if release >= v(3, 16) {
                    interval = self.b.interval(cpu, level, self.counts_as_busy(cpu, idle));
                }
            }
            next = next.min(self.b.sd(cpu, level).round.due(interval));
            any = true;
        }
        let idle_due = (0..self.b.domains.of(cpu).len()).map(|level| self.due(cpu, level)).min().unwrap_or(0);
        let state = &mut self.b.of_cpu[cpu as usize];
        state.idle_due = idle_due;
        if visits.decays {
            state.max_idle_cost = visits.cost.max(self.b.rules.migration_cost.max(0) as u64);
        }
        if any {
            state.next_balance = next;
        }
    }

    /// Whether a CPU uses the busy interval. From 5.6 on a CPU that only runs SCHED_IDLE tasks uses the idle one.
    fn counts_as_busy(&self, cpu: CpuId, idle: Idleness) -> bool {
        let lazy = self.b.rules.release() >= v(5, 6)
            && self.q.nr_running(cpu) > 0
            && self.q.nr_fair_idle(cpu) == self.q.nr_running(cpu);
        idle != Idleness::Idle && !lazy
    }
}
