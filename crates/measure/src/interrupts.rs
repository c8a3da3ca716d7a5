//! Interrupts: how much of each CPU's time they took, by kind and number.

use crate::measure::us;
use schedlab_base::{CpuId, Interrupt, Nanos};
use schedlab_track::Observer;
use serde::Serialize;
use std::collections::BTreeMap;

/// The interrupts of one kind and number on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InterruptStats {
    /// The CPU.
    pub cpu: CpuId,
    /// What they are: `irq`, `softirq`, `timer` or `steal`.
    pub kind: &'static str,
    /// The number: the line of an `irq`, the vector of a `softirq`.
    pub number: u16,
    /// The name of a soft interrupt's vector.
    pub name: Option<&'static str>,
    /// How many there were; of `steal`, how often some was seen.
    pub count: u64,
    /// The time that they took.
    pub took_us: f64,
    /// The longest.
    pub longest_us: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    count: u64,
    took: Nanos,
    longest: Nanos,
}

/// The observer.
#[derive(Debug, Default)]
pub(crate) struct Interrupts(BTreeMap<(CpuId, Interrupt, u16), Spent>);

impl Interrupts {
    /// By CPU, kind and number.
    pub(crate) fn stats(&self) -> Vec<InterruptStats> {
        let stats = |(&(cpu, kind, number), spent): (&(CpuId, Interrupt, u16), &Spent)| InterruptStats {
            cpu,
            kind: kind.name(),
            number,
            name: Interrupt::SOFTIRQS.get(usize::from(number)).copied().filter(|_| kind == Interrupt::SoftIrq),
            count: spent.count,
            took_us: us(spent.took),
            longest_us: us(spent.longest),
        };
        self.0.iter().map(stats).collect()
    }
}

impl Observer for Interrupts {
    fn interrupted(&mut self, cpu: CpuId, (kind, number): (Interrupt, u16), took: Nanos, _: Nanos) {
        let spent = self.0.entry((cpu, kind, number)).or_default();
        spent.count += 1;
        spent.took = spent.took.saturating_add(took);
        spent.longest = spent.longest.max(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_add_up_by_cpu_kind_and_number() {
        let mut all = Interrupts::default();
        for (cpu, what, took) in [
            (1, (Interrupt::SoftIrq, 9), 2_000),
            (0, (Interrupt::Irq, 36), 1_500),
            (1, (Interrupt::SoftIrq, 9), 5_500),
            (1, (Interrupt::SoftIrq, 1), 1_000),
        ] {
            all.interrupted(cpu, what, took, 10_000);
        }
        let found: Vec<_> = all.stats().into_iter().map(|s| (s.cpu, s.kind, s.name, s.count, s.took_us)).collect();
        let (timer, rcu) = (Some("TIMER"), Some("RCU"));
        assert_eq!(found, [(0, "irq", None, 1, 1.5), (1, "softirq", timer, 1, 1.0), (1, "softirq", rcu, 2, 7.5)]);
        assert_eq!(all.stats()[2].longest_us, 5.5);
    }
}
