//! Changes of the running tasks' speed: a sibling becomes busy or idle, memory moves, a task's working set changes.

use super::Engine;
use crate::program::Setting;
use crate::scheduler::Scheduler;
use crate::task::TaskId;
use schedlab_base::{CpuId, Nanos};

impl<S: Scheduler> Engine<'_, S> {
    /// Handles a switch from `prev` to `next`; `left` is the rest of the time that `prev` had to wait for its data.
    #[cold]
    pub(super) fn effects_of_switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>, left: Nanos) {
        let cx = &mut self.cx;
        let Some(effects) = cx.effects.as_deref_mut() else { return };
        if let Some(p) = prev {
            effects.leave(&cx.machine, cpu, p, cx.now, left);
            effects.take_owed(cpu);
        }
        if let Some(p) = next {
            cx.cpus[cpu as usize].run_from += effects.arrive(&cx.machine, cpu, p, cx.now);
            cx.cpus[cpu as usize].speed = cx.speed(cpu, p);
            cx.trace_pages(cpu);
        }
        if prev.is_some() != next.is_some() {
            self.siblings_change(cpu);
        }
    }

    /// Adjusts the speed of the core's other running tasks after the CPU became busy or idle.
    fn siblings_change(&mut self, cpu: CpuId) {
        let of = |engine: &Self, n: usize| engine.cx.effects.as_deref()?.siblings(cpu).get(n).copied();
        let mut n = 0;
        while let Some(other) = of(self, n) {
            self.retime(other);
            n += 1;
        }
    }

    /// Adjusts speeds after memory has moved, and charges the CPU that moved it.
    #[cold]
    pub(super) fn memory_moved(&mut self) {
        if let Some(effects) = self.cx.effects.as_deref_mut() {
            effects.stale = false;
        }
        for cpu in 0..self.cx.nr_cpus() {
            self.retime(cpu);
        }
    }

    /// Applies a running task's setting that may change its speed.
    #[inline(never)]
    pub(super) fn set_effects(&mut self, cpu: CpuId, p: TaskId, setting: &Setting) {
        let cx = &mut self.cx;
        let Some(effects) = cx.effects.as_deref_mut() else { return };
        effects.memories.leave(p, cx.now);
        let changed = effects.set(&cx.machine, self.load, p, setting);
        let node = cx.machine.cpus[cpu as usize].place.node;
        effects.memories.arrive(&cx.machine, p, node, cx.now);
        cx.trace_pages(cpu);
        if changed {
            self.retime(cpu);
        }
        if let Some(effects) = self.cx.effects.as_deref_mut()
            && setting.working_set.is_some()
        {
            // Loading what the task has never touched is a part of its work.
            effects.touch(&self.cx.machine, cpu, p);
        }
    }

    /// Recomputes when the burst on a CPU ends.
    fn retime(&mut self, cpu: CpuId) {
        let Some(p) = self.cx.curr(cpu) else { return };
        let now = self.cx.now;
        let speed = self.cx.speed(cpu, p);
        let owed = self.cx.effects.as_deref_mut().map_or(0, |effects| effects.take_owed(cpu));
        let slot = &mut self.cx.cpus[cpu as usize];
        if slot.speed == speed && owed == 0 {
            return;
        }
        let process = &mut self.processes[p as usize];
        if now > slot.run_from {
            process.progress(now - slot.run_from, slot.speed);
            slot.run_from = now;
        }
        slot.run_from += owed;
        slot.speed = speed;
        slot.burst_end = slot.run_from.saturating_add(process.time_left(speed));
        self.cx.touch(cpu);
    }
}
