//! SCHED_FIFO and SCHED_RR: fixed priorities, and a limit on the total CPU time of real-time tasks.
//!
//! # Idea
//! A task with a higher priority always runs before those with lower ones. To keep a real-time task that never sleeps
//! from locking out the tasks that could stop it, all real-time tasks together only get a part of each period.
//!
//! # Rule
//! There is one list for each of the 99 priorities, and a bitmap of the lists that are not empty. The first task of the
//! highest list runs. A task that wakes joins the end of its list, a preempted task keeps its place, and a task that
//! yields goes to the end. A SCHED_RR task goes to the end when its slice is used up and another task of its priority
//! is waiting. The slice is counted in ticks and is kept across preemption. *Throttling*: the run time of real-time
//! tasks accumulates. When a tick finds that it exceeds the runtime (950 ms), no real-time task runs on that CPU until
//! the period timer (1 s) subtracts a runtime from it. Until 5.9 a CPU may first borrow runtime from other CPUs. A task
//! that cannot run at once is pushed to the CPU with the lowest priority, and a CPU whose priority drops pulls tasks
//! (from 2.6.25 on).
//!
//! # State
//! For each CPU: the lists, the time used in this period, and whether it is throttled. For each task: the ticks left in
//! its slice, and its place in a list.
//!
//! # Tunables
//! `sched_rt_runtime_us`, `sched_rt_period_us` (2.6.25 on; a runtime of -1 means no limit), `sched_rr_timeslice_ms`
//! (3.9 on; 100 ms before).
//!
//! # Differences from the kernel
//! There are no real-time groups (`CONFIG_RT_GROUP_SCHED` is off, as in Debian), so one limit covers all tasks. From
//! 6.12 on this limit throttles no task; [the fair server](super::deadline) replaces it. Deadline tasks count against
//! the limit (until 6.6), but only up to it while no period timer is running. Pushing by interrupts (`RT_PUSH_IPI`)
//! takes no time, and 4.1 pushes all that it can, not one task of each CPU. In 2.6.24 real-time tasks stay on their
//! CPU, whereas that kernel's load balancer would move them; push and pull came one release later.
//!
//! # Reference
//! kernel/sched_rt.c of 2.6.24 and 2.6.32; kernel/sched/rt.c of 3.10, 3.18, 4.1, 6.1 and 6.6.

mod limit;
mod lists;
mod push_pull;
mod rules;

pub use rules::{Rejoin, Rules, Tunables};

use super::spread::{Roots, Sizes, Turns};
use super::{Class, ClassId};
use crate::paged::Paged;
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{
    Attributes, Choice, Core, Decision, Dequeue, Enqueue, Placement, QueueList, Scheduler, State, TaskId, Ticks,
    TimerId, View,
};
use std::collections::VecDeque;

/// A priority as the index of its list: 0 is the highest (`rt_priority` 99).
type Level = u8;
/// The highest priority of a CPU without real-time tasks.
const NONE: Level = 100;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entity {
    /// The ticks left in its slice.
    ticks: u64,
    level: Level,
    queued: bool,
}

impl Entity {
    /// That of a new task with these attributes.
    fn new(ticks: u64, attributes: &Attributes) -> Self {
        Self { ticks, level: level(attributes), queued: false }
    }
}

#[derive(Clone, Debug, Default)]
struct Rq {
    /// Empty until the first real-time task is enqueued.
    lists: Vec<VecDeque<TaskId>>,
    bitmap: u128,
    /// The number of tasks on the lists, including the running one.
    nr: u32,
    curr: Option<TaskId>,
    exec_start: Nanos,
    /// The real-time tasks' run time in this period, in ns.
    time: Nanos,
    /// How much run time the CPU may use per period, in ns.
    runtime: Nanos,
    throttled: bool,
}

/// The real-time class.
#[derive(Debug)]
pub struct RealTime {
    rules: Rules,
    tunables: Tunables,
    /// The length of a slice, in ticks.
    slice: u64,
    entities: Paged<Entity>,
    queues: Vec<Rq>,
    /// When the last period that was begun ends.
    period_ends: Nanos,
    /// Whether the period timer is running. It still counts as running while it expires (`rt_period_active`;
    /// `hrtimer_active()` before 4.2).
    period_active: bool,
    turns: Turns,
    sizes: Sizes,
    roots: Roots,
}

const PERIOD_TIMER: TimerId = ClassId::RealTime.timer(0);

/// The timer for pushing tasks away from a CPU. It expires immediately after the CPU has switched.
const fn push_timer(cpu: CpuId) -> TimerId {
    ClassId::RealTime.timer(1 + cpu)
}

impl RealTime {
    /// Creates the class for `machine`. `tick` is the length of a tick, in ns.
    #[must_use]
    pub fn new(machine: &Machine, rules: Rules, tunables: Tunables, tick: Nanos) -> Self {
        let rq = Rq { runtime: tunables.runtime.unwrap_or(Nanos::MAX), ..Rq::default() };
        let slice = tunables.timeslice.div_ceil(tick).max(1);
        Self {
            rules,
            tunables,
            slice,
            entities: Paged::new(Entity::new(slice, &Attributes::default())),
            queues: vec![rq; machine.cpus.len()],
            period_ends: 0,
            period_active: false,
            turns: Turns::default(),
            sizes: Sizes::new(machine, rules.by_capacity),
            roots: Roots::new(machine),
        }
    }

    /// The class, choosing between CPUs that are equally good by `turns`.
    #[must_use]
    pub fn taking(mut self, turns: &Turns) -> Self {
        self.turns = turns.clone();
        self
    }

    /// Creates the class for `machine` without a limit, to run above schedulers that were never in a Linux release.
    #[must_use]
    pub fn unlimited(machine: &Machine, tick: Nanos) -> Self {
        let rules = Rules {
            throttles: false,
            shares: false,
            aligned: false,
            rejoin: Rejoin::HeadIfLowered,
            push_pull: true,
            has_pushed: false,
            one_overloads: true,
            beside_deadline: false,
            by_capacity: false,
        };
        Self::new(machine, rules, Tunables { runtime: None, period: 1_000_000_000, timeslice: 100_000_000 }, tick)
    }

    fn rq(&self, cpu: CpuId) -> &Rq {
        &self.queues[cpu as usize]
    }

    fn rq_mut(&mut self, cpu: CpuId) -> &mut Rq {
        &mut self.queues[cpu as usize]
    }

    /// Charges the running task for the time since the last update, and throttles the CPU if needed (`update_curr_rt`).
    fn account(&mut self, cx: &mut Core, cpu: CpuId) {
        let now = cx.now();
        let limited = self.limited();
        let rq = self.rq_mut(cpu);
        let delta = now.saturating_sub(rq.exec_start);
        if rq.curr.is_none() || delta == 0 {
            return;
        }
        rq.exec_start = now;
        if limited {
            rq.time += delta;
            if self.exceeds(cx, cpu) {
                cx.resched(cpu);
                self.start_period(cx);
            }
        }
    }

    /// Whether a deadline task is running on `cpu`, so that real-time tasks that wake there must wait.
    fn deadline_runs(&self, cx: &Core, cpu: CpuId) -> bool {
        self.rules.beside_deadline && cx.curr(cpu).is_some_and(|p| cx.task(p).attributes.policy == Policy::Deadline)
    }
}

fn level(a: &Attributes) -> Level {
    99 - a.rt_priority.clamp(1, 99)
}

impl Scheduler for RealTime {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, _parent: Option<TaskId>, _how: Start) {
        self.entities.set(p, Entity::new(self.slice, &cx.task(p).attributes));
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        self.place(cx, p, prev, why)
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        self.entities[p].level = level(&cx.task(p).attributes);
        self.insert(cpu, p, false);
        self.start_period(cx);
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Dequeue) {
        self.account(cx, cpu);
        self.remove(cpu, p);
    }

    fn yield_task(&mut self, _cx: &mut Core, cpu: CpuId) {
        if let Some(p) = self.rq(cpu).curr {
            self.requeue(cpu, p, false);
        }
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        let Some(curr) = self.rq(cpu).curr else { return };
        let (ours, theirs) = (self.entities[p].level, self.entities[curr].level);
        let equal = ours == theirs && !cx.need_resched(cpu) && self.makes_room(cx, cpu, p, curr);
        if equal {
            self.requeue(cpu, p, true);
        }
        let preempts = ours < theirs || equal;
        if preempts {
            cx.resched(cpu);
        }
        cx.explain(|_| {
            let choice = if preempts { Choice::Preempt } else { Choice::Wait };
            let who = Some(if preempts { p } else { curr });
            let rule = match (preempts, equal) {
                (true, true) => "of equal priority, but only the running task can run elsewhere",
                (true, false) => "the woken task's priority is higher",
                (false, _) => "the woken task's priority is not higher",
            };
            Decision::new(cpu, choice, who, rule).over([if preempts { curr } else { p }]).numbers([
                (Some(p), "priority", 99 - i64::from(ours)),
                (Some(curr), "priority", 99 - i64::from(theirs)),
            ])
        });
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, _prev: Option<TaskId>) -> Option<TaskId> {
        self.account(cx, cpu);
        let next = self.first(cpu);
        let now = cx.now();
        let rq = self.rq_mut(cpu);
        rq.curr = next;
        rq.exec_start = now;
        if self.rules.push_pull && next.is_some() && self.rq(cpu).nr > 1 && cx.nr_cpus() > 1 {
            cx.start_timer(push_timer(cpu), now);
        }
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
        let Some(p) = self.rq(cpu).curr.filter(|p| self.is_queued(*p)) else { return };
        if cx.task(p).attributes.policy != Policy::Rr {
            return;
        }
        let entity = &mut self.entities[p];
        entity.ticks -= 1;
        if entity.ticks > 0 {
            return;
        }
        entity.ticks = self.slice;
        let level = entity.level;
        if self.rq(cpu).lists[level as usize].len() > 1 {
            self.requeue(cpu, p, false);
            cx.resched(cpu);
            let slice = self.slice as i64;
            cx.explain(|_| {
                let rule = "its slice is used up and others of its priority wait: to the end of the list";
                Decision::new(cpu, Choice::TurnEnds, Some(p), rule).numbers([(Some(p), "slice_ticks", slice)])
            });
        }
    }

    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        let limited = self.limited();
        let slice = self.slice;
        let rq = self.rq_mut(cpu);
        let Some(p) = rq.curr else { return };
        let last = ticks.first + (ticks.count - 1) * ticks.period;
        let delta = last.saturating_sub(rq.exec_start);
        rq.exec_start += delta;
        if limited {
            rq.time += delta;
        }
        if cx.task(p).attributes.policy == Policy::Rr && self.is_queued(p) {
            let entity = &mut self.entities[p];
            let gone = ticks.count % slice;
            entity.ticks = if entity.ticks > gone { entity.ticks - gone } else { entity.ticks + slice - gone };
        }
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let mut at = self.limit_at(cpu);
        if let Some(p) = self.rq(cpu).curr.filter(|p| self.is_queued(*p)) {
            let Entity { ticks, level, .. } = self.entities[p];
            if cx.task(p).attributes.policy == Policy::Rr && self.rq(cpu).lists[level as usize].len() > 1 {
                at = at.min(cx.next_tick(cpu) + (ticks - 1) * cx.tick_period());
            }
        }
        at
    }

    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
    }

    fn clock_decision(&mut self, _cx: &Core, cpu: CpuId) -> Nanos {
        self.limit_at(cpu)
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let (before, after) = (level(old), level(&cx.task(p).attributes));
        if !self.is_queued(p) {
            self.entities[p].level = after;
            return;
        }
        let cpu = cx.task(p).cpu;
        self.account(cx, cpu);
        if before == after && self.rules.rejoin == Rejoin::HeadIfLowered {
            return;
        }
        self.remove(cpu, p);
        self.entities[p].level = after;
        let head = match self.rules.rejoin {
            Rejoin::End => false,
            Rejoin::HeadUnlessRaised => before <= after,
            Rejoin::HeadIfLowered => before < after,
        };
        self.insert(cpu, p, head);
        if before == after {
            return;
        }
        if cx.curr(cpu) == Some(p) {
            if before < after && self.rules.push_pull {
                self.pull(cx, cpu);
            }
            if after > self.highest(cpu) || (cx.nr_cpus() == 1 && before < after) {
                cx.resched(cpu);
            }
        } else if self.rq(cpu).curr.is_none_or(|curr| after < self.entities[curr].level) {
            cx.resched(cpu);
        }
    }

    fn timer(&mut self, cx: &mut Core, id: TimerId) {
        match id.checked_sub(1) {
            None => self.end_period(cx),
            Some(cpu) => while self.push(cx, cpu) {},
        }
    }

    fn rq_offline(&mut self, _cx: &mut Core, cpu: CpuId) {
        let runtime = self.tunables.runtime.unwrap_or(Nanos::MAX);
        // Runtime that it had borrowed goes back, and runtime that it had lent is taken back (`__disable_runtime`).
        let mut excess = self.rq(cpu).runtime as i64 - runtime as i64;
        for other in &mut self.queues {
            let given = excess.clamp(0, (runtime as i64 - other.runtime as i64).max(0));
            other.runtime = other.runtime.wrapping_add_signed(given);
            excess -= given;
        }
        let rq = self.rq_mut(cpu);
        (rq.runtime, rq.time, rq.throttled) = (runtime, 0, false);
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        let throttled = self.rq(cpu).throttled;
        self.waiting(cpu).for_each(|p| if throttled { list.throttled(p) } else { list.ready(p) });
    }

    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        let rq = self.rq(cpu);
        let lists = (0..NONE as usize).filter(|l| rq.bitmap >> l & 1 == 1).map(|l| {
            let tasks = View::List(rq.lists[l].iter().map(|p| View::Task(*p)).collect());
            View::Map(vec![("real_time_priority", View::from(99 - l as u32)), ("tasks", tasks)])
        });
        let slices = self.waiting(cpu).filter(|p| cx.task(*p).attributes.policy == Policy::Rr).map(|p| {
            View::Map(vec![("task", View::Task(p)), ("time_slice_ticks", View::from(self.entities[p].ticks))])
        });
        let mut map = vec![
            ("lists", View::List(lists.collect())),
            ("slices", View::List(slices.collect())),
            ("curr", rq.curr.map_or(View::Nothing, View::Task)),
        ];
        if self.limited() {
            map.push(("rt_time_ns", View::from(rq.time)));
            map.push(("rt_runtime_ns", View::from(rq.runtime)));
            map.push(("throttled", View::from(rq.throttled)));
        }
        View::Map(map)
    }
}

impl Class for RealTime {
    fn charged_until(&self, cpu: CpuId) -> Nanos {
        self.rq(cpu).exec_start
    }

    fn charge_from(&mut self, cpu: CpuId, at: Nanos) {
        self.rq_mut(cpu).exec_start = at;
    }

    fn has_runnable(&self, cpu: CpuId) -> bool {
        self.rq(cpu).nr > 0 && !self.rq(cpu).throttled
    }

    fn is_running(&self, cpu: CpuId) -> bool {
        self.rq(cpu).curr.is_some()
    }

    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, _p: TaskId) {
        self.account(cx, cpu);
        self.rq_mut(cpu).curr = None;
    }

    fn switched_from(&mut self, cx: &mut Core, p: TaskId) {
        let cpu = cx.task(p).cpu;
        self.account(cx, cpu);
        if self.is_queued(p) {
            self.remove(cpu, p);
        }
        if self.rq(cpu).curr == Some(p) {
            self.rq_mut(cpu).curr = None;
            if self.rules.push_pull && self.rq(cpu).nr == 0 {
                self.pull(cx, cpu);
            }
        }
    }

    fn switched_to(&mut self, cx: &mut Core, p: TaskId, from: ClassId) {
        let cpu = cx.task(p).cpu;
        self.entities[p].level = level(&cx.task(p).attributes);
        if cx.task(p).state != State::Runnable {
            return;
        }
        // From the class above, its priority was lowered.
        self.insert(cpu, p, from == ClassId::Deadline && self.rules.rejoin != Rejoin::End);
        self.start_period(cx);
        if cx.curr(cpu) == Some(p) {
            let now = cx.now();
            let rq = self.rq_mut(cpu);
            rq.curr = Some(p);
            rq.exec_start = now;
        } else {
            let ours = self.entities[p].level;
            if self.rq(cpu).curr.is_none_or(|curr| ours < self.entities[curr].level) {
                cx.resched(cpu);
            }
            self.woken(cx, cpu, p);
        }
    }
}
