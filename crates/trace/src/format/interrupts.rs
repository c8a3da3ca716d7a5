//! From the tracepoints at the beginning and at the end of interrupts to how long each took.
//!
//! An interrupt handler is not interrupted by another one, and one vector of soft interrupts not by another vector on
//! the same CPU; a handler may interrupt a vector. So at most one of each is open on a CPU, and an end that was lost
//! shows when the next one begins.

use schedlab_base::{CpuId, Interrupt, Nanos, Payload};

/// One that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    what: (Interrupt, u16),
    since: Nanos,
    /// How much of the time since then others took.
    others: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    hard: Option<Open>,
    soft: Option<Open>,
}

/// The interrupts that are under way on each CPU.
#[derive(Debug, Default)]
pub(super) struct Interrupts(Vec<Cpu>);

impl Interrupts {
    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        let at = cpu as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, Cpu::default());
        }
        &mut self.0[at]
    }

    /// An interrupt begins.
    pub(super) fn begins(&mut self, cpu: CpuId, what: (Interrupt, u16), now: Nanos) {
        let open = Some(Open { what, since: now, others: 0 });
        let cpu = self.cpu(cpu);
        match what.0 {
            Interrupt::SoftIrq => *cpu = Cpu { hard: None, soft: open },
            _ => cpu.hard = open,
        }
    }

    /// An interrupt ends; `None` if its beginning was not seen.
    pub(super) fn ends(&mut self, cpu: CpuId, what: (Interrupt, u16), now: Nanos) -> Option<Payload> {
        let cpu = self.cpu(cpu);
        let slot = if what.0 == Interrupt::SoftIrq { &mut cpu.soft } else { &mut cpu.hard };
        let open = slot.take().filter(|open| open.what == what)?;
        let whole = now.saturating_sub(open.since);
        if what.0 != Interrupt::SoftIrq
            && let Some(soft) = &mut cpu.soft
        {
            soft.others += whole;
        }
        Some(Payload::Interrupt { kind: what.0, number: what.1, took: whole.saturating_sub(open.others) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(payload: Option<Payload>) -> Option<Nanos> {
        payload.map(|payload| match payload {
            Payload::Interrupt { took, .. } => took,
            other => panic!("{other:?} is no interrupt"),
        })
    }

    #[test]
    fn what_interrupts_a_soft_interrupt_is_not_its_time() {
        let mut all = Interrupts::default();
        let (net, timer) = ((Interrupt::SoftIrq, 3), (Interrupt::Timer, 0));
        all.begins(1, net, 1000);
        all.begins(1, timer, 1300);
        assert_eq!(took(all.ends(1, timer, 1500)), Some(200));
        assert_eq!(took(all.ends(0, net, 1600)), None);
        assert_eq!(took(all.ends(1, net, 2000)), Some(800));
        assert_eq!(took(all.ends(1, net, 2100)), None);
    }

    #[test]
    fn an_end_that_was_lost_ends_nothing_else() {
        let mut all = Interrupts::default();
        let (disk, timer, rcu) = ((Interrupt::Irq, 36), (Interrupt::Timer, 0), (Interrupt::SoftIrq, 9));
        all.begins(0, disk, 100);
        all.begins(0, timer, 5000);
        assert_eq!(took(all.ends(0, disk, 5100)), None);
        assert_eq!(took(all.ends(0, timer, 5200)), None);
        all.begins(0, timer, 9000);
        all.begins(0, rcu, 9500);
        assert_eq!(took(all.ends(0, rcu, 9600)), Some(100));
    }
}
