//! The idle load balancer (ILB): the idle CPU that balances for the others.

use crate::balance::fair::backports::STOPS_WITH_WORK;
use crate::balance::fair::load_balance::Work;
use crate::balance::fair::queues::Queues;
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, v};

/// How often the load of blocked tasks is updated, in ms (`LOAD_AVG_PERIOD`).
const BLOCKED_MS: u64 = 32;

impl<Q: Queues> Work<'_, Q> {
    /// Balances for all idle CPUs (`_nohz_idle_balance` from 4.17 on). It visits the idle CPUs in a circle, starting
    /// after `this` and ending with it. Until 5.12 it starts from the first CPU and handles `this` separately
    /// (7a82e5f52a35, "sched/fair: Merge for each idle cpu loop of ILB").
    pub(super) fn balance_idle(&mut self, this: CpuId, balances: bool, stats: bool) {
        let now = self.cx.jiffies();
        let never = now + 60 * self.b.hz();
        let mut next = never;
        let mut blocked = false;
        if stats {
            self.b.nohz.blocked = false;
        }
        let apart = self.b.rules.release() < v(5, 13);
        let (mut at, mut wrapped) = if apart { (0, true) } else { (this + 1, false) };
        loop {
            let Some(cpu) = self.b.nohz.next(at).filter(|cpu| !wrapped || apart || *cpu <= this) else {
                if std::mem::replace(&mut wrapped, true) {
                    break;
                }
                at = 0;
                continue;
            };
            at = cpu + 1;
            if !self.is_idle(cpu) || apart && cpu == this {
                continue;
            }
            if self.has_other_work(this) {
                self.b.nohz.blocked |= stats;
                return;
            }
            if stats {
                blocked |= self.q.decay_blocked(self.cx, cpu);
            }
            if balances && now >= self.b.of_cpu[cpu as usize].next_balance {
                self.rebalance(cpu, Idleness::Idle);
            }
            next = next.min(self.b.of_cpu[cpu as usize].next_balance);
        }
        // As long as `this` is apart and the only idle CPU, updating its load says nothing about the next balancing.
        if next < never {
            self.b.nohz.next_balance = next;
        }
        if apart {
            blocked |= stats && self.q.decay_blocked(self.cx, this);
            if balances {
                self.rebalance(this, Idleness::Idle);
                let own = self.b.of_cpu[this as usize].next_balance;
                self.b.nohz.next_balance = self.b.nohz.next_balance.min(own);
            }
        }
        if stats {
            self.b.nohz.next_blocked = now + self.b.ms_to_ticks(BLOCKED_MS);
        }
        self.b.nohz.blocked |= blocked;
    }

    /// Whether the idle load balancer has work of its own and must stop.
    fn has_other_work(&self, this: CpuId) -> bool {
        let works = !STOPS_WITH_WORK.is_in(self.b.rules.release()) || !self.is_idle(this);
        works && self.cx.need_resched(this)
    }

    /// Balances for all idle CPUs, as `run_rebalance_domains` of 2.6.37 to 4.16 does on the CPU that was kicked. It
    /// balances for itself first, and then for the others in order until it gets work. From 4.1 on it balances for
    /// itself last.
    pub(super) fn balance_idle_old(&mut self, this: CpuId) {
        let now = self.cx.jiffies();
        let last = self.b.rules.release() >= v(4, 1);
        // The kernel updates it when something runs there, and some thread always does.
        self.q.account_idle(self.cx, this);
        if !last {
            self.rebalance(this, Idleness::Idle);
        }
        let mut at = 0;
        while let Some(cpu) = self.b.nohz.next(at) {
            at = cpu + 1;
            if cpu == this || !self.is_idle(cpu) {
                continue;
            }
            if self.cx.need_resched(this) {
                break;
            }
            if self.b.rules.release() < v(3, 16) || now >= self.b.of_cpu[cpu as usize].next_balance {
                self.q.account_idle(self.cx, cpu);
                self.rebalance_idle(cpu, now);
            }
            self.earlier(this, cpu);
        }
        self.b.nohz.next_balance = self.b.of_cpu[this as usize].next_balance;
        if last {
            self.rebalance(this, Idleness::Idle);
        }
    }

    /// Brings the next balancing of `this` forward to that of `cpu`.
    fn earlier(&mut self, this: CpuId, cpu: CpuId) {
        let next = self.b.of_cpu[cpu as usize].next_balance;
        let own = &mut self.b.of_cpu[this as usize].next_balance;
        *own = next.min(*own);
    }

    /// The tick of the idle CPU that balances for all (until 2.6.35), or of a busy CPU that finds there is no such CPU.
    pub(super) fn owner_tick(&mut self) {
        let now = self.cx.jiffies();
        if self.b.nohz.count == self.b.domains.online().count() {
            self.b.nohz.owner = None;
            return;
        }
        let Some(owner) = self.b.nohz.owner else {
            // The CPU goes through schedule(), finds no work and becomes the owner.
            if let Some(cpu) = self.b.nohz.next(0) {
                self.cx.resched(cpu);
            }
            return;
        };
        if now >= self.b.of_cpu[owner as usize].next_balance {
            self.rebalance(owner, Idleness::Idle);
            let mut at = 0;
            while let Some(cpu) = self.b.nohz.next(at) {
                at = cpu + 1;
                if cpu == owner {
                    continue;
                }
                if self.cx.need_resched(owner) {
                    break;
                }
                self.rebalance_idle(cpu, now);
                self.earlier(owner, cpu);
            }
        }
        self.b.arm(self.cx, self.b.of_cpu[owner as usize].next_balance);
    }
}
