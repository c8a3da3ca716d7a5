//! The clock of a CPU's runqueue stands from a wake-up that preempts until the switch.
//!
//! The wake-up has just updated it, so that `schedule` does not (`rq_clock_skip_update`, `skip_clock_update` before
//! 3.19). The time that passes until the switch is therefore charged to the task that was woken, not to the one that is
//! preempted. That is far more than it seems if that one has the weight of `SCHED_IDLE`: each us then counts as 341.

use super::{Class, ClassId, Stack};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

/// Which clocks stand.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// Whether this kernel lets them stand.
    pub(super) stand: bool,
    /// How many do.
    standing: u32,
    /// For each CPU, whether its own does.
    of: Vec<bool>,
}

impl Clocks {
    /// The clock of this CPU goes on. Returns whether it stood.
    #[inline]
    pub(super) fn go_on(&mut self, cpu: CpuId) -> bool {
        self.standing > 0 && self.start(cpu)
    }

    #[cold]
    fn start(&mut self, cpu: CpuId) -> bool {
        let stood = self.of.get_mut(cpu as usize).is_some_and(std::mem::take);
        self.standing -= u32::from(stood);
        stood
    }

    fn stop(&mut self, cpu: CpuId) {
        let at = cpu as usize;
        if self.of.len() <= at {
            self.of.resize(at + 1, false);
        }
        self.standing += u32::from(!std::mem::replace(&mut self.of[at], true));
    }
}

impl<F: Class> Stack<F> {
    /// After a wake-up on a CPU: its clock stands if the task that is running there will be preempted, but not at once.
    /// A tick still moves it.
    #[inline]
    pub(super) fn clock_stands(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.clocks.stand && cx.resched_is_due_later(cpu) {
            self.sync(cx, cpu);
            self.charge(cx, cpu);
            self.clocks.stop(cpu);
        }
    }

    /// Before a pick: what has passed since the clock stood is not charged to the task that was running. Returns where
    /// it stood: that task has been charged up to there.
    #[cold]
    pub(super) fn charge_no_more(&mut self, cx: &Core, cpu: CpuId, prev: Option<TaskId>) -> Option<Nanos> {
        let class = self.class_of(prev?);
        let stood = class!(self, class, charged_until(cpu)).min(cx.now());
        class!(self, class, charge_from(cpu, cx.now()));
        Some(stood)
    }

    /// After the pick: it is charged to the one that was picked.
    #[cold]
    pub(super) fn charge_since(&mut self, cpu: CpuId, next: Option<TaskId>, stood: Nanos) {
        if let Some(class) = next.map(|p| self.class_of(p)) {
            class!(self, class, charge_from(cpu, stood));
        }
    }
}
