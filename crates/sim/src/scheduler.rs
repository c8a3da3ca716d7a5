//! The trait that every scheduler implements, in the vocabulary of the kernel's `sched_class`.

use crate::core::{Core, Ticks, TimerId};
use crate::inspect::View;
use crate::invariants::QueueList;
use crate::program::{InterruptKind, Start};
use crate::task::{Attributes, TaskId};
use schedlab_base::{CpuId, Nanos};

/// How a task is put on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    /// It slept and was woken (`ENQUEUE_WAKEUP`).
    Wakeup,
    /// It was just created.
    New,
    /// It was moved from another CPU's queue.
    Migrated,
}

/// How a task is taken off a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// It goes to sleep (`DEQUEUE_SLEEP`).
    Sleep,
    /// It ends.
    Dead,
    /// It moves to another CPU's queue.
    Migrated,
}

/// Why a CPU is chosen for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Placement {
    /// A wake-up on the CPU `from` (`SD_BALANCE_WAKE`).
    Wake { from: CpuId },
    /// A new task (`SD_BALANCE_FORK`).
    Fork { from: CpuId },
    /// The task that runs on the CPU `from` becomes another program, and may go on elsewhere (`SD_BALANCE_EXEC`).
    Exec { from: CpuId },
    /// A task that runs on the CPU `from`, which its new affinity excludes (`sched_setaffinity`).
    Affinity { from: CpuId },
}

/// Why the kernel refuses the attributes that a task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No task may have these parameters (`EINVAL`).
    Parameters,
    /// The task may not use every CPU, as a deadline task must be able to (`EPERM`).
    Affinity,
    /// The bandwidth already granted leaves too little (`EBUSY`).
    Bandwidth,
}

/// When ticks on a CPU next do more than [`Scheduler::catch_up`] does, in the present state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The earliest time at which a tick could; `Nanos::MAX` means never.
    pub at: Nanos,
    /// From when until when a tick, if it is the first since `at`, is certain to ask the CPU to reschedule and to do
    /// nothing else. Such a tick is skipped too: it needs no instant of its own.
    pub turn_ends: (Nanos, Nanos),
}

impl Due {
    /// At this time, for whatever reason.
    #[inline]
    #[must_use]
    pub fn at(at: Nanos) -> Self {
        Self { at, turn_ends: (Nanos::MAX, Nanos::MAX) }
    }
}

/// A scheduler. It owns its queues and makes the decisions; the engine owns time, the machine and the tasks' programs.
///
/// One value serves the whole machine: a scheduler with a queue for each CPU keeps a `Vec` of them. Only
/// [`enqueue_task`](Self::enqueue_task), [`dequeue_task`](Self::dequeue_task) and
/// [`pick_next_task`](Self::pick_next_task) must be implemented. With only these three, tasks are served first come,
/// first served, without preemption, each on the CPU where it last was.
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
/// Every method gets [`Core`]: the time, what runs on each CPU, and the state of each task. A scheduler asks a CPU to
/// reschedule with [`Core::resched`]; the engine then calls `pick_next_task` there, at the latest after the time that
/// the machine's costs set for this. To move a waiting task to another CPU, the scheduler takes the task off its own
/// queue, calls [`Core::set_task_cpu`], puts the task on the other queue, and calls [`Core::touch`] for both CPUs. It
/// must not move a running task.
///
/// # Ticks that are skipped
///
/// The engine skips ticks that can change nothing ([`next_decision`](Self::next_decision)). Before it calls a method
/// that takes a `cpu`, it calls [`catch_up`](Self::catch_up) for the ticks that were skipped there. Other CPUs may be
/// behind, and so may every CPU in `task_fork`, `select_task_rq`, `timer` and `task_dead`: a scheduler that reads
/// another CPU's account in them must take the ticks itself ([`Core::take_ticks`]).
///
/// # Rules
///
/// Debug builds check the following rules after each event, for every scheduler that implements
/// [`queued`](Self::queued). A panic names the rule, the task, the CPU and the time.
/// - A task is on a queue exactly once while it is runnable and does not run. The running task may stay on the queue,
///   or be taken off it. A task that is not runnable is on no queue, except by delayed dequeue.
/// - No CPU is idle while a task waits on its queue, unless it was asked to reschedule.
/// - The task that is picked is runnable, is one of this CPU, and runs nowhere else.
pub trait Scheduler {
    /// A task is created (`sched_fork`) by `parent`, or at boot. It sleeps and is on no queue. This is called once for
    /// each task, before any other method gets the task's number, so this is the place to allocate its state. The
    /// workload's tasks are all created at time 0, except with [`Start::Fork`]: then each is created when it starts,
    /// with its parent's attributes, and `attributes_changed` follows once it is queued.
    ///
    /// Default: nothing.
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start) {
        let _ = (cx, p, parent, how);
    }

    /// Chooses the CPU of a task that wakes, is new, becomes another program, or must leave a CPU that it may no longer
    /// use. `prev` is its last CPU. The answer must be in `cx.task(p).allowed`, which contains only online CPUs.
    ///
    /// Default: `prev` if it is allowed, else the first CPU that is.
    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        let _ = why;
        let allowed = &cx.task(p).allowed;
        if allowed.contains(prev) { prev } else { allowed.first().unwrap_or(prev) }
    }

    /// Handles that [`Self::select_task_rq`] chose another CPU, `to`, than the last one, `from` (`migrate_task_rq`).
    /// `cx.task(p).cpu` is still `from`, and the task is on no queue.
    ///
    /// Default: nothing.
    fn migrate_task_rq(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        let _ = (cx, p, from, to);
    }

    /// Puts a runnable task, which is on no queue, on the queue of `cpu`; that is `cx.task(p).cpu`.
    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue);

    /// Takes a task off the queue of `cpu`. Either the task waits there, or it is `cx.curr(cpu)`: then it goes to
    /// sleep, exits, or must run elsewhere, and [`Self::pick_next_task`] follows at once.
    ///
    /// A task that goes to sleep may stay on the queue (EEVDF's delayed dequeue). It leaves the queue when it is
    /// picked, or becomes runnable again through [`Self::wake_delayed`].
    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue);

    /// Wakes a task whose dequeue was delayed: if the task is still on its queue, makes it runnable there and returns
    /// `true` (`ttwu_runnable`). Then no CPU is chosen and the task is not enqueued; [`Self::wakeup_preempt`] follows.
    ///
    /// Default: `false`, for schedulers that dequeue every sleeping task.
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

    /// The engine has put a task on the queue of `cpu`. Calls [`Core::resched`] if the task should run at once
    /// (`check_preempt_curr`). An idle CPU looks at its queue only when it is asked to.
    ///
    /// Default: asks the CPU to reschedule if it is idle.
    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let _ = (p, how);
        if cx.curr(cpu).is_none() {
            cx.resched(cpu);
        }
    }

    /// Picks the task that runs next on `cpu`; `None` leaves the CPU idle. The task must belong to this CPU: a
    /// scheduler that takes it from another CPU must have moved it with [`Core::set_task_cpu`].
    ///
    /// `prev` has been running until now and is still `cx.curr(cpu)`. `cx.task(prev).on_rq` says whether it may go on.
    /// If so, it is a candidate like the waiting tasks, and a scheduler that took it off the queue when it was picked
    /// must put it back now. If not, it was dequeued just before: it sleeps, has exited, or is about to be enqueued on
    /// another CPU. In the last case its state is still `Runnable`, so do not rely on the state: such a task would be
    /// queued twice. `prev` is `None` on an idle CPU, and after [`Self::run_stopper`].
    ///
    /// This is called when the CPU was asked to reschedule, and when its task sleeps, exits, yields or must leave.
    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId>;

    /// Runs the stopper of `cpu`, as requested by [`Core::wake_stopper`]; it takes no time but that of a switch. `prev`
    /// has made way for it and no longer runs, though `cx.curr(cpu)` is still `prev`. If `cx.task(prev).on_rq`, put
    /// `prev` back on the queue; it may be moved like the waiting tasks. [`Self::pick_next_task`] without a `prev`
    /// follows. The stopper does not appear in the trace.
    ///
    /// Default: nothing, for schedulers that never wake the stopper.
    fn run_stopper(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) {
        let _ = (cx, cpu, prev);
    }

    /// Handles the timer interrupt on `cpu` (`scheduler_tick`): on a busy CPU, and with [`Self::ticks_when_idle`] also
    /// on an idle one. It ends the running task's turn by [`Core::resched`].
    ///
    /// Default: nothing. A task then runs until it sleeps or yields.
    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// Accounts for skipped ticks on `cpu`: leaves the state as if [`Self::task_tick`] had been called at each of them.
    /// `cx.curr(cpu)` was running at all of them; `cx.now()` may be later than the last.
    ///
    /// Default: nothing. This is right if time is charged by the clock, and also if every tick of a busy CPU is taken
    /// (see [`Self::next_decision`]) and a tick of an idle CPU does nothing.
    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        let _ = (cx, cpu, ticks);
    }

    /// Returns the earliest time at which a tick on `cpu` could do more than [`Self::catch_up`] does, in the present
    /// state; `Nanos::MAX` means never. An answer that is too early costs time, and one that is too late is a bug:
    /// traces must be the same with ticks skipped and taken. It is asked again whenever something on that CPU has
    /// changed ([`Core::touch`]).
    ///
    /// Default: the next tick, so that every tick is taken.
    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        cx.next_tick(cpu)
    }

    /// As [`Self::next_decision`], and whether that is certain to end the running task's turn. If it is,
    /// [`Self::catch_up`] gets that tick, with [`Ticks::end_turn`], and must do all that [`Self::task_tick`] does but
    /// ask for rescheduling.
    ///
    /// Default: it is not certain.
    fn due(&mut self, cx: &Core, cpu: CpuId) -> Due {
        Due::at(self.next_decision(cx, cpu))
    }

    /// Returns whether an idle CPU has timer ticks too (no `NO_HZ`).
    ///
    /// Default: it does not.
    fn ticks_when_idle(&self) -> bool {
        false
    }

    /// Brings the running task's account up to date because the task reads its CPU clock (`update_curr`). This is only
    /// called for readings at or after [`Self::clock_decision`].
    ///
    /// Default: nothing.
    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// Returns the earliest time at which [`Self::update_curr`] could ask for rescheduling.
    ///
    /// Default: `Nanos::MAX`, never.
    fn clock_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let _ = (cx, cpu);
        Nanos::MAX
    }

    /// Handles a change of a task's nice level, policy, priority or slice (`prio_changed`, `switched_to`). `cx.task(p)`
    /// has the new values. The task is running, or was just queued (see [`Self::task_fork`]). Where mutexes lend
    /// priorities it may also be waiting on a queue or asleep, and [`cx.is_lent(p)`](Core::is_lent) while it is lent
    /// any (`rt_mutex_setprio`).
    ///
    /// Default: nothing. The new values take effect when the scheduler next reads them.
    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let _ = (cx, p, old);
    }

    /// Handles a change of the CPUs that a running task may use, of which its present one is still one
    /// (`do_set_cpus_allowed`).
    ///
    /// Default: nothing.
    fn affinity_changed(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// Returns the absolute deadline of a deadline task, by which mutexes that lend priorities order their waiters.
    ///
    /// Default: 0, for schedulers without such tasks.
    fn deadline(&self, p: TaskId) -> Nanos {
        let _ = p;
        0
    }

    /// Decides whether the kernel lets a task have these attributes. This is asked only for deadline tasks, when they
    /// are created and when they change.
    ///
    /// Default: it does.
    ///
    /// # Errors
    /// The reason why it does not.
    fn admits(&mut self, cx: &Core, p: TaskId, new: &Attributes) -> Result<(), Refusal> {
        let _ = (cx, p, new);
        Ok(())
    }

    /// The running task moves to another group (`sched_move_task`). This is called before `cx.task(p).group` changes
    /// and takes the task off its queue; [`Self::join_group`] follows.
    ///
    /// Default: nothing, for schedulers without groups.
    fn leave_group(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// Puts the task back on its queue, after `cx.task(p).group` has changed.
    ///
    /// Default: nothing.
    fn join_group(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// Handles the expiry of one of the timers that the scheduler started with [`Core::start_timer`]. The timer is no
    /// longer running.
    ///
    /// Default: nothing.
    fn timer(&mut self, cx: &mut Core, id: TimerId) {
        let _ = (cx, id);
    }

    /// An interrupt, a softirq or the hypervisor has `cpu` from `taken.0`, which is now or the end of another, to
    /// `taken.1`. The running task makes no progress in that time.
    ///
    /// Default: nothing, and the task that is running is charged for it.
    fn interrupted(&mut self, cx: &mut Core, cpu: CpuId, kind: InterruptKind, taken: (Nanos, Nanos)) {
        let _ = (cx, cpu, kind, taken);
    }

    /// Handles that a CPU has come online. No task runs or waits there yet.
    ///
    /// Default: nothing.
    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// Handles that a CPU goes offline. `cx.online(cpu)` is already false, and no task is allowed there any more. The
    /// engine moves the CPU's tasks afterwards: each is dequeued and enqueued elsewhere as [`Enqueue::Migrated`], the
    /// running one last. A sleeping task that is still on a queue there (delayed dequeue) must leave now, and a
    /// throttled task must become movable.
    ///
    /// Default: nothing.
    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        let _ = (cx, cpu);
    }

    /// Handles that a task has exited. It was dequeued, and its CPU has switched to another task (`task_dead`,
    /// `sched_exit`).
    ///
    /// Default: nothing.
    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let _ = (cx, p);
    }

    /// Lists the tasks on the queue of `cpu`, so that debug builds can check the rules above. With one queue for all
    /// CPUs, these are the tasks on it with this `cx.task(p).cpu`.
    ///
    /// Default: unknown, and nothing is checked.
    fn queued(&self, cx: &Core, cpu: CpuId, list: &mut QueueList) {
        let _ = (cx, cpu);
        list.unknown();
    }

    /// Returns how many tasks are runnable on `cpu`, including the running one, and their load in the scheduler's own
    /// unit; `None` if the scheduler has no queue for each CPU. This is asked only if the trace records queue lengths.
    ///
    /// Default: `None`.
    fn queue_load(&self, cpu: CpuId) -> Option<(u32, u64)> {
        let _ = cpu;
        None
    }

    /// Returns the final values of the tunables that the kernel itself changes during the run.
    ///
    /// Default: none.
    fn tunables(&self) -> Vec<(&'static str, i64)> {
        Vec::new()
    }

    /// Returns the state of a CPU's queues for `schedlab sim --queues-at`, before anything happens at `cx.now()`.
    ///
    /// Default: [`View::Nothing`].
    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        let _ = (cx, cpu);
        View::Nothing
    }
}
