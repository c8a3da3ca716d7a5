//! The scheduler of Linux 1.2: round robin by counters.
//!
//! # Idea
//! Every task has a counter of ticks. The task with the most ticks runs until they are used up; once all runnable tasks
//! have used theirs up, every task gets new ones. A sleeping task keeps half of what it had left, so it accumulates
//! more than the others and runs before them when it wakes.
//!
//! # Rule
//! A pick scans the list of all tasks, sleepers included, and takes the runnable task with the greatest counter, the
//! oldest among equals. If that counter is 0, every task gets `counter / 2 + priority` and the chosen task runs. A tick
//! subtracts one from the running task's counter; the tick that finds 0 triggers a new pick, so a counter of 15 is
//! worth 16 ticks. The priority is 15 minus nice, at least 1. A woken task preempts the running task if its counter is
//! greater by more than 3; but a task whose timed sleep has ended is noticed only at the next pick. A child gets half
//! of its parent's counter, and the parent keeps all of its own. There are no real-time policies.
//!
//! # State
//! For each task: its counter, whether it is runnable, and what it sleeps for.
//!
//! # Tunables
//! None, apart from the tick.
//!
//! # Differences from the kernel
//! - The trace shows the wake-up of a task that slept for a time when that time is over; the kernel wakes it at its
//!   next pick. Which task runs when is the same. (`select()` worked like that. The timers of `setitimer()`, which
//!   trigger a pick at once, and `nanosleep()`, which came later, are not distinguished from it.)
//! - `sched_yield()` did not exist; here it does nothing.
//! - The kernel supports one CPU. On a larger machine it uses CPU 0 only.
//!
//! # Reference
//! kernel/sched.c and fork.c of 1.2.13; `sys_setpriority` in kernel/sys.c, `do_select` in fs/select.c.

use super::counters::Counters;
use super::goodness::MARGIN;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::program::Start;
use schedlab_sim::{
    Attributes, Choice, Core, Decision, Dequeue, Enqueue, Placement, QueueList, Scheduler, State, TaskId, Ticks, View,
};

/// The only CPU that this kernel uses.
const CPU: CpuId = 0;
/// The priority at nice 0 and the boot task's counter, in ticks (`PZERO`, `INIT_TASK`).
const PRIORITY: i32 = 15;

/// The state of a task, apart from its counter.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    runnable: bool,
    /// Whether it sleeps interruptibly.
    naps: bool,
    /// Whether its timed sleep has ended.
    timed_out: bool,
}

/// The scheduler of Linux 1.2.
#[derive(Debug, Default)]
pub struct Counting {
    counters: Counters,
    tasks: Vec<Task>,
    /// Whether the running task called `sched_yield()`, which this kernel does not have, and simply goes on.
    goes_on: bool,
}

fn priority(nice: i8) -> i32 {
    (PRIORITY - i32::from(nice)).max(1)
}

impl Counting {
    fn task(&mut self, p: TaskId) -> &mut Task {
        &mut self.tasks[p as usize]
    }

    /// Returns the greatest counter among runnable tasks, and the task that has it.
    fn best(&self) -> Option<(i32, TaskId)> {
        let mut best = None;
        for (p, left) in self.counters.iter() {
            if self.tasks[p as usize].runnable && best.is_none_or(|(most, _)| left > most) {
                best = Some((left, p));
            }
        }
        best
    }

    fn explain_choice(&self, cx: &mut Core, next: Option<TaskId>, new_epoch: bool) {
        cx.explain(|_| {
            let all: Vec<_> = self.counters.iter().filter(|(p, _)| self.tasks[*p as usize].runnable).collect();
            let rule = match next {
                None => "no task can run",
                Some(_) if new_epoch => {
                    "no task had ticks left: every counter gains a slice, and the oldest task is picked"
                }
                Some(_) => "the greatest counter, the oldest where equal",
            };
            Decision::new(CPU, Choice::Pick, next, rule)
                .over(all.iter().map(|(p, _)| *p).filter(|p| next != Some(*p)))
                .numbers(all.iter().map(|(p, left)| (Some(*p), "counter", i64::from(*left))))
        });
    }
}

impl Scheduler for Counting {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start) {
        if self.tasks.len() <= p as usize {
            self.tasks.resize(p as usize + 1, Task::default());
        }
        let slice = priority(cx.task(p).attributes.nice);
        if let Some(q) = parent {
            let left = self.counters.left(q) >> 1;
            self.counters.insert(p, left, slice);
        } else if how == Start::Fork {
            self.counters.insert(p, PRIORITY >> 1, slice);
        } else if how == Start::Wake {
            self.counters.insert(p, slice, slice);
        }
    }

    fn select_task_rq(&mut self, _cx: &mut Core, _p: TaskId, _prev: CpuId, _why: Placement) -> CpuId {
        CPU
    }

    fn enqueue_task(&mut self, cx: &mut Core, _cpu: CpuId, p: TaskId, how: Enqueue) {
        if how == Enqueue::New && cx.start() == Start::Threads && !self.counters.has(p) {
            // A thread is created only now.
            let slice = priority(cx.task(p).attributes.nice);
            self.counters.insert(p, slice, slice);
        }
        let timed_out = cx.in_interrupt();
        let t = self.task(p);
        t.runnable = true;
        t.timed_out = std::mem::take(&mut t.naps) && timed_out;
    }

    fn dequeue_task(&mut self, cx: &mut Core, _cpu: CpuId, p: TaskId, how: Dequeue) {
        let naps = how == Dequeue::Sleep && cx.task(p).state == State::Sleeping { uninterruptible: false };
        let t = self.task(p);
        (t.runnable, t.naps) = (false, naps);
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        self.goes_on = !cx.need_resched(cpu);
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, _cpu: CpuId, p: TaskId, how: Enqueue) {
        let left = self.counters.left(p);
        let Some(curr) = cx.curr(CPU) else {
            cx.resched(CPU);
            return;
        };
        let theirs = self.counters.left(curr);
        let seen = how == Enqueue::Wakeup && !self.task(p).timed_out;
        let preempts = seen && left > theirs + MARGIN;
        if preempts {
            cx.resched(CPU);
        }
        cx.explain(|_| {
            let choice = if preempts { Choice::Preempt } else { Choice::Wait };
            let rule = if seen {
                "its counter is more than 3 ticks above the running task's"
            } else {
                "seen when the CPU next chooses"
            };
            Decision::new(CPU, choice, Some(p), rule)
                .over([curr])
                .numbers([(p, left), (curr, theirs)].map(|(q, n)| (Some(q), "counter", i64::from(n))))
        });
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        if cpu != CPU || std::mem::take(&mut self.goes_on) {
            return prev;
        }
        let best = self.best();
        let new_epoch = best.is_some_and(|(most, _)| most == 0);
        if new_epoch {
            self.counters.recalculate();
        }
        let next = best.map(|(_, p)| p);
        self.explain_choice(cx, next, new_epoch);
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(p) = cx.curr(cpu) else { return };
        let left = self.counters.left_mut(p);
        if *left > 0 {
            *left -= 1;
        } else {
            cx.resched(cpu);
            cx.explain(|_| Decision::new(cpu, Choice::TurnEnds, Some(p), "its counter is used up"));
        }
    }

    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        let Some(p) = cx.curr(cpu) else { return };
        let left = self.counters.left_mut(p);
        debug_assert!(i64::from(*left) >= ticks.count as i64, "a tick that ends a slice was skipped");
        *left -= ticks.count as i32;
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let ticks = cx.curr(cpu).map(|p| self.counters.left(p) as u64);
        ticks.map_or(Nanos::MAX, |n| cx.next_tick(cpu).saturating_add(n.saturating_mul(cx.tick_period())))
    }

    fn ticks_when_idle(&self) -> bool {
        true
    }

    fn update_curr(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, _old: &Attributes) {
        let slice = priority(cx.task(p).attributes.nice);
        self.counters.set_refill(p, slice);
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        if cpu == CPU {
            self.counters.iter().filter(|(p, _)| self.tasks[*p as usize].runnable).for_each(|(p, _)| list.ready(p));
        }
    }

    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        if cpu != CPU {
            return View::Nothing;
        }
        let task = |(p, left): (TaskId, i32)| {
            View::Map(vec![
                ("task", View::Task(p)),
                ("counter", i64::from(left).into()),
                ("priority", i64::from(self.counters.refill(p)).into()),
                ("runnable", self.tasks[p as usize].runnable.into()),
            ])
        };
        View::Map(vec![
            ("curr", cx.curr(cpu).map_or(View::Nothing, View::Task)),
            ("tasks", View::List(self.counters.iter().map(task).collect())),
        ])
    }

    fn task_dead(&mut self, _cx: &mut Core, p: TaskId) {
        self.counters.remove(p);
    }
}
