//! A CPU's lists, one for each priority, and the bitmap of those that are not empty.

use super::{Level, NONE, RealTime};
use schedlab_base::CpuId;
use schedlab_sim::TaskId;
use std::collections::VecDeque;

impl RealTime {
    /// The highest priority on a CPU, including the running task's; [`NONE`] without real-time tasks.
    pub(super) fn highest(&self, cpu: CpuId) -> Level {
        let bitmap = self.rq(cpu).bitmap;
        if bitmap == 0 { NONE } else { bitmap.trailing_zeros() as Level }
    }

    /// The first task of the highest list; `None` if there is none or the CPU is throttled.
    pub(super) fn first(&self, cpu: CpuId) -> Option<TaskId> {
        let rq = self.rq(cpu);
        if rq.throttled || rq.bitmap == 0 { None } else { rq.lists[self.highest(cpu) as usize].front().copied() }
    }

    /// Adds a task to the head or the end of the list of its priority.
    pub(super) fn insert(&mut self, cpu: CpuId, p: TaskId, head: bool) {
        let entity = &mut self.entities[p];
        entity.queued = true;
        let level = entity.level;
        let rq = self.rq_mut(cpu);
        if rq.lists.is_empty() {
            rq.lists.resize(NONE as usize, VecDeque::new());
        }
        let list = &mut rq.lists[level as usize];
        if head {
            list.push_front(p);
        } else {
            list.push_back(p);
        }
        rq.bitmap |= 1 << level;
        rq.nr += 1;
    }

    /// Removes a task from its list.
    pub(super) fn remove(&mut self, cpu: CpuId, p: TaskId) {
        let entity = &mut self.entities[p];
        entity.queued = false;
        let level = entity.level;
        let rq = self.rq_mut(cpu);
        let list = &mut rq.lists[level as usize];
        let at = list.iter().position(|q| *q == p).expect("a queued task is on its list");
        list.remove(at);
        if list.is_empty() {
            rq.bitmap &= !(1 << level);
        }
        rq.nr -= 1;
    }

    /// Moves a task to the head or the end of its list.
    pub(super) fn requeue(&mut self, cpu: CpuId, p: TaskId, head: bool) {
        self.remove(cpu, p);
        self.insert(cpu, p, head);
    }

    /// The tasks on a CPU's lists, including the running one, in the order in which they would run.
    pub(super) fn waiting(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.rq(cpu).lists.iter().flatten().copied()
    }

    /// Whether a task is on a list.
    pub(in crate::classes) fn is_queued(&self, p: TaskId) -> bool {
        self.entities[p].queued
    }

    /// The number of runnable tasks of this class on `cpu`.
    pub(in crate::classes) fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rq(cpu).nr
    }
}
