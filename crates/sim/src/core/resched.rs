//! When a CPU that was asked to reschedule does so.

use super::{Cause, Core};
use schedlab_base::{Cost, CpuId, Nanos, Rng};

/// How long an operation takes this time.
#[inline]
pub(super) fn drawn(cost: &Cost, jitter_percent: u64, rng: &mut Option<Rng>) -> Nanos {
    match rng {
        Some(rng) => varied(cost, jitter_percent, rng),
        None => cost.median(),
    }
}

/// A draw from the times that an operation takes.
#[cold]
fn varied(cost: &Cost, jitter_percent: u64, rng: &mut Rng) -> Nanos {
    match cost {
        Cost::Fixed(time) if jitter_percent > 0 => rng.about(*time, time * jitter_percent / 100),
        _ => cost.draw(rng),
    }
}

impl Core {
    /// Whether `cpu` runs a task, and what happens now is done by another CPU, as far as is known.
    #[cold]
    pub(super) fn may_wait(&self, cpu: CpuId, queued: bool) -> bool {
        let here = match self.cause {
            Cause::Tick => Some(self.tick_cpu),
            Cause::Task | Cause::Change => Some(self.acting),
            Cause::Wakeup => self.interrupted,
        };
        let llc = |cpu: CpuId| self.machine.cpus[cpu as usize].place.llc;
        let other = here.is_some_and(|here| here != cpu && (!queued || llc(here) == llc(cpu)));
        other && self.cpus[cpu as usize].curr.is_some()
    }
}
