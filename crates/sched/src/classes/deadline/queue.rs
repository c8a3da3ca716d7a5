//! The queue of a CPU by deadline, and what stands on it: tasks and the server.

use super::{Deadline, EntityId};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::TaskId;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entity {
    pub(super) dl_runtime: Nanos,
    pub(super) dl_deadline: Nanos,
    pub(super) dl_period: Nanos,
    /// Runtime / period and runtime / deadline, in 2^-20.
    pub(super) bw: u64,
    pub(super) density: u64,
    pub(super) reclaims: bool,
    /// What is left of the budget; less than 0 where it was overrun.
    pub(super) runtime: i64,
    pub(super) deadline: Nanos,
    pub(super) throttled: bool,
    pub(super) yielded: bool,
    /// Blocked before its 0-lag time: its bandwidth is still in use.
    pub(super) non_contending: bool,
    /// On the queue by deadline.
    pub(super) queued: bool,
    /// Runnable, throttled or not.
    pub(super) runnable: bool,
    /// The CPU whose `this_bw` it is part of.
    pub(super) at: Option<CpuId>,
    /// Part of that CPU's `running_bw` too.
    pub(super) in_use: bool,
    /// A server: it waits for the end of its period (`dl_defer_armed`).
    pub(super) armed: bool,
    /// A server: fair tasks starve, it need not wait (`dl_defer_running`).
    pub(super) starving: bool,
    /// A server: it has tasks to serve (`dl_server_active`).
    pub(super) active: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Rq {
    /// By deadline, equal ones in the order in which they came; the running one included.
    pub(super) queue: Vec<EntityId>,
    pub(super) curr: Option<TaskId>,
    pub(super) exec_start: Nanos,
    pub(super) this_bw: u64,
    pub(super) running_bw: u64,
    /// CPU time of deadline tasks that the real-time class has not counted yet.
    pub(super) spent: Nanos,
}

/// What is to run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::classes) enum Next {
    Task(TaskId),
    /// A fair task, on the CPU's server.
    Fair,
}

impl Deadline {
    /// Puts an entity on the queue (`__enqueue_dl_entity`).
    pub(super) fn insert(&mut self, cpu: CpuId, id: EntityId) {
        let deadline = self.e(id).deadline;
        let at = self.rq(cpu).queue.partition_point(|other| self.e(*other).deadline <= deadline);
        self.rq_mut(cpu).queue.insert(at, id);
        self.e_mut(id).queued = true;
    }

    /// Takes an entity off the queue, if it is on it (`__dequeue_dl_entity`).
    pub(super) fn remove(&mut self, cpu: CpuId, id: EntityId) {
        if self.e(id).queued {
            self.e_mut(id).queued = false;
            self.rq_mut(cpu).queue.retain(|other| *other != id);
        }
    }

    /// What goes first on a CPU.
    pub(in crate::classes) fn first(&self, cpu: CpuId) -> Option<Next> {
        self.rq(cpu).queue.first().map(|id| self.task_of(*id).map_or(Next::Fair, Next::Task))
    }

    /// The tasks on a CPU's queue, the earliest deadline first.
    pub(super) fn waiting(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.rq(cpu).queue.iter().filter_map(|id| self.task_of(*id))
    }

    /// Whether a task is on its queue.
    pub(in crate::classes) fn is_queued(&self, p: TaskId) -> bool {
        self.entities.get(self.entity(p) as usize).is_some_and(|e| e.queued)
    }

    /// How many tasks of this class may run on `cpu` now.
    pub(in crate::classes) fn nr_running(&self, cpu: CpuId) -> u32 {
        self.waiting(cpu).count() as u32
    }
}
