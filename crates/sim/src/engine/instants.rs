//! Computes when something next happens on a CPU: a tick, rescheduling, the end of a burst, a reading of its clock.

use super::Engine;
use crate::queue::{Key, Phase};
use crate::scheduler::{Due, Scheduler};
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
        self.cx.cpus[cpu as usize].turn_ends = Nanos::MAX;
        let slot = &self.cx.cpus[cpu as usize];
        let (curr, burst_end, next_tick, ticks) = (slot.curr, slot.burst_end, slot.next_tick, slot.online);
        let mut key = Key::NEVER;
        let mut at = slot.resched_at;
        if at != Nanos::MAX {
            at = at.max(self.cx.taken(cpu).until);
            key = Key::new(at, Phase::Resched, cpu);
        }
        // At one instant a CPU reschedules first. The idle task has no burst.
        if burst_end < at {
            at = burst_end;
            key = Key::new(at, Phase::Run, cpu);
        }
        if at >= next_tick && ticks && (curr.is_some() || self.sched.ticks_when_idle()) {
            key = key.min(self.next_tick_to_take(cpu, next_tick));
        }
        if let Some(p) = curr.filter(|_| self.polls) {
            let every = self.processes[p as usize].rare().clock_poll;
            if every > 0 && key.time() > self.cx.now {
                key = key.min(self.next_poll(cpu, every));
            }
        }
        key
    }

    /// The next tick that does something, or if that is no more than to end a turn, the rescheduling that follows.
    #[inline]
    fn next_tick_to_take(&mut self, cpu: CpuId, next_tick: Nanos) -> Key {
        let lazy = self.cx.cpus[cpu as usize].lazy;
        if !self.options.skip_ticks || lazy || self.cx.taken(cpu).until > self.cx.now {
            return Key::new(next_tick, Phase::Tick, cpu);
        }
        let Due { at, turn_ends: (from, until) } = self.sched.due(&self.cx, cpu);
        let period = self.cx.tick_period;
        let tick = if at <= next_tick {
            next_tick
        } else if at == Nanos::MAX {
            return Key::NEVER;
        } else {
            next_tick.saturating_add((at - next_tick).div_ceil(period).saturating_mul(period))
        };
        if tick < from || tick >= until || !self.folds {
            return Key::new(tick, Phase::Tick, cpu);
        }
        self.cx.cpus[cpu as usize].turn_ends = tick;
        Key::new(tick + self.cx.machine.costs.tick_to_switch_ns.median(), Phase::Resched, cpu)
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
