//! Sets of CPUs that have a task, or more than one. Balancing skips domains where these sets are empty.

use super::load_balance::{Env, Work};
use super::queues::Queues;
use crate::balance::domains::{Flags, SpanId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, v2_6};

/// The CPUs in word number `at` of a set, lowest first.
#[inline]
pub fn cpus_of(at: usize, word: u64) -> impl Iterator<Item = CpuId> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let bit = (rest != 0).then(|| rest.trailing_zeros())?;
        rest &= rest - 1;
        Some(at as CpuId * 64 + bit)
    })
}

/// Sets of CPUs by their number of runnable tasks of all classes (`rq->nr_running`), with 64 CPUs per word.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    /// The CPUs with at least one task.
    pub busy: Vec<u64>,
    /// The CPUs with more than one task.
    pub crowded: Vec<u64>,
}

impl Occupancy {
    /// Creates the sets for a number of CPUs, none of which has a task.
    #[must_use]
    pub fn new(cpus: u32) -> Self {
        let none = vec![0; cpus.div_ceil(64) as usize];
        Self { busy: none.clone(), crowded: none }
    }

    /// Updates the sets after the number of runnable tasks of `cpu` changed.
    #[inline]
    pub fn set(&mut self, cpu: CpuId, nr_running: u32) {
        let (word, bit) = (cpu as usize / 64, cpu % 64);
        for (set, holds) in [(&mut self.busy, nr_running > 0), (&mut self.crowded, nr_running > 1)] {
            set[word] = set[word] & !(1 << bit) | u64::from(holds) << bit;
        }
    }
}

impl<Q: Queues> Work<'_, Q> {
    /// Whether `set` has a CPU of this domain that this balancing pass considers. The local group only counts if `own`
    /// is set.
    pub fn any_of(&self, env: &Env, set: &[u64], own: bool) -> bool {
        let domains = &self.b.domains;
        let domain = domains.of(env.cpu)[env.level];
        let some = |within: SpanId, without: &[u64]| {
            let words = domains.span(within).set.words().iter().zip(set).enumerate();
            words.into_iter().any(|(at, (word, set))| {
                let found = word & set & !without.get(at).copied().unwrap_or(0);
                cpus_of(at, found).any(|cpu| self.counts(cpu))
            })
        };
        if domain.flags.has(Flags::OVERLAP) {
            // Overlapping groups may reach beyond the domain, and a CPU may be in several of them.
            return domains
                .groups(&domain)
                .any(|group| (own || !domains.has(group, env.dst)) && some(domains.group(group).span, &[]));
        }
        let local = &domains.span(domains.group(domains.local(&domain)).span).set;
        some(domain.span, if own { &[] } else { local.words() })
    }

    /// Whether looking for the busiest CPU would change nothing. In 2.6.24, but no longer in 2.6.29, a newly idle CPU
    /// only looks for waiting tasks, so without any there is nothing to do.
    pub fn is_vain(&self, env: &Env) -> bool {
        self.b.rules.release() < v2_6(29)
            && env.idle == Idleness::Newly
            && self.b.of_domain[self.b.domains.index(env.cpu, env.level)].round.failed == 0
            && !self.any_of(env, &self.q.occupancy().crowded, true)
    }

    /// The idle CPUs of a span that this balancing pass considers, lowest first.
    pub fn idle_of(&self, span: SpanId) -> impl Iterator<Item = CpuId> + '_ {
        let words = self.b.domains.span(span).set.words().iter().zip(&self.q.occupancy().busy).enumerate();
        let waits = if self.b.rules.idle_with_waiting() { 0 } else { u64::MAX };
        let empty = words.flat_map(move |(at, (word, busy))| cpus_of(at, word & !(busy & waits)));
        empty.filter(|cpu| self.counts(*cpu) && self.is_idle(*cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_follow_the_numbers_of_tasks() {
        let mut all = Occupancy::new(70);
        for (cpu, nr_running) in [(3, 1), (69, 2), (5, 7), (5, 1), (4, 1), (4, 0)] {
            all.set(cpu, nr_running);
        }
        let cpus = |set: &[u64]| set.iter().enumerate().flat_map(|(at, word)| cpus_of(at, *word)).collect::<Vec<_>>();
        assert_eq!((cpus(&all.busy), cpus(&all.crowded)), (vec![3, 5, 69], vec![69]));
    }
}
