//! What was asked to be seen of the run: views of the queues and reasons of decisions.

use super::Engine;
use crate::queue::Phase;
use crate::scheduler::Scheduler;
use schedlab_base::Nanos;

impl<S: Scheduler> Engine<'_, S> {
    /// Shows what was asked for up to `until`, before anything happens then, and says when to come back.
    pub(super) fn inspect_until(&mut self, until: Nanos) {
        self.hand_over_decisions();
        let Some(mut inspect) = self.inspect.take() else { return };
        while let Some((at, rest)) = inspect.at.split_first()
            && *at <= until
        {
            // Ticks that are due just then have not been.
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

    /// Hands over the decisions that were noted.
    pub(super) fn hand_over_decisions(&mut self) {
        if let Some(inspect) = &mut self.inspect {
            for decision in self.cx.decisions.drain(..) {
                inspect.to.decision(&decision);
            }
        }
    }
}
