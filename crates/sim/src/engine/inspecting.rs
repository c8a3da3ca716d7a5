//! Inspection of a run: views of the queues, and decisions with their reasons.

use super::Engine;
use crate::queue::Phase;
use crate::scheduler::Scheduler;
use schedlab_base::Nanos;

impl<S: Scheduler> Engine<'_, S> {
    /// Shows the views requested up to `until`, before anything happens at that time, and sets when to do so next.
    pub(super) fn inspect_until(&mut self, until: Nanos) {
        self.hand_over_decisions();
        let Some(mut inspect) = self.inspect.take() else { return };
        while let Some((at, rest)) = inspect.at.split_first()
            && *at <= until
        {
            // Ticks that are due at this time have not happened yet.
            (self.cx.now, self.cx.phase, self.cx.tick_cpu) = (self.cx.now.max(*at), Phase::Tick, 0);
            for cpu in 0..self.cx.nr_cpus() {
                self.catch_up(cpu);
                inspect.to.view(*at, cpu, self.sched.view(&self.cx, cpu));
            }
            inspect.at = rest;
        }
        self.cx.explaining = (inspect.explain.start..inspect.explain.end).contains(&until);
        let next = [inspect.explain.start, inspect.explain.end].into_iter().filter(|t| *t > until).min();
        let next = next.unwrap_or(Nanos::MAX).min(inspect.at.first().copied().unwrap_or(Nanos::MAX));
        self.next_inspection = next - 1;
        self.inspect = Some(inspect);
    }

    /// Passes on the decisions that were recorded.
    pub(super) fn hand_over_decisions(&mut self) {
        if let Some(inspect) = &mut self.inspect {
            for decision in self.cx.decisions.drain(..) {
                inspect.to.decision(&decision);
            }
        }
    }
}
