//! The model of a workload whose file has been read and checked. It is plain data, and names are not yet resolved.

use crate::Recorded;
use crate::policy::Policy;
use schedlab_base::{Averages, Computing, Nanos};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A workload: the content of an rt-app file, including the x- keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The preset's name, or the file's.
    pub name: String,
    /// The file that it was read from, as the user named it; `None` for a preset or a text.
    pub file: Option<PathBuf>,
    /// `global`.
    pub global: Global,
    /// `tasks`, in the order of the file.
    pub tasks: Vec<TaskDef>,
    /// `x-groups`, by path.
    pub groups: BTreeMap<String, Group>,
    /// `x-sessions`: the nice levels of sessions, by number.
    pub sessions: BTreeMap<u32, i8>,
    /// `x-recorded`, if the workload was made from a trace.
    pub recorded: Option<Recorded>,
    /// `x-hotplug`, in time order.
    pub hotplug: Vec<Hotplug>,
    /// `x-irq`, in the order of the file.
    pub interrupts: Vec<Interrupt>,
    /// `x-validation`.
    pub validation: Option<Validation>,
    /// Warnings about things that were accepted (a duplicate key, an ignored setting).
    pub warnings: Vec<String>,
}

/// `x-validation`: how well a model repeats the recording that it was made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validation {
    /// The kernel that was simulated.
    pub kernel: String,
    /// The machine's name.
    pub machine: String,
    /// How far to trust the model, in one sentence.
    pub trust: String,
    /// Why its answers would be guesswork.
    pub guesswork: Vec<String>,
    /// Its errors by name: 0.1 is 10% too much.
    pub errors: BTreeMap<String, f64>,
}

impl Validation {
    /// What everything that is simulated of the model carries.
    #[must_use]
    pub fn remark(&self) -> String {
        let Self { kernel, machine, trust, guesswork, .. } = self;
        let mut text = format!("validated when it was made, as recorded ({kernel} on {machine}): {trust}");
        guesswork.iter().for_each(|what| text += &format!("; its answers are guesswork: {what}"));
        text
    }
}

impl Workload {
    /// Every event with its task and phase, in the order of the file.
    pub fn steps(&self) -> impl Iterator<Item = (&TaskDef, &Phase, &Step)> {
        let phases = self.tasks.iter().flat_map(|task| task.phases.iter().map(move |phase| (task, phase)));
        phases.flat_map(|(task, phase)| phase.events.iter().map(move |step| (task, phase, step)))
    }
}

/// The session of a task that is in none: it belongs to no autogroup.
pub const NO_SESSION: u32 = u32::MAX;

/// The default of `mem_buffer_size` in bytes: rt-app's 4 MiB.
pub(crate) const MEM_BUFFER_SIZE: u64 = 4 << 20;

/// `global`. Keys that only control rt-app's own logging are checked and dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// `duration`; `None` is rt-app's -1, which means until the tasks end.
    pub duration: Option<Nanos>,
    /// `calibration` in ns per loop, if it was a number. It has no effect here, because `run` is in us.
    pub calibration_ns: Option<u64>,
    /// `default_policy`.
    pub default_policy: Policy,
    /// `pi_enabled`.
    pub pi_enabled: bool,
    /// `mem_buffer_size` in bytes.
    pub mem_buffer_size: u64,
    /// `cumulative_slack`.
    pub cumulative_slack: bool,
    /// `io_device`, the file that `iorun` writes to; `None` is rt-app's /dev/null.
    pub io_device: Option<String>,
    /// `x-start`.
    pub start: Start,
    /// `x-placement`.
    pub placement: Placement,
    /// `x-until`: the key of the task whose end ends the run.
    pub until: Option<String>,
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
            placement: Placement::Scheduler,
            until: None,
        }
    }
}

/// `x-start`: how tasks start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// All tasks exist and sleep. They wake at time 0, in the order of the file.
    #[default]
    Wake,
    /// A parent forks them one by one at time 0.
    Fork,
    /// Like `Fork`, but as threads, each with a full timeslice.
    Threads,
}

/// `x-placement`: who chooses where tasks run that are bound nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The kernel's scheduler.
    #[default]
    Scheduler,
    /// Each task has a CPU of its own as long as there are any: nodes and caches in turn, a thread of each core first.
    Cpu,
    /// Each task has a node, in turn, and its memory comes from there.
    Numa,
}

impl Placement {
    /// All of them, by the names that files and commands use.
    pub const WORDS: &[(&str, Self)] = &[("scheduler", Self::Scheduler), ("cpu", Self::Cpu), ("numa", Self::Numa)];

    /// Its name in files and commands.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, placement)| *placement == self).map_or("scheduler", |(word, _)| word)
    }
}

/// One key of `tasks`. As in rt-app, the default is one instance that repeats its phases for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDef {
    /// Its key.
    pub name: String,
    /// `instance`; 0 marks a template for `fork`.
    pub instances: u32,
    /// `delay`: the time before the first phase.
    pub delay: Nanos,
    /// `x-stagger`: the time between the starts of instances.
    pub stagger: Nanos,
    /// How often the phases are repeated (`loop` beside `phases`); `None` is -1, for ever. If the events are in the
    /// task itself, rt-app's `loop` applies to the phase, and this is 1.
    pub loops: Option<u64>,
    /// The properties that apply before its first phase.
    pub props: Props,
    /// Its phases; there is at least one.
    pub phases: Vec<Phase>,
    /// `x-user`.
    pub user: Option<u32>,
    /// `x-session`; -1 is [`NO_SESSION`].
    pub session: Option<u32>,
    /// `x-cpu`: where it last ran before the load begins; one that starts at 0 is runnable there.
    pub cpu: Option<u32>,
    /// `x-averages`: what it did before the load begins.
    pub averages: Option<Averages>,
    /// `x-work`: what it computes on a real kernel.
    pub computing: Computing,
    /// `x-lifetime`: how long after its beginning it is killed, if it has not ended.
    pub lifetime: Option<Nanos>,
}

impl TaskDef {
    /// When one of its instances starts; the first is 0.
    #[must_use]
    pub fn start_of(&self, n: u32) -> Nanos {
        self.delay.saturating_add(self.stagger.saturating_mul(n.into()))
    }

    /// Whether it never ends by itself.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.lifetime.is_none() && (self.loops.is_none() || self.phases.iter().any(|phase| phase.loops.is_none()))
    }

    /// Whether it forks the task of this key.
    #[must_use]
    pub fn forks(&self, key: &str) -> bool {
        let mut events = self.phases.iter().flat_map(|phase| &phase.events);
        events.any(|step| matches!(&step.what, Action::Fork(child) if child == key))
    }
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
            cpu: None,
            averages: None,
            lifetime: None,
            computing: Computing::Loops,
        }
    }
}

/// One phase, which runs once by default. Its properties apply from its start and stay in force, except `cpus`: a phase
/// without `cpus` uses the task's.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its key; empty if the events are in the task itself.
    pub name: String,
    /// `loop`; `None` is -1, for ever.
    pub loops: Option<u64>,
    /// Properties.
    pub props: Props,
    /// Its events, in the order of the file.
    pub events: Vec<Step>,
}

impl Default for Phase {
    fn default() -> Self {
        Self { name: String::new(), loops: Some(1), props: Props::default(), events: Vec::new() }
    }
}

/// Properties of a task or phase; `None` leaves the current value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Props {
    /// `policy`.
    pub policy: Option<Policy>,
    /// `priority`: nice for OTHER and BATCH, 1 to 99 for FIFO and RR.
    pub priority: Option<i32>,
    /// `dl-runtime`; for a SCHED_OTHER task a custom slice.
    pub dl_runtime: Option<Nanos>,
    /// `dl-deadline`.
    pub dl_deadline: Option<Nanos>,
    /// `dl-period`.
    pub dl_period: Option<Nanos>,
    /// `util_min`, 0 to 1024.
    pub util_min: Option<u16>,
    /// `util_max`, 0 to 1024.
    pub util_max: Option<u16>,
    /// `cpus`: the allowed CPUs.
    pub cpus: Option<Vec<u32>>,
    /// `nodes_membind`.
    pub nodes_membind: Option<Vec<u32>>,
    /// `taskgroup`: a path that starts with `/`.
    pub taskgroup: Option<String>,
    /// `x-working-set` in bytes.
    pub working_set: Option<u64>,
    /// `x-memory`.
    pub memory: Option<Memory>,
    /// `x-clock-poll`.
    pub clock_poll: Option<Nanos>,
    /// `x-reclaim`: whether a deadline task reclaims bandwidth that other tasks leave unused.
    pub reclaim: Option<bool>,
}

/// `x-memory`: how much memory a task has, and on which nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// `bytes`.
    pub bytes: u64,
    /// `node`: the nodes that hold it at first, each with its share in proportion to these numbers. Empty: each page is
    /// on the node that first touches it.
    pub nodes: Vec<(u32, u32)>,
    /// `pinned`: whether it cannot be moved.
    pub pinned: bool,
    /// `shared`: whether all instances of the task share one memory.
    pub shared: bool,
    /// `bound`: the percentage of a `run` that waits for memory when all memory is local.
    pub bound: u32,
}

/// The default of `bound` in `x-memory`.
pub(crate) const MEMORY_BOUND: u32 = 30;

/// One event with its place in the file. The place does not count when events are compared.
#[derive(Clone, Debug)]
pub struct Step {
    /// The key as written (`run1`).
    pub key: String,
    /// Its line in the file, counted from 1; 0 if it does not come from a file.
    pub line: u64,
    /// The event itself.
    pub what: Action,
    /// `x-sync`: the task sleeps soon after it has woken others by this event, as with a pipe or a socket.
    pub sync: bool,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.what == other.what && self.sync == other.sync
    }
}

/// An amount of time, drawn anew each time if it has a deviation (`x-jitter`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The mean.
    pub mean: Nanos,
    /// The standard deviation; with 0 the amount is always the mean.
    pub sd: Nanos,
}

/// When the next period of a `timer` begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimerMode {
    /// At the last deadline, or now if the deadline was missed.
    #[default]
    Relative,
    /// On a fixed grid. Missed periods are made up for.
    Absolute,
}

/// The `type` of a `memrun`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MemAccess {
    Read,
    Write,
    Chase,
}

/// What an event does. It refers to resources by name, and the kind of a resource follows from its use.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Action {
    /// Computes for as long as this takes on a CPU of capacity 1024.
    Run(Amount),
    /// Computes until it has used this much CPU time.
    Runtime(Amount),
    Sleep(Amount),
    /// `x-timeout`: sleeps for as many ticks as are at least this long.
    Timeout(Nanos),
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
    /// `sync`: signals a condition, then waits for the same condition.
    Sync {
        cond: String,
        mutex: String,
    },
    Barrier(String),
    /// Sleeps until this name is resumed. The reader has already chosen the name (see the notes on `suspend` in
    /// docs/workloads.md): the task's own, or the one in the file.
    Suspend(String),
    /// Wakes all tasks that are suspended under this name. It has no effect if there are none.
    Resume(String),
    /// Writes this many bytes.
    Mem(u64),
    MemRun {
        access: MemAccess,
        size: u64,
        count: u64,
        stride: u64,
        random: bool,
        /// `ref`: tasks with the same name share the buffer.
        shared: Option<String>,
    },
    /// Writes this many bytes to the I/O device.
    IoRun(u64),
    Yield,
    /// `x-exec`.
    Exec,
    Fork(String),
    /// `x-jobs`: does the jobs of this task, which never starts itself, one after the other, until all are taken. Each
    /// round of each of its phases is a job.
    Jobs(String),
    SemPost(String),
    SemWait(String),
    /// `x-ask`: posts a semaphore. Who takes the post shall answer.
    Ask(String),
    /// `x-answer`: answers the oldest question of those that the task took with posts of this semaphore.
    Answer(String),
    /// `x-await`: waits for an answer to one of its own questions.
    Await,
    SpinBarrier(String),
    /// `x-spin-barrier` with `for`: spins for at most this long, then sleeps.
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
    /// `weight` (cgroup v2, 1 to 10000).
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

/// What takes the time of an `x-irq`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum InterruptKind {
    #[default]
    Irq,
    Softirq,
    Steal,
}

impl InterruptKind {
    /// The kinds with their names.
    pub const ALL: [(Self, &'static str); 3] = [(Self::Irq, "irq"), (Self::Softirq, "softirq"), (Self::Steal, "steal")];
}

/// One entry of `x-irq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// `kind`.
    pub kind: InterruptKind,
    /// `cpus`: on which CPUs it comes, on each by itself; `None` is all.
    pub cpus: Option<Vec<u32>>,
    /// `at_us`: when it first comes.
    pub at: Nanos,
    /// `period_us`.
    pub period: Nanos,
    /// `random`: whether `period_us` is the mean of random times.
    pub random: bool,
    /// `duration_us`.
    pub duration: Amount,
}

/// One entry of `x-hotplug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hotplug {
    /// The time.
    pub at: Nanos,
    /// The CPU.
    pub cpu: u32,
    /// Whether it comes online or goes offline.
    pub online: bool,
}
