//! CPUs that go offline and come back online.

use super::Engine;
use crate::core::Cause;
use crate::cpuset::CpuSet;
use crate::program::Load;
use crate::queue::{Key, Phase};
use crate::scheduler::{Dequeue, Enqueue, Placement, Scheduler};
use crate::task::{State, TaskId};
use schedlab_base::CpuId;

/// Returns the first instant at which a CPU goes offline or comes online.
pub(super) fn first(load: &Load) -> Key {
    instant(load, 0)
}

fn instant(load: &Load, n: usize) -> Key {
    load.hotplug.get(n).map_or(Key::NEVER, |h| Key::new(h.at, Phase::Timer, u32::MAX))
}

impl<S: Scheduler> Engine<'_, S> {
    /// Returns the CPUs where a task that asked for `requested` may run. If none of them is online, this is any online
    /// CPU (`select_fallback_rq`).
    pub(super) fn effective(&self, requested: &CpuSet) -> CpuSet {
        let online = &self.cx.online;
        let some = requested.and(online);
        if some.is_empty() { online.clone() } else { some }
    }

    /// Takes the next CPU offline, or brings it online.
    pub(super) fn hotplug(&mut self) {
        let change = self.load.hotplug[self.hotplugged];
        self.hotplugged += 1;
        self.next_hotplug = instant(self.load, self.hotplugged);
        let cpu = change.cpu;
        if self.cx.online(cpu) == change.online || (!change.online && self.cx.nr_online() == 1) {
            return;
        }
        self.cx.cause = Cause::Wakeup;
        self.catch_up(cpu);
        self.cx.set_online(cpu, change.online);
        for p in 0..self.cx.nr_tasks() {
            let allowed = self.effective(&self.processes[p as usize].requested);
            if self.cx.task(p).allowed != allowed {
                self.cx.tasks[p as usize].allowed = allowed;
                self.trace_affinity(p);
            }
        }
        if change.online {
            self.skip_ticks_that_were_not(cpu);
            self.sched.rq_online(&mut self.cx, cpu);
        } else {
            self.sched.rq_offline(&mut self.cx, cpu);
            self.empty(cpu);
        }
        self.cx.touch(cpu);
    }

    /// Skips the ticks that did not happen while the CPU was offline.
    fn skip_ticks_that_were_not(&mut self, cpu: CpuId) {
        let (now, period) = (self.cx.now, self.cx.tick_period);
        let next = &mut self.cx.cpus[cpu as usize].next_tick;
        if *next <= now {
            *next += ((now - *next) / period + 1) * period;
        }
    }

    /// Moves every task off a CPU: first the waiting tasks, then the running one.
    fn empty(&mut self, cpu: CpuId) {
        let curr = self.cx.curr(cpu);
        for p in 0..self.cx.nr_tasks() {
            let task = self.cx.task(p);
            if task.cpu == cpu && task.state == State::Runnable && curr != Some(p) {
                self.cx.set_on_rq(p, false);
                self.sched.dequeue_task(&mut self.cx, cpu, p, Dequeue::Migrated);
                self.requeue(cpu, p);
            }
        }
        if let Some(p) = curr {
            self.push_away(cpu, p);
        }
    }

    /// Queues a runnable task that is on no queue, on a CPU where it may run.
    pub(super) fn requeue(&mut self, from: CpuId, p: TaskId) {
        let to = self.place(p, Placement::Wake { from });
        self.catch_up(to);
        self.cx.cause = Cause::Wakeup;
        self.cx.set_on_rq(p, true);
        self.sched.enqueue_task(&mut self.cx, to, p, Enqueue::Migrated);
        self.sched.wakeup_preempt(&mut self.cx, to, p, Enqueue::Migrated);
        self.cx.touch(to);
    }
}
