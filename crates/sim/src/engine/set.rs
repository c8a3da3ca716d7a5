//! A running task changes its own attributes, its group, or the CPUs that it may use, or becomes another program.

use super::Engine;
use super::birth::{apply, clamp};
use super::exec::Did;
use crate::core::Cause;
use crate::cpuset::CpuSet;
use crate::process::Mark;
use crate::program::Setting;
use crate::scheduler::{Placement, Scheduler};
use crate::task::{TaskId, tid};
use schedlab_base::{CpuId, Payload, Result};

impl<S: Scheduler> Engine<'_, S> {
    pub(super) fn set(&mut self, cpu: CpuId, p: TaskId, i: u32) -> Result<Did> {
        let setting: &Setting = &self.load.settings[i as usize];
        if let Some(every) = setting.clock_poll {
            self.processes[p as usize].rare_mut().clock_poll = every;
        }
        if let Some(group) = setting.group {
            self.set_group(cpu, p, group);
        }
        let before = (self.cx.task(p).clamp, *self.cx.own(p));
        self.cx.tasks[p as usize].clamp = clamp(self.cx.task(p).clamp, setting);
        self.set_effects(cpu, p, setting);
        self.set_attributes(cpu, p, setting)?;
        if before != (self.cx.task(p).clamp, *self.cx.own(p)) {
            self.trace_properties(p);
        }
        match &setting.cpus {
            Some(cpus) => Ok(self.set_affinity(cpu, p, CpuSet::of(cpus))),
            None => Ok(Did::Next),
        }
    }

    /// A forked task, which was born with its parent's attributes, has its own from now on, and its program begins.
    pub(super) fn sets_itself_up(&mut self, cpu: CpuId, p: TaskId) -> Result<()> {
        self.catch_up(cpu);
        let born = *self.cx.own(p);
        let spec = self.processes[p as usize].spec;
        self.set_attributes(cpu, p, &spec.initial)?;
        if born != *self.cx.own(p) {
            self.trace_properties(p);
            self.cx.return_to_user(cpu);
        }
        // Preempted for it, it returns here.
        if self.cx.cpus[cpu as usize].resched_at <= self.cx.now { self.go_on(cpu, p) } else { self.proceed(cpu) }
    }

    fn set_group(&mut self, cpu: CpuId, p: TaskId, group: u32) {
        if group != self.cx.task(p).group {
            self.catch_up(cpu);
            self.sched.leave_group(&mut self.cx, p);
            self.cx.tasks[p as usize].group = group;
            self.sched.join_group(&mut self.cx, p);
            self.cx.touch(cpu);
            self.trace_name(p);
        }
    }

    fn set_attributes(&mut self, cpu: CpuId, p: TaskId, setting: &Setting) -> Result<()> {
        let old = *self.cx.own(p);
        let new = apply(old, setting);
        if new != old {
            self.admit(p, &new)?;
            if let Some(how) = self.inheritance.filter(|_| self.cx.is_lent(p)) {
                self.cx.own.insert(p, new);
                self.cx.cause = Cause::Change;
                self.lend(how, p);
                self.cx.cause = Cause::Task;
                return Ok(());
            }
            // The ticks up to now were those of a task with the old attributes.
            self.catch_up(cpu);
            self.cx.tasks[p as usize].attributes = new;
            self.cx.cause = Cause::Change;
            self.sched.attributes_changed(&mut self.cx, p, &old);
            self.cx.cause = Cause::Task;
            self.cx.touch(cpu);
        }
        Ok(())
    }

    /// The task calls `execve()`. As it has nothing in the caches then, it moves to an idler CPU first (`sched_exec`).
    pub(super) fn exec(&mut self, cpu: CpuId, p: TaskId) -> Did {
        if !self.processes[p as usize].mark(Mark::Execs, true) {
            self.catch_up(cpu);
            let to = self.sched.select_task_rq(&mut self.cx, p, cpu, Placement::Exec { from: cpu });
            assert!(self.cx.task(p).allowed.contains(to), "task {p} was put on CPU {to}");
            if to != cpu {
                self.stop(p);
                self.carry(p, to, true);
                self.put_on(p, to);
                return Did::MovedFirst;
            }
        }
        self.processes[p as usize].mark(Mark::Execs, false);
        self.cx.emit(cpu, Payload::Exec { tid: tid(p), old: tid(p) });
        Did::Next
    }

    fn set_affinity(&mut self, cpu: CpuId, p: TaskId, requested: CpuSet) -> Did {
        let Some(allowed) = self.effective(&requested) else {
            self.note_refusal(p);
            return Did::Next;
        };
        let task = &mut self.cx.tasks[p as usize];
        let changes = task.allowed != allowed;
        (task.allowed, task.pinned) = (allowed, requested.is_single());
        self.affinities.set(p, requested);
        self.trace_affinity(p);
        if self.cx.task(p).allowed.contains(cpu) {
            if changes {
                self.catch_up(cpu);
                self.sched.affinity_changed(&mut self.cx, p);
                self.cx.touch(cpu);
            }
            return Did::Next;
        }
        self.processes[p as usize].pc += 1;
        self.stop(p);
        self.requeue(p, Placement::Affinity { from: cpu });
        // The operation is done; the task continues on its new CPU.
        self.processes[p as usize].pc -= 1;
        Did::Moved
    }
}
