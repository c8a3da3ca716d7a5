//! A multi-level feedback queue.
//!
//! # Idea
//! A task that uses its slice up wants much CPU and can wait; one that gives it back early is waiting for another, and
//! should be served at once. So a task's own behaviour puts it onto one of several levels: short slices and precedence
//! at the top, long slices and patience at the bottom.
//!
//! # Rule
//! As the comparison of O(1) with a multi-level feedback queue describes it (experiment cfs-19): several round-robin
//! queues, each with a priority and a slice that is the longer the lower the priority is; the first task of the best
//! queue runs, and one that arrives with a better priority than the running one's preempts it. A task that uses a whole
//! slice moves one queue down, and runs longer next time. One that blocks before its slice is used up moves one up, and
//! runs shorter next time.
//!
//! Chosen here, where that leaves it open:
//! - There are 8 queues (`levels`). The slice of the `i`th is `i * base_slice`, 10 to 80 ms: in inverse proportion to
//!   the priority `1 / i`, by the letter.
//! - A new task begins at the top (`start_level`) with a slice of its own.
//! - A task that is preempted, or yields, keeps what is left of its slice; the one stays at the head of its queue, the
//!   other goes to its end. To yield is not to block: the level stays.
//! - Every second (`boost`) all tasks come back to the top with new slices, so that those at the bottom do not starve
//!   under many that block early. 0 is never, and then they can.
//! - Nice levels do not count: behaviour is the only priority there is.
//! - FIFO and RR tasks go before all queues: they are a class of their own ([`crate::classes::rt`]).
//!
//! With the boost no task waits for ever: among `n` tasks of a CPU a task that waits is back at the top, behind at most
//! `n - 1` others, within `boost`, and each of those leaves the top, or blocks and comes back behind it, within
//! `base_slice`: `boost + (n - 1) * base_slice` and a tick for each turn.
//!
//! # State
//! For each CPU: a list for each level, and which boost was its last. For each task: its level, what is left of its
//! slice in ticks, its last boost.
//!
//! # Tunables
//! `levels`, `base_slice`, `start_level`, `boost`.
//!
//! # Differences from the kernel
//! There is no such kernel. Each CPU has its queues, with the plain balancer of [`crate::balance`]; each task counts as
//! the same load, and a move keeps its level. The policies BATCH, IDLE and DEADLINE count as OTHER.
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

/// The most levels that there can be.
pub const MOST_LEVELS: u8 = 40;

/// What can be set; times in ns.
#[derive(Clone, Copy, Debug)]
pub struct Tunables {
    /// How many levels there are, at most [`MOST_LEVELS`].
    pub levels: u8,
    /// The slice at the top.
    pub base_slice: Nanos,
    /// Where new tasks begin, 0 at the top.
    pub start_level: u8,
    /// How often all tasks come back to the top; 0: never.
    pub boost: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// 0 at the top.
    level: u8,
    /// The list that it is on, if it is on one.
    list: Option<u8>,
    /// What is left, in ticks.
    time_slice: u32,
    /// How many boosts there had been when it was last on a queue.
    boosts: u64,
}

#[derive(Clone, Debug, Default)]
struct Rq {
    array: PrioArray,
    boosts: u64,
}

/// The scheduler.
#[derive(Debug)]
pub struct Mlfq {
    tunables: Tunables,
    tick: Nanos,
    links: Links,
    tasks: Vec<Task>,
    rqs: Vec<Rq>,
}

impl Mlfq {
    /// A scheduler for `machine` whose ticks are `tick` apart.
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

    /// A whole slice at this level.
    fn slice(&self, level: u8) -> u32 {
        self.ticks(self.tunables.base_slice.saturating_mul(u64::from(level) + 1))
    }

    /// How many boosts there have been at `time`.
    fn boosts(&self, time: Nanos) -> u64 {
        time.checked_div(self.tunables.boost).unwrap_or(0)
    }

    /// Sets a task's level, and gives it a whole slice of it.
    fn set_level(&mut self, p: TaskId, level: u8) {
        let level = level.min(self.tunables.levels - 1);
        let time_slice = self.slice(level);
        let t = &mut self.tasks[p as usize];
        (t.level, t.time_slice) = (level, time_slice);
    }

    /// Puts a task at the end of the list of its level.
    fn push(&mut self, cpu: CpuId, p: TaskId) {
        let t = &mut self.tasks[p as usize];
        t.list = Some(t.level);
        self.rqs[cpu as usize].array.push(&mut self.links, p, t.level);
    }

    /// Takes a task off its list; `false` if it was on none.
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

    /// A task joins its CPU's lists; boosts that it missed asleep are made up for.
    fn arrive(&mut self, cx: &Core, cpu: CpuId, p: TaskId) {
        let boosts = self.boosts(cx.now());
        if std::mem::replace(&mut self.tasks[p as usize].boosts, boosts) != boosts {
            self.set_level(p, 0);
        }
        self.push(cpu, p);
    }

    /// A boost: all tasks of this CPU come back to the top, in the order of their precedence so far.
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
                true => (Choice::Preempt, "who arrives on a better level than the running task's preempts it"),
                false => (Choice::Wait, "the running task's level is as good"),
            };
            let numbers = std::iter::once(p).chain(running).map(|q| self.place(q));
            Decision::new(cpu, choice, Some(p), rule).over(running).numbers(numbers)
        });
    }

    /// The tick of the running task.
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
        // A slice that is used up has been renewed: a task that sleeps has some of it left.
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
