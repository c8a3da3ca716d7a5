//! The trait that every scheduler implements, in the vocabulary of the kernel's `sched_class`.

use crate::core::{Attributes, Core, TaskId, Ticks, TimerId};
use crate::inspect::View;
use crate::program::Start;
use schedlab_base::{CpuId, Nanos};

/// How a task comes onto a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    /// It slept and was woken (`ENQUEUE_WAKEUP`).
    Wakeup,
    /// It was just created.
    New,
    /// It was moved from another CPU's queue.
    Migrated,
}

/// How a task leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// It goes to sleep (`DEQUEUE_SLEEP`).
    Sleep,
    /// It ends.
    Dead,
    /// It moves to another CPU's queue.
    Migrated,
}

/// Why a CPU is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Placement {
    /// A wake-up, asked for on the CPU `from` (`SD_BALANCE_WAKE`).
    Wake { from: CpuId },
    /// A new task (`SD_BALANCE_FORK`).
    Fork { from: CpuId },
}

/// Why the kernel refuses a task the attributes that it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The parameters are not ones that any task may have (`EINVAL`).
    Parameters,
    /// The task may not run on every CPU, as deadline tasks must be allowed to (`EPERM`).
    Affinity,
    /// More would be promised than there is (`EBUSY`).
    Bandwidth,
}

/// A scheduler: it owns its queues and decides; the engine owns time, the machine and the tasks' programs.
///
/// Every method gets [`Core`], the engine's side: the time, who runs where, what each task is.
/// The engine calls [`Scheduler::catch_up`] for a CPU before any other method acts on that CPU.
pub trait Scheduler {
    /// A task is created (`sched_fork`), by `parent` or at boot. It is on no queue yet.
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start);

    /// Chooses the CPU of a task that wakes or is new. Must be allowed and online.
    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId;

    /// A task left `from` for another CPU while it was asleep or new (`migrate_task_rq`).
    fn migrate_task_rq(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        let _ = (cx, p, from, to);
    }

    /// Puts a runnable task on the queue of `cpu`.
    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue);

    /// Takes a task off the queue of `cpu`; `false` when it stays there though it sleeps
    /// (EEVDF's delayed dequeue), until it is picked or [`Scheduler::wake_delayed`].
    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) -> bool;

    /// A sleeping task is woken: if it still stands on its queue, makes it runnable there (`ttwu_runnable`).
    fn wake_delayed(&mut self, cx: &mut Core, p: TaskId) -> bool {
        let _ = (cx, p);
        false
    }

    /// The running task calls `sched_yield()`; the engine reschedules afterwards.
    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId);

    /// A task became runnable on `cpu`: asks for rescheduling if it should preempt (`check_preempt_curr`).
    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue);

    /// Puts `prev` back if it is still runnable, and takes the next task, pulling from other CPUs
    /// where this scheduler does so; `None` is idle.
    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId>;

    /// The stopper of `cpu` runs, as [`Core::wake_stopper`] asked for, and takes no time: `prev` has given way to it
    /// and is no longer running, though `cx.curr(cpu)` has it; if it is still runnable, put it back, and it may be
    /// moved like those that wait. [`Scheduler::pick_next_task`] without a `prev` follows. The trace does not tell of
    /// the stopper.
    fn run_stopper(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) {
        let _ = (cx, cpu, prev);
    }

    /// The timer interrupt on `cpu` (`scheduler_tick`), busy or idle.
    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId);

    /// Accounts for ticks that [`Scheduler::next_decision`] declared without effect: leaves the state as if
    /// [`Scheduler::task_tick`] had been called at each of them.
    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks);

    /// The earliest time at which a tick on `cpu` could do more than [`Scheduler::catch_up`] does, as things stand.
    /// `Nanos::MAX`: never. Asked anew whenever something on that CPU changed.
    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos;

    /// How many tasks are runnable on `cpu`, the running one included, and their load in the scheduler's own unit;
    /// `None` when it has no queue for a CPU. Asked only where a trace is to tell of queues.
    fn queue_load(&self, cpu: CpuId) -> Option<(u32, u64)> {
        let _ = cpu;
        None
    }

    /// Whether the timer ticks on an idle CPU too (no `NO_HZ`).
    fn ticks_when_idle(&self) -> bool;

    /// The running task reads its CPU clock: its account is brought up to date (`update_curr`).
    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId);

    /// The earliest time at which [`Scheduler::update_curr`] could ask for rescheduling; `Nanos::MAX`: never.
    fn clock_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let _ = (cx, cpu);
        Nanos::MAX
    }

    /// Nice, policy, priority or slice of a task changed (`prio_changed`, `switched_to`); `cx.task(p)` has the new
    /// ones.
    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes);

    /// Whether the kernel lets a task have these attributes: the parameters and the admission of deadline tasks.
    ///
    /// # Errors
    /// Why it does not.
    fn admits(&mut self, cx: &Core, p: TaskId, new: &Attributes) -> Result<(), Refusal> {
        let _ = (cx, p, new);
        Ok(())
    }

    /// A task moves to another group (`sched_move_task`): called before and after `cx.task(p).group` changes. Before,
    /// the scheduler takes it off its queue, if it is on one; after, it puts it back.
    fn leave_group(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// See [`Scheduler::leave_group`].
    fn join_group(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// One of the timers that the scheduler started ([`Core::start_timer`]) expires.
    fn timer(&mut self, cx: &mut Core, id: TimerId) {
        let _ = (cx, id);
    }

    /// A CPU came online. Nothing runs or waits on it yet.
    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// A CPU goes offline. `cx.online(cpu)` is false already and no task is allowed there any more; those that are on
    /// its queue are moved by the engine afterwards, like migrations. What stands there though it sleeps
    /// (delayed dequeue) must leave now, and what is throttled must become movable.
    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// The tunables of which the kernel itself changes some as it runs, as they are now.
    fn tunables(&self) -> Vec<(&'static str, i64)> {
        Vec::new()
    }

    /// The state of a CPU's queues, and of what hangs together with them, to be shown.
    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        let _ = (cx, cpu);
        View::Nothing
    }

    /// A task ended and was dequeued (`task_dead`, `sched_exit`).
    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }
}
