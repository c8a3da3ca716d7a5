//! A multi-level feedback queue.
//!
//! # Idea
//! A task that uses up its slice needs much CPU time and can wait; one that blocks early is waiting for something and
//! should be served at once. So a task's own behaviour places it on one of several levels: short slices and precedence
//! at the top, long slices and patience at the bottom.
//!
//! # Rule
//! The rule follows the comparison of O(1) with a multi-level feedback queue (experiment cfs-19). There are several
//! round-robin queues, each with a priority and a slice; the lower the priority, the longer the slice. The first task
//! of the best queue runs, and a task that arrives with a better priority than the running task preempts it. A task
//! that uses a whole slice moves one queue down and runs longer next time. A task that blocks before its slice is used
//! up moves one queue up and runs for a shorter time.
//!
//! The description leaves some points open. They are decided here as follows:
//! - There are 8 queues (`levels`). The slice of the `i`th is `i * base_slice`, so 10 to 80 ms: inversely
//!   proportional to the priority `1 / i`, taken literally.
//! - A new task begins at the top (`start_level`) with a slice of its own.
//! - A preempted task and a task that yields keep the rest of their slice; the first stays at the head of its queue,
//!   the second moves to the end. Yielding does not count as blocking, so the level stays.
//! - Every second (`boost`) all tasks return to the top with new slices, so that many tasks that block early cannot
//!   starve those at the bottom. With a boost of 0 there is none, and they can.
//! - Nice levels are ignored: a task's behaviour alone sets its priority.
//! - FIFO and RR tasks come before all queues: they are a class of their own ([`crate::classes::rt`]).
//!
//! With the boost no task waits for ever. Among the `n` tasks of a CPU, a waiting task is back at the top, behind at
//! most `n - 1` others, within `boost`. Each of those leaves the top, or blocks and returns behind it, within
//! `base_slice`. The wait is at most `boost + (n - 1) * base_slice`, plus a tick for each turn.
//!
//! # State
//! For each CPU: a list for each level, and the number of its last boost. For each task: its level, the rest of its
//! slice in ticks, and the number of its last boost.
//!
//! # Tunables
//! `levels`, `base_slice`, `start_level`, `boost`.
//!
//! # Differences from the kernel
//! No Linux release has this scheduler. Each CPU has its own queues, with the plain balancer of [`crate::balance`]; all
//! tasks count as the same load, and a migration keeps the level. The policies BATCH, IDLE and DEADLINE count as OTHER.
//!
//! # Reference
//! The description of "A comparison of interactivity in the Linux 2.6 scheduler and an MLFQ scheduler" in the related
//! work of the dissertation that the experiments cfs-* are from; F. J. Corbato et al., "An experimental time-sharing
//! system", 1962; R. and A. Arpaci-Dusseau, "Operating Systems: Three Easy Pieces", chapter 8, for the boost.

mod queues;

use crate::o1::array::{Links, MAX_PRIO, PrioArray};
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::Start;
use schedlab_sim::{Choice, Core, Decision, Dequeue, Enqueue, QueueList, Scheduler, TaskId, Ticks, View};

/// The greatest number of levels that can be set.
pub const MOST_LEVELS: u8 = 40;

/// The tunables; times are in ns.
#[derive(Clone, Copy, Debug)]
pub struct Tunables {
    /// The number of levels, at most [`MOST_LEVELS`].
    pub levels: u8,
    /// The slice of the top level.
    pub base_slice: Nanos,
    /// The level of new tasks; 0 is the top.
    pub start_level: u8,
    /// The interval at which all tasks return to the top; 0 means never.
    pub boost: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// The level; 0 is the top.
    level: u8,
    /// The list that it is on, if any.
    list: Option<u8>,
    /// The rest of its slice, in ticks.
    time_slice: u32,
    /// The number of boosts up to when it was last on a queue.
    boosts: u64,
}

#[derive(Clone, Debug, Default)]
struct Rq {
    array: PrioArray,
    boosts: u64,
}

/// The multi-level feedback queue scheduler.
#[derive(Debug)]
pub struct Mlfq {
    tunables: Tunables,
    tick: Nanos,
    links: Links,
    tasks: Vec<Task>,
    rqs: Vec<Rq>,
}

impl Mlfq {
    /// Creates the scheduler for `machine`, with a tick every `tick` ns.
    #[must_use]
    pub fn new(machine: &Machine, tunables: Tunables, tick: Nanos) -> Self {
        let levels = tunables.levels.clamp(1, MOST_LEVELS);
        let start_level = tunables.start_level.min(levels - 1);
        Self {
            tunables: Tunables { levels, start_level, ..tunables },
            tick,
            links: Links::default(),
            tasks: Vec::new(),
            rqs: vec![Rq::default(); machine.cpus.len()],
        }
    }

    fn ticks(&self, time: Nanos) -> u32 {
        u32::try_from(time / self.tick).unwrap_or(u32::MAX).max(1)
    }

    /// Returns a whole slice of this level, in ticks.
    fn slice(&self, level: u8) -> u32 {
        self.ticks(self.tunables.base_slice.saturating_mul(u64::from(level) + 1))
    }

    /// Returns how many boosts there have been by `time`.
    fn boosts(&self, time: Nanos) -> u64 {
        time.checked_div(self.tunables.boost).unwrap_or(0)
    }

    /// Sets a task's level and gives it a whole slice of that level.
    fn set_level(&mut self, p: TaskId, level: u8) {
        let level = level.min(self.tunables.levels - 1);
        let time_slice = self.slice(level);
        let t = &mut self.tasks[p as usize];
        (t.level, t.time_slice) = (level, time_slice);
    }

    /// Adds a task at the end of its level's list.
    fn push(&mut self, cpu: CpuId, p: TaskId) {
        let t = &mut self.tasks[p as usize];
        t.list = Some(t.level);
        self.rqs[cpu as usize].array.push(&mut self.links, p, t.level);
    }

    /// Removes a task from its list. Returns `false` if it was on none.
    fn take(&mut self, cpu: CpuId, p: TaskId) -> bool {
        let list = self.tasks[p as usize].list.take();
        if let Some(list) = list {
            self.rqs[cpu as usize].array.remove(&mut self.links, p, list);
        }
        list.is_some()
    }

    fn requeue(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        if self.take(cpu, p) {
            self.push(cpu, p);
        }
        cx.resched(cpu);
    }

    /// Adds a task to its CPU's lists, and makes up for boosts that it missed while asleep.
    fn arrive(&mut self, cx: &Core, cpu: CpuId, p: TaskId) {
        let boosts = self.boosts(cx.now());
        if std::mem::replace(&mut self.tasks[p as usize].boosts, boosts) != boosts {
            self.set_level(p, 0);
        }
        self.push(cpu, p);
    }

    /// Boosts all tasks of this CPU: they return to the top, in the order in which they would have run.
    fn boost(&mut self, cx: &mut Core, cpu: CpuId, boosts: u64) {
        self.rqs[cpu as usize].boosts = boosts;
        for list in 0..self.tunables.levels {
            let mut next = self.rqs[cpu as usize].array.head(list);
            while let Some(p) = next {
                next = self.links.after(p);
                if self.tasks[p as usize].boosts != boosts {
                    self.take(cpu, p);
                    self.tasks[p as usize].boosts = boosts;
                    self.set_level(p, 0);
                    self.push(cpu, p);
                }
            }
        }
        if cx.curr(cpu).is_some() {
            cx.resched(cpu);
        }
    }

    /// Asks for rescheduling if `p` is on a better list than the running task.
    fn preempt_if_better(&self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let list = |q: TaskId| self.tasks[q as usize].list.unwrap_or(MAX_PRIO);
        let running = cx.curr(cpu);
        let better = list(p) < running.map_or(MAX_PRIO, list);
        if better {
            cx.resched(cpu);
        }
        cx.explain(|_| {
            let (choice, rule) = match better {
                _ if running.is_none() => (Choice::Preempt, "the CPU is idle"),
                true => (Choice::Preempt, "a task that arrives on a better level than the running task's preempts it"),
                false => (Choice::Wait, "the running task's level is as good"),
            };
            let numbers = std::iter::once(p).chain(running).map(|q| self.place(q));
            Decision::new(cpu, choice, Some(p), rule).over(running).numbers(numbers)
        });
    }

    /// Handles a tick of the running task.
    fn tick_running(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let t = &mut self.tasks[p as usize];
        if t.list.is_none() {
            return;
        }
        t.time_slice = t.time_slice.saturating_sub(1);
        if t.time_slice == 0 {
            let level = t.level + 1;
            self.set_level(p, level);
            self.requeue(cx, cpu, p);
            self.explain_turn(cx, cpu, p);
        }
    }
}

impl Scheduler for Mlfq {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, _parent: Option<TaskId>, _how: Start) {
        self.links.grow(p);
        let t = Task { level: 0, list: None, time_slice: 0, boosts: self.boosts(cx.now()) };
        if self.tasks.len() <= p as usize {
            self.tasks.resize(p as usize + 1, t);
        }
        self.tasks[p as usize] = t;
        self.set_level(p, self.tunables.start_level);
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        self.arrive(cx, cpu, p);
    }

    fn dequeue_task(&mut self, _cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) {
        self.take(cpu, p);
        // A slice that was used up has been renewed already, so a task that sleeps always has some of it left.
        if how == Dequeue::Sleep {
            self.set_level(p, self.tasks[p as usize].level.saturating_sub(1));
        }
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        if let Some(p) = cx.curr(cpu) {
            self.requeue(cx, cpu, p);
        }
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        self.preempt_if_better(cx, cpu, p);
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, _prev: Option<TaskId>) -> Option<TaskId> {
        let next = self.rqs[cpu as usize].array.first();
        self.explain_pick(cx, cpu, next);
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        let boosts = self.boosts(cx.now());
        if self.rqs[cpu as usize].boosts != boosts {
            self.boost(cx, cpu, boosts);
        }
        if let Some(p) = cx.curr(cpu) {
            self.tick_running(cx, cpu, p);
        }
    }

    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        let Some(p) = cx.curr(cpu) else {
            self.rqs[cpu as usize].boosts = self.boosts(ticks.first + (ticks.count - 1) * ticks.period);
            return;
        };
        let t = &mut self.tasks[p as usize];
        if t.list.is_some() {
            t.time_slice -= ticks.count as u32;
        }
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let Some(p) = cx.curr(cpu) else { return Nanos::MAX };
        let ticks = self.tasks[p as usize].time_slice.max(1) - 1;
        let slice_ends = cx.next_tick(cpu) + u64::from(ticks) * cx.tick_period();
        let boost = match self.tunables.boost {
            0 => Nanos::MAX,
            every => (self.rqs[cpu as usize].boosts + 1).saturating_mul(every),
        };
        slice_ends.min(boost)
    }

    fn ticks_when_idle(&self) -> bool {
        true
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        self.in_order(cpu).for_each(|p| list.ready(p));
    }

    fn view(&self, _cx: &Core, cpu: CpuId) -> View {
        self.view_queues(cpu)
    }
}
