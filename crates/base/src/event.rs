//! The scheduling event: what every backend yields and every measure reads.

use crate::{CpuId, CpuList, Nanos, Tid};

/// The state in which a task left its CPU, as `sched_switch` reports it, freed of the
/// numbering that differs between kernels.
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
    /// The letter that `ps` and the kernel print.
    #[must_use]
    pub fn letter(self) -> char {
        self as u8 as char
    }

    /// The state of a letter; `None` for a letter that no kernel prints.
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

/// Why a scheduler looks at the queues of other CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Looking {
    /// A task wakes: where should it run.
    Wake,
    /// A task is new.
    Fork,
    /// A task calls exec, and has little to lose by moving.
    Exec,
    /// The CPU runs out of tasks and looks for one to pull (new-idle balancing).
    NewIdle,
    /// The periodic balancing of a CPU.
    Periodic,
    /// An idle CPU balances for idle CPUs whose tick is off.
    NoHz,
    /// The running task of a CPU is pushed to another (active balancing).
    Active,
    /// A task or its memory is moved between nodes.
    Numa,
}

impl Looking {
    /// Every reason with its name in files.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Wake, "wake"),
        (Self::Fork, "fork"),
        (Self::Exec, "exec"),
        (Self::NewIdle, "newidle"),
        (Self::Periodic, "periodic"),
        (Self::NoHz, "nohz"),
        (Self::Active, "active"),
        (Self::Numa, "numa"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The reason of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(reason, _)| *reason)
    }

    /// Whether it looks for work for the CPU, rather than for a place for a task.
    #[must_use]
    pub fn balances(self) -> bool {
        matches!(self, Self::NewIdle | Self::Periodic | Self::NoHz | Self::Active)
    }
}

/// The bytes of a page.
pub const PAGE: u64 = 4096;
/// No node: where pages come from that are touched for the first time.
pub const NOWHERE: u16 = u16::MAX;

/// What happened. Priorities are the kernel's (0..139; 120 is nice 0).
#[allow(missing_docs, reason = "each variant's sentence names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The CPU went from `prev` to `next` (`sched_switch`); tid 0 is idle.
    Switch { prev: Tid, prev_prio: i16, prev_state: TaskState, next: Tid, next_prio: i16 },
    /// A wake-up was asked for (`sched_waking`), by the task `waker` current on the event's CPU.
    Waking { tid: Tid, prio: i16, target: CpuId, waker: Tid },
    /// The task became runnable on `target` (`sched_wakeup`).
    Wakeup { tid: Tid, prio: i16, target: CpuId },
    /// A new task became runnable for the first time on `target` (`sched_wakeup_new`).
    WakeupNew { tid: Tid, prio: i16, target: CpuId },
    /// The task was moved from one CPU's queue to another's (`sched_migrate_task`).
    Migrate { tid: Tid, prio: i16, from: CpuId, to: CpuId },
    /// A task was created (`sched_process_fork`).
    Fork { parent: Tid, child: Tid },
    /// A task called exec (`sched_process_exec`); `old` differs from `tid` when a thread did.
    Exec { tid: Tid, old: Tid },
    /// A task ended (`sched_process_exit`).
    Exit { tid: Tid, prio: i16 },
    /// The recorder lost `count` events on this CPU before this time (0: an unknown number).
    Lost { count: u64 },
    /// From now on the CPU's queue holds `length` runnable tasks, the running one included, of this load in
    /// all, in the scheduler's own unit. Only simulations tell, and only where a sink [asks](Sink::wants_queues).
    Queue { length: u32, load: u64 },
    /// The scheduler looked at other CPUs' queues, for the CPU of the event or for the task `tid` (0: for none):
    /// bit `k` of `mask` is CPU `64 * word + k`. Told as [`Payload::Queue`] is.
    Considered { why: Looking, tid: Tid, word: u16, mask: u64 },
    /// So many pages ([`PAGE`]) of the memory of the process `tgid` went from the node `from` to the node `to`.
    /// [`NOWHERE`]: they are touched for the first time, or given back. Only simulations tell.
    Pages { tgid: Tid, from: u16, to: u16, pages: u32 },
}

/// One event: when, on which CPU, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// On the trace's clock.
    pub time: Nanos,
    /// The CPU that recorded it.
    pub cpu: CpuId,
    /// What happened.
    pub what: Payload,
}

/// From `time` on the task `tid` bears this name (and belongs to this process and cgroup, where known).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRecord {
    /// On the trace's clock; 0 for what held from the start.
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

/// From `time` on the task `tid` may run on these CPUs and no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityRecord {
    /// On the trace's clock; 0 for what held from the start.
    pub time: Nanos,
    /// The thread.
    pub tid: Tid,
    /// Where it may run.
    pub cpus: CpuList,
}

/// Takes events in the order of their times: a file's writer, a measure, a model.
pub trait Sink {
    /// Takes a batch of events, ordered by time, none earlier than the batch before it.
    fn events(&mut self, batch: &[Event]);
    /// Takes a name. Names come before the first event that they are needed for.
    fn name(&mut self, record: &NameRecord);
    /// Takes a task's affinity, before the first event that it holds for. A task of which none is told has that
    /// of its parent, or one that nobody knows.
    fn affinity(&mut self, _record: &AffinityRecord) {}
    /// Whether a simulation should also tell of the run queues' lengths and loads and of the CPUs that its scheduler
    /// looked at ([`Payload::Queue`], [`Payload::Considered`]).
    fn wants_queues(&self) -> bool {
        false
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

    fn wants_queues(&self) -> bool {
        self.0.wants_queues() || self.1.wants_queues()
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

    fn wants_queues(&self) -> bool {
        self.iter().any(Sink::wants_queues)
    }
}
