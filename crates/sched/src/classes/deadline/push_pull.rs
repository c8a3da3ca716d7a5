//! Placement of deadline tasks on several CPUs: at wake-up, by pushing and by pulling.

use super::Deadline;
use crate::classes::spread::{nearest, pinned};
use crate::classes::sync;
use schedlab_base::{CpuId, Looking, Nanos};
use schedlab_sim::{Choice, Core, Decision, Dequeue, Enqueue, Placement, Scheduler, TaskId};

impl Deadline {
    /// The earliest deadline of the tasks queued on a CPU; `Nanos::MAX` if there are none.
    fn earliest(&self, cpu: CpuId) -> Nanos {
        self.waiting(cpu).next().map_or(Nanos::MAX, |p| self.e(self.entity(p)).deadline)
    }

    /// The CPU for a task that wakes (`select_task_rq_dl`): its previous CPU, unless the task that is running there
    /// cannot move or has a deadline that is not later, or the CPU is too small for the task.
    pub(super) fn place(&self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        let (Placement::Wake { from } | Placement::Fork { from } | Placement::Affinity { from }) = why else {
            return prev;
        };
        let allowed = |c: CpuId| cx.task(p).allowed.contains(c);
        let start = if allowed(prev) { prev } else { (0..cx.nr_cpus()).find(|c| allowed(*c)).unwrap_or(prev) };
        if pinned(cx, p) {
            return start;
        }
        let ours = self.e(self.entity(p)).deadline;
        let crowded =
            self.rq(prev).curr.is_some_and(|curr| pinned(cx, curr) || self.e(self.entity(curr)).deadline <= ours);
        let small = matches!(why, Placement::Wake { .. }) && !self.is_big_enough(p, prev);
        if !crowded && !small && start == prev {
            return prev;
        }
        cx.trace_considered(from, Looking::Wake, Some(p), 0..cx.nr_cpus());
        self.latest(cx, p, from).unwrap_or(start)
    }

    /// Whether a CPU has the capacity for a task's runtime (`dl_task_fits_capacity`).
    fn is_big_enough(&self, p: TaskId, cpu: CpuId) -> bool {
        let density = self.e(self.entity(p)).density >> (super::bandwidth::SHIFT - 10);
        self.sizes.of(cpu).is_none_or(|capacity| u64::from(capacity) >= density)
    }

    /// A CPU without deadline tasks that is big enough, or the biggest of those that are not; or otherwise the one
    /// whose earliest deadline is the latest, if that is later than the deadline of `p` (`find_later_rq`,
    /// `cpudl_find`).
    fn latest(&self, cx: &Core, p: TaskId, asking: CpuId) -> Option<CpuId> {
        let ours = self.e(self.entity(p)).deadline;
        let fits = |c: &CpuId| self.roots.reach(cx, p, *c) && self.earliest(*c) > ours;
        let latest = (0..cx.nr_cpus()).filter(fits).map(|c| self.earliest(c)).max()?;
        let home = cx.task(p).cpu;
        let good = |c: CpuId| fits(&c) && self.earliest(c) == latest;
        let small = (0..cx.nr_cpus()).filter(|c| latest == Nanos::MAX && good(*c) && !self.is_big_enough(p, *c));
        let small: Vec<CpuId> = small.collect();
        if small.is_empty() {
            return nearest(cx, &self.turns, home, asking, good);
        }
        if (0..cx.nr_cpus()).all(|c| !good(c) || small.contains(&c)) {
            let size = |c: CpuId| self.sizes.of(c);
            let biggest = small.iter().copied().map(size).max()?;
            let first = small.iter().copied().find(|c| size(*c) == biggest);
            return if small.contains(&home) && size(home) == biggest { Some(home) } else { first };
        }
        nearest(cx, &self.turns, home, asking, |c| good(c) && !small.contains(&c))
    }

    /// Called after a task was woken. If it does not run at once, it is pushed to a CPU where it would
    /// (`task_woken_dl`).
    pub(crate) fn woken(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        if self.cpus == 1 || cx.need_resched(cpu) || !self.is_queued(p) || pinned(cx, p) {
            return;
        }
        if self.rq(cpu).curr.is_some_and(|curr| pinned(cx, curr) || !self.preempts(cpu, self.entity(p))) {
            while self.push(cx, cpu) {}
        }
    }

    /// Pushes the earliest waiting task of `cpu` that can move to a CPU with later deadlines (`push_dl_task`). Returns
    /// whether a task was pushed.
    pub(super) fn push(&mut self, cx: &mut Core, cpu: CpuId) -> bool {
        let curr = self.rq(cpu).curr;
        let waits = |p: &TaskId| Some(*p) != curr && cx.curr(cpu) != Some(*p) && !pinned(cx, *p);
        let Some(p) = self.waiting(cpu).find(waits) else { return false };
        if curr.is_some() && self.preempts(cpu, self.entity(p)) {
            cx.resched(cpu);
            return false;
        }
        let Some(to) = self.latest(cx, p, cpu).filter(|to| *to != cpu) else { return false };
        self.shift(cx, p, cpu, to, "its deadline is earlier than those there");
        cx.resched(to);
        true
    }

    /// Called when the earliest deadline of `cpu` becomes later. Pulls waiting tasks from other CPUs if their deadlines
    /// are earlier than those left here (`pull_dl_task`).
    pub(crate) fn pull(&mut self, cx: &mut Core, cpu: CpuId) {
        if !cx.online(cpu) || self.cpus == 1 {
            return;
        }
        for from in (0..cx.nr_cpus()).filter(|c| *c != cpu) {
            if !self.roots.join(from, cpu) || self.waiting(from).nth(1).is_none() {
                continue;
            }
            sync(self, cx, from);
            let curr = self.rq(from).curr;
            let waits = |p: &TaskId| Some(*p) != curr && cx.curr(from) != Some(*p) && cx.task(*p).allowed.contains(cpu);
            let Some(p) = self.waiting(from).find(waits) else { continue };
            let id = self.entity(p);
            // A task that is about to run on its CPU is not pulled.
            if self.e(id).deadline < self.earliest(cpu) && !self.preempts(from, id) {
                self.shift(cx, p, from, cpu, "it waits there, and its deadline is earlier than what is left here");
            }
        }
    }

    /// Whether the earliest deadline left on `cpu` is later than that of `p`, which has just left the CPU.
    pub(crate) fn fell(&self, cpu: CpuId, p: TaskId) -> bool {
        self.cpus > 1 && self.earliest(cpu) > self.e(self.entity(p)).deadline
    }

    fn shift(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId, rule: &'static str) {
        let (ours, there) = (self.e(self.entity(p)).deadline, self.earliest(to));
        cx.explain(|_| {
            Decision::new(to, Choice::Move, Some(p), rule)
                .numbers([(Some(p), "deadline_ns", ours as i64), (None, "earliest_there_ns", there as i64)])
        });
        self.dequeue_task(cx, from, p, Dequeue::Migrated);
        cx.set_task_cpu(p, to);
        self.enqueue_task(cx, to, p, Enqueue::Migrated);
        cx.touch(from);
        cx.touch(to);
    }
}
