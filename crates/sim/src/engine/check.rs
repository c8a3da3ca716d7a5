//! Checks of the scheduler's rules after each event, in debug builds.

use super::Engine;
use crate::scheduler::Scheduler;
use crate::task::tid;
use schedlab_base::CpuId;

impl<S: Scheduler> Engine<'_, S> {
    /// Panics if the scheduler has broken a rule on a CPU where something changed.
    pub(super) fn check_invariants(&mut self) {
        for i in 0..self.cx.touched.len() {
            self.check_cpu(self.cx.touched[i]);
        }
    }

    fn check_cpu(&mut self, cpu: CpuId) {
        if self.checks.can_wait(cpu) {
            return;
        }
        self.checks.clear();
        self.sched.queued(&self.cx, cpu, &mut self.checks.list);
        if let Some(broken) = self.checks.violation(&self.cx, cpu) {
            let (name, tid) = (self.processes[broken.task as usize].name(), tid(broken.task));
            let now = self.cx.now as f64 / 1e9;
            panic!("the scheduler broke a rule at {now:.9} s on CPU {cpu}: task {name} (tid {tid}) {}", broken.what);
        }
    }
}
