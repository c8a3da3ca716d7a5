//! What follows from the events of a trace, as facts that observers are told.

use crate::Slot;
use schedlab_base::{AffinityRecord, CpuId, Looking, NameRecord, Nanos, TaskState, Tid};

/// Who had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Nobody can tell.
    Unknown,
    /// The idle task.
    Idle,
    /// The task in this slot.
    Task(Slot),
}

/// How long it took a task to get a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Since it became runnable, whatever made it so.
    pub wait: Nanos,
    /// Since its wakeup, if that made it so.
    pub wakeup: Option<Nanos>,
    /// Since its waking, if that led to it.
    pub waking: Option<Nanos>,
    /// When it got the CPU.
    pub end: Nanos,
}

/// How a task got a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// When.
    pub now: Nanos,
    /// Its priority then.
    pub prio: i16,
    /// Nobody saw it: this is the earliest instant possible.
    pub unseen: bool,
}

/// How a task left a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// When.
    pub now: Nanos,
    /// In which state.
    pub state: TaskState,
    /// Its priority then.
    pub prio: i16,
    /// Since when it had had the CPU; none where nobody can tell.
    pub since: Option<Nanos>,
    /// The CPU's event before this one: from then on, at the latest, the task had the CPU.
    pub last: Nanos,
    /// It was already seen running on another CPU, whose clock is ahead: this switch says nothing of what it does now.
    pub late: bool,
}

/// A wake-up, asked for or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When.
    pub now: Nanos,
    /// The CPU on which the event was recorded.
    pub cpu: CpuId,
    /// The CPU that the task is to wait for.
    pub target: CpuId,
    /// The task that certainly ran on `cpu` then, and that the event names as the waker if it names one.
    pub by: Option<Slot>,
    /// The task's priority.
    pub prio: i16,
    /// The task is runnable for the first time.
    pub new: bool,
}

/// A task was moved from one CPU's queue to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub now: Nanos,
    /// From this CPU.
    pub from: CpuId,
    /// To this one.
    pub to: CpuId,
    /// Nothing is known of what the task does. If it is new, it was put where it will first run.
    pub first: bool,
}

/// Declares the facts once: as the methods of [`Observer`], as what a pair of observers hands on to both (and an
/// observer that may be missing, to it), and as what the macro `observers!` lets a struct hand on to its fields. `$d`
/// is a dollar sign, for that inner macro.
macro_rules! facts {
    ($d:tt $($(#[$doc:meta])* fn $fact:ident($($arg:ident: $of:ty),*);)*) => {
        /// Is told what follows from the events, and keeps what it needs. Each fact that it does not care for costs
        /// nothing. Facts are told in the order of their events; those of one event in the order in which they follow.
        #[allow(unused_variables)]
        pub trait Observer {
            $($(#[$doc])* #[inline] fn $fact(&mut self, $($arg: $of),*) {})*
        }

        impl<A: Observer, B: Observer> Observer for (A, B) {
            $(#[inline] fn $fact(&mut self, $($arg: $of),*) {
                self.0.$fact($($arg),*);
                self.1.$fact($($arg),*);
            })*
        }

        impl<O: Observer> Observer for Option<O> {
            $(#[inline] fn $fact(&mut self, $($arg: $of),*) {
                if let Some(observer) = self {
                    observer.$fact($($arg),*);
                }
            })*
        }

        /// `observers!(Struct: field, field)`: the struct hands each fact on to these fields, which are observers.
        #[macro_export]
        macro_rules! observers {
            ($d name:ty: $d($d field:ident),+) => {
                const _: () = {
                    use $crate::words::*;
                    impl $crate::Observer for $d name {
                        $(#[inline] fn $fact(&mut self, $($arg: $of),*) {
                            $d(self.$d field.$fact($($arg),*);)+
                        })*
                    }
                };
            };
        }
    };
}

facts! {$
    /// The trace begins.
    fn begins(now: Nanos);
    /// It is `now`: told before the facts of each event.
    fn clock(now: Nanos);
    /// The trace ends; what still lasted was told just before.
    fn ends(now: Nanos);
    /// The window that is looked at begins, later than the trace ([`crate::Selected`]): what was told before is its
    /// initial state.
    fn opens(now: Nanos);
    /// The window that is looked at has ended: what is told later only says more of the time before.
    fn closes(now: Nanos);

    /// From now on this thread id is that of the task: it is seen for the first time, or it called exec as a thread.
    /// `again`: the id was that of another task, which has ended.
    fn appears(task: Slot, tid: Tid, again: bool);
    /// The task has a name, or another one than before.
    fn named(task: Slot, record: &NameRecord);
    /// The task may run on these CPUs and no others.
    fn allowed(task: Slot, record: &AffinityRecord);
    /// The task `child` was created. `sure`: its parent certainly ran then, on the CPU that recorded it.
    fn forked(parent: Option<Slot>, child: Slot, sure: bool, now: Nanos);
    /// Another task has the thread id from now on: if nobody saw the task end, it has ended all the same.
    fn replaced(task: Slot, now: Nanos);
    /// The task called exit, or was killed; it still runs.
    fn exits(task: Slot, now: Nanos);

    /// A wake-up of the task was asked for, whatever it does at present.
    fn waking(task: Slot, wake: Wake);
    /// A wake-up of the task is done, whatever it did before.
    fn woken(task: Slot, wake: Wake);
    /// From now on the task waits on this CPU's queue.
    fn queued(task: Slot, cpu: CpuId, now: Nanos);
    /// From now on it waits there no more.
    fn unqueued(task: Slot, now: Nanos);
    /// The task waited on this CPU's queue; `finished` unless the trace ended before the wait did.
    fn waited(task: Slot, cpu: CpuId, from: Nanos, to: Nanos, finished: bool);
    /// A task that had waited got the CPU.
    fn served(task: Slot, cpu: CpuId, delay: Delay);
    /// The task got the CPU.
    fn started(task: Slot, cpu: CpuId, start: Start);
    /// The task left the CPU.
    fn stopped(task: Slot, cpu: CpuId, stop: Stop);
    /// The task was moved.
    fn migrated(task: Slot, moved: Move);

    /// The CPU was the occupant's for this span.
    fn span(cpu: CpuId, who: Occupant, from: Nanos, to: Nanos);
    /// From now on the CPU is the occupant's.
    fn occupied(cpu: CpuId, who: Occupant, now: Nanos);
    /// From now on the CPU has so many runnable tasks, the running one included; `None`: it is unknown.
    fn queue(cpu: CpuId, now: Nanos, length: Option<u32>);

    /// Events of this CPU were lost before now.
    fn lost(cpu: CpuId, now: Nanos);
    /// Who waits on this CPU's queue is not known any more.
    fn forgotten(cpu: CpuId, now: Nanos);
    /// The task ran on this CPU, and nobody knows what it has done since then.
    fn vanished(task: Slot, cpu: CpuId, since: Nanos);
    /// The task, which was thought to wait, has had a CPU meanwhile, and nobody saw since when.
    fn doubted(task: Slot, now: Nanos);
    /// The CPU, which was thought to be idle, has run somebody meanwhile, and nobody saw since when.
    fn misjudged(cpu: CpuId, now: Nanos);

    /// So many pages of the process's memory went from one node to another, as the event has it.
    fn pages(tgid: Tid, from: u16, to: u16, pages: u32, now: Nanos);
    /// The scheduler looked at other CPUs' queues on behalf of this one.
    fn looked(cpu: CpuId, why: Looking, word: u16, mask: u64);
}

/// Nobody.
impl Observer for () {}
