//! When a CPU that was asked to reschedule does so.

use super::{Cause, Core};
use schedlab_base::{CpuId, Nanos};

impl Core {
    /// A draw from times that are `delay` on average.
    #[cold]
    pub(super) fn varied(&mut self, delay: Nanos) -> Nanos {
        let sd = delay * self.machine.costs.jitter_percent / 100;
        self.jitter.as_mut().map_or(delay, |rng| rng.about(delay, sd))
    }

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
