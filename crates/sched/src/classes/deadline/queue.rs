//! A CPU's queue sorted by deadline, and its entities: tasks and the fair server.

use super::{Deadline, EntityId};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::TaskId;

/// A deadline entity: a task or a fair server (`struct sched_dl_entity`). All times are in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entity {
    pub(super) dl_runtime: Nanos,
    pub(super) dl_deadline: Nanos,
    pub(super) dl_period: Nanos,
    /// `runtime / period` and `runtime / deadline`, in units of 2^-20.
    pub(super) bw: u64,
    pub(super) density: u64,
    pub(super) reclaims: bool,
    /// The remaining budget, in ns; negative after an overrun.
    pub(super) runtime: i64,
    pub(super) deadline: Nanos,
    pub(super) throttled: bool,
    pub(super) yielded: bool,
    /// It has blocked and not reached its 0-lag time, so its bandwidth is still active.
    pub(super) non_contending: bool,
    /// A waiter of a mutex lends it its runtime, deadline and period (`is_dl_boosted`).
    pub(super) boosted: bool,
    /// It is boosted and has no bandwidth of its own, because it is no deadline task itself.
    pub(super) foreign: bool,
    /// It is on the queue.
    pub(super) queued: bool,
    /// It is runnable, whether throttled or not.
    pub(super) runnable: bool,
    /// The CPU whose `this_bw` includes its bandwidth.
    pub(super) at: Option<CpuId>,
    /// Whether the `running_bw` of that CPU includes it as well.
    pub(super) in_use: bool,
    /// For a server: it waits for its zero laxity (`dl_defer_armed`).
    pub(super) armed: bool,
    /// For a server: fair tasks are starving, so it need not wait (`dl_defer_running`).
    pub(super) starving: bool,
    /// For a server: it has tasks to serve (`dl_server_active`).
    pub(super) active: bool,
}

/// The deadline queue of a CPU (`struct dl_rq`).
#[derive(Clone, Debug, Default)]
pub(super) struct Rq {
    /// Entities by deadline, with equal deadlines in order of arrival. Includes the running task.
    pub(super) queue: Vec<EntityId>,
    pub(super) curr: Option<TaskId>,
    pub(super) exec_start: Nanos,
    pub(super) this_bw: u64,
    pub(super) running_bw: u64,
    /// CPU time of deadline tasks that the real-time class has not counted yet, in ns.
    pub(super) spent: Nanos,
}

/// What a CPU runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::classes) enum Next {
    Task(TaskId),
    /// A fair task, on behalf of the CPU's fair server.
    Fair,
}

impl Deadline {
    /// Enqueues an entity (`__enqueue_dl_entity`).
    pub(super) fn insert(&mut self, cpu: CpuId, id: EntityId) {
        let deadline = self.e(id).deadline;
        let at = self.rq(cpu).queue.partition_point(|other| self.e(*other).deadline <= deadline);
        self.rq_mut(cpu).queue.insert(at, id);
        self.e_mut(id).queued = true;
    }

    /// Dequeues an entity, if it is queued (`__dequeue_dl_entity`).
    pub(super) fn remove(&mut self, cpu: CpuId, id: EntityId) {
        if self.e(id).queued {
            self.e_mut(id).queued = false;
            self.rq_mut(cpu).queue.retain(|other| *other != id);
        }
    }

    /// The entity with the earliest deadline on a CPU.
    pub(in crate::classes) fn first(&self, cpu: CpuId) -> Option<Next> {
        self.rq(cpu).queue.first().map(|id| self.task_of(*id).map_or(Next::Fair, Next::Task))
    }

    /// The tasks on a CPU's queue, earliest deadline first, including the running one.
    pub(super) fn waiting(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.rq(cpu).queue.iter().filter_map(|id| self.task_of(*id))
    }

    /// Whether a task is on its CPU's queue.
    pub(in crate::classes) fn is_queued(&self, p: TaskId) -> bool {
        self.entities.get(self.entity(p) as usize).is_some_and(|e| e.queued)
    }

    /// The number of deadline tasks on the queue of `cpu`. Throttled tasks are not on it.
    pub(in crate::classes) fn nr_running(&self, cpu: CpuId) -> u32 {
        self.waiting(cpu).count() as u32
    }
}
