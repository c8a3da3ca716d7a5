//! Energy-aware wake-ups until 5.19: a CPU other than the previous one must save more than a sixteenth of the energy.

use super::{Ask, Perf};
use crate::balance::domains::Span;
use crate::fair::place::Select;
use schedlab_base::{CpuId, v};
use schedlab_sim::Core;

/// The additional energy of the candidates compared with no task.
#[derive(Clone, Copy, Debug)]
struct Deltas {
    /// For the previous CPU; `None` if the task does not fit there.
    prev: Option<u64>,
    /// The smallest of all candidates.
    best: u64,
    /// The energy of the domains that were looked at, without the task.
    base: u64,
}

impl Deltas {
    /// Whether the best CPU saves enough: 6% of the total energy with the task on its previous CPU.
    fn saves_enough(&self) -> bool {
        self.prev.is_none_or(|prev| prev.wrapping_sub(self.best) > prev.wrapping_add(self.base) >> 4)
    }
}

impl Select<'_> {
    /// The CPU with the least energy, if it saves enough; otherwise the previous CPU.
    pub(super) fn weigh_with_margin(
        &mut self,
        cx: &mut Core,
        within: &Span,
        ask: Ask,
        perfs: &[Perf],
        need: u64,
    ) -> CpuId {
        // 5.14 excludes the previous CPU from the search for the most spare capacity, omits domains without a candidate
        // from the sum, and keeps the previous CPU if the task would cost less than nothing.
        let apart = self.places.release >= v(5, 14);
        let mut deltas = Deltas { prev: None, best: u64::MAX, base: 0 };
        let (mut chosen, mut other_best) = (ask.prev, None);
        for perf in perfs {
            let found = self.fitting(cx, perf, |cpu| within.contains(*cpu), ask);
            if found.is_none() && apart {
                continue;
            }
            let (own, other) = found.unwrap_or_default();
            let (own, other) = (own.filter(|(fits, _)| *fits > 0), other.filter(|(fits, ..)| *fits > 0));
            let base = self.energy(cx, perf, ask, None, need);
            deltas.base += base;
            if own.is_some() {
                let energy = self.energy(cx, perf, ask, Some(ask.prev), need);
                if apart && energy < base {
                    return ask.prev;
                }
                deltas.prev = Some(energy.wrapping_sub(base));
                deltas.best = deltas.best.min(energy.wrapping_sub(base));
            }
            let roomier = |(_, spare, cpu): &(i32, u64, CpuId)| {
                apart || own.is_none_or(|(_, own)| *spare > own || *spare == own && *cpu < ask.prev)
            };
            let Some((.., cpu)) = other.filter(roomier) else { continue };
            let energy = self.energy(cx, perf, ask, Some(cpu), need);
            if apart && energy < base {
                return ask.prev;
            }
            let delta = energy.wrapping_sub(base);
            if delta < deltas.best {
                (deltas.best, chosen) = (delta, cpu);
                other_best = Some((cpu, delta));
            }
        }
        if cx.explaining() {
            self.places.remember(need, deltas.prev, other_best);
        }
        if deltas.saves_enough() { chosen } else { ask.prev }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The total is 160 with the task on its previous CPU, of which the task costs 60. A saving of 11 is more than 160
    /// / 16, and one of 10 is not.
    #[test]
    fn a_sixteenth_must_be_saved() {
        let deltas = |best| Deltas { prev: Some(60), best, base: 100 };
        assert!(deltas(49).saves_enough() && !deltas(50).saves_enough() && !deltas(60).saves_enough());
        assert!(Deltas { prev: None, ..deltas(60) }.saves_enough(), "it does not fit where it was");
    }
}
