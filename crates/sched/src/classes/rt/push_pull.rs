//! Placement of real-time tasks on several CPUs: at wake-up, by pushing and by pulling.

use super::super::spread::{nearest, pinned};
use super::super::sync;
use super::{NONE, RealTime};
use schedlab_base::{CpuId, Looking};
use schedlab_sim::{Choice, Core, Decision, Dequeue, Enqueue, Placement, Scheduler, TaskId};

impl RealTime {
    /// The CPU for a task that wakes or is new (`select_task_rq_rt`): its previous CPU, unless the task that is running
    /// there cannot move or has at least the same priority, or the CPU is too small for the task.
    pub(super) fn place(&self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        let (Placement::Wake { from } | Placement::Fork { from } | Placement::Affinity { from }) = why else {
            return prev;
        };
        let home_allowed = cx.task(p).allowed.contains(prev);
        let fallback = || (0..cx.nr_cpus()).find(|c| cx.task(p).allowed.contains(*c)).unwrap_or(prev);
        let start = if home_allowed { prev } else { fallback() };
        if !self.rules.push_pull || pinned(cx, p) {
            return start;
        }
        let ours = super::level(&cx.task(p).attributes);
        let crowded = self.rq(prev).curr.is_some_and(|curr| pinned(cx, curr) || self.entities[curr].level <= ours)
            || self.deadline_runs(cx, prev);
        let fits = self.is_big_enough(cx, p, prev);
        if !crowded && fits && home_allowed {
            return prev;
        }
        let looking = if matches!(why, Placement::Fork { .. }) { Looking::Fork } else { Looking::Wake };
        cx.trace_considered(from, looking, Some(p), 0..cx.nr_cpus());
        let lowest = self.lowest(cx, p, from).filter(|c| ours < self.highest(*c));
        // A task that is only looking for a bigger CPU stays if there is none.
        lowest.filter(|c| crowded || fits || self.is_big_enough(cx, p, *c)).unwrap_or(start)
    }

    /// Whether a CPU has the capacity that a task asks for (`rt_task_fits_capacity`). Without a clamp of its own that
    /// is the most there is (`sched_util_clamp_min_rt_default`).
    fn is_big_enough(&self, cx: &Core, p: TaskId, cpu: CpuId) -> bool {
        let (least, most) = cx.task(p).clamp;
        let wants = if least == 0 { 1024 } else { least };
        self.sizes.of(cpu).is_none_or(|capacity| capacity >= wants.min(most).into())
    }

    /// The CPU of the root domain whose highest priority is the lowest, if it is lower than that of `p`, of those that
    /// are big enough, or of all if none is (`find_lowest_rq`, `cpupri_find_fitness`).
    fn lowest(&self, cx: &Core, p: TaskId, asking: CpuId) -> Option<CpuId> {
        let ours = super::level(&cx.task(p).attributes);
        let fits = |c: &CpuId| self.roots.reach(cx, p, *c) && !self.deadline_runs(cx, *c) && self.highest(*c) > ours;
        let big = |c: &CpuId| self.is_big_enough(cx, p, *c);
        let worst = |big: &dyn Fn(&CpuId) -> bool| {
            (0..cx.nr_cpus()).filter(|c| fits(c) && big(c)).map(|c| self.highest(c)).max()
        };
        let among_big = worst(&big);
        let level = among_big.or_else(|| worst(&|_| true))?;
        let good = |c: CpuId| fits(&c) && self.highest(c) == level && (among_big.is_none() || big(&c));
        nearest(cx, &self.turns, cx.task(p).cpu, asking, good)
    }

    /// Whether a woken task preempts a running task of equal priority, because only the running one can run elsewhere
    /// (`check_preempt_equal_prio`).
    pub(super) fn makes_room(&self, cx: &Core, cpu: CpuId, p: TaskId, curr: TaskId) -> bool {
        if !self.rules.push_pull || pinned(cx, curr) || self.lowest(cx, curr, cpu).is_none() {
            return false;
        }
        pinned(cx, p) || self.lowest(cx, p, cpu).is_none()
    }

    /// Called after a task was woken. If it does not run at once, it is pushed to a CPU where it would
    /// (`task_woken_rt`).
    pub(crate) fn woken(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        if !self.rules.push_pull || cx.need_resched(cpu) || self.rq(cpu).nr == 0 || !self.is_queued(p) {
            return;
        }
        let ours = self.entities[p].level;
        let blocked = self.rq(cpu).curr.is_some_and(|c| pinned(cx, c) || self.entities[c].level <= ours);
        if (blocked || self.deadline_runs(cx, cpu)) && !pinned(cx, p) {
            while self.push(cx, cpu) {}
        }
    }

    /// Pushes the waiting task of `cpu` with the highest priority that can move to a CPU with a lower one
    /// (`push_rt_task`). Returns whether a task was pushed.
    pub(super) fn push(&mut self, cx: &mut Core, cpu: CpuId) -> bool {
        if !self.is_overloaded(cx, cpu) {
            return false;
        }
        let curr = self.rq(cpu).curr;
        let Some(p) = self.waiting(cpu).find(|p| Some(*p) != curr && cx.curr(cpu) != Some(*p) && !pinned(cx, *p))
        else {
            return false;
        };
        let ours = self.entities[p].level;
        if curr.is_some_and(|c| ours < self.entities[c].level) {
            cx.resched(cpu);
            return false;
        }
        let Some(to) = self.lowest(cx, p, cpu).filter(|to| *to != cpu) else { return false };
        self.shift(cx, p, cpu, to, "no CPU's highest priority is lower than this one's");
        cx.resched(to);
        true
    }

    /// Whether a CPU has tasks that others may look for (`update_rt_migration`, later `rt_queue_push_tasks`).
    fn is_overloaded(&self, cx: &Core, cpu: CpuId) -> bool {
        let least = if self.rules.one_overloads { 1 } else { 2 };
        self.rq(cpu).nr >= least && self.waiting(cpu).any(|p| !pinned(cx, p))
    }

    /// Called when the highest priority of `cpu` drops. Pulls waiting tasks from other CPUs if their priority is higher
    /// than what is left here (`pull_rt_task`), or has these push.
    pub(crate) fn pull(&mut self, cx: &mut Core, cpu: CpuId) {
        if !cx.online(cpu) {
            return;
        }
        for from in (0..cx.nr_cpus()).filter(|c| *c != cpu) {
            if !self.roots.join(from, cpu) || !self.is_overloaded(cx, from) {
                continue;
            }
            sync(self, cx, from);
            if self.rules.has_pushed {
                while self.push(cx, from) {}
                continue;
            }
            let curr = self.rq(from).curr;
            let waits = |p: &TaskId| Some(*p) != curr && cx.curr(from) != Some(*p) && cx.task(*p).allowed.contains(cpu);
            let Some(p) = self.waiting(from).find(waits) else { continue };
            let ours = self.entities[p].level;
            // A task that is about to run on its CPU is not pulled.
            let next_there = curr.map_or(!self.deadline_runs(cx, from), |c| ours < self.entities[c].level);
            if ours < self.highest(cpu) && !next_there {
                self.shift(cx, p, from, cpu, "it waits there, and is more important than what is left here");
            }
        }
    }

    fn shift(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId, rule: &'static str) {
        let (there, level) = (self.highest(to), self.entities[p].level);
        cx.explain(|_| {
            Decision::new(to, Choice::Move, Some(p), rule).numbers([
                (Some(p), "priority", 99 - i64::from(level)),
                (None, "highest_priority_there", if there == NONE { 0 } else { 99 - i64::from(there) }),
            ])
        });
        self.dequeue_task(cx, from, p, Dequeue::Migrated);
        cx.set_task_cpu(p, to);
        self.enqueue_task(cx, to, p, Enqueue::Migrated);
        cx.touch(from);
        cx.touch(to);
    }

    /// Whether the highest priority left on `cpu` is lower than that of `p`, which has just left the CPU.
    pub(crate) fn fell(&self, cx: &Core, cpu: CpuId, p: TaskId) -> bool {
        self.rules.push_pull && i16::from(self.highest(cpu)) > cx.task(p).attributes.prio().max(-1)
    }
}
