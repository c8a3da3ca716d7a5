//! `reschedule_idle()`: chooses the CPU that must reschedule because a task became runnable.

use super::rules::Waking;
use super::{BOOT_CPU, Goodness};
use crate::balance::sync;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::program::Policy;
use schedlab_sim::{Choice, Core, Decision, TaskId};

/// By more than this many ticks a waking task must exceed the running task to preempt it (1.2, 2.0).
pub const MARGIN: i32 = 3;
/// The counter of the idle task.
const IDLE_COUNTER: i32 = -100;

impl Goodness {
    /// Asks the best CPU for the waiting task `p` to reschedule, and returns it. `cpu` is a CPU where `p` may run.
    pub(super) fn reschedule_idle(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) -> Option<CpuId> {
        if self.task(p).on_cpu.is_some() {
            return None;
        }
        let found = match self.rules.waking {
            Waking::Margin => self.by_margin(cx, cpu, p),
            Waking::Best { .. } | Waking::OldestIdle if !self.smp() => self.beats(p, BOOT_CPU, 0).map(|_| BOOT_CPU),
            Waking::Best { related } => self.best_cpu(cx, p, related),
            Waking::OldestIdle => self.oldest_idle(cx, p),
        };
        if let Some(cpu) = found {
            self.ask(cx, cpu);
        }
        found
    }

    fn ask(&mut self, cx: &mut Core, cpu: CpuId) {
        let me = &mut self.cpus[cpu as usize];
        me.asked = me.curr.is_none().then_some(cx.now());
        cx.resched(cpu);
    }

    /// Returns whether a CPU is idle and was not already asked at this instant.
    fn is_idle(&self, cx: &Core, cpu: CpuId) -> bool {
        let me = &self.cpus[cpu as usize];
        me.curr.is_none() && !(me.asked == Some(cx.now()) && cx.need_resched(cpu))
    }

    /// Returns how much better `p` is than the running task of `cpu` (`preemption_goodness`), if by more than `least`.
    fn beats(&self, p: TaskId, cpu: CpuId, least: i32) -> Option<i32> {
        let curr = self.cpus[cpu as usize].curr;
        let theirs = match curr {
            Some(q) => self.goodness(q, cpu, curr),
            None => IDLE_COUNTER,
        };
        Some(self.goodness(p, cpu, curr) - theirs).filter(|more| *more > least)
    }

    /// 2.0: the waker's CPU, if its running task has fewer ticks; the first idle CPU is asked, too.
    fn by_margin(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) -> Option<CpuId> {
        let here = if cx.task(p).allowed.contains(self.waker.0) { self.waker.0 } else { cpu };
        sync(self, cx, here);
        let preempts = match self.cpus[here as usize].curr {
            None => true,
            Some(q) => self.task(p).policy != Policy::Other || self.counters.left(p) > self.counters.left(q) + MARGIN,
        };
        let allowed = &cx.task(p).allowed;
        let idle = self.all_cpus().find(|c| allowed.contains(*c) && self.is_idle(cx, *c));
        if let Some(idle) = idle.filter(|c| *c != here) {
            self.ask(cx, idle);
            return if preempts { Some(here) } else { Some(idle) };
        }
        preempts.then_some(here)
    }

    /// 2.2: the CPU where `p` last ran if that is idle, otherwise the CPU where its advantage is greatest.
    fn best_cpu(&mut self, cx: &mut Core, p: TaskId, related: Nanos) -> Option<CpuId> {
        self.sync_all(cx);
        let (waker, by_task) = self.waker;
        let partner = self.cpus[waker as usize]
            .curr
            .filter(|q| by_task && self.task(p).policy == Policy::Other && self.task(*q).avg_slice < related);
        let last = self.task(p).processor;
        if partner.is_some() && last == waker {
            return None;
        }
        if cx.task(p).allowed.contains(last) && self.is_idle(cx, last) {
            return Some(last);
        }
        let (mut most, mut target) = (0, None);
        for cpu in self.all_cpus() {
            if partner.is_some() && cpu == waker {
                return None;
            }
            let free = self.cpus[cpu as usize].curr.is_some() || self.is_idle(cx, cpu);
            if let Some(more) = self.beats(p, cpu, most).filter(|_| free && cx.task(p).allowed.contains(cpu)) {
                (most, target) = (more, Some(cpu));
            }
        }
        target
    }

    /// 2.4: the CPU where `p` last ran if that is idle, otherwise an idle core (both threads idle), otherwise the CPU
    /// that has been idle longest, otherwise the CPU where its advantage is greatest.
    fn oldest_idle(&mut self, cx: &mut Core, p: TaskId) -> Option<CpuId> {
        self.sync_all(cx);
        let allowed = &cx.task(p).allowed;
        let last = self.task(p).processor;
        if allowed.contains(last) && self.is_idle(cx, last) {
            return Some(last);
        }
        let mut idle: Option<(Nanos, CpuId)> = None;
        let (mut most, mut target) = (0, None);
        for cpu in self.all_cpus().filter(|c| allowed.contains(*c)) {
            let me = &self.cpus[cpu as usize];
            if self.is_idle(cx, cpu) {
                if me.sibling.is_some_and(|other| self.is_idle(cx, other)) {
                    return Some(cpu);
                }
                if idle.is_none_or(|(since, _)| me.last_schedule < since) {
                    idle = Some((me.last_schedule, cpu));
                }
            } else if idle.is_none()
                && me.curr.is_some()
                && let Some(more) = self.beats(p, cpu, most)
            {
                (most, target) = (more, Some(cpu));
            }
        }
        idle.map(|(_, cpu)| cpu).or(target)
    }

    /// Explains a wake-up; `asked` is the CPU that must reschedule, if any.
    pub(super) fn explain_wake(&self, cx: &mut Core, cpu: CpuId, p: TaskId, asked: Option<CpuId>) {
        cx.explain(|cx| {
            let at = asked.unwrap_or(cpu);
            let running = cx.curr(at);
            let mm = self.cpus[at as usize].address_space;
            let numbers = |p: TaskId| {
                let goodness = ("goodness", self.goodness(p, at, mm));
                [goodness, ("counter", self.counters.left(p))].map(|(what, n)| (Some(p), what, i64::from(n)))
            };
            let (choice, rule) = match (asked, running) {
                (Some(_), None) => (Choice::Preempt, "the CPU is idle"),
                (Some(_), Some(_)) => (Choice::Preempt, "it is worth more than the task that runs there"),
                (None, _) => (Choice::Wait, "no CPU is idle or runs a task that is worth less"),
            };
            let numbers = std::iter::once(p).chain(running).flat_map(numbers);
            Decision::new(at, choice, Some(p), rule).over(running).numbers(numbers)
        });
    }
}
