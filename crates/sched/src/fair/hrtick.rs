//! How the fair class uses the [high-resolution tick](crate::classes::hrtick) (`HRTICK`).
//!
//! # Rule
//! The timer starts when a task is picked and has others beside it, for what is left of its slice, and anew when a task
//! joins or leaves the CPU, which changes the slices. When it expires, the running task is charged and gives way,
//! whatever its slice is by then. While it runs, ticks leave the slice to it, unless `DOUBLE_TICK` is on. They go on
//! charging, which in EEVDF can end a turn too.
//!
//! # Differences from the kernel
//! A CPU starts the timer of another at once, without an interrupt there.
//!
//! # Reference
//! `hrtick_start_fair`, `hrtick_update` and `entity_tick` in kernel/sched_fair.c of 2.6.32 and kernel/sched/fair.c of
//! 3.10 to 6.18.

use super::entity::EntityId;
use super::{Discipline, Fair};
use crate::classes::hrtick;
use schedlab_base::{CpuId, v};
use schedlab_sim::Core;

impl<D: Discipline> Fair<D> {
    /// Whether ticks leave the running task's slice to the timer.
    #[inline]
    pub(super) fn hrtick_ends_slice(&self, cx: &Core, cpu: CpuId) -> bool {
        self.hrtick.fair && !self.hrtick.double && hrtick::is_running(cx, cpu)
    }

    /// Starts the timer for what is left of the slice of `e`, which runs on `cpu` or is about to, if it has others
    /// beside it (`hrtick_start_fair`).
    #[inline]
    pub(super) fn start_hrtick(&mut self, cx: &mut Core, cpu: CpuId, e: EntityId) {
        if self.hrtick.fair {
            self.set_hrtick(cx, cpu, e);
        }
    }

    /// Starts the timer anew after a task has joined or left `cpu` (`hrtick_update`).
    #[inline]
    pub(super) fn update_hrtick(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.hrtick.fair
            && let Some(e) = self.rqs.running[cpu as usize]
            && D::hrtick_follows(self, self.rqs.entities[e as usize].queue)
        {
            self.set_hrtick(cx, cpu, e);
        }
    }

    #[cold]
    fn set_hrtick(&mut self, cx: &mut Core, cpu: CpuId, e: EntityId) {
        let (release, p, q) = (self.places.release, e - self.rqs.first_task, self.rqs.entities[e as usize].queue);
        // "sched/fair: Fix SCHED_HRTICK bug leading to late preemption of tasks" (4.9). Before, only what is queued
        // beside it in its own group counted.
        let tasks =
            if release >= v(4, 9) { self.rqs.queues[cpu as usize].h_nr } else { self.rqs.queues[q as usize].nr_queued };
        if tasks < 2 || !cx.online(cpu) {
            return;
        }
        let slice = D::hrtick_slice(self, e);
        let entity = &self.rqs.entities[e as usize];
        let runs = cx.curr(cpu) == Some(p);
        if let Some(left) = slice.checked_sub(entity.sum_exec - entity.prev_sum_exec) {
            // "sched/deadline: Fix a precision problem in the microseconds range", between 3.10 and 3.18.
            let least = if runs && release < v(3, 18) { 0 } else { hrtick::SHORTEST };
            hrtick::start(cx, cpu, left.max(least));
        } else if runs && self.rqs.running[cpu as usize] == Some(e) && cx.task(p).on_rq {
            // What is about to leave its CPU, or is picked again, reschedules anyway.
            self.explain_turn(cx, q, e, "it has had its slice", Some(slice));
            cx.resched(cpu);
        }
    }

    /// The timer of `cpu` has expired (`task_tick_fair`): one more tick, which ends the running task's turn.
    pub(super) fn hrtick_expired(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(e) = self.rqs.running[cpu as usize] else { return };
        self.tick(cx, cpu, true);
        if !cx.need_resched(cpu) {
            let q = self.rqs.entities[e as usize].queue;
            self.explain_turn(cx, q, e, "it has had its slice, and a timer ends it", None);
            cx.resched_lazy(cpu, false);
        }
    }
}
