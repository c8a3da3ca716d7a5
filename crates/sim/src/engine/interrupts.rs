//! Time that interrupts, softirqs and the hypervisor take from a CPU, without a task.

use super::Engine;
use crate::core::Cause;
use crate::program::{InterruptKind, InterruptSpec, Load};
use crate::queue::{Key, Phase};
use crate::scheduler::Scheduler;
use schedlab_base::{CpuId, Nanos, Rng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The sources of interrupts, by when each comes next.
#[derive(Debug)]
pub(super) struct Interrupts {
    next: BinaryHeap<Reverse<(Nanos, usize)>>,
    rng: Rng,
}

impl Interrupts {
    pub fn new(load: &Load, seed: u64) -> Self {
        let next = load.interrupts.iter().enumerate().map(|(i, spec)| Reverse((spec.first, i))).collect();
        Self { next, rng: Rng::new(seed ^ 0x1a7e_11a7) }
    }

    /// The instant of the next one.
    pub fn first(&self) -> Key {
        self.next.peek().map_or(Key::NEVER, |Reverse((at, _))| Key::new(*at, Phase::Timer, u32::MAX - 1))
    }

    /// Takes the next one, and sets when its source comes again. Returns its source and its length.
    fn take(&mut self, load: &Load) -> Option<(usize, Nanos)> {
        let Reverse((at, i)) = self.next.pop()?;
        let InterruptSpec { period, random, length, .. } = load.interrupts[i];
        // The gaps between random events are distributed exponentially.
        let gap = if random { (-(1.0 - self.rng.unit()).ln() * period as f64) as Nanos } else { period };
        self.next.push(Reverse((at.saturating_add(gap.max(1)), i)));
        Some((i, self.rng.about(length.mean, length.sd)))
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// The next interrupt takes its CPU. The running task makes no progress, and nothing else is scheduled there until
    /// its end. One that comes during another follows it.
    pub(super) fn interrupt(&mut self) {
        let taken = self.interrupts.take(self.load);
        self.next_outside = self.next_hotplug.min(self.interrupts.first());
        let Some((source, length)) = taken.filter(|(_, length)| *length > 0) else { return };
        let InterruptSpec { cpu, kind, .. } = self.load.interrupts[source];
        if !self.cx.online(cpu) {
            return;
        }
        self.catch_up(cpu);
        let now = self.cx.now;
        let taken = &mut self.cx.taken[cpu as usize];
        let from = taken.until.max(now);
        taken.until = from.saturating_add(length);
        if kind != InterruptKind::Softirq {
            taken.deaf_until = taken.until;
        }
        self.hold_up(cpu, length);
        (self.cx.cause, self.cx.interrupted) = (Cause::Wakeup, Some(cpu));
        self.sched.interrupted(&mut self.cx, cpu, kind, (from, from.saturating_add(length)));
        // The end of an interrupt is a return to user mode. The hypervisor does not return there.
        if kind != InterruptKind::Steal {
            self.cx.return_to_user(cpu);
        }
        self.cx.touch(cpu);
    }

    /// Lets the task that is running on a CPU wait.
    pub(super) fn hold_up(&mut self, cpu: CpuId, length: Nanos) {
        let Some(p) = self.cx.curr(cpu) else { return };
        let now = self.cx.now;
        let slot = &mut self.cx.cpus[cpu as usize];
        let process = &mut self.processes[p as usize];
        if now > slot.run_from {
            process.progress(now - slot.run_from, slot.speed);
            slot.run_from = now;
        }
        slot.run_from = slot.run_from.saturating_add(length);
        slot.burst_end = slot.run_from.saturating_add(process.time_left(slot.speed));
    }
}
