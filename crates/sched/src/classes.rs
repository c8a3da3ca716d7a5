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

mod balanced;
pub mod deadline;
pub mod rt;
mod spread;
mod stack;

pub use balanced::Balanced;
pub use deadline::Deadline;
pub use rt::RealTime;
pub use stack::Stack;

use crate::balance::Queues;

use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::{Core, Dequeue, Enqueue, Scheduler, TaskId, TimerId};

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

/// A scheduler that is one class of a [`Stack`].
///
/// The methods of [`Scheduler`] are called for the tasks of this class only, and those that take a CPU while a task of
/// this class runs there: [`wakeup_preempt`](Scheduler::wakeup_preempt), [`yield_task`](Scheduler::yield_task),
/// [`task_tick`](Scheduler::task_tick), [`catch_up`](Scheduler::catch_up) and so on. The lowest class is also asked
/// about idle CPUs. Three differ:
/// - [`task_fork`](Scheduler::task_fork) is called for every task, since a task may change its class.
/// - [`pick_next_task`](Scheduler::pick_next_task) has a `prev` only if that is of this class.
/// - The timers of a class are numbered from 0 for [`timer`](Scheduler::timer); it starts them by [`ClassId::timer`].
pub trait Class: Scheduler {
    /// Whether it has a task that may run on `cpu` now, the running one included.
    fn has_runnable(&self, cpu: CpuId) -> bool;

    /// Whether the task that runs on `cpu` is of this class.
    fn is_running(&self, cpu: CpuId) -> bool;

    /// `p`, of this class, has run on `cpu` and makes way for a task of another class. It waits from now on if
    /// `cx.task(p).on_rq`.
    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId);

    /// A task leaves this class: it is taken off its queue, and out of the CPU if it runs.
    fn switched_from(&mut self, cx: &mut Core, p: TaskId);

    /// A task joins this class: it is queued if it is runnable, and if it runs it is the one that runs.
    fn switched_to(&mut self, cx: &mut Core, p: TaskId);

    /// The part of every tick on `cpu` that does not depend on what runs: balancing.
    fn balance(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// The earliest time at which [`Class::balance`] could do something.
    fn next_balance(&self, cpu: CpuId) -> Nanos {
        let _ = cpu;
        Nanos::MAX
    }

    /// A task of another class is about to run on `cpu`, or the one that runs there has changed to `class`.
    fn runs(&mut self, cx: &mut Core, cpu: CpuId, class: ClassId) {
        let _ = (cx, cpu, class);
    }

    /// How many tasks of the classes above are runnable on `cpu`; called before this class balances.
    fn others(&mut self, cx: &Core, cpu: CpuId, real_time: u32, deadline: u32) {
        let _ = (cx, cpu, real_time, deadline);
    }
}

/// A kernel's scheduler made of one for the tasks of each CPU: FIFO and RR tasks go before its own, without a limit, RR
/// tasks in turns of 100 ms; and it is balanced over the CPUs. `tick` is the time between two ticks.
#[must_use]
pub fn simple<S: Queues>(machine: &Machine, scheduler: S, tick: Nanos) -> Stack<Balanced<S>> {
    Stack::new(Balanced::new(machine, scheduler), RealTime::unlimited(machine, tick), None)
}

/// Brings a CPU's account up to date before another CPU looks at its queue. Where a task of another class runs there,
/// that class counts the ticks when the engine next calls it.
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
