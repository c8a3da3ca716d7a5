//! A running task changes its own attributes, its group, or the CPUs that it may use.

use super::Engine;
use super::birth::{apply, clamp};
use super::exec::Did;
use crate::core::Cause;
use crate::cpuset::CpuSet;
use crate::program::{ROOT_GROUP, Setting};
use crate::scheduler::{Placement, Scheduler};
use crate::task::TaskId;
use schedlab_base::{CpuId, Result};

impl<S: Scheduler> Engine<'_, S> {
    pub(super) fn set(&mut self, cpu: CpuId, p: TaskId, i: u32) -> Result<Did> {
        let setting: &Setting = &self.load.settings[i as usize];
        if let Some(every) = setting.clock_poll {
            self.processes[p as usize].clock_poll = every;
        }
        if let Some(group) = setting.group {
            self.set_group(cpu, p, (group != ROOT_GROUP).then_some(group));
        }
        let before = (self.cx.task(p).clamp, self.cx.task(p).attributes);
        self.cx.tasks[p as usize].clamp = clamp(self.cx.task(p).clamp, setting);
        self.set_effects(cpu, p, setting);
        self.set_attributes(cpu, p, setting)?;
        if before != (self.cx.task(p).clamp, self.cx.task(p).attributes) {
            self.trace_properties(p);
        }
        match &setting.cpus {
            Some(cpus) => Ok(self.set_affinity(cpu, p, CpuSet::of(cpus))),
            None => Ok(Did::Next),
        }
    }

    fn set_group(&mut self, cpu: CpuId, p: TaskId, group: Option<u32>) {
        if group != self.cx.task(p).group {
            self.catch_up(cpu);
            self.sched.leave_group(&mut self.cx, p);
            self.cx.tasks[p as usize].group = group;
            self.sched.join_group(&mut self.cx, p);
            self.cx.touch(cpu);
            self.trace_name(p, true);
        }
    }

    fn set_attributes(&mut self, cpu: CpuId, p: TaskId, setting: &Setting) -> Result<()> {
        let old = self.cx.task(p).attributes;
        let new = apply(old, setting);
        if new != old {
            self.admit(p, &new)?;
            self.cx.tasks[p as usize].attributes = new;
            self.catch_up(cpu);
            self.cx.cause = Cause::Change;
            self.sched.attributes_changed(&mut self.cx, p, &old);
            self.cx.cause = Cause::Task;
            self.cx.touch(cpu);
        }
        Ok(())
    }

    fn set_affinity(&mut self, cpu: CpuId, p: TaskId, requested: CpuSet) -> Did {
        let Some(allowed) = self.effective(&requested) else {
            self.note_refusal(p);
            return Did::Next;
        };
        let task = &mut self.cx.tasks[p as usize];
        (task.allowed, task.pinned) = (allowed, requested.is_single());
        self.processes[p as usize].affinity = requested;
        self.trace_affinity(p);
        if self.cx.task(p).allowed.contains(cpu) {
            return Did::Next;
        }
        self.processes[p as usize].pc += 1;
        self.push_away(p, Placement::Affinity { from: cpu });
        // The operation is done; the task continues on its new CPU.
        self.processes[p as usize].pc -= 1;
        Did::Moved
    }
}
