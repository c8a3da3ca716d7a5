//! Rescheduling a CPU: the scheduler picks a task, and the CPU switches to it.

use super::Engine;
use crate::process::Burst;
use crate::scheduler::{Dequeue, Placement, Scheduler};
use crate::task::{State, TaskId, tid};
use schedlab_base::{CpuId, Event, Nanos, Payload};

impl<S: Scheduler> Engine<'_, S> {
    /// Runs `schedule()` on a CPU: dequeues `prev` if it sleeps, picks the next task and switches to it.
    pub(super) fn schedule(&mut self, cpu: CpuId) {
        self.catch_up(cpu);
        if self.cx.cpus[cpu as usize].stopper {
            return self.schedule_after_stopper(cpu);
        }
        let prev = self.cx.curr(cpu);
        let next = self.pick(cpu, prev);
        if prev != next {
            self.switch(cpu, prev, next);
        }
        self.scheduled(cpu);
    }

    /// Lets the scheduler pick. This clears every request to reschedule, including those made in the meantime.
    #[inline]
    fn pick(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let next = self.sched.pick_next_task(&mut self.cx, cpu, prev);
        let slot = &mut self.cx.cpus[cpu as usize];
        (slot.resched_at, slot.kernel_until, slot.lazy) = (Nanos::MAX, 0, false);
        next
    }

    #[inline]
    fn scheduled(&mut self, cpu: CpuId) {
        let slot = &mut self.cx.cpus[cpu as usize];
        if slot.again {
            (slot.again, slot.resched_at) = (false, slot.run_from.max(self.cx.now));
        }
        self.cx.touch(cpu);
    }

    /// As [`Self::schedule`], when the stopper runs before a task is picked.
    #[cold]
    fn schedule_after_stopper(&mut self, cpu: CpuId) {
        let prev = self.cx.curr(cpu);
        let before = self.cx.events.len();
        self.cx.cpus[cpu as usize].stopper = false;
        self.sched.run_stopper(&mut self.cx, cpu, prev);
        let by_stopper = self.cx.events.len() - before;
        let next = self.pick(cpu, None);
        if by_stopper > 0 && prev == next {
            self.come_back(cpu, prev, before, by_stopper);
        } else if prev != next {
            self.switch(cpu, prev, next);
            // Tasks moved by the stopper left the CPU before the switch.
            if by_stopper > 0 {
                self.cx.events[before..].rotate_left(by_stopper);
            }
        } else {
            // The trace has no switch to the stopper and back.
            self.stopper_ran(cpu);
        }
        self.stopper_ran(cpu);
        self.scheduled(cpu);
    }

    /// A CPU has switched to its stopper. This takes as long as any switch, and the task that follows waits for it.
    #[cold]
    fn stopper_ran(&mut self, cpu: CpuId) {
        self.hold_up(cpu, self.cx.machine.costs.context_switch_ns);
    }

    /// The stopper moved the running task away, and the CPU, idle then, pulled it back at once. In the kernel the
    /// CPU switches to the stopper (`migration/N`) and back. The trace has no stopper, so it shows the idle task.
    #[cold]
    fn come_back(&mut self, cpu: CpuId, prev: Option<TaskId>, before: usize, by_stopper: usize) {
        let Some(p) = prev else { return };
        let moves_it = |e: &Event| matches!(e.what, Payload::Migrate { tid: moved, .. } if moved == tid(p));
        if self.cx.events[before..before + by_stopper].iter().any(moves_it) {
            self.switch(cpu, prev, None);
            self.cx.events[before..].rotate_right(1);
            self.switch(cpu, None, prev);
        }
    }

    #[inline]
    pub(super) fn switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        let now = self.cx.now;
        let slot = &mut self.cx.cpus[cpu as usize];
        let ran_from = slot.run_from;
        let (mut prev_tid, mut prev_prio, mut prev_state) = (0, 120, State::Runnable);
        if let Some(p) = prev {
            if now > ran_from {
                self.processes[p as usize].progress(now - ran_from, slot.speed);
            }
            let task = &self.cx.tasks[p as usize];
            (prev_tid, prev_prio, prev_state) = (tid(p), task.attributes.prio(), task.state);
        }
        slot.curr = next;
        let (mut next_tid, mut next_prio) = (0, 120);
        slot.run_from = now + self.cx.machine.costs.context_switch_ns;
        slot.burst_end = Nanos::MAX;
        if self.cx.effects.is_some() {
            self.effects_of_switch(cpu, prev, next, ran_from.saturating_sub(now));
        }
        if let Some(p) = next {
            let task = &self.cx.tasks[p as usize];
            debug_assert!(task.state == State::Runnable && task.cpu == cpu, "task {p} cannot run on CPU {cpu}");
            (next_tid, next_prio) = (tid(p), task.attributes.prio());
            self.start_burst(cpu, p);
        }
        let what =
            Payload::Switch { prev: prev_tid, prev_prio, prev_state: prev_state.traced(), next: next_tid, next_prio };
        self.cx.emit(cpu, what);
    }

    /// Sets when the burst of the task on `cpu` ends. The CPU must be touched then.
    #[inline(always)]
    pub(super) fn start_burst(&mut self, cpu: CpuId, p: TaskId) {
        if self.processes[p as usize].burst == Burst::Spin {
            self.try_lock_again(p);
        }
        let process = &self.processes[p as usize];
        let slot = &mut self.cx.cpus[cpu as usize];
        slot.burst_end = slot.run_from.saturating_add(process.time_left(slot.speed));
    }

    /// Moves the running task off `cpu`, which it may no longer use, to a CPU that it may use.
    pub(super) fn push_away(&mut self, p: TaskId, why: Placement) {
        self.take_off(p);
        self.requeue(p, why);
    }

    /// Lets the stopper take the running task off its CPU, or the task itself where there is none. The CPU goes on to
    /// another task.
    pub(super) fn stop(&mut self, p: TaskId) {
        let cpu = self.cx.task(p).cpu;
        self.take_off(p);
        if self.options.stopper {
            self.stopper_ran(cpu);
        }
    }

    /// Takes the running task off its CPU, which goes on to another task.
    pub(super) fn take_off(&mut self, p: TaskId) {
        let cpu = self.cx.task(p).cpu;
        self.catch_up(cpu);
        self.cx.set_on_rq(p, false);
        self.sched.dequeue_task(&mut self.cx, cpu, p, Dequeue::Migrated);
        self.schedule(cpu);
    }
}
