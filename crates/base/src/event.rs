//! The scheduling event, which every backend yields and every measure reads.

use crate::{CpuId, CpuList, GroupRecord, Nanos, TaskRecord, Tid};

/// The state in which a task left its CPU, as `sched_switch` reports it. The numbers differ between kernels; these do
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TaskState {
    /// Still runnable: preempted or yielded (`R`, `R+`).
    Runnable = b'R',
    /// Interruptible sleep (`S`).
    Sleeping = b'S',
    /// Uninterruptible sleep (`D`).
    Uninterruptible = b'D',
    /// Stopped by a signal (`T`).
    Stopped = b'T',
    /// Stopped by a tracer (`t`).
    Traced = b't',
    /// Dead (`X`).
    Dead = b'X',
    /// Zombie (`Z`).
    Zombie = b'Z',
    /// Parked kernel thread (`P`).
    Parked = b'P',
    /// Idle kernel thread: uninterruptible, but not counted as load (`I`).
    Idle = b'I',
}

impl TaskState {
    /// The letter that `ps` and the kernel print for it.
    #[must_use]
    pub fn letter(self) -> char {
        self as u8 as char
    }

    /// The state that a letter stands for; `None` for a letter that no kernel prints.
    #[must_use]
    pub fn from_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'R' => Self::Runnable,
            b'S' => Self::Sleeping,
            b'D' => Self::Uninterruptible,
            b'T' => Self::Stopped,
            b't' => Self::Traced,
            b'X' | b'x' => Self::Dead,
            b'Z' => Self::Zombie,
            b'P' => Self::Parked,
            b'I' => Self::Idle,
            _ => return None,
        })
    }
}

/// Gives the variants of an enum, all of them in their order, the names that files use for them.
macro_rules! named {
    ($type:ident: $($variant:ident $name:literal),+) => {
        impl $type {
            /// Every variant with the name that files use for it.
            pub const ALL: [(Self, &'static str); [$($name),+].len()] = [$((Self::$variant, $name)),+];

            /// Its name in files.
            #[must_use]
            pub fn name(self) -> &'static str {
                Self::ALL[self as usize].1
            }

            /// The variant with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|(_, known)| *known == name).map(|(variant, _)| *variant)
            }
        }

        const _: () = {
            let mut at = 0;
            while at < $type::ALL.len() {
                assert!($type::ALL[at].0 as usize == at);
                at += 1;
            }
        };
    };
}

/// Why a scheduler examines the queues of other CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Looking {
    /// A waking task needs a CPU.
    Wake,
    /// A new task needs a CPU.
    Fork,
    /// A task calls exec, and loses little by moving.
    Exec,
    /// The CPU is about to go idle and looks for a task to pull (new-idle balancing).
    NewIdle,
    /// A CPU balances periodically.
    Periodic,
    /// An idle CPU balances for other idle CPUs whose tick is off.
    NoHz,
    /// The running task of a CPU is pushed to another CPU (active balancing).
    Active,
    /// NUMA balancing moves a task or its memory between nodes.
    Numa,
}

named!(
    Looking: Wake "wake", Fork "fork", Exec "exec", NewIdle "newidle", Periodic "periodic", NoHz "nohz",
    Active "active", Numa "numa"
);

impl Looking {
    /// Whether it seeks work for a CPU, rather than a CPU for a task.
    #[must_use]
    pub fn balances(self) -> bool {
        matches!(self, Self::NewIdle | Self::Periodic | Self::NoHz | Self::Active)
    }
}

/// What the kernel was doing on a CPU when a wake-up was requested there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Context {
    /// The trace does not contain it.
    #[default]
    Unknown,
    /// It ran the current task: that task is the waker.
    Task,
    /// It handled soft interrupts, either on behalf of the current task, which sent a packet over the loopback
    /// interface for example, or after an interrupt that has nothing to do with it.
    SoftIrq,
    /// It handled an interrupt: the current task was only interrupted.
    HardIrq,
}

impl Context {
    /// Every known context with the name that files use for it.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Task, "task"), (Self::SoftIrq, "softirq"), (Self::HardIrq, "hardirq")];

    /// Its name in files; `None` if it is unknown.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Self::ALL.iter().find(|(known, _)| *known == self).map(|(_, name)| *name)
    }

    /// The context that a record's `common_flags` state (`TRACE_FLAG_HARDIRQ`, `_NMI` and `_SOFTIRQ` of the kernel).
    #[must_use]
    pub fn of_flags(flags: u8) -> Self {
        const HARDIRQ_OR_NMI: u8 = 0x08 | 0x40;
        const SOFTIRQ: u8 = 0x10;
        if flags & HARDIRQ_OR_NMI != 0 {
            Self::HardIrq
        } else if flags & SOFTIRQ != 0 {
            Self::SoftIrq
        } else {
            Self::Task
        }
    }
}

/// What takes time from a CPU without being a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Interrupt {
    /// The handler of a device's interrupt; its number is that of the line (`/proc/interrupts`).
    Irq,
    /// Work that an interrupt left for later; its number is that of the vector ([`Interrupt::SOFTIRQS`]).
    SoftIrq,
    /// The CPU's own timer: ticks, and timers that expire.
    Timer,
    /// The hypervisor ran something else.
    Steal,
}

named!(Interrupt: Irq "irq", SoftIrq "softirq", Timer "timer", Steal "steal");

impl Interrupt {
    /// The names of the vectors of soft interrupts.
    pub const SOFTIRQS: [&'static str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
}

/// What a task waits for while it sleeps, according to the system call in which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Sleep {
    /// A time: `nanosleep`, or a `timerfd`.
    Timer,
    /// A lock, a condition or a thread: `futex`.
    Futex,
    /// The other end of a pipe.
    Pipe,
    /// The other end of a connection, or a new one.
    Socket,
    /// A terminal.
    Terminal,
    /// A file or a block device.
    File,
    /// Any of several files, or a time: `poll`, `select`, `epoll_wait`.
    Poll,
    /// A child: `wait`, or `vfork` until the child calls exec.
    Child,
    /// A signal: `pause`, `sigsuspend`.
    Signal,
    /// A semaphore or a message queue of System V or POSIX.
    Ipc,
    /// Input or output of another or an unknown kind.
    Io,
}

named!(
    Sleep: Timer "timer", Futex "futex", Pipe "pipe", Socket "socket", Terminal "terminal", File "file", Poll "poll",
    Child "child", Signal "signal", Ipc "ipc", Io "io"
);

/// The size of a page in bytes.
pub const PAGE: u64 = 4096;
/// No node: used where pages are touched for the first time or freed.
pub const NOWHERE: u16 = u16::MAX;

/// What happened. Priorities are the kernel's (0 to 139; 120 is nice 0).
#[allow(missing_docs, reason = "each variant's sentence names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The CPU went from `prev` to `next` (`sched_switch`); tid 0 is idle.
    Switch { prev: Tid, prev_prio: i16, prev_state: TaskState, next: Tid, next_prio: i16 },
    /// A wake-up of `tid` was requested while the task `waker` was current on the event's CPU (`sched_waking`).
    Waking { tid: Tid, prio: i16, target: CpuId, waker: Tid, context: Context },
    /// The task became runnable on `target` (`sched_wakeup`).
    Wakeup { tid: Tid, prio: i16, target: CpuId },
    /// A new task became runnable for the first time on `target` (`sched_wakeup_new`).
    WakeupNew { tid: Tid, prio: i16, target: CpuId },
    /// The task moved from one CPU's queue to another's (`sched_migrate_task`).
    Migrate { tid: Tid, prio: i16, from: CpuId, to: CpuId },
    /// A task was created (`sched_process_fork`).
    Fork { parent: Tid, child: Tid },
    /// A task called exec (`sched_process_exec`); `old` differs from `tid` when a thread other than the leader did.
    Exec { tid: Tid, old: Tid },
    /// A task ended (`sched_process_exit`).
    Exit { tid: Tid, prio: i16 },
    /// The recorder lost `count` events on this CPU before this time (0: the number is unknown).
    Lost { count: u64 },
    /// From now on the CPU's queue holds `length` runnable tasks, including the running one. `load` is the sum of their
    /// loads in the scheduler's own unit. Only simulations record this, and only if a sink [asks](Sink::wants_queues).
    Queue { length: u32, load: u64 },
    /// The scheduler examined other CPUs' queues, on behalf of the event's CPU or of the task `tid` (0: no task). Bit
    /// `k` of `mask` stands for CPU `64 * word + k`. Recorded under the same condition as [`Payload::Queue`].
    Considered { why: Looking, tid: Tid, word: u16, mask: u64 },
    /// Of the memory of the process `tgid`, `pages` pages of [`PAGE`] bytes moved from node `from` to node `to`. `from`
    /// is [`NOWHERE`] when they are touched for the first time, and `to` when they are freed. Only simulations record
    /// this.
    Pages { tgid: Tid, from: u16, to: u16, pages: u32 },
    /// An interrupt of this kind and number ended. It `took` this much of the CPU's time, without that of interrupts
    /// that came meanwhile.
    Interrupt { kind: Interrupt, number: u16, took: Nanos },
    /// From now on the CPU `target` runs at this frequency in kHz (`cpu_frequency`).
    Frequency { target: CpuId, khz: u32 },
    /// The task, which leaves the CPU with the next switch there, goes to sleep for this.
    Sleeps { tid: Tid, why: Sleep },
    /// A signal that the task does not handle ends it (`signal_deliver`); its exit follows. SIGKILL (9) stands for any
    /// that somebody else sent and that dumps no core.
    Killed { tid: Tid, signal: u16 },
}

/// One event: its time, its CPU and what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time on the trace's clock.
    pub time: Nanos,
    /// The CPU that recorded it.
    pub cpu: CpuId,
    /// What happened.
    pub what: Payload,
}

/// From `time` on, the task `tid` has this name, and belongs to this process and cgroup where they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRecord {
    /// The time on the trace's clock; 0 for a name that the task had from the start.
    pub time: Nanos,
    /// The thread.
    pub tid: Tid,
    /// Its process (thread group), where known.
    pub tgid: Option<Tid>,
    /// Its name: at most 15 bytes in a kernel trace, any length in a simulated one.
    pub comm: String,
    /// Its cgroup's path, where known.
    pub cgroup: Option<String>,
}

/// From `time` on, the task `tid` may run only on these CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityRecord {
    /// The time on the trace's clock; 0 for an affinity that the task had from the start.
    pub time: Nanos,
    /// The thread.
    pub tid: Tid,
    /// The CPUs that it may run on.
    pub cpus: CpuList,
}

/// What a sink does not look at. A reader may then save itself the trouble and hand on events with 0 or
/// [`Context::Unknown`] in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// The priorities in all events.
    pub priorities: bool,
    /// The waker and the context of a [`Payload::Waking`].
    pub wakers: bool,
}

impl Ignored {
    /// Everything that can be ignored.
    pub const ALL: Self = Self { priorities: true, wakers: true };

    /// What this one and the other ignore.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { priorities: self.priorities && other.priorities, wakers: self.wakers && other.wakers }
    }
}

/// Receives events in time order. A file's writer, a measure and a model are sinks.
pub trait Sink {
    /// Takes a batch of events in time order, none earlier than those of the batch before it.
    fn events(&mut self, batch: &[Event]);
    /// Takes a name. A name arrives before the first event that needs it.
    fn name(&mut self, record: &NameRecord);
    /// Takes a task's affinity, before the first event that it applies to. A task without a record has its parent's
    /// affinity, or an unknown one.
    fn affinity(&mut self, _record: &AffinityRecord) {}
    /// Takes how a task is scheduled, before the first event that it applies to. A task without a record is scheduled
    /// as its parent was when it forked, or in an unknown way.
    fn task(&mut self, _record: &TaskRecord) {}
    /// Takes the properties of a cgroup. A group without a record has unknown ones.
    fn group(&mut self, _record: &GroupRecord) {}
    /// The recording went on until this time, which may be later than its last event.
    fn lasts(&mut self, _until: Nanos) {}
    /// Whether a simulation should also record the length and load of run queues and the CPUs that its scheduler
    /// examined ([`Payload::Queue`], [`Payload::Considered`]).
    fn wants_queues(&self) -> bool {
        false
    }
    /// What it does not look at.
    fn ignores(&self) -> Ignored {
        Ignored::default()
    }
}

/// Looks at nothing.
impl Sink for () {
    fn events(&mut self, _: &[Event]) {}

    fn name(&mut self, _: &NameRecord) {}

    fn ignores(&self) -> Ignored {
        Ignored::ALL
    }
}

impl<A: Sink + ?Sized, B: Sink + ?Sized> Sink for (&mut A, &mut B) {
    fn events(&mut self, batch: &[Event]) {
        self.0.events(batch);
        self.1.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.0.name(record);
        self.1.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.0.affinity(record);
        self.1.affinity(record);
    }

    fn task(&mut self, record: &TaskRecord) {
        self.0.task(record);
        self.1.task(record);
    }

    fn group(&mut self, record: &GroupRecord) {
        self.0.group(record);
        self.1.group(record);
    }

    fn lasts(&mut self, until: Nanos) {
        self.0.lasts(until);
        self.1.lasts(until);
    }

    fn wants_queues(&self) -> bool {
        self.0.wants_queues() || self.1.wants_queues()
    }

    fn ignores(&self) -> Ignored {
        self.0.ignores().and(self.1.ignores())
    }
}

impl<S: Sink> Sink for [S] {
    fn events(&mut self, batch: &[Event]) {
        self.iter_mut().for_each(|sink| sink.events(batch));
    }

    fn name(&mut self, record: &NameRecord) {
        self.iter_mut().for_each(|sink| sink.name(record));
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.iter_mut().for_each(|sink| sink.affinity(record));
    }

    fn task(&mut self, record: &TaskRecord) {
        self.iter_mut().for_each(|sink| sink.task(record));
    }

    fn group(&mut self, record: &GroupRecord) {
        self.iter_mut().for_each(|sink| sink.group(record));
    }

    fn lasts(&mut self, until: Nanos) {
        self.iter_mut().for_each(|sink| sink.lasts(until));
    }

    fn wants_queues(&self) -> bool {
        self.iter().any(Sink::wants_queues)
    }

    fn ignores(&self) -> Ignored {
        self.iter().fold(Ignored::ALL, |all, sink| all.and(sink.ignores()))
    }
}
