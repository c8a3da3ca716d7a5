//! What a simulated task does: a flat program of operations over numbered resources.
//!
//! Programs are made where workloads are read; the engine only runs them. All references are
//! indices, checked when a [`Load`] is built, so that the engine looks nothing up.

use schedlab_base::{CpuId, Nanos};

/// An amount of time, drawn anew at each execution when `sd` is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The mean.
    pub mean: Nanos,
    /// The standard deviation; 0 is exact.
    pub sd: Nanos,
}

/// One operation of a task's program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    /// Work of this length on a CPU of capacity 1024; slower CPUs take longer.
    Run(Amount),
    /// Busy until this much CPU time has passed.
    Runtime(Amount),
    /// Sleep; 0 does not block.
    Sleep(Amount),
    /// Wait for the next expiry of timer `timer` ([`Load::timers`] of them).
    Timer { timer: u32, period: Amount, absolute: bool },
    /// Take a mutex; blocks while another holds it.
    Lock(u32),
    /// Release a mutex.
    Unlock(u32),
    /// Release the mutex, sleep until the condition is signalled, take the mutex again.
    Wait { cond: u32, mutex: u32 },
    /// Wake one waiter of a condition; lost when there is none.
    Signal(u32),
    /// Wake all waiters of a condition.
    Broadcast(u32),
    /// Wait at a barrier until all its participants ([`Load::barriers`]) have come.
    Barrier(u32),
    /// Sleep until a task resumes `suspension`.
    Suspend(u32),
    /// Wake all tasks that are suspended there; lost when none is.
    Resume(u32),
    /// Increment a semaphore.
    SemPost(u32),
    /// Decrement a semaphore, sleep while it is 0.
    SemWait(u32),
    /// As `Barrier`, but the waiter burns CPU.
    SpinBarrier(u32),
    /// As `SpinBarrier`, but a task that has burnt `spin` of CPU time in vain goes to sleep.
    HybridBarrier { barrier: u32, spin: Nanos },
    /// As `Lock`, but the waiter burns CPU.
    SpinLock(u32),
    /// Releases a spinning lock.
    SpinUnlock(u32),
    /// Memory traffic of this many bytes: `Run` by the machine's cost of memory.
    Mem { bytes: u64, random: bool },
    /// Sleep uninterruptibly for the device's time of writing this many bytes.
    Io(u64),
    /// `sched_yield()`.
    Yield,
    /// Create a task from [`Load::templates`]`[i]`.
    Fork(u32),
    /// Apply [`Load::settings`]`[i]` to this task.
    Set(u32),
    /// Push a loop counter: the body up to the matching `LoopEnd` runs `times` times (`None`: for ever).
    LoopStart { times: Option<u64> },
    /// Jump back to the operation after the matching `LoopStart` at `start`, or fall through.
    LoopEnd { start: u32 },
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
    /// What a kernel that knows these policies and OTHER makes of it.
    #[must_use]
    pub fn among(self, known: &[Self]) -> Self {
        if known.contains(&self) { self } else { Self::Other }
    }
}

/// What a task may change about itself; `None` leaves what was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Policy.
    pub policy: Option<Policy>,
    /// Nice (-20..=19), for OTHER, BATCH and IDLE.
    pub nice: Option<i8>,
    /// Real-time priority (1..=99), for FIFO and RR.
    pub rt_priority: Option<u8>,
    /// `sched_attr`'s runtime, deadline and period; runtime alone on a fair task is a custom slice.
    pub dl: Option<(Nanos, Nanos, Nanos)>,
    /// `SCHED_FLAG_RECLAIM`: a deadline task reclaims bandwidth that others leave unused.
    pub reclaim: Option<bool>,
    /// Utilisation clamps (0..=1024).
    pub util: (Option<u32>, Option<u32>),
    /// Allowed CPUs.
    pub cpus: Option<Vec<CpuId>>,
    /// The group (index into [`Load::groups`]), or [`ROOT_GROUP`].
    pub group: Option<u32>,
    /// Bytes that the task touches all the time while it runs; 0: few enough not to matter.
    pub working_set: Option<u64>,
    /// Its memory (index into [`Load::memories`]). Setting what it has already changes nothing.
    pub memory: Option<u32>,
    /// The nodes that its memory must come from.
    pub membind: Option<Vec<u32>>,
    /// Time between two readings of its own CPU clock while it runs (each makes the kernel account it); 0: none.
    pub clock_poll: Option<Nanos>,
}

/// A task to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSpec {
    /// Its name in traces.
    pub name: String,
    /// When it starts.
    pub start: Nanos,
    /// What holds for it before its first operation (its parent set it, at no cost).
    pub initial: Setting,
    /// Its program; the task ends after the last operation.
    pub program: Vec<Op>,
    /// User and session, for automatic grouping.
    pub user: u32,
    /// Session.
    pub session: u32,
}

/// How the first tasks come to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// All exist, asleep, and wake at their start time, in the order listed.
    #[default]
    Wake,
    /// The boot task of CPU 0 forks them at their start time, in the order listed.
    Fork,
    /// As `Fork`, as threads, each with a full timeslice, and the parent gives nothing of its own.
    Threads,
}

/// As [`Setting::group`]: back to the root group.
pub const ROOT_GROUP: u32 = u32::MAX;

/// A group of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its path.
    pub path: String,
    /// The group above; `None` is the root.
    pub parent: Option<u32>,
    /// Its shares; 1024 is one nice-0 task's weight.
    pub shares: u64,
    /// Quota and period; `None` is no limit.
    pub bandwidth: Option<(Nanos, Nanos)>,
    /// What of its quota it may save.
    pub burst: Nanos,
    /// A SCHED_IDLE group.
    pub idle: bool,
}

/// Memory that tasks have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemorySpec {
    /// How much.
    pub bytes: u64,
    /// The nodes that it is on at first, each with its part in proportion to these numbers; empty: the first that each
    /// part's user runs on (first touch).
    pub nodes: Vec<(u32, u32)>,
    /// It cannot be moved, as memory that a device reads and writes by itself; NUMA balancing tries.
    pub pinned: bool,
    /// All tasks that name it share it; otherwise each has its own.
    pub shared: bool,
    /// How many tasks touch an equal part of it first, when they first run; at least 1, and 1 where it is not shared.
    pub parts: u32,
    /// The share of a `Run`'s time that waits for memory when all of it is local, in percent.
    pub bound_percent: u32,
}

/// A CPU that is taken offline or brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hotplug {
    /// When.
    pub at: Nanos,
    /// Which.
    pub cpu: CpuId,
    /// Whether it is online from then on.
    pub online: bool,
}

/// A whole load, ready to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The tasks that exist from the start.
    pub tasks: Vec<TaskSpec>,
    /// What `Fork` creates.
    pub templates: Vec<TaskSpec>,
    /// What `Set` applies.
    pub settings: Vec<Setting>,
    /// Groups.
    pub groups: Vec<GroupSpec>,
    /// Names of the mutexes (spinning ones too).
    pub mutexes: Vec<String>,
    /// Names of the conditions.
    pub conds: Vec<String>,
    /// Names and participants of the barriers (spinning ones too).
    pub barriers: Vec<(String, u32)>,
    /// Names of the semaphores.
    pub sems: Vec<String>,
    /// Names of the points of suspension.
    pub suspensions: Vec<String>,
    /// Names of the timers; `true`: each task has its own.
    pub timers: Vec<(String, bool)>,
    /// How the tasks of `tasks` start.
    pub start: Start,
    /// Memory that settings name.
    pub memories: Vec<MemorySpec>,
    /// CPUs that go and come, ordered by time. At least one CPU stays online.
    pub hotplug: Vec<Hotplug>,
}
