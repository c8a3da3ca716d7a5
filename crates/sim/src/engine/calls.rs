//! The time that system calls take from a task, beside its bursts.

use super::Engine;
use crate::process::{Burst, Mark};
use crate::program::Op;
use crate::scheduler::Scheduler;
use crate::task::TaskId;
use schedlab_base::{CpuId, Nanos, Result};

impl<S: Scheduler> Engine<'_, S> {
    /// Whether this operation must wait until the task returns to user mode, where it will be preempted.
    #[inline]
    fn is_in_kernel(&self, cpu: CpuId, op: Option<&Op>) -> bool {
        let computes = matches!(op, Some(Op::Run(_) | Op::Runtime(_) | Op::Mem { .. } | Op::Jobs(_)));
        self.cx.cpus[cpu as usize].kernel_until > self.cx.now && !computes
    }

    /// Whether something takes the task time in the kernel before this operation. It does that now. `leaves` says that
    /// it is not preempted any more.
    ///
    /// The CPU may have been asked to reschedule when the system call of its task ends, which has woken another one, or
    /// an interrupt there does. What the task computes next may begin meanwhile, as a recorded burst has that time in
    /// it; but it neither sleeps nor wakes others before.
    #[inline]
    pub(super) fn stays_in_kernel(&mut self, cpu: CpuId, p: TaskId, op: Option<&Op>, leaves: bool) -> bool {
        if !leaves && self.is_in_kernel(cpu, op) {
            let rest = self.cx.cpus[cpu as usize].kernel_until - self.cx.now;
            self.processes[p as usize].begin(Burst::Time, rest);
            return true;
        }
        self.pays && self.pays_first(cpu, p, op)
    }

    /// Whether the task has first to do what its next operation, or its exit if there is none, takes in the kernel
    /// before it has an effect. It does that now.
    fn pays_first(&mut self, cpu: CpuId, p: TaskId, op: Option<&Op>) -> bool {
        if self.processes[p as usize].mark(Mark::Paid, false) {
            return false;
        }
        let takes = match op {
            None => self.cx.machine().costs.exit_ns,
            Some(Op::Fork(_)) => self.cx.machine().costs.forking_call_ns,
            Some(op) => self.sends(cpu, p, op),
        };
        if takes > 0 {
            self.processes[p as usize].mark(Mark::Paid, true);
            self.processes[p as usize].begin(Burst::Time, takes);
        }
        takes > 0
    }

    /// How long the task takes to tell another CPU, which is idle, that it is about to wake somebody there.
    fn sends(&mut self, cpu: CpuId, p: TaskId, op: &Op) -> Nanos {
        if self.cx.machine().costs.idle_wakeup_ns.most() == 0 {
            return 0;
        }
        let there = self.wakes_first(p, op).map(|q| self.cx.task(q).cpu);
        let idle = |there: &CpuId| *there != cpu && self.cx.cpus[*there as usize].curr.is_none();
        there.filter(idle).map_or(0, |_| self.cx.idle_wakeup().max(1))
    }

    /// The task that an operation wakes first, of the operations that wake a waiter whenever there is one.
    fn wakes_first(&self, p: TaskId, op: &Op) -> Option<TaskId> {
        match *op {
            Op::Synced(ref op) => self.wakes_first(p, op),
            Op::SemPost(s) | Op::Ask(s) => self.resources.sems[s as usize].waiters.front().copied(),
            Op::Answer(s) => self.answered(p, s),
            Op::Signal(c) => self.resources.conds[c as usize].front().copied(),
            _ => None,
        }
    }

    /// The running task has woken others, which takes its CPU so long in addition to its bursts.
    #[cold]
    pub(super) fn finish_call(&mut self, cpu: CpuId, p: TaskId, call: Nanos) -> Result<()> {
        let until_preempted = self.cx.cpus[cpu as usize].kernel_until.saturating_sub(self.cx.now);
        self.processes[p as usize].begin(Burst::Time, call.max(until_preempted));
        self.go_on(cpu, p)
    }
}
