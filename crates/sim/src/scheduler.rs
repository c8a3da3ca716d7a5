//! The trait that every scheduler implements, in the vocabulary of the kernel's `sched_class`.

use crate::core::{Core, Ticks, TimerId};
use crate::inspect::View;
use crate::invariants::QueueList;
use crate::program::Start;
use crate::task::{Attributes, TaskId};
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

/// A scheduler: it owns its queues and decides. The engine owns time, the machine and the tasks' programs.
///
/// One value serves the whole machine: a scheduler with a queue for each CPU keeps a `Vec` of them. Only
/// [`enqueue_task`](Self::enqueue_task), [`dequeue_task`](Self::dequeue_task) and
/// [`pick_next_task`](Self::pick_next_task) must be written. With these three it is first come, first served, on the
/// CPU where each task last was, and without preemption.
///
/// # The life of a task
///
/// [`task_fork`](Self::task_fork) announces it. When it starts or wakes, the engine calls, in this order,
/// [`select_task_rq`](Self::select_task_rq), [`migrate_task_rq`](Self::migrate_task_rq) if the answer is another CPU
/// than before, [`enqueue_task`](Self::enqueue_task) and [`wakeup_preempt`](Self::wakeup_preempt). When it sleeps or
/// ends, the engine calls [`dequeue_task`](Self::dequeue_task), then [`pick_next_task`](Self::pick_next_task) on its
/// CPU. From just before `enqueue_task` until just before `dequeue_task`, [`cx.task(p).on_rq`](crate::Task::on_rq) is
/// true, running or not.
///
/// # What a scheduler may ask of the engine
///
/// Every method gets [`Core`]: the time, what runs on each CPU, what each task is. A scheduler asks a CPU to choose
/// again by [`Core::resched`]; the engine then calls `pick_next_task` there, at the latest after the machine's costs
/// for it have passed. To move a waiting task to another CPU it takes the task off its own queue, calls
/// [`Core::set_task_cpu`], puts it on the other queue, and calls [`Core::touch`] for both CPUs. It must not move a
/// task that runs.
///
/// # Ticks that are skipped
///
/// The engine passes over ticks that can change nothing ([`next_decision`](Self::next_decision)). Before it calls a
/// method that takes a `cpu`, it has called [`catch_up`](Self::catch_up) for the ticks that were passed over there.
/// Other CPUs may be behind, and so may every CPU in `task_fork`, `select_task_rq`, `timer` and `task_dead`: a
/// scheduler that reads another CPU's account there takes the ticks itself ([`Core::take_ticks`]).
///
/// # Rules
///
/// Debug builds check the following after each event, for every scheduler that implements [`queued`](Self::queued). A
/// panic names the rule, the task, the CPU and the time.
/// - A task is on a queue exactly once while it is runnable and does not run. The running task may stay on the queue,
///   or be taken off it. A task that is not runnable is on no queue, except by delayed dequeue.
/// - No CPU is idle while a task waits on its queue, unless it was asked to reschedule.
/// - The task that is picked is runnable, is one of this CPU, and runs nowhere else.
pub trait Scheduler {
    /// A task is created (`sched_fork`) by `parent`, or at boot. It sleeps and is on no queue. Called once for each
    /// task, before any other method gets its number: the place to make room for it. Tasks of the workload are all
    /// created at time 0, except that with [`Start::Fork`] each is created when it starts, with its parent's
    /// attributes; `attributes_changed` then follows once it is queued.
    ///
    /// Default: nothing.
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start) {
        let _ = (cx, p, parent, how);
    }

    /// Chooses the CPU of a task that wakes, is new, or must leave a CPU where it may no longer run. `prev` is where it
    /// last was. The answer must be in `cx.task(p).allowed`, which holds online CPUs only.
    ///
    /// Default: `prev` if that is allowed, else the first CPU that is.
    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        let _ = why;
        let allowed = &cx.task(p).allowed;
        if allowed.contains(prev) { prev } else { allowed.first().unwrap_or(prev) }
    }

    /// The CPU that [`Self::select_task_rq`] chose, `to`, is another than before, `from` (`migrate_task_rq`).
    /// `cx.task(p).cpu` is still `from`, and the task is on no queue.
    ///
    /// Default: nothing.
    fn migrate_task_rq(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        let _ = (cx, p, from, to);
    }

    /// Puts a runnable task on the queue of `cpu`, which is `cx.task(p).cpu`. It is on no queue before.
    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue);

    /// Takes a task off the queue of `cpu`. It waits there, or it is `cx.curr(cpu)`: then it goes to sleep, ends, or
    /// must run elsewhere, and [`Self::pick_next_task`] follows at once.
    ///
    /// A task that goes to sleep may stay on the queue (EEVDF's delayed dequeue). It then leaves when it is picked, or
    /// becomes runnable where it is by [`Self::wake_delayed`].
    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue);

    /// A sleeping task is woken: if it still stands on its queue, makes it runnable there and says `true`
    /// (`ttwu_runnable`). No CPU is chosen then, and the task is not enqueued; [`Self::wakeup_preempt`] follows.
    ///
    /// Default: `false`, for schedulers that take every sleeping task off.
    fn wake_delayed(&mut self, cx: &mut Core, p: TaskId) -> bool {
        let _ = (cx, p);
        false
    }

    /// The running task calls `sched_yield()`. The engine calls [`Self::pick_next_task`] afterwards, whatever this
    /// does.
    ///
    /// Default: nothing.
    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// A task was put on the queue of `cpu` by the engine: calls [`Core::resched`] if it should run at once
    /// (`check_preempt_curr`). An idle CPU looks at its queue only when it is asked to.
    ///
    /// Default: asks if the CPU is idle.
    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let _ = (p, how);
        if cx.curr(cpu).is_none() {
            cx.resched(cpu);
        }
    }

    /// Chooses what runs next on `cpu`; `None` leaves it idle. The task must be one of this CPU: a scheduler that
    /// takes it from elsewhere has moved it by [`Core::set_task_cpu`].
    ///
    /// `prev` has run until now and is still `cx.curr(cpu)`. Ask `cx.task(prev).on_rq` whether it may go on. If so, it
    /// is a candidate like those that wait, and a scheduler that took it off the queue when it was picked puts it back
    /// now. If not, it was dequeued just before: it sleeps, has ended, or is about to be enqueued on another CPU. In
    /// the last case its state is still `Runnable`, so do not go by the state: such a task would be queued twice.
    /// `prev` is `None` on an idle CPU, and after [`Self::run_stopper`].
    ///
    /// Called when the CPU was asked to reschedule, and when its task sleeps, ends, yields or must leave.
    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId>;

    /// The stopper of `cpu` runs, as [`Core::wake_stopper`] asked for, and takes no time. `prev` has made way for it
    /// and no longer runs, though `cx.curr(cpu)` is still `prev`. If `cx.task(prev).on_rq`, put it back; it may be
    /// moved like those that wait. [`Self::pick_next_task`] without a `prev` follows. The stopper does not appear in
    /// the trace.
    ///
    /// Default: nothing, for schedulers that never wake it.
    fn run_stopper(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) {
        let _ = (cx, cpu, prev);
    }

    /// The timer interrupt on `cpu` (`scheduler_tick`): on a busy CPU, and on an idle one where
    /// [`Self::ticks_when_idle`]. Ends the running task's turn by [`Core::resched`].
    ///
    /// Default: nothing. A task then runs until it sleeps or yields.
    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// Accounts for ticks on `cpu` that were passed over: leaves the state as if [`Self::task_tick`] had been called
    /// at each of them. `cx.curr(cpu)` is what ran at all of them; `cx.now()` may be later than the last.
    ///
    /// Default: nothing. That is right where time is charged by the clock, and where every tick of a busy CPU is taken
    /// (see [`Self::next_decision`]) and an idle tick does nothing.
    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        let _ = (cx, cpu, ticks);
    }

    /// The earliest time at which a tick on `cpu` could do more than [`Self::catch_up`] does, as things stand.
    /// `Nanos::MAX`: never. Too early an answer costs time, too late a one is a fault: traces must be the same with
    /// ticks skipped and taken. Asked again whenever something on that CPU changed ([`Core::touch`]).
    ///
    /// Default: the next tick, so that every tick is taken.
    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        cx.next_tick(cpu)
    }

    /// Whether the timer ticks on an idle CPU too (no `NO_HZ`).
    ///
    /// Default: it does not.
    fn ticks_when_idle(&self) -> bool {
        false
    }

    /// The running task reads its CPU clock: its account is brought up to date (`update_curr`). Only called at
    /// readings at or after [`Self::clock_decision`].
    ///
    /// Default: nothing.
    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// The earliest time at which [`Self::update_curr`] could ask for rescheduling.
    ///
    /// Default: `Nanos::MAX`, never.
    fn clock_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let _ = (cx, cpu);
        Nanos::MAX
    }

    /// Nice, policy, priority or slice of a task changed (`prio_changed`, `switched_to`); `cx.task(p)` has the new
    /// ones. The task runs, or was just queued (see [`Self::task_fork`]).
    ///
    /// Default: nothing. The new values count when the scheduler next looks at them.
    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let _ = (cx, p, old);
    }

    /// Whether the kernel lets a task have these attributes. Asked for deadline tasks only, when they are created and
    /// when they change.
    ///
    /// Default: it does.
    ///
    /// # Errors
    /// Why it does not.
    fn admits(&mut self, cx: &Core, p: TaskId, new: &Attributes) -> Result<(), Refusal> {
        let _ = (cx, p, new);
        Ok(())
    }

    /// The running task moves to another group (`sched_move_task`): called before `cx.task(p).group` changes. Takes it
    /// off its queue; [`Self::join_group`] follows.
    ///
    /// Default: nothing, for schedulers without groups.
    fn leave_group(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// Called after `cx.task(p).group` has changed: puts the task back on its queue.
    ///
    /// Default: nothing.
    fn join_group(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// One of the timers that the scheduler started ([`Core::start_timer`]) expires. It no longer runs.
    ///
    /// Default: nothing.
    fn timer(&mut self, cx: &mut Core, id: TimerId) {
        let _ = (cx, id);
    }

    /// A CPU came online. Nothing runs or waits on it yet.
    ///
    /// Default: nothing.
    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// A CPU goes offline. `cx.online(cpu)` is false already and no task is allowed there any more. The engine moves
    /// its tasks afterwards: each is dequeued and enqueued elsewhere as [`Enqueue::Migrated`], the running one last. A
    /// task that stands on a queue there though it sleeps (delayed dequeue) must leave now, and one that is throttled
    /// must become movable.
    ///
    /// Default: nothing.
    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// A task ended. It was dequeued and its CPU has switched to another (`task_dead`, `sched_exit`).
    ///
    /// Default: nothing.
    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// Lists the tasks on the queue of `cpu`, so that debug builds can check the rules above. With one queue for all
    /// CPUs: those of its tasks whose `cx.task(p).cpu` this is.
    ///
    /// Default: unknown, and nothing is checked.
    fn queued(&self, cx: &Core, cpu: CpuId, list: &mut QueueList) {
        let _ = (cx, cpu);
        list.unknown();
    }

    /// How many tasks are runnable on `cpu`, the running one included, and their load in the scheduler's own unit;
    /// `None` when it has no queue for a CPU. Asked only where the trace records the lengths of queues.
    ///
    /// Default: `None`.
    fn queue_load(&self, cpu: CpuId) -> Option<(u32, u64)> {
        let _ = cpu;
        None
    }

    /// The tunables of which the kernel itself changes some as it runs, as they are at the end of the run.
    ///
    /// Default: none.
    fn tunables(&self) -> Vec<(&'static str, i64)> {
        Vec::new()
    }

    /// The state of a CPU's queues for `schedlab sim --queues-at`, before anything happens at `cx.now()`.
    ///
    /// Default: nothing to see.
    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        let _ = (cx, cpu);
        View::Nothing
    }
}
