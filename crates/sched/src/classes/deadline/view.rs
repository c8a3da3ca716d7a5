//! The deadline queue of a CPU, for display.

use super::{Deadline, EntityId};
use schedlab_base::CpuId;
use schedlab_sim::{Core, View};

impl Deadline {
    /// The queue of a CPU and its throttled entities, for display.
    pub(super) fn view_queue(&self, cx: &Core, cpu: CpuId) -> View {
        let view = |id: EntityId| {
            let e = self.e(id);
            let who = self.task_of(id).map_or(View::from("fair server"), View::Task);
            let mut map = vec![
                ("task", who),
                ("deadline_ns", View::from(e.deadline)),
                ("budget_ns", View::from(e.runtime)),
                ("runtime_ns", View::from(e.dl_runtime)),
                ("period_ns", View::from(e.dl_period)),
                ("throttled", View::from(e.throttled)),
            ];
            if self.task_of(id).is_none() {
                map.extend([("waits_for_zero_laxity", View::from(e.armed)), ("starving", View::from(e.starving))]);
            }
            View::Map(map)
        };
        let waits = |id: &EntityId| {
            let e = self.e(*id);
            !e.queued && self.cpu_of(cx, *id) == cpu && (e.active || (e.runnable && e.throttled))
        };
        let rq = self.rq(cpu);
        View::Map(vec![
            ("queue", View::List(rq.queue.iter().map(|id| view(*id)).collect())),
            ("throttled", View::List((0..self.entities.len() as u32).filter(waits).map(view).collect())),
            ("curr", rq.curr.map_or(View::Nothing, View::Task)),
            ("this_bw", View::from(rq.this_bw)),
            ("running_bw", View::from(rq.running_bw)),
        ])
    }
}
