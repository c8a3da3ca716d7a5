//! Scheduling classes as Linux stacks them from 2.6.23 on: stop, deadline, real time, fair, idle.
//!
//! # Idea
//! Each class is a scheduler of its own; a task of a higher class always goes before those of the lower ones.
//! The stack asks them in order, and sends each operation to the class of the task that it is about.
//!
//! # Rule
//! A task that becomes runnable preempts one of a lower class at once; within a class, the class decides.
//! A CPU with nothing in any class is idle.
//!
//! # State
//! The class of each task.
//!
//! # Differences from the kernel
//! No task here is of the class stop: migrations take no thread's time.
//!
//! # Reference
//! kernel/sched/core.c (`__pick_next_task`, `wakeup_preempt`, `__sched_setscheduler`).

pub mod deadline;
pub mod rt;
mod spread;
mod stack;

pub use deadline::Deadline;
pub use rt::RealTime;
pub use stack::Stack;

use schedlab_base::{CpuId, Nanos};
use schedlab_sim::program::Start;
use schedlab_sim::{Attributes, Core, Dequeue, Enqueue, Placement, TaskId, Ticks, TimerId, View};

/// Which class, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ClassId {
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_FIFO and SCHED_RR.
    RealTime,
    /// SCHED_OTHER, SCHED_BATCH and SCHED_IDLE.
    Fair,
}

impl ClassId {
    /// The engine's number for the timer `n` of this class: each class counts its own from 0.
    #[must_use]
    pub const fn timer(self, n: u32) -> TimerId {
        n * 4 + self as u32
    }
}

/// One class of the stack. As [`Scheduler`](schedlab_sim::Scheduler), for the tasks of one class; a CPU's current task
/// may be another's.
pub trait Class {
    /// A task of this class is created (`task_fork`), by `parent` (of whatever class) or at boot.
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start);

    /// Chooses the CPU of a task that wakes or is new. Must be allowed and online.
    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId;

    /// A task left `from` for another CPU while it was asleep or new.
    fn migrate_task_rq(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        let _ = (cx, p, from, to);
    }

    /// Puts a runnable task on the queue of `cpu`.
    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue);

    /// Takes a task off the queue of `cpu`; `false` when it stays there though it sleeps.
    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) -> bool;

    /// A sleeping task is woken: if it still stands on its queue, makes it runnable there.
    fn wake_delayed(&mut self, cx: &mut Core, p: TaskId) -> bool {
        let _ = (cx, p);
        false
    }

    /// The running task, of this class, calls `sched_yield()`.
    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId);

    /// A task of this class became runnable where one of this class runs.
    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue);

    /// Whether it has a task that may run on `cpu` now, the running one included.
    fn has_runnable(&self, cpu: CpuId) -> bool;

    /// Whether the task that runs on `cpu` is of this class.
    fn is_running(&self, cpu: CpuId) -> bool;

    /// Takes the next task of this class. `prev` is the task that leaves the CPU if it is of this class: it is put
    /// back (if it is still queued) or goes on.
    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId>;

    /// Puts back the task of this class that runs on `cpu`: one of another class takes over.
    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId);

    /// The timer interrupt on `cpu` while a task of this class runs there.
    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId);

    /// Accounts for ticks without effect while a task of this class runs on `cpu`.
    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks);

    /// The earliest time at which a tick on `cpu` could do more than [`Class::catch_up`] does, while a task of this
    /// class runs there.
    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos;

    /// Brings the account of the running task, of this class, up to date.
    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId);

    /// The earliest time at which [`Class::update_curr`] could ask for rescheduling.
    fn clock_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let _ = (cx, cpu);
        Nanos::MAX
    }

    /// Nice, priority, policy or budget of a task changed within this class.
    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes);

    /// A task leaves this class; if it is queued it is taken off, if it runs it is put back first.
    fn switched_from(&mut self, cx: &mut Core, p: TaskId);

    /// A task joins this class; if it is runnable it is queued, and if it runs it is the one that runs.
    fn switched_to(&mut self, cx: &mut Core, p: TaskId);

    /// See [`Scheduler::leave_group`](schedlab_sim::Scheduler::leave_group).
    fn leave_group(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// See [`Scheduler::join_group`](schedlab_sim::Scheduler::join_group).
    fn join_group(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// The part of every tick on `cpu` that does not depend on who runs: balancing.
    fn balance(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// The stopper of `cpu` runs
    /// ([`Scheduler::run_stopper`](schedlab_sim::Scheduler::run_stopper)(schedlab_sim::Scheduler::run_stopper));
    /// whoever ran there waits.
    fn run_stopper(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// A task of another class is about to run on `cpu`, or the one that runs there has changed to `class`.
    fn runs(&mut self, cx: &mut Core, cpu: CpuId, class: ClassId) {
        let _ = (cx, cpu, class);
    }

    /// How many tasks of the classes above are runnable on `cpu`. Told before this class balances.
    fn others(&mut self, cx: &Core, cpu: CpuId, real_time: u32, deadline: u32) {
        let _ = (cx, cpu, real_time, deadline);
    }

    /// The earliest time at which [`Class::balance`] could do something.
    fn next_balance(&self, cpu: CpuId) -> Nanos {
        let _ = cpu;
        Nanos::MAX
    }

    /// The timer `id` of this class expires; see [`ClassId::timer`].
    fn timer(&mut self, cx: &mut Core, id: TimerId) {
        let _ = (cx, id);
    }

    /// A CPU came online.
    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// A CPU goes offline: see [`Scheduler::rq_offline`](schedlab_sim::Scheduler::rq_offline).
    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// How many tasks of this class are runnable on `cpu`, the running one included, and their load.
    fn queue_load(&self, cpu: CpuId) -> (u32, u64);

    /// See [`Scheduler::tunables`](schedlab_sim::Scheduler::tunables).
    fn tunables(&self) -> Vec<(&'static str, i64)> {
        Vec::new()
    }

    /// The state of a CPU's queue, to be shown.
    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        let _ = (cx, cpu);
        View::Nothing
    }

    /// A task of this class ended and was dequeued.
    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }
}

/// Brings a CPU's account up to date before another CPU looks at its queue. Where a task of another class runs there,
/// the ticks are that class's to count, when the engine next comes by.
pub fn sync(class: &mut impl Class, cx: &mut Core, cpu: CpuId) {
    if class.is_running(cpu)
        && let Some(ticks) = cx.take_ticks(cpu)
    {
        class.catch_up(cx, cpu, ticks);
    }
}

/// Moves a waiting task of this class from one CPU's queue to another's, and lets it preempt its like there.
pub fn move_waiting(class: &mut impl Class, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
    class.dequeue_task(cx, from, p, Dequeue::Migrated);
    class.migrate_task_rq(cx, p, from, to);
    cx.set_task_cpu(p, to);
    class.enqueue_task(cx, to, p, Enqueue::Migrated);
    if class.is_running(to) {
        class.wakeup_preempt(cx, to, p, Enqueue::Migrated);
    }
    cx.touch(from);
    cx.touch(to);
}
