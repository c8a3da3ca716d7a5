//! When each sched domain is due for balancing: the state that kernels from 2.6.11 on keep for each domain of each CPU.

use super::domains::{Domain, Domains, Flags, Params};
use schedlab_base::{CpuId, Nanos};
use std::rc::Rc;

/// How busy a CPU is when it balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idleness {
    /// It has a task to run (`NOT_IDLE`, `CPU_NOT_IDLE`).
    Busy,
    /// It is idle (`SCHED_IDLE`, `CPU_IDLE`).
    Idle,
    /// It is about to become idle (`NEWLY_IDLE`, `CPU_NEWLY_IDLE`).
    Newly,
}

/// The balancing state of one domain of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The tick of the last balancing (`last_balance`), counted like [`Core::jiffies`](schedlab_sim::Core::jiffies). It
    /// wraps around for a time before the first tick.
    pub last: u64,
    /// The balancing interval of an idle CPU, in ms (`balance_interval`).
    pub interval_ms: u32,
    /// How many times in a row balancing found an imbalance and moved nothing (`nr_balance_failed`).
    pub failed: u32,
}

impl Round {
    /// The tick at which the domain is due again, `interval` ticks after the last balancing.
    #[must_use]
    pub fn due(&self, interval: u64) -> u64 {
        self.last.wrapping_add(interval).cast_signed().max(0).cast_unsigned()
    }

    /// The balancing interval in ticks: `balance_interval`, multiplied by `busy_factor` if the CPU is busy.
    #[must_use]
    pub fn interval(&self, params: &Params, busy: bool, tick: Nanos) -> u64 {
        let ms = u64::from(self.interval_ms) * if busy { u64::from(params.busy_factor) } else { 1 };
        (ms * 1_000_000).div_ceil(tick).max(1)
    }
}

/// The current domains with a [`Round`] for each. A new `Rounds` is made when a CPU goes offline or comes online.
#[derive(Clone, Debug)]
pub struct Rounds {
    domains: Rc<Domains>,
    rounds: Vec<Round>,
    /// The length of a tick, in ns.
    tick: Nanos,
}

impl Rounds {
    /// Creates the state for domains attached at tick `now`, in a kernel whose tick length is `tick` ns.
    #[must_use]
    pub fn new(domains: Domains, now: u64, tick: Nanos) -> Self {
        let cpus = 0..domains.cpus();
        let all = cpus.flat_map(|cpu| domains.of(cpu));
        let begin = |domain| Round { last: now, interval_ms: domains.params(domain).first_interval_ms, failed: 0 };
        let rounds = all.map(begin).collect();
        Self { rounds, domains: Rc::new(domains), tick }
    }

    /// A shared handle to the domains, which the caller can keep while it changes the scheduler that owns them.
    #[must_use]
    pub fn domains(&self) -> Rc<Domains> {
        Rc::clone(&self.domains)
    }

    /// The state of the domain of `cpu` at `level`.
    #[must_use]
    pub fn of(&self, cpu: CpuId, level: usize) -> &Round {
        &self.rounds[self.domains.index(cpu, level)]
    }

    /// The state of the domain of `cpu` at `level`, for changing it.
    pub fn of_mut(&mut self, cpu: CpuId, level: usize) -> &mut Round {
        &mut self.rounds[self.domains.index(cpu, level)]
    }

    /// The balancing interval of the domain of `cpu` at `level`, in ticks.
    #[must_use]
    pub fn interval(&self, cpu: CpuId, level: usize, busy: bool) -> u64 {
        self.of(cpu, level).interval(self.domains.params(&self.domains.of(cpu)[level]), busy, self.tick)
    }

    /// The first tick at which a domain of `cpu` is due. `None` if no domain of `cpu` is balanced.
    #[must_use]
    pub fn next_due(&self, cpu: CpuId, busy: bool) -> Option<u64> {
        let balanced = |(_, domain): &(usize, &Domain)| domain.flags.has(Flags::LOAD_BALANCE);
        let levels = self.domains.of(cpu).iter().enumerate().filter(balanced);
        levels.map(|(level, _)| self.of(cpu, level).due(self.interval(cpu, level, busy))).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::domains::{Builder, Fixes};
    use schedlab_base::v2_6;

    #[test]
    fn a_busy_cpu_waits_longer_by_the_factor() {
        let machine = schedlab_machine::load("2x2x1").unwrap();
        let domains = Builder::new(v2_6(11), &machine, Fixes::default()).build();
        let mut rounds = Rounds::new(domains, 7, 4_000_000);
        // The first interval of 1 ms rounds up to one tick of 4 ms. For a busy CPU it is 64 ms, which is 16 ticks.
        assert_eq!([false, true].map(|busy| rounds.next_due(1, busy)), [Some(8), Some(23)]);
        rounds.of_mut(1, 0).last = 40;
        rounds.of_mut(1, 0).interval_ms = 3;
        assert_eq!([false, true].map(|busy| rounds.next_due(1, busy)), [Some(41), Some(88)]);
        assert_eq!(rounds.of(1, 0), &Round { last: 40, interval_ms: 3, failed: 0 });
        assert_eq!(rounds.of(0, 0), &Round { last: 7, interval_ms: 1, failed: 0 });
    }
}
