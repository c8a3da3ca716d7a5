//! `goodness()` and `schedule()`.

use super::Goodness;
use super::rules::{End, Yielding};
use schedlab_base::CpuId;
use schedlab_sim::program::Policy;
use schedlab_sim::{Choice, Core, Decision, TaskId};

/// Smaller than any task's goodness.
const NOBODY: i32 = -1000;

impl Goodness {
    /// Returns the goodness of running `p` on `cpu` while the address space of `mm` is loaded.
    pub(super) fn goodness(&self, p: TaskId, cpu: CpuId, mm: Option<TaskId>) -> i32 {
        let t = self.task(p);
        if t.yielded && self.rules.yielding == Yielding::StandsBack {
            return -1;
        }
        if t.policy != Policy::Other {
            return 1000 + t.rt_priority;
        }
        let left = self.counters.left(p);
        if left == 0 {
            return 0;
        }
        let here = if self.smp() && t.processor == cpu { self.rules.penalty } else { 0 };
        left + here + i32::from(mm == Some(p)) + t.bonus
    }

    /// Returns whether `cpu` may pick `p`: no other CPU runs it, and its affinity allows `cpu`.
    fn can_schedule(&self, cx: &Core, p: TaskId, cpu: CpuId) -> bool {
        if !self.smp() {
            return true;
        }
        let free = match self.task(p).on_cpu {
            None => true,
            // In 2.2 the previous task has been considered before all others.
            Some(c) => c == cpu && !self.rules.prev_first,
        };
        free && cx.task(p).allowed.contains(cpu)
    }

    /// Gives an RR task without ticks a new slice and moves it to the tail.
    pub(super) fn renew_round_robin(&mut self, prev: Option<TaskId>) {
        if let Some(p) = prev.filter(|p| self.task(*p).policy == Policy::Rr && self.counters.left(*p) == 0) {
            *self.counters.left_mut(p) = self.counters.refill(p);
            self.move_to(p, End::Tail);
        }
    }

    /// Picks the best task for `cpu`, where `prev` was running. `None` means the idle task.
    pub(super) fn choose(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let mm = if self.rules.lazy_mm { self.cpus[cpu as usize].address_space } else { prev };
        let mut new_epoch = false;
        loop {
            let (goodness, next) = self.best(cx, cpu, prev, mm);
            if goodness == 0 {
                self.new_epoch(cx);
                new_epoch = true;
                if self.rules.chooses_again {
                    continue;
                }
            }
            self.explain_choice(cx, cpu, mm, next, new_epoch);
            return next;
        }
    }

    /// Scans the queue once and returns the greatest goodness and its task.
    fn best(&mut self, cx: &Core, cpu: CpuId, prev: Option<TaskId>, mm: Option<TaskId>) -> (i32, Option<TaskId>) {
        let (mut best, mut next) = (NOBODY, None);
        if let Some(p) = prev.filter(|p| self.rules.prev_first && self.runs_on(cx, *p, cpu)) {
            let discounted = std::mem::take(&mut self.task_mut(p).yielded);
            best = if discounted { 0 } else { self.goodness(p, cpu, mm) };
            next = prev;
        }
        for &p in &self.queue {
            if self.can_schedule(cx, p, cpu) {
                let goodness = self.goodness(p, cpu, mm);
                if goodness > best {
                    (best, next) = (goodness, Some(p));
                }
            }
        }
        (best, next)
    }

    /// Returns whether the task that was running on `cpu` may go on there.
    fn runs_on(&self, cx: &Core, p: TaskId, cpu: CpuId) -> bool {
        self.task(p).queued && cx.task(p).allowed.contains(cpu)
    }

    /// Gives every task a new slice.
    fn new_epoch(&mut self, cx: &mut Core) {
        self.sync_all(cx);
        self.counters.recalculate();
        for cpu in self.all_cpus() {
            if self.cpus[cpu as usize].curr.is_some() {
                cx.touch(cpu);
            }
        }
    }

    /// Switches `cpu` to `next`; the previous task then looks for another CPU. Returns whether `cpu` must pick again at
    /// once, because the previous task preempts there.
    pub(super) fn switch(&mut self, cx: &mut Core, cpu: CpuId, next: Option<TaskId>) -> bool {
        let now = cx.now();
        let me = &mut self.cpus[cpu as usize];
        let prev = std::mem::replace(&mut me.curr, next);
        me.address_space = next.or(me.address_space);
        let since = me.last_schedule;
        if prev != next {
            me.last_schedule = now;
        }
        let yielded = prev.is_some_and(|p| std::mem::take(&mut self.task_mut(p).yielded));
        if prev == next {
            return false;
        }
        if let Some(p) = next {
            let t = self.task_mut(p);
            (t.on_cpu, t.processor) = (Some(cpu), cpu);
            cx.set_task_cpu(p, cpu);
        }
        let Some(p) = prev else { return false };
        let t = self.task_mut(p);
        t.on_cpu = None;
        t.avg_slice = (now - since + t.avg_slice) / 2;
        if !self.smp() || !self.rules.pushes || yielded || !self.runs_on(cx, p, cpu) {
            return false;
        }
        self.waker = (cpu, false);
        self.reschedule_idle(cx, cpu, p) == Some(cpu)
    }

    fn explain_choice(&self, cx: &mut Core, cpu: CpuId, mm: Option<TaskId>, next: Option<TaskId>, new_epoch: bool) {
        cx.explain(|cx| {
            let all: Vec<TaskId> = self.queue.iter().copied().filter(|p| self.can_schedule(cx, *p, cpu)).collect();
            let numbers = |p: &TaskId| {
                let goodness = ("goodness", self.goodness(*p, cpu, mm));
                [goodness, ("counter", self.counters.left(*p))].map(|(what, n)| (Some(*p), what, i64::from(n)))
            };
            let rule = match next {
                None => "no task can run",
                Some(_) if new_epoch => "a new epoch: every counter is halved and gains a slice",
                Some(_) => "the greatest goodness, the first in the queue where equal",
            };
            Decision::new(cpu, Choice::Pick, next, rule)
                .over(all.iter().copied().filter(|p| next != Some(*p)))
                .numbers(all.iter().flat_map(numbers))
        });
    }
}
