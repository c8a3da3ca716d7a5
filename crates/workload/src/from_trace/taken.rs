//! The time that interrupts took from CPUs: it is taken out of the bursts that they interrupted and given to the CPU.
//!
//! A soft interrupt is not always one: `ksoftirqd` runs them as a task, and a task that sends a packet over the
//! loopback interface handles it there and then. So those of ksoftirqd, and those about packets and devices that do not
//! follow right after an interrupt, are left in the bursts.

use crate::{Amount, Interrupt, InterruptKind};
use schedlab_base::{CpuId, Interrupt as Kind, Nanos};
use schedlab_track::row;

/// A soft interrupt that begins this soon after an interrupt was left by it.
const AFTER: Nanos = 5_000;

/// The vectors that a task itself may have handled: HI, NET_TX, NET_RX, BLOCK, IRQ_POLL, TASKLET.
const OWN: [u16; 6] = [0, 2, 3, 4, 5, 6];

/// The interrupts of a kind on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    count: u64,
    sum: f64,
    squares: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    spent: [Spent; Kind::ALL.len()],
    /// When the last one ended that was no soft interrupt.
    hard_end: Option<Nanos>,
}

/// What was taken from each CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken(Vec<Cpu>);

impl Taken {
    /// Takes an interrupt that ended now. `false` if it is a part of what the task there did.
    pub(super) fn add(&mut self, cpu: CpuId, what: (Kind, u16), took: Nanos, now: Nanos, softirqd: bool) -> bool {
        let cpu = row(&mut self.0, cpu);
        let (kind, number) = what;
        if kind == Kind::SoftIrq {
            let began = now.saturating_sub(took);
            let follows = cpu.hard_end.is_some_and(|end| end.saturating_add(AFTER) >= began);
            if softirqd || (OWN.contains(&number) && !follows) {
                return false;
            }
        } else if kind != Kind::Steal {
            cpu.hard_end = Some(now);
        }
        let spent = &mut cpu.spent[kind as usize];
        spent.count += 1;
        spent.sum += took as f64;
        spent.squares += took as f64 * took as f64;
        true
    }

    /// The time that was taken in all.
    pub(super) fn sum(&self) -> Nanos {
        self.0.iter().flat_map(|cpu| &cpu.spent).map(|spent| spent.sum).sum::<f64>() as Nanos
    }

    /// Sources that take as much from each CPU, as often, at random times.
    pub(super) fn sources(&self, span: Nanos) -> Vec<Interrupt> {
        let of = |(cpu, taken): (u32, &Cpu)| {
            Kind::ALL.into_iter().zip(taken.spent).filter_map(move |((kind, _), spent)| source(cpu, kind, spent, span))
        };
        (0..).zip(&self.0).flat_map(of).collect()
    }
}

/// A source in nanoseconds; none if there was nothing to speak of, or if it left the CPU no time.
fn source(cpu: CpuId, kind: Kind, spent: Spent, span: Nanos) -> Option<Interrupt> {
    if spent.count == 0 {
        return None;
    }
    let n = spent.count as f64;
    let mean = spent.sum / n;
    let sd = (spent.squares / n - mean * mean).max(0.0).sqrt();
    let period = span / spent.count;
    let (mean, sd) = (mean as Nanos, sd as Nanos);
    let kind = match kind {
        Kind::Irq | Kind::Timer => InterruptKind::Irq,
        Kind::SoftIrq => InterruptKind::Softirq,
        Kind::Steal => InterruptKind::Steal,
    };
    let (cpus, duration) = (Some(vec![cpu]), Amount { mean, sd });
    let fits = mean > 0 && mean < period;
    fits.then_some(Interrupt { kind, cpus, at: 0, period, random: true, duration })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_did_itself_is_not_taken() {
        let mut taken = Taken::default();
        let net = (Kind::SoftIrq, 3);
        assert!(!taken.add(0, net, 4_000, 100_000, false));
        assert!(taken.add(0, (Kind::Irq, 41), 2_000, 200_000, false));
        assert!(taken.add(0, net, 3_000, 204_000, false));
        assert!(!taken.add(0, net, 3_000, 220_000, false));
        assert!(taken.add(0, (Kind::SoftIrq, 1), 3_000, 300_000, false));
        assert!(!taken.add(0, (Kind::SoftIrq, 1), 3_000, 400_000, true));
        assert_eq!(taken.sum(), 8_000);
    }

    #[test]
    fn sources_take_as_much_as_was_taken() {
        let mut taken = Taken::default();
        for at in 1..=100u64 {
            taken.add(1, (Kind::Timer, 0), 2_000 + at % 2 * 1_000, at * 1_000_000, false);
        }
        taken.add(2, (Kind::Steal, 0), 90_000_000, 95_000_000, false);
        let sources = taken.sources(100_000_000);
        assert_eq!(sources.len(), 2);
        let timer = &sources[0];
        assert_eq!((timer.cpus.as_deref(), timer.period, timer.random), (Some(&[1][..]), 1_000_000, true));
        assert_eq!((timer.duration.mean, timer.duration.sd, timer.kind), (2_500, 500, InterruptKind::Irq));
        assert_eq!((sources[1].kind, sources[1].period), (InterruptKind::Steal, 100_000_000));
        // More than there was.
        assert!(taken.sources(1_000).is_empty());
    }
}
