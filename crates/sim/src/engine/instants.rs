//! Computes when something next happens on a CPU: a tick, rescheduling, the end of a burst, a reading of its clock.

use super::Engine;
use crate::queue::{Key, Phase};
use crate::scheduler::Scheduler;
use schedlab_base::{CpuId, Nanos};

impl<S: Scheduler> Engine<'_, S> {
    #[inline]
    pub(super) fn refresh_touched(&mut self) {
        if self.cx.effects.as_ref().is_some_and(|effects| effects.stale) {
            self.memory_moved();
        }
        while let Some(cpu) = self.cx.touched.pop() {
            self.cx.cpus[cpu as usize].touched = false;
            // An idle CPU may have skipped ticks since it was last looked at.
            self.catch_up(cpu);
            if self.cx.traces_queues()
                && let Some((nr_running, load)) = self.sched.queue_load(cpu)
            {
                self.cx.trace_load(cpu, nr_running, load);
            }
            let key = self.next_instant(cpu);
            self.queue.set(cpu as usize, key);
        }
    }

    #[inline]
    pub(super) fn next_instant(&mut self, cpu: CpuId) -> Key {
        let slot = &self.cx.cpus[cpu as usize];
        let (curr, resched_at, next_tick) = (slot.curr, slot.resched_at, slot.next_tick);
        let mut key = Key::NEVER;
        if resched_at != Nanos::MAX {
            key = Key::new(resched_at.max(self.cx.taken(cpu).until), Phase::Resched, cpu);
        }
        if curr.is_some() && slot.burst_end != Nanos::MAX {
            key = key.min(Key::new(slot.burst_end, Phase::Run, cpu));
        }
        if key.time() >= next_tick && slot.online && (curr.is_some() || self.sched.ticks_when_idle()) {
            let tick = self.next_tick_to_take(cpu, next_tick);
            key = key.min(Key::new(tick, Phase::Tick, cpu));
        }
        if let Some(p) = curr {
            let every = self.processes[p as usize].rare().clock_poll;
            if every > 0 && key.time() > self.cx.now {
                key = key.min(self.next_poll(cpu, every));
            }
        }
        key
    }

    #[inline]
    pub(super) fn next_tick_to_take(&mut self, cpu: CpuId, next_tick: Nanos) -> Nanos {
        let lazy = self.cx.cpus[cpu as usize].lazy;
        if !self.options.skip_ticks || lazy || self.cx.taken(cpu).until > self.cx.now {
            return next_tick;
        }
        let decision = self.sched.next_decision(&self.cx, cpu);
        if decision <= next_tick {
            next_tick
        } else if decision == Nanos::MAX {
            Nanos::MAX
        } else {
            let period = self.cx.tick_period;
            next_tick.saturating_add((decision - next_tick).div_ceil(period).saturating_mul(period))
        }
    }

    /// Returns the first reading of the clock by the task on `cpu` at which the scheduler could act.
    pub(super) fn next_poll(&mut self, cpu: CpuId, every: Nanos) -> Key {
        let at = self.sched.clock_decision(&self.cx, cpu);
        if at == Nanos::MAX {
            return Key::NEVER;
        }
        let from = self.cx.cpus[cpu as usize].run_from;
        let at = at.max(self.cx.now + 1);
        Key::new(from + at.saturating_sub(from).div_ceil(every).saturating_mul(every), Phase::Poll, cpu)
    }
}
