//! Inspection of a CPU's queues, and explanations of decisions.

use super::state::{REAL_TIME, Side};
use super::{Design, PRIOS, Staircase};
use schedlab_base::CpuId;
use schedlab_sim::{Choice, Core, Decision, TaskId, View};

impl<D: Design> Staircase<D> {
    pub(super) fn view_queues(&self, cx: &Core, cpu: CpuId) -> View {
        let rq = &self.queues[cpu as usize];
        View::Map(vec![
            ("curr", cx.curr(cpu).map_or(View::Nothing, View::Task)),
            ("nr_running", rq.nr_running().into()),
            ("load", rq.load.into()),
            ("rotation", rq.rotation.into()),
            ("level", u32::from(rq.level).into()),
            ("charged_until_ns", rq.since.into()),
            ("active", self.view_array(cpu, rq.active)),
            ("expired", self.view_array(cpu, rq.expired())),
        ])
    }

    /// Iterates over the lists of an array that hold tasks, best first.
    pub(super) fn taken(&self, cpu: CpuId, side: Side) -> impl Iterator<Item = (u8, u32)> + '_ {
        let lists = (0..PRIOS).map(move |prio| (prio, self.list(cpu, side, prio)));
        lists.filter(|(_, list)| self.lists.first(*list).is_some())
    }

    /// Shows the lists of an array that are not empty.
    fn view_array(&self, cpu: CpuId, side: Side) -> View {
        let array = &self.queues[cpu as usize].arrays[side];
        let list = |(prio, list): (u8, u32)| {
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
        };
        View::Map(vec![
            ("nr_active", array.nr.into()),
            ("lists", View::List(self.taken(cpu, side).map(list).collect())),
        ])
    }

    /// Describes a task's place on the list `prio` of an array.
    fn place(&self, cpu: CpuId, side: Side, prio: u8) -> (&'static str, i64) {
        let active = side == self.queues[cpu as usize].active;
        match prio.checked_sub(REAL_TIME) {
            None => ("real_time_priority", i64::from(REAL_TIME - 1 - prio)),
            Some(level) => (if active { "level" } else { "expired_level" }, i64::from(level)),
        }
    }

    fn own_place(&self, cpu: CpuId, p: TaskId) -> (Option<TaskId>, &'static str, i64) {
        let t = self.task(p);
        let (what, n) = self.place(cpu, t.side.unwrap_or(self.queues[cpu as usize].active), t.prio);
        (Some(p), what, n)
    }

    fn left(&self, p: TaskId) -> (Option<TaskId>, &'static str, i64) {
        (Some(p), "left_ns", self.task(p).left)
    }

    /// Explains a pick; `rotates` says that the arrays have just been swapped.
    pub(super) fn explain_pick(&self, cx: &mut Core, cpu: CpuId, next: Option<TaskId>, rotates: bool) {
        cx.explain(|_| {
            let rq = &self.queues[cpu as usize];
            let mut numbers: Vec<_> = next.into_iter().flat_map(|p| [self.own_place(cpu, p), self.left(p)]).collect();
            if let Some(t) = next.map(|p| self.task(p)).filter(|t| D::PUSHES && !t.is_real_time()) {
                numbers.push((None, "level_quota_ns", rq.arrays[rq.active].quota.0[t.level() as usize]));
            }
            let mut over = Vec::new();
            for side in [rq.active, rq.expired()] {
                // A waiting task's own level is out of date if it was pushed down; its list is right.
                for (prio, list) in self.taken(cpu, side) {
                    for p in self.lists.iter(list).filter(|p| Some(*p) != next) {
                        let (what, n) = self.place(cpu, side, prio);
                        over.push(p);
                        numbers.extend([(Some(p), what, n), self.left(p)]);
                    }
                }
            }
            let rule = match next {
                None => "no task can run",
                Some(p) if self.task(p).is_real_time() => "the first task of the best real-time priority",
                Some(_) if rotates => "no task was active, so a new rotation begins: the first task of the best level",
                Some(_) => "the first task of the best level of this rotation",
            };
            Decision::new(cpu, Choice::Pick, next, rule).over(over).numbers(numbers)
        });
    }

    pub(super) fn explain_preemption(&self, cx: &mut Core, cpu: CpuId, p: TaskId, preempts: bool, rule: &'static str) {
        cx.explain(|cx| {
            let running = cx.curr(cpu);
            let choice = if preempts { Choice::Preempt } else { Choice::Wait };
            let numbers = std::iter::once(p).chain(running).map(|p| self.own_place(cpu, p));
            Decision::new(cpu, choice, Some(p), rule).over(running).numbers(numbers)
        });
    }

    /// Explains that the quota of `p` at the level `from` is used up, after `p` has moved to its new place.
    pub(super) fn explain_slot(&self, cx: &mut Core, cpu: CpuId, p: TaskId, from: u8) {
        cx.explain(|_| {
            let t = self.task(p);
            let before = (!t.is_real_time()).then_some((Some(p), "level_before", i64::from(from)));
            let rule = match () {
                () if t.is_real_time() => "its interval is used up: behind its equals",
                () if t.side == Some(self.queues[cpu as usize].active) => {
                    "its quota is used up: on to its next level, with a new quota"
                }
                () => "its quota is used up at its last level: it expires, with a quota for the next rotation",
            };
            let numbers = before.into_iter().chain([self.own_place(cpu, p), self.left(p)]);
            Decision::new(cpu, Choice::TurnEnds, Some(p), rule).numbers(numbers)
        });
    }

    /// Explains that the level of the running task `p` is used up, before all tasks on it move down.
    pub(super) fn explain_push(&self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        cx.explain(|_| {
            let rq = &self.queues[cpu as usize];
            let t = self.task(p);
            let quota = rq.arrays[rq.active].quota.0[t.level() as usize];
            let numbers = vec![self.own_place(cpu, p), self.left(p), (None, "level_quota_ns", quota)];
            let rule = "its level's quota is used up: all tasks left there go down one level";
            Decision::new(cpu, Choice::TurnEnds, Some(p), rule).numbers(numbers)
        });
    }
}
