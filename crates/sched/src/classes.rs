//! Scheduling classes as Linux stacks them from 2.6.23 on: stop, deadline, real-time, fair, idle.
//!
//! # Idea
//! Each class is a scheduler of its own, and a task of a higher class always runs before those of lower classes. The
//! stack asks the classes in order, and passes each operation to the class of the task concerned.
//!
//! # Rule
//! A task that becomes runnable preempts a task of a lower class at once. Within a class, the class decides. A CPU with
//! no runnable task in any class is idle.
//!
//! # State
//! The class of each task.
//!
//! # Differences from the kernel
//! No task is in the stop class. The stopper takes a context switch of its CPU's time, for which the task that follows
//! waits and is charged, and the task that it moves is on its new CPU at once. Until 2.6.36 the stopper was a FIFO task
//! of the highest priority; here it goes before the others of that priority.
//!
//! # Reference
//! kernel/sched/core.c (`__pick_next_task`, `wakeup_preempt`, `__sched_setscheduler`).

mod balanced;
pub mod deadline;
pub mod hrtick;
pub mod rt;
mod spread;
mod stack;

pub use balanced::Balanced;
pub use deadline::Deadline;
pub use rt::RealTime;
pub use spread::Turns;
pub use stack::Stack;

use crate::balance::Queues;

use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::{Core, Dequeue, Enqueue, Scheduler, TaskId, TimerId};

/// The classes, highest first. The stop and idle classes have no tasks here.
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
    /// The engine's id for timer number `n` of this class. Each class numbers its timers from 0.
    #[must_use]
    pub const fn timer(self, n: u32) -> TimerId {
        n * 4 + self as u32
    }
}

/// A scheduler that is one class of a [`Stack`].
///
/// The methods of [`Scheduler`] are only called for tasks of this class. Those that take a CPU are called while a task
/// of this class is running there: [`wakeup_preempt`](Scheduler::wakeup_preempt),
/// [`yield_task`](Scheduler::yield_task), [`task_tick`](Scheduler::task_tick), [`catch_up`](Scheduler::catch_up) and so
/// on. The lowest class is also called for idle CPUs. There are three exceptions:
/// - [`task_fork`](Scheduler::task_fork) is called for every task, because a task can change its class.
/// - [`pick_next_task`](Scheduler::pick_next_task) only gets a `prev` that is in this class.
/// - [`timer`](Scheduler::timer) gets the class's own number of a timer, which the class starts by [`ClassId::timer`].
pub trait Class: Scheduler {
    /// Whether the class has a task that may run on `cpu` now, including the running one. Throttled tasks do not count.
    fn has_runnable(&self, cpu: CpuId) -> bool;

    /// Whether the task that is running on `cpu` is in this class.
    fn is_running(&self, cpu: CpuId) -> bool;

    /// Called when `p`, of this class, stops running on `cpu` in favour of a task of another class. If
    /// `cx.task(p).on_rq`, it is waiting from then on.
    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId);

    /// Called when a task leaves this class. Dequeues it, and no longer treats it as the running task if it was.
    fn switched_from(&mut self, cx: &mut Core, p: TaskId);

    /// Called when a task of another class joins this one. Enqueues it if it is runnable, and treats it as the running
    /// task if it is.
    fn switched_to(&mut self, cx: &mut Core, p: TaskId, from: ClassId);

    /// The timer of `cpu` that the class started has expired, or that of a task that no longer runs there (`task_tick`
    /// with `queued`; see [`hrtick`]).
    fn hrtick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.task_tick(cx, cpu);
    }

    /// The part of every tick on `cpu` that does not depend on the running task, which is load balancing.
    fn balance(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// The earliest time at which [`Class::balance`] could change anything.
    fn next_balance(&self, cpu: CpuId) -> Nanos {
        let _ = cpu;
        Nanos::MAX
    }

    /// Called when a task of another class is about to run on `cpu`, or the task running there has changed to `class`.
    fn runs(&mut self, cx: &mut Core, cpu: CpuId, class: ClassId) {
        let _ = (cx, cpu, class);
    }

    /// Brings the accounts of the groups of the task of this class that is running on `cpu` up to date.
    fn charge_groups(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// Up to when the task of this class that is running on `cpu` has been charged.
    fn charged_until(&self, cpu: CpuId) -> Nanos {
        let _ = cpu;
        Nanos::MAX
    }

    /// The task of this class that is running on `cpu`, and whose account is up to date, with those of its groups, is
    /// charged from `at` on, which may be later than now.
    fn charge_from(&mut self, cpu: CpuId, at: Nanos) {
        let _ = (cpu, at);
    }

    /// Called when the time between `taken.0` and `taken.1` on `cpu` is no task's (`update_irq_load_avg`,
    /// `sched_rt_avg_update`).
    fn is_taken(&mut self, cpu: CpuId, taken: (Nanos, Nanos)) {
        let _ = (cpu, taken);
    }

    /// Sets how many tasks of the higher classes are runnable on `cpu`. Called before this class balances.
    fn others(&mut self, cx: &Core, cpu: CpuId, real_time: u32, deadline: u32) {
        let _ = (cx, cpu, real_time, deadline);
    }
}

/// Makes a kernel's complete scheduler from one that has a runqueue per CPU. Load is balanced over the CPUs. FIFO and
/// RR tasks run before the scheduler's own tasks, without a limit, and RR tasks in slices of 100 ms. `tick` is the
/// length of a tick, in ns.
#[must_use]
pub fn simple<S: Queues>(machine: &Machine, scheduler: S, tick: Nanos) -> Stack<Balanced<S>> {
    Stack::new(Balanced::new(machine, scheduler), RealTime::unlimited(machine, tick), None, Turns::default())
}

/// Brings a CPU's accounting up to date with the ticks that were skipped, before another CPU looks at its runqueue. If
/// a task of another class is running there, that class handles the ticks when the engine next calls it.
pub fn sync(class: &mut impl Class, cx: &mut Core, cpu: CpuId) {
    if class.is_running(cpu)
        && let Some(ticks) = cx.take_ticks(cpu)
    {
        class.catch_up(cx, cpu, ticks);
    }
}

/// Migrates a waiting task of this class, and lets it preempt a running task of the same class on its new CPU.
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
