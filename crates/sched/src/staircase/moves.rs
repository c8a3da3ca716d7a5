//! The queues as the balancer sees them, and which tasks it may move.

use super::state::{LEVELS, PRIOS, REAL_TIME};
use super::{Design, Staircase};
use crate::balance::Queues;
use schedlab_base::CpuId;
use schedlab_sim::program::Policy;
use schedlab_sim::{Core, TaskId};

/// The load of a task at nice 0.
const LOAD_SCALE: u64 = 128;

/// Returns the load of a task with this nice level: what it may run in a rotation, relative to nice 0.
pub(super) fn weight(design: &impl Design, user: u8) -> u64 {
    let turn = |user: u8| u64::from(design.slots(user).count_ones()) * design.quota(user);
    (turn(user) * LOAD_SCALE / turn(LEVELS / 2)).max(1)
}

impl<D: Design> Staircase<D> {
    /// Returns the load of a task. A real-time task counts as much as an ordinary task of the best nice level.
    pub(super) fn weight(&self, p: TaskId) -> u64 {
        let t = self.task(p);
        self.weights[if t.policy == Policy::Other { t.user as usize } else { 0 }]
    }
}

impl<D: Design> Queues for Staircase<D> {
    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.queues[cpu as usize].nr_running()
    }

    fn load(&self, cpu: CpuId) -> u64 {
        self.queues[cpu as usize].load
    }

    /// Looks through the expired tasks first, best level first, each list from its end.
    fn movable(&self, cx: &Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        let rq = &self.queues[from as usize];
        [rq.expired(), rq.active].into_iter().filter(|side| rq.arrays[*side].nr > 0).find_map(|side| {
            let lists = (0..PRIOS).map(|prio| self.list(from, side, prio));
            lists.flat_map(|list| self.lists.backwards(list)).find(|p| {
                let light = self.weight(*p) <= max_load;
                light && cx.curr(from) != Some(*p) && cx.task(*p).allowed.contains(to)
            })
        })
    }

    /// The task keeps its place and the rest of its quota, as if both had been given to it on the new CPU.
    fn migrate(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        let expired = self.take(from, p) == Some(self.queues[from as usize].expired());
        cx.set_task_cpu(p, to);
        let rq = &mut self.queues[to as usize];
        let side = if expired { rq.expired() } else { rq.active };
        let t = &mut self.tasks[p as usize];
        (t.cpu, t.rotation) = (to, rq.rotation + u64::from(expired));
        if t.prio >= REAL_TIME {
            rq.arrays[side].quota.0[t.level() as usize] += t.left.max(0);
        }
        self.push(to, p, side);
    }

    fn preempt_moved(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        self.preempt_if_better(cx, cpu, p);
    }
}
