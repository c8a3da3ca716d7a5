//! Tasks that start or wake: a CPU is chosen, the task is queued there, and may preempt.

use super::Engine;
use crate::process::{Burst, Wait};
use crate::scheduler::{Enqueue, Placement, Scheduler};
use crate::task::{State, Task, TaskId, tid};
use schedlab_base::{Context, CpuId, Payload};

impl<S: Scheduler> Engine<'_, S> {
    pub(super) fn wake_up_new(&mut self, p: TaskId, parent: Option<TaskId>) {
        self.find_cpus(p);
        let from = parent.map_or(self.cx.task(p).cpu, |q| self.cx.task(q).cpu);
        self.cx.emit(from, Payload::Fork { parent: parent.map_or(0, tid), child: tid(p) });
        let cpu = self.place(p, Placement::Fork { from });
        self.begins(p);
        self.cx.tasks[p as usize].state = State::Runnable;
        self.active += 1;
        self.catch_up(cpu);
        self.cx.set_on_rq(p, true);
        self.sched.enqueue_task(&mut self.cx, cpu, p, Enqueue::New);
        let prio = self.cx.task(p).attributes.prio();
        self.cx.emit(cpu, Payload::WakeupNew { tid: tid(p), prio, target: cpu });
        self.sched.wakeup_preempt(&mut self.cx, cpu, p, Enqueue::New);
        self.cx.touch(cpu);
    }

    /// Wakes a sleeping task (`try_to_wake_up`), from the CPU of `waker` or by an interrupt on its last CPU.
    pub(super) fn wake(&mut self, p: TaskId, waker: Option<TaskId>) {
        self.find_cpus(p);
        let Task { attributes, cpu: prev, .. } = *self.cx.task(p);
        let prio = attributes.prio();
        let from = waker.map_or(prev, |w| self.cx.task(w).cpu);
        self.woken += u32::from(waker.is_some());
        if self.processes[p as usize].wait == Wait::Nothing {
            self.begins(p);
        } else {
            // The rest of the system call in which it was blocked.
            self.processes[p as usize].begin(Burst::Time, self.cx.machine.costs.blocking_call_ns);
        }
        self.processes[p as usize].wait = Wait::Nothing;
        self.cx.tasks[p as usize].state = State::Runnable;
        self.active += 1;
        // A simulation needs no context: without a waker, a timer or an interrupt wakes the task.
        let (waker, context) = (waker.map_or(0, tid), Context::Unknown);
        self.cx.emit(from, Payload::Waking { tid: tid(p), prio, target: prev, waker, context });
        self.catch_up(prev);
        let cpu = if self.sched.wake_delayed(&mut self.cx, p) {
            self.cx.set_on_rq(p, true);
            prev
        } else {
            let cpu = if self.is_there(p) { prev } else { self.place(p, Placement::Wake { from }) };
            self.catch_up(cpu);
            self.cx.set_on_rq(p, true);
            self.sched.enqueue_task(&mut self.cx, cpu, p, Enqueue::Wakeup);
            cpu
        };
        self.cx.emit(from, Payload::Wakeup { tid: tid(p), prio, target: cpu });
        self.sched.wakeup_preempt(&mut self.cx, cpu, p, Enqueue::Wakeup);
        self.cx.touch(cpu);
    }

    /// Whether the task is where it was when the load begins: runnable on that CPU, with nothing to choose.
    fn is_there(&self, p: TaskId) -> bool {
        self.cx.now == 0 && self.processes[p as usize].spec.cpu == Some(self.cx.task(p).cpu)
    }

    pub(super) fn place(&mut self, p: TaskId, why: Placement) -> CpuId {
        let prev = self.cx.task(p).cpu;
        let cpu = self.sched.select_task_rq(&mut self.cx, p, prev, why);
        assert!(cpu < self.cx.nr_cpus() && self.cx.task(p).allowed.contains(cpu), "task {p} was put on CPU {cpu}");
        if cpu != prev {
            self.carry(p, cpu, self.options.new_migrate || !matches!(why, Placement::Fork { .. }));
        }
        cpu
    }

    /// Moves a task that is on no queue to another CPU; the trace has it if it is `seen`.
    #[inline]
    pub(super) fn carry(&mut self, p: TaskId, to: CpuId, seen: bool) {
        let from = self.cx.task(p).cpu;
        self.catch_up(from);
        self.catch_up(to);
        self.sched.migrate_task_rq(&mut self.cx, p, from, to);
        if seen {
            self.cx.set_task_cpu(p, to);
        } else {
            self.cx.tasks[p as usize].cpu = to;
        }
    }
}
