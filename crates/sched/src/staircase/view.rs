//! The queues of a CPU, to be shown.

use super::state::{REAL_TIME, Side};
use super::{Design, PRIOS, Staircase};
use schedlab_base::CpuId;
use schedlab_sim::{Core, View};

impl<D: Design> Staircase<D> {
    pub(super) fn shown(&self, cx: &Core, cpu: CpuId) -> View {
        let rq = &self.queues[cpu as usize];
        View::Map(vec![
            ("rotation", rq.rotation.into()),
            ("level", u32::from(rq.level).into()),
            ("running", cx.curr(cpu).map_or(View::Nothing, View::Task)),
            ("charged_until_ns", rq.since.into()),
            ("active", self.array(cpu, rq.active)),
            ("expired", self.array(cpu, rq.expired())),
        ])
    }

    /// The lists of an array that are not empty.
    fn array(&self, cpu: CpuId, side: Side) -> View {
        let array = &self.queues[cpu as usize].arrays[side];
        let lists = (0..PRIOS).map(|prio| (prio, self.list(cpu, side, prio)));
        let taken = lists.filter(|(_, list)| self.lists.first(*list).is_some());
        taken
            .map(|(prio, list)| {
                let tasks: View = self
                    .lists
                    .iter(list)
                    .map(|p| View::Map(vec![("task", View::Task(p)), ("left_ns", self.task(p).left.into())]))
                    .collect();
                let place = match prio.checked_sub(REAL_TIME) {
                    None => vec![("real_time_priority", u32::from(REAL_TIME - 1 - prio).into())],
                    Some(level) => {
                        vec![("level", u32::from(level).into()), ("quota_ns", array.quota.0[level as usize].into())]
                    }
                };
                View::Map(place.into_iter().chain([("tasks", tasks)]).collect())
            })
            .collect()
    }
}
