//! Misfit tasks, CPUs whose capacity is reduced by higher classes, and pushing the running task for either reason.

use super::load_balance::{Env, Unit, Work};
use super::queues::Queues;
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, v};
use schedlab_sim::TaskId;

impl<Q: Queues> Work<'_, Q> {
    /// Whether the higher classes take a marked part of a CPU's capacity (`check_cpu_capacity`).
    pub fn is_reduced(&self, env: &Env, cpu: CpuId) -> bool {
        let state = &self.b.of_cpu[cpu as usize];
        state.capacity < state.capacity_orig && state.capacity * self.pct(env) < state.capacity_orig * 100
    }

    /// Notes the load of the fair task that a CPU runs if the CPU is too small for it, and otherwise 0
    /// (`update_misfit_status`).
    pub fn note_misfit(&mut self, cpu: CpuId, p: Option<TaskId>) {
        if self.b.asymmetric {
            self.b.of_cpu[cpu as usize].misfit = p.map_or(0, |p| self.misfit(p, cpu));
        }
    }

    fn misfit(&self, p: TaskId, cpu: CpuId) -> u64 {
        let allowed = &self.cx.task(p).allowed;
        let pinned = !allowed.is_all() && allowed.count() == 1;
        if pinned || self.is_on_biggest(p, cpu) || self.fits(p, cpu) {
            0
        } else {
            self.q.task_load(p, self.cx.now()).max(1)
        }
    }

    /// Whether no CPU that a task may run on is bigger than `cpu` (`max_allowed_capacity`, from 6.10 on).
    fn is_on_biggest(&self, p: TaskId, cpu: CpuId) -> bool {
        let whole = |cpu: CpuId| self.b.of_cpu[cpu as usize].capacity_orig;
        let allowed = &self.cx.task(p).allowed;
        self.b.rules.release() >= v(6, 10)
            && (0..self.b.domains.cpus()).all(|other| !allowed.contains(other) || whole(other) <= whole(cpu))
    }

    /// Whether a task fits on a CPU with a fifth to spare (`task_fits_cpu`).
    pub fn fits(&self, p: TaskId, cpu: CpuId) -> bool {
        let (least, most) = self.cx.task(p).clamp;
        let state = &self.b.of_cpu[cpu as usize];
        super::fits(
            self.q.task_util(p, self.cx.now()),
            (least.into(), most.into()),
            state.capacity,
            state.capacity_orig,
        ) > 0
    }

    /// Whether a CPU has a misfit task and a bigger CPU exists, or the higher classes reduce this CPU's capacity
    /// (`check_misfit_status`).
    pub fn misfit_wants_help(&self, cpu: CpuId, pct: u64) -> bool {
        let state = &self.b.of_cpu[cpu as usize];
        let most = self.b.of_cpu.iter().map(|of| of.capacity_orig).max().unwrap_or(0);
        state.misfit > 0 && (state.capacity_orig < most || state.capacity * pct < state.capacity_orig * 100)
    }

    /// Whether the running task must be pushed (`need_active_balance`).
    pub fn needs_push(&self, env: &Env) -> bool {
        let params = self.b.domains.params(self.b.domain(env.cpu, env.level));
        let stubborn = self.failed(env) > params.cache_nice_tries + 2;
        // e9b9734b7465, "sched/fair: Reduce cases for active balance".
        let any_unit = self.b.rules.release() < v(5, 12);
        stubborn && (any_unit || env.unit == Unit::Tasks) || self.pushes_by_capacity(env)
    }

    /// Whether the running task must be pushed because of capacity: it is a misfit, or the higher classes reduce its
    /// CPU's capacity (`voluntary_active_balance` until 5.11).
    pub fn pushes_by_capacity(&self, env: &Env) -> bool {
        if self.b.rules.typed() && env.unit == Unit::Misfit {
            return true;
        }
        let capacity = |cpu: CpuId| self.b.of_cpu[cpu as usize].capacity;
        self.b.rules.release() >= v(4, 1)
            && env.idle != Idleness::Busy
            && self.q.nr_fair(env.src) == 1
            && self.is_reduced(env, env.src)
            && capacity(env.src) * self.pct(env) < capacity(env.dst) * 100
    }
}
