//! Picking the next task of a CPU, and changing a task while it is dequeued.

use super::entity::{EntityId, Leave};
use super::walk::Picked;
use super::{Discipline, Fair};
use crate::balance::fair;
use schedlab_base::CpuId;
use schedlab_sim::{Core, Enqueue};

impl<D: Discipline> Fair<D> {
    /// Picks the next task. `prev` is the task that is still running, if any.
    #[inline]
    pub(super) fn pick_next(&mut self, cx: &mut Core, cpu: CpuId, mut prev: Option<EntityId>) -> Option<EntityId> {
        let mut pulled = false;
        loop {
            if self.rqs.queues[cpu as usize].nr_queued == 0 {
                if std::mem::replace(&mut pulled, true) || self.balancer.is_none() || self.numa_expects(cpu) {
                    break;
                }
                fair::newly_idle(self, cx, cpu);
                continue;
            }
            if self.d.picks_with_current() && (prev.is_some() || self.d.picks_again()) {
                match self.pick_down(cx, cpu) {
                    Picked::Again => {
                        self.forget_reasons();
                        continue;
                    }
                    Picked::Anew => {
                        self.forget_reasons();
                        if self.rqs.queues[cpu as usize].nr_queued == 0 {
                            continue;
                        }
                    }
                    Picked::Task(next) => {
                        match prev {
                            Some(prev) if prev != next => self.switch(cx, cpu, prev, next),
                            Some(_) => {}
                            None => self.set_next(cx, cpu, next, true),
                        }
                        return Some(next);
                    }
                }
            }
            if let Some(prev) = prev.take() {
                self.put_prev(cx, cpu, prev);
                // Putting it back can throttle its group.
                if self.rqs.queues[cpu as usize].nr_queued == 0 {
                    break;
                }
            }
            return Some(self.pick_anew(cx, cpu));
        }
        if let Some(prev) = prev {
            self.put_prev(cx, cpu, prev);
        }
        None
    }

    /// Whether each tick and pick notes if the CPU is too small for its task.
    #[inline]
    pub(super) fn notes_misfits(&self) -> bool {
        self.balancer.as_ref().is_some_and(|balancer| balancer.notes_misfits())
    }

    /// Called when a CPU has picked a task, and at its ticks (`update_misfit_status`).
    #[inline]
    pub(super) fn note_misfit(&mut self, cx: &mut Core, cpu: CpuId, e: EntityId) {
        if self.notes_misfits() {
            fair::note_misfit(self, cx, cpu, e - self.rqs.first_task);
        }
    }

    /// Called when nothing was picked for a CPU.
    #[inline(never)]
    pub(super) fn enter_idle(&mut self, cx: &mut Core, cpu: CpuId) {
        if let (mut select, Some(domains)) = self.select_within() {
            select.went_idle(cx, domains, cpu);
        }
        let Some(balancer) = &mut self.balancer else { return };
        // Another CPU that kept its tick may stop it now.
        let kept = balancer.keeps_tick();
        balancer.enter_idle(cx, cpu);
        for cpu in kept.into_iter().chain([cpu]) {
            self.pelt.set_asleep(cpu, balancer.sleeps(cpu), cx.now());
        }
    }

    /// Dequeues a task, and if `puts` is set also puts it back if it is running. Changes it, and then restores both.
    pub(super) fn while_off(
        &mut self,
        cx: &mut Core,
        e: EntityId,
        how: Leave,
        puts: bool,
        change: impl FnOnce(&mut Self, &mut Core),
    ) {
        let cpu = self.rqs.cpu_of(self.rqs.entities[e as usize].queue);
        let queued = self.rqs.entities[e as usize].on_rq;
        let running = puts && self.rqs.running[cpu as usize] == Some(e);
        if queued {
            self.dequeue(cx, e, how);
        }
        if running {
            self.put_prev(cx, cpu, e);
        }
        change(self, cx);
        if queued {
            self.enqueue(cx, e, Enqueue::Migrated);
        }
        if running {
            self.set_next(cx, cpu, e, false);
        }
    }
}
