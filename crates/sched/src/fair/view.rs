//! The state of a CPU's fair class for display: its hierarchy of queues with the virtual times.

use super::entity::{EntityId, QueueId};
use super::{Discipline, Fair};
use schedlab_base::CpuId;
use schedlab_sim::View;

impl<D: Discipline> Fair<D> {
    /// A CPU's queues from the root down, and its throttled groups.
    pub(super) fn show(&self, cpu: CpuId) -> View {
        let throttled: Vec<View> = (0..self.rqs.first_task)
            .filter(|e| e % self.rqs.cpus == cpu && self.rqs.queues[(e + self.rqs.cpus) as usize].throttled)
            .map(|e| self.show_entity(self.rqs.entities[e as usize].queue, e))
            .collect();
        View::Map(vec![
            ("scheduler", self.d.name().into()),
            ("curr", self.rqs.running[cpu as usize].map_or(View::Nothing, |e| View::Task(e - self.rqs.first_task))),
            ("queue", self.show_queue(cpu)),
            ("throttled", View::List(throttled)),
        ])
    }

    fn show_queue(&self, q: QueueId) -> View {
        let queue = &self.rqs.queues[q as usize];
        let entity = |e: Option<EntityId>| e.map_or(View::Nothing, |e| self.show_name(e));
        let mut waiting = Vec::new();
        let mut at = queue.tree.first();
        while let Some(e) = at {
            waiting.push(self.show_entity(q, e));
            at = queue.tree.next(&self.rqs.arena, e);
        }
        let mut map = vec![
            ("load", queue.load.weight.into()),
            ("nr_queued", queue.nr_queued.into()),
            ("h_nr_runnable", (queue.h_nr - queue.h_nr_delayed).into()),
        ];
        map.extend(D::show_queue(self, q));
        map.extend([("next", entity(queue.next)), ("last", entity(queue.last)), ("skip", entity(queue.skip))]);
        if queue.limited {
            map.extend([("runtime_left_ns", queue.runtime.into()), ("throttled", queue.throttled.into())]);
        }
        map.push(("curr", queue.curr.map_or(View::Nothing, |e| self.show_entity(q, e))));
        map.push(("tree", View::List(waiting)));
        View::Map(map)
    }

    /// A task, or a group by its path.
    fn show_name(&self, e: EntityId) -> View {
        match e.checked_sub(self.rqs.first_task) {
            Some(p) => View::Task(p),
            None => self.rqs.groups.all[(e / self.rqs.cpus) as usize].name.as_str().into(),
        }
    }

    fn show_entity(&self, q: QueueId, e: EntityId) -> View {
        let entity = &self.rqs.entities[e as usize];
        let is_task = e >= self.rqs.first_task;
        let mut map = vec![
            (if is_task { "task" } else { "group" }, self.show_name(e)),
            ("weight", entity.load.weight().into()),
            ("vruntime_ns", (entity.vruntime as i64).into()),
            ("cpu_time_ns", entity.sum_exec.into()),
            ("idle", entity.idle.into()),
        ];
        map.extend(D::show_entity(self, q, e));
        if let Some(numa) = e.checked_sub(self.rqs.first_task).and_then(|p| self.show_numa(p)) {
            map.push(("numa", numa));
        }
        if !is_task {
            map.push(("queue", self.show_queue(e + self.rqs.cpus)));
        }
        View::Map(map)
    }
}
