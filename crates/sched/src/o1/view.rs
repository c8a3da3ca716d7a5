//! Inspection of the arrays, and explanations of decisions.

use super::O1;
use super::state::Side;
use schedlab_base::CpuId;
use schedlab_sim::{Choice, Core, Decision, TaskId, View};

/// Why an ordinary task stayed in the active array at the end of its slice, or left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceEnd {
    /// It is not interactive.
    Expires,
    /// It is interactive, and no expired task starves.
    Stays,
    /// It is interactive, but the first expired task has waited too long.
    Starving,
    /// It is interactive, but a task of a better nice level has expired.
    BetterExpired,
}

impl SliceEnd {
    fn rule(self) -> &'static str {
        match self {
            Self::Expires => "its slice is used up and it is not interactive: it expires, with a new slice",
            Self::Stays => "its slice is used up, but it is interactive: it stays active, with a new slice",
            Self::Starving => "its slice is used up, and though it is interactive it expires: the expired starve",
            Self::BetterExpired => {
                "its slice is used up, and though it is interactive it expires: a better nice level has expired"
            }
        }
    }
}

impl O1<'_> {
    /// Iterates over the tasks of an array, best priority first, each list from its head.
    pub(super) fn on_array(&self, cpu: CpuId, side: Side) -> impl Iterator<Item = TaskId> + '_ {
        let array = &self.queues[cpu as usize].arrays[side];
        let levels = std::iter::successors(array.level_from(0), |prio| array.level_from(prio + 1));
        levels.flat_map(move |prio| self.list(cpu, side, prio))
    }

    fn list(&self, cpu: CpuId, side: Side, prio: u8) -> impl Iterator<Item = TaskId> + '_ {
        let head = self.queues[cpu as usize].arrays[side].head(prio);
        std::iter::successors(head, |p| self.links.after(*p))
    }

    /// Returns by how many levels the sleep average makes a task better than its nice level; `None` if it is real-time.
    fn bonus(&self, p: TaskId) -> Option<i64> {
        let t = self.task(p);
        (!t.is_real_time()).then(|| self.rules.levels_won(t.sleep_avg))
    }

    fn view_task(&self, p: TaskId) -> View {
        let t = self.task(p);
        View::Map(vec![
            ("task", View::Task(p)),
            ("static_prio", u32::from(t.static_prio).into()),
            ("bonus", self.bonus(p).into()),
            ("interactive", (!t.is_real_time() && self.rules.interactive(t.static_prio, t.prio)).into()),
            ("sleep_avg_ns", t.sleep_avg.into()),
            ("time_slice_ticks", t.time_slice.into()),
        ])
    }

    fn view_array(&self, cpu: CpuId, side: Side) -> View {
        let array = &self.queues[cpu as usize].arrays[side];
        let levels = std::iter::successors(array.level_from(0), |prio| array.level_from(prio + 1));
        let list = |prio: u8| {
            let tasks = self.list(cpu, side, prio).map(|p| self.view_task(p)).collect();
            View::Map(vec![("prio", u32::from(prio).into()), ("tasks", View::List(tasks))])
        };
        View::Map(vec![
            ("nr_active", array.nr_active().into()),
            ("best_prio", array.level_from(0).map(u32::from).into()),
            ("lists", View::List(levels.map(list).collect())),
        ])
    }

    /// Shows both arrays of a CPU, and what it keeps about expired tasks.
    pub(super) fn view_arrays(&self, cx: &Core, cpu: CpuId) -> View {
        let rq = &self.queues[cpu as usize];
        let somebody = rq.arrays[rq.expired()].nr_active() > 0;
        let mut all = vec![
            ("curr", cx.curr(cpu).map_or(View::Nothing, View::Task)),
            ("nr_running", rq.nr_running().into()),
            ("load", rq.load.into()),
            ("jiffies_ticks", cx.jiffies().into()),
            ("expired_timestamp_ticks", (rq.expired_timestamp != 0).then_some(rq.expired_timestamp).into()),
            ("best_expired_prio", somebody.then_some(u32::from(rq.best_expired_prio)).into()),
            ("active", self.view_array(cpu, rq.active)),
            ("expired", self.view_array(cpu, rq.expired())),
        ];
        all.extend(self.view_balancing(cpu));
        View::Map(all)
    }

    fn priority(&self, p: TaskId) -> impl Iterator<Item = (Option<TaskId>, &'static str, i64)> {
        let bonus = self.bonus(p).map(|bonus| (Some(p), "bonus", bonus));
        std::iter::once((Some(p), "prio", i64::from(self.task(p).prio))).chain(bonus)
    }

    /// Explains a pick. `swapped` says that the arrays have just been swapped; `was` is the list where `next` waited.
    pub(super) fn explain_pick(&self, cx: &mut Core, cpu: CpuId, next: Option<TaskId>, swapped: bool, was: u8) {
        cx.explain(|_| {
            let rq = &self.queues[cpu as usize];
            let others = |side| self.on_array(cpu, side).filter(move |p| Some(*p) != next);
            let mut numbers: Vec<_> = next.into_iter().flat_map(|p| self.priority(p)).collect();
            if let Some(p) = next {
                if self.task(p).prio != was {
                    numbers.push((Some(p), "prio_before_its_wait_counted", i64::from(was)));
                }
                numbers.push((Some(p), "time_slice_ticks", i64::from(self.task(p).time_slice)));
            }
            numbers.extend(others(rq.active).flat_map(|p| self.priority(p)));
            numbers.extend(others(rq.expired()).map(|p| (Some(p), "expired_prio", i64::from(self.task(p).prio))));
            let rule = match next {
                None => "no task can run",
                Some(_) if swapped => "no task was active, so the arrays are swapped: the first task of the best list",
                Some(_) => "the first task of the best list of the active array",
            };
            let over = others(rq.active).chain(others(rq.expired()));
            Decision::new(cpu, Choice::Pick, next, rule).over(over).numbers(numbers)
        });
    }

    pub(super) fn explain_preemption(&self, cx: &mut Core, cpu: CpuId, p: TaskId, preempts: bool, rule: &'static str) {
        cx.explain(|cx| {
            let running = cx.curr(cpu);
            let choice = if preempts { Choice::Preempt } else { Choice::Wait };
            let numbers = std::iter::once(p).chain(running).flat_map(|p| self.priority(p));
            Decision::new(cpu, choice, Some(p), rule).over(running).numbers(numbers)
        });
    }

    /// Explains the end of a turn, for reasons that need no other numbers than the task's own.
    pub(super) fn explain_turn(
        &self,
        cx: &mut Core,
        cpu: CpuId,
        p: TaskId,
        rule: &'static str,
        own: &[(&'static str, i64)],
    ) {
        cx.explain(|_| {
            let own = own.iter().map(|(what, n)| (Some(p), *what, *n));
            let numbers = self.priority(p).chain(own);
            Decision::new(cpu, Choice::TurnEnds, Some(p), rule).numbers(numbers)
        });
    }

    /// Explains the end of the slice of `p`, which is on its new array already; `best_expired` is from before that.
    pub(super) fn explain_slice(&self, cx: &mut Core, cpu: CpuId, p: TaskId, end: SliceEnd, best_expired: u8) {
        cx.explain(|cx| {
            let (rq, t) = (&self.queues[cpu as usize], self.task(p));
            let mut numbers: Vec<_> = self.priority(p).collect();
            numbers.push((Some(p), "interactive_from_bonus", self.rules.interactive_from(t.static_prio)));
            numbers.push((Some(p), "time_slice_ticks", i64::from(t.time_slice)));
            match end {
                SliceEnd::Starving => {
                    let waited = cx.jiffies() - rq.expired_timestamp;
                    let limit = self.rules.starvation_after(rq.nr_running());
                    numbers.push((None, "expired_wait_ticks", waited as i64));
                    numbers.push((None, "starvation_limit_ticks", limit as i64));
                }
                SliceEnd::BetterExpired => {
                    numbers.push((Some(p), "static_prio", i64::from(t.static_prio)));
                    numbers.push((None, "best_expired_prio", i64::from(best_expired)));
                }
                SliceEnd::Expires | SliceEnd::Stays => {}
            }
            let rule = end.rule();
            Decision::new(cpu, Choice::TurnEnds, Some(p), rule).numbers(numbers)
        });
    }
}
