//! What a workload is, after its file has been read and checked: plain data, names resolved to nothing yet.

use schedlab_base::Nanos;
use std::collections::BTreeMap;

/// A workload: what a file of rt-app's says, and the x- keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Its name: a preset's, or the file's.
    pub name: String,
    /// `global`.
    pub global: Global,
    /// `tasks`, in the order listed.
    pub tasks: Vec<TaskDef>,
    /// `x-groups` by path.
    pub groups: BTreeMap<String, Group>,
    /// `x-hotplug`, by time.
    pub hotplug: Vec<Hotplug>,
    /// What was accepted but deserves a word (a doubled key, an ignored setting).
    pub warnings: Vec<String>,
}

impl Workload {
    /// Every event with its task and phase, in the order listed.
    pub fn steps(&self) -> impl Iterator<Item = (&TaskDef, &Phase, &Step)> {
        let phases = self.tasks.iter().flat_map(|task| task.phases.iter().map(move |phase| (task, phase)));
        phases.flat_map(|(task, phase)| phase.events.iter().map(move |step| (task, phase, step)))
    }
}

/// The bytes of `mem_buffer_size` where nothing is said: rt-app's 4 MiB.
pub const MEM_BUFFER_SIZE: u64 = 4 << 20;

/// `global`. Keys that only steer rt-app's own logging are checked and dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// `duration`; `None` is rt-app's -1: until the tasks end.
    pub duration: Option<Nanos>,
    /// `calibration` in ns a loop where a number was given (a run is in us, so it changes nothing here).
    pub calibration_ns: Option<u64>,
    /// `default_policy`.
    pub default_policy: Policy,
    /// `pi_enabled`.
    pub pi_enabled: bool,
    /// `mem_buffer_size` in bytes.
    pub mem_buffer_size: u64,
    /// `cumulative_slack`.
    pub cumulative_slack: bool,
    /// `io_device`, the file that `iorun` writes; `None` is rt-app's /dev/null.
    pub io_device: Option<String>,
    /// `x-start`.
    pub start: Start,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            duration: None,
            calibration_ns: None,
            default_policy: Policy::Other,
            pi_enabled: false,
            mem_buffer_size: MEM_BUFFER_SIZE,
            cumulative_slack: false,
            io_device: None,
            start: Start::Wake,
        }
    }
}

/// `x-start`: how tasks come to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// All exist, asleep, and wake at 0 in the order listed.
    #[default]
    Wake,
    /// A parent forks them one by one at 0.
    Fork,
    /// As `Fork`, but as threads, each with a full timeslice.
    Threads,
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

/// One key of `tasks`. The default is one instance that repeats its phases for ever, as rt-app's.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDef {
    /// Its key.
    pub name: String,
    /// `instance`; 0 is a template for `fork`.
    pub instances: u32,
    /// `delay` before the first phase.
    pub delay: Nanos,
    /// `x-stagger` between the starts of instances.
    pub stagger: Nanos,
    /// How often the phases are gone through (`loop` beside `phases`); `None` is -1, for ever.
    /// With the events in the task itself rt-app's `loop` is the phase's, and this is 1.
    pub loops: Option<u64>,
    /// What the task sets for itself before its first phase.
    pub props: Props,
    /// Its phases, at least one.
    pub phases: Vec<Phase>,
    /// `x-user`.
    pub user: Option<u32>,
    /// `x-session`.
    pub session: Option<u32>,
}

impl Default for TaskDef {
    fn default() -> Self {
        Self {
            name: String::new(),
            instances: 1,
            delay: 0,
            stagger: 0,
            loops: None,
            props: Props::default(),
            phases: Vec::new(),
            user: None,
            session: None,
        }
    }
}

/// One phase, gone through once by default. Its properties are applied at its start and stick, but for `cpus`:
/// a phase without it has the task's.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its key; empty where the events stand in the task itself.
    pub name: String,
    /// `loop`; `None` is -1, for ever.
    pub loops: Option<u64>,
    /// Properties.
    pub props: Props,
    /// Events in the order listed.
    pub events: Vec<Step>,
}

impl Default for Phase {
    fn default() -> Self {
        Self { name: String::new(), loops: Some(1), props: Props::default(), events: Vec::new() }
    }
}

/// Properties of a task or phase; `None` leaves what was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Props {
    /// `policy`.
    pub policy: Option<Policy>,
    /// `priority`: nice for OTHER and BATCH, 1..99 for FIFO and RR.
    pub priority: Option<i32>,
    /// `dl-runtime`; on a SCHED_OTHER task a custom slice.
    pub dl_runtime: Option<Nanos>,
    /// `dl-deadline`.
    pub dl_deadline: Option<Nanos>,
    /// `dl-period`.
    pub dl_period: Option<Nanos>,
    /// `util_min`, 0..1024.
    pub util_min: Option<u32>,
    /// `util_max`, 0..1024.
    pub util_max: Option<u32>,
    /// `cpus`: allowed CPUs.
    pub cpus: Option<Vec<u32>>,
    /// `nodes_membind`.
    pub nodes_membind: Option<Vec<u32>>,
    /// `taskgroup`, a path that starts with `/`.
    pub taskgroup: Option<String>,
    /// `x-working-set` in bytes.
    pub working_set: Option<u64>,
    /// `x-memory`.
    pub memory: Option<Memory>,
    /// `x-clock-poll`.
    pub clock_poll: Option<Nanos>,
    /// `x-reclaim`: a deadline task reclaims what others leave unused.
    pub reclaim: Option<bool>,
}

/// `x-memory`: how much memory a task has, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// `bytes`.
    pub bytes: u64,
    /// `node`: the nodes that it is on at first, each with its part in proportion to these numbers; none: where it is
    /// first touched.
    pub nodes: Vec<(u32, u32)>,
    /// `pinned`: it cannot be moved.
    pub pinned: bool,
    /// `shared`: one memory for all instances of the task, instead of one each.
    pub shared: bool,
    /// `bound`: the percent of a `run` that waits for memory when all of it is local.
    pub bound: u32,
}

/// `bound` of an `x-memory` that does not tell it.
pub const MEMORY_BOUND: u32 = 30;

/// One event with its place in the file, which is no part of what it is: events of different lines can be equal.
#[derive(Clone, Debug)]
pub struct Step {
    /// The key as written (`run1`).
    pub key: String,
    /// The line in the file, from 1 (0: not from a file).
    pub line: u64,
    /// What it does.
    pub what: Action,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.what == other.what
    }
}

/// An amount of time, perhaps drawn anew each time (`x-jitter`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The mean.
    pub mean: Nanos,
    /// The standard deviation; 0 is exact.
    pub sd: Nanos,
}

/// How a `timer` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimerMode {
    /// The next period starts at the last deadline, or now when that was missed.
    #[default]
    Relative,
    /// Deadlines stay on the grid; missed ones are made up for.
    Absolute,
}

/// `memrun`'s `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MemAccess {
    Read,
    Write,
    Chase,
}

/// What an event does. References are names; a resource's kind follows from its use.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Action {
    /// Work of this length on a CPU of capacity 1024.
    Run(Amount),
    /// Busy until this much CPU time has passed.
    Runtime(Amount),
    Sleep(Amount),
    Timer {
        name: String,
        unique: bool,
        period: Amount,
        mode: TimerMode,
    },
    Lock(String),
    Unlock(String),
    Wait {
        cond: String,
        mutex: String,
    },
    Signal(String),
    Broadcast(String),
    /// `sync`: signals, then waits for the same condition.
    Sync {
        cond: String,
        mutex: String,
    },
    Barrier(String),
    /// Sleeps until this name is resumed. The reader has decided which name that is (see the crate's `suspend` notes in
    /// docs/workloads.md): the task's own, or the one written, so that an author of events needs no such rule.
    Suspend(String),
    /// Wakes all who are suspended under this name; lost when nobody is.
    Resume(String),
    /// Writes this many bytes.
    Mem(u64),
    MemRun {
        access: MemAccess,
        size: u64,
        count: u64,
        stride: u64,
        random: bool,
        /// `ref`: tasks that name the same share the buffer.
        shared: Option<String>,
    },
    /// Writes this many bytes to the I/O device.
    IoRun(u64),
    Yield,
    Fork(String),
    SemPost(String),
    SemWait(String),
    SpinBarrier(String),
    /// `x-spin-barrier` with `for`: spins for so long at most, then sleeps.
    HybridBarrier {
        name: String,
        spin: Nanos,
    },
    SpinLock(String),
    SpinUnlock(String),
}

/// One entry of `x-groups`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// `weight` (cgroup v2, 1..10000).
    pub weight: Option<u32>,
    /// `shares` (cgroup v1).
    pub shares: Option<u64>,
    /// `quota_us`; `None` is no limit.
    pub quota: Option<Nanos>,
    /// `period_us`.
    pub period: Option<Nanos>,
    /// `burst_us`.
    pub burst: Option<Nanos>,
    /// `idle`.
    pub idle: bool,
}

/// One entry of `x-hotplug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hotplug {
    /// When.
    pub at: Nanos,
    /// Which CPU.
    pub cpu: u32,
    /// Comes or goes.
    pub online: bool,
}
