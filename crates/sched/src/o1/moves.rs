//! The queues as the balancer sees them, and whom it may move.

use super::O1;
use crate::balance::{Balancer, Queues};
use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

impl O1 {
    /// Whom the balancer may move from `from` to `to`: the expired first, best priority first, each list from its end.
    fn movable(&self, cx: &Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        let rq = &self.queues[from as usize];
        [rq.expired(), rq.active].into_iter().find_map(|side| {
            let array = &rq.arrays[side];
            let levels = std::iter::successors(array.level_from(0), |prio| array.level_from(prio + 1));
            let mut tasks = levels.flat_map(|prio| std::iter::successors(array.last(prio), |p| self.links.before(*p)));
            tasks.find(|p| {
                let light = self.rules.weight(self.task(*p)) <= max_load;
                light && cx.curr(from) != Some(*p) && cx.task(*p).allowed.contains(to)
            })
        })
    }
}

impl Queues for O1 {
    fn balancer(&mut self) -> &mut Option<Balancer> {
        &mut self.balancer
    }

    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.queues[cpu as usize].nr_running()
    }

    fn load(&self, cpu: CpuId) -> u64 {
        self.queues[cpu as usize].load
    }

    fn pull(&mut self, cx: &mut Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        if max_load < self.rules.least_weight() {
            return None;
        }
        let p = self.movable(cx, from, to, max_load)?;
        let side = self.take(from, p)?;
        let was_expired = side == self.queues[from as usize].expired();
        let expired = was_expired && self.rules.release().moved_stay_expired;
        cx.set_task_cpu(p, to);
        let rq = &self.queues[to as usize];
        let side = if expired { rq.expired() } else { rq.active };
        self.push(to, p, side);
        self.preempt_if_better(cx, to, p);
        cx.touch(from);
        cx.touch(to);
        Some(p)
    }
}
