//! What a simulated task does: a flat program of operations on numbered resources.
//!
//! Programs are created where workloads are read; the engine only executes them. All references are indices, which are
//! checked when a [`Load`] is built, so that the engine does not have to look anything up.

use schedlab_base::{Averages, Computing, CpuId, Nanos};
use std::collections::BTreeSet;

/// An amount of time, drawn at random at each execution if `sd` is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The mean.
    pub mean: Nanos,
    /// The standard deviation; 0 means that the amount is exact.
    pub sd: Nanos,
}

/// One operation of a task's program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    /// Does work that takes this long on a CPU of capacity 1024; slower CPUs take longer.
    Run(Amount),
    /// Is busy until this much CPU time has passed.
    Runtime(Amount),
    /// Sleeps; 0 does not block.
    Sleep(Amount),
    /// Waits for the next expiry of timer `timer` (an index into [`Load::timers`]).
    Timer { timer: u32, period: Amount, absolute: bool },
    /// Takes a mutex; blocks while another task holds it.
    Lock(u32),
    /// Releases a mutex.
    Unlock(u32),
    /// Releases the mutex, sleeps until the condition is signalled, and takes the mutex again.
    Wait { cond: u32, mutex: u32 },
    /// Wakes one waiter of a condition; has no effect if there is none.
    Signal(u32),
    /// Wakes all waiters of a condition.
    Broadcast(u32),
    /// Waits at a barrier until all its participants ([`Load::barriers`]) have arrived.
    Barrier(u32),
    /// Sleeps until a task resumes this suspension point.
    Suspend(u32),
    /// Wakes all tasks that are suspended there; has no effect if there are none.
    Resume(u32),
    /// Does this operation, and wakes others synchronously by it: the task is about to sleep (`WF_SYNC`).
    Synced(Box<Op>),
    /// Increments a semaphore.
    SemPost(u32),
    /// Decrements a semaphore; sleeps while it is 0. The oldest question of those that are asked there is the task's.
    SemWait(u32),
    /// Increments a semaphore, and asks a question there.
    Ask(u32),
    /// Answers the oldest question of those that the task took at this semaphore; has no effect if there is none.
    Answer(u32),
    /// Takes an answer to a question of its own; sleeps while there is none.
    Await,
    /// As `Barrier`, but the waiting task burns CPU time.
    SpinBarrier(u32),
    /// As `SpinBarrier`, but a task sleeps after it has burnt `spin` of CPU time in vain.
    HybridBarrier { barrier: u32, spin: Nanos },
    /// As `Lock`, but the waiting task burns CPU time.
    SpinLock(u32),
    /// Releases a spinning lock.
    SpinUnlock(u32),
    /// Causes memory traffic of this many bytes: a `Run` that lasts as long as the machine's memory takes for it.
    Mem { bytes: u64, random: bool },
    /// Sleeps uninterruptibly for the time that the device takes to write this many bytes.
    Io(u64),
    /// Sleeps for as many ticks as are at least this long, the rest of the present one counted as a whole
    /// (`schedule_timeout()`): it wakes at a tick.
    Timeout(Nanos),
    /// Calls `sched_yield()`.
    Yield,
    /// Becomes another program (`execve()`), which may move the task to another CPU first.
    Exec,
    /// Creates a task from [`Load::templates`]`[i]`.
    Fork(u32),
    /// Does jobs of [`Load::jobs`]`[i]`, one after the other, until all are taken.
    Jobs(u32),
    /// Applies [`Load::settings`]`[i]` to this task.
    Set(u32),
    /// Begins a loop: the body up to the matching `LoopEnd` runs `times` times (`None`: for ever).
    LoopStart { times: Option<u64> },
    /// Jumps back to the operation after the matching `LoopStart` at `start`, or falls through.
    LoopEnd { start: u32 },
}

impl Op {
    /// Whether a task that was killed does it all the same ([`TaskSpec::lifetime`]): others may wait for it. It unlocks
    /// what it holds alone.
    #[must_use]
    pub fn serves_others(&self) -> bool {
        matches!(
            self,
            Self::SemPost(_)
                | Self::Unlock(_)
                | Self::Ask(_)
                | Self::Answer(_)
                | Self::Resume(_)
                | Self::Synced(_)
                | Self::Fork(_)
        )
    }
}

/// Scheduling policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Policy {
    #[default]
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
}

impl Policy {
    /// Returns the policy itself if a kernel knows it, otherwise OTHER. `known` lists those besides OTHER.
    #[must_use]
    pub fn among(self, known: &[Self]) -> Self {
        if known.contains(&self) { self } else { Self::Other }
    }
}

/// What a task can change about itself; `None` keeps the present value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The scheduling policy.
    pub policy: Option<Policy>,
    /// The nice level (-20..=19), for OTHER, BATCH and IDLE.
    pub nice: Option<i8>,
    /// The real-time priority (1..=99), for FIFO and RR.
    pub rt_priority: Option<u8>,
    /// Runtime, deadline and period of `sched_attr`. For a fair task the runtime alone is a custom slice.
    pub dl: Option<(Nanos, Nanos, Nanos)>,
    /// `SCHED_FLAG_RECLAIM`: a deadline task reclaims bandwidth that others leave unused.
    pub reclaim: Option<bool>,
    /// The utilisation clamps, minimum and maximum (0..=1024).
    pub util: (Option<u16>, Option<u16>),
    /// The CPUs that the task may use.
    pub cpus: Option<Vec<CpuId>>,
    /// The group (index into [`Load::groups`]), or [`ROOT_GROUP`].
    pub group: Option<u32>,
    /// The bytes that the task touches all the time while it runs; 0 means too few to matter.
    pub working_set: Option<u64>,
    /// Its memory (an index into [`Load::memories`]). Setting the memory that it already has changes nothing.
    pub memory: Option<u32>,
    /// The nodes that its memory must come from.
    pub membind: Option<Vec<u32>>,
    /// The time between two readings of its own CPU clock while it runs, each of which makes the kernel account it; 0
    /// means that it does not read the clock.
    pub clock_poll: Option<Nanos>,
}

/// The description of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSpec {
    /// The task's name in traces; that of a copy ends in its number.
    pub name: String,
    /// How many copies of the task there are instead: so many tasks, alike but for their names and when they start. 0
    /// means that there is one task, of this very name.
    pub copies: u32,
    /// The time when it starts.
    pub start: Nanos,
    /// By how much later each copy starts than the one before it.
    pub stagger: Nanos,
    /// The settings before its first operation; its parent applied them, at no cost.
    pub initial: Setting,
    /// The program; the task ends after the last operation.
    pub program: Vec<Op>,
    /// The user, for grouping by user; `None` is that of the task that forks it, or 0.
    pub user: Option<u32>,
    /// The session, for autogroups, or [`NO_SESSION`]; `None` is that of the task that forks it, or 0.
    pub session: Option<u32>,
    /// The CPU where it last ran before the load begins, with [`Start::Wake`]: it wakes up from there. If it starts at
    /// 0 it is runnable there, or asleep if it first sleeps or waits for a semaphore.
    pub cpu: Option<CpuId>,
    /// What it did before the load begins, with [`Start::Wake`]; otherwise it is new.
    pub averages: Option<Averages>,
    /// What it computes on a real kernel; the engine computes nothing.
    pub computing: Computing,
    /// How long after its beginning it is killed, if it has not ended. It then does nothing more, but that it forks and
    /// posts semaphores as it would have: whoever waits for those does not wait in vain. Its program has no locks,
    /// conditions, barriers and jobs.
    pub lifetime: Option<Nanos>,
    /// The run is over when all tasks that are awaited, forked ones included, have ended, if there were any.
    pub awaited: bool,
}

impl TaskSpec {
    /// How many tasks it describes.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.copies.max(1)
    }

    /// The name of its copy `n`, or of the task that a fork makes of it as its `n`-th.
    #[must_use]
    pub fn name_of(&self, n: u32) -> String {
        format!("{}-{n}", self.name)
    }

    /// Each of its tasks, with a description of its own.
    fn each(self) -> impl Iterator<Item = Self> {
        let count = self.count();
        let one = move |n| match self.copies {
            0 => self.clone(),
            _ => Self { name: self.name_of(n), copies: 0, start: self.start_of(n), stagger: 0, ..self.clone() },
        };
        (0..count).map(one)
    }

    /// When its copy `n` starts.
    #[must_use]
    pub fn start_of(&self, n: u32) -> Nanos {
        self.start.saturating_add(self.stagger.saturating_mul(n.into()))
    }
}

/// The session of a task that is in none, such as a kernel thread: it never belongs to an autogroup.
pub const NO_SESSION: u32 = u32::MAX;

/// How the first tasks are created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// All tasks exist and are asleep; they wake at their start time, in the order listed.
    #[default]
    Wake,
    /// The boot task on CPU 0 forks them at their start time, in the order listed.
    Fork,
    /// As `Fork`, but as threads: each has a full timeslice, and the parent gives up none of its own.
    Threads,
}

/// The value of [`Setting::group`] that moves a task back to the root group.
pub const ROOT_GROUP: u32 = u32::MAX;

/// A group of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSpec {
    /// The path of the group.
    pub path: String,
    /// The parent group; `None` is the root group.
    pub parent: Option<u32>,
    /// The shares; 1024 is the weight of one nice-0 task.
    pub shares: u64,
    /// Quota and period; `None` means no limit.
    pub bandwidth: Option<(Nanos, Nanos)>,
    /// How much unused quota the group may save.
    pub burst: Nanos,
    /// Whether it is a SCHED_IDLE group.
    pub idle: bool,
}

/// Memory that tasks use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemorySpec {
    /// The size in bytes.
    pub bytes: u64,
    /// The nodes that it is on at first, with a share in proportion to the second number. If empty, each part is on the
    /// node where its task first runs (first touch).
    pub nodes: Vec<(u32, u32)>,
    /// Whether it cannot be moved, like memory that a device accesses directly; NUMA balancing still tries.
    pub pinned: bool,
    /// Whether all tasks that name it share it; otherwise each has its own.
    pub shared: bool,
    /// How many tasks each touch an equal part of it when they first run; at least 1, and 1 unless it is shared.
    pub parts: u32,
    /// The percentage of a `Run`'s time that is spent waiting for memory when all of it is local.
    pub bound_percent: u32,
}

/// Jobs that several tasks share out: each takes the next one that nobody has taken yet ([`Op::Jobs`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobList {
    /// What jobs do, without loops, settings and further jobs. Several in a row may do the same.
    pub jobs: Vec<Vec<Op>>,
    /// How many jobs there are up to the last that does this, for each of `jobs`.
    pub ends: Vec<u64>,
    /// How many jobs there are in all; [`u64::MAX`] if they never run out. After the last of `jobs` comes the first.
    pub total: u64,
}

impl JobList {
    /// What the `n`-th job does, counted from 0; `None` if there are fewer.
    #[must_use]
    pub fn job(&self, n: u64) -> Option<&[Op]> {
        let round = self.ends.last().copied().filter(|round| *round > 0 && n < self.total)?;
        let at = self.ends.partition_point(|end| *end <= n % round);
        self.jobs.get(at).map(Vec::as_slice)
    }
}

/// A CPU that is taken offline or brought online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hotplug {
    /// The time of the change.
    pub at: Nanos,
    /// The CPU.
    pub cpu: CpuId,
    /// Whether the CPU is online from then on.
    pub online: bool,
}

/// What takes time from a CPU without a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptKind {
    /// The handler of an interrupt: timers and ticks of the CPU wait for its end.
    Irq,
    /// A softirq: interrupts come through.
    Softirq,
    /// The hypervisor runs something else: timers and ticks of the CPU wait as well.
    Steal,
}

/// A source of interrupts on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptSpec {
    /// The kind.
    pub kind: InterruptKind,
    /// The CPU.
    pub cpu: CpuId,
    /// When it first comes.
    pub first: Nanos,
    /// The time from one to the next, from beginning to beginning; the mean of it if `random`.
    pub period: Nanos,
    /// Whether they come at random, independently of each other.
    pub random: bool,
    /// How long each takes.
    pub length: Amount,
}

/// A complete load, ready to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The tasks that exist from the start. They are numbered in this order, the copies of each one after the other.
    pub tasks: Vec<TaskSpec>,
    /// The tasks that `Fork` creates.
    pub templates: Vec<TaskSpec>,
    /// The settings that `Set` applies.
    pub settings: Vec<Setting>,
    /// The groups of tasks.
    pub groups: Vec<GroupSpec>,
    /// The nice levels of sessions, in ascending order of these; 0 for all others.
    pub session_nice: Vec<(u32, i8)>,
    /// The names of the mutexes, spinning locks included.
    pub mutexes: Vec<String>,
    /// Whether tasks that wait for a mutex lend its holder their priority.
    pub inherits: bool,
    /// The names of the conditions.
    pub conds: Vec<String>,
    /// The names and participants of the barriers, spinning ones included.
    pub barriers: Vec<(String, u32)>,
    /// The names of the semaphores.
    pub sems: Vec<String>,
    /// The names of the suspension points.
    pub suspensions: Vec<String>,
    /// The names of the timers; `true` if each task has its own.
    pub timers: Vec<(String, bool)>,
    /// How the tasks of `tasks` start.
    pub start: Start,
    /// The memory that settings refer to.
    pub memories: Vec<MemorySpec>,
    /// CPUs that go offline and come online, ordered by time. At least one CPU stays online.
    pub hotplug: Vec<Hotplug>,
    /// What takes time from CPUs without a task.
    pub interrupts: Vec<InterruptSpec>,
    /// The jobs that tasks share out.
    pub jobs: Vec<JobList>,
}

impl Load {
    /// How many tasks exist from the start.
    #[must_use]
    pub fn nr_tasks(&self) -> usize {
        self.tasks.iter().map(|spec| spec.count() as usize).sum()
    }

    /// The operations of a task's program, and of the jobs that it may do.
    pub fn ops_of<'a>(&'a self, spec: &'a TaskSpec) -> impl Iterator<Item = &'a Op> {
        let list = |op: &Op| if let Op::Jobs(list) = op { Some(&self.jobs[*list as usize]) } else { None };
        spec.program.iter().chain(spec.program.iter().filter_map(list).flat_map(|list| list.jobs.iter().flatten()))
    }

    /// The semaphores at which questions are asked, in ascending order.
    #[must_use]
    pub fn asked(&self) -> Vec<u32> {
        let ops = self.tasks.iter().chain(&self.templates).flat_map(|spec| self.ops_of(spec));
        let plain = ops.map(|op| if let Op::Synced(op) = op { &**op } else { op });
        let asked: BTreeSet<u32> = plain.filter_map(|op| if let Op::Ask(s) = op { Some(*s) } else { None }).collect();
        asked.into_iter().collect()
    }

    /// Whether something counts from when a task begins: a timer's periods, or its lifetime.
    pub(crate) fn counts_from_start(&self) -> bool {
        !self.timers.is_empty() || self.tasks.iter().chain(&self.templates).any(|spec| spec.lifetime.is_some())
    }

    /// Whether some task reads its CPU clock while it works.
    pub(crate) fn reads_clocks(&self) -> bool {
        let initial = self.tasks.iter().chain(&self.templates).map(|spec| &spec.initial);
        initial.chain(&self.settings).any(|setting| setting.clock_poll.is_some())
    }

    /// The same load with a description for each task: none has copies, and a task's number is its place in `tasks`.
    #[must_use]
    pub fn spread(self) -> Self {
        Self { tasks: self.tasks.into_iter().flat_map(TaskSpec::each).collect(), ..self }
    }
}
