//! The facts that follow from the events of a trace, as observers receive them.

use crate::Slot;
use schedlab_base::{
    AffinityRecord, Context, CpuId, Interrupt, Looking, NameRecord, Nanos, Sleep, TaskRecord, TaskState, Tid,
};

/// What a CPU was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// It is unknown.
    Unknown,
    /// The idle task.
    Idle,
    /// The task in this slot.
    Task(Slot),
}

/// How long it took a task to get a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The time since it became runnable, for whatever reason.
    pub wait: Nanos,
    /// The time since its wakeup, if that made it runnable.
    pub wakeup: Option<Nanos>,
    /// The time since its waking, if that led to it.
    pub waking: Option<Nanos>,
    /// When it got the CPU.
    pub end: Nanos,
}

/// How a task got a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The time.
    pub now: Nanos,
    /// The task's priority at that time.
    pub prio: i16,
    /// Whether the switch was not recorded; the time is then a guess.
    pub unseen: bool,
}

/// How a task left a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The time.
    pub now: Nanos,
    /// The state in which it left.
    pub state: TaskState,
    /// The task's priority at that time.
    pub prio: i16,
    /// Since when it had the CPU; `None` if that is unknown.
    pub since: Option<Nanos>,
    /// The time of the CPU's previous event: from then on, at the latest, the task had the CPU.
    pub last: Nanos,
    /// Whether it was already seen running on another CPU, whose clock is ahead. The switch then does not show what the
    /// task does now.
    pub late: bool,
}

/// A requested or completed wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The time.
    pub now: Nanos,
    /// The CPU on which the event was recorded.
    pub cpu: CpuId,
    /// The CPU on whose queue the task will wait.
    pub target: CpuId,
    /// The task that certainly ran on `cpu` at that time, and is the waker if the event names one. None if an interrupt
    /// requested the wake-up.
    pub by: Option<Slot>,
    /// In what context it was requested.
    pub context: Context,
    /// The task's priority.
    pub prio: i16,
    /// Whether the task is runnable for the first time.
    pub new: bool,
}

/// The migration of a task from one CPU's queue to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The time.
    pub now: Nanos,
    /// The CPU that it left.
    pub from: CpuId,
    /// The CPU that it joined.
    pub to: CpuId,
    /// Whether it is still unknown what the task does. A new task was placed where it will first run.
    pub first: bool,
}

/// Declares the facts once: as the methods of [`Observer`], as what a pair of observers (or a list of them, or an
/// optional one) passes on, and as what the macro `observers!` makes a struct pass on to its fields. After `=` stand
/// the facts that one is made of, which an observer is told if it does not take that one as a whole. `$d` is a dollar
/// sign, for the inner macro.
macro_rules! facts {
    ($d:tt $(
        $(#[$doc:meta])* fn $fact:ident($($arg:ident: $of:ty),*) $(= $($part:ident($($given:expr),*)),+)?;
    )*) => {
        /// Receives what follows from the events, and keeps what it needs. A fact that it does not implement costs
        /// nothing. Facts arrive in the order of their events; those of one event in the order in which they follow
        /// from it.
        #[allow(unused_variables)]
        pub trait Observer {
            $($(#[$doc])* #[inline] fn $fact(&mut self, $($arg: $of),*) {
                $($(self.$part($($given),*);)+)?
            })*
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

        impl<O: Observer> Observer for Vec<O> {
            $(#[inline] fn $fact(&mut self, $($arg: $of),*) {
                for observer in self {
                    observer.$fact($($arg),*);
                }
            })*
        }

        /// `observers!(Struct: field, field)` makes the struct pass each fact on to these fields, which are observers.
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
    /// It is `now`. This precedes the facts of each event.
    fn clock(now: Nanos);
    /// The trace ends. What was still going on has been reported just before.
    fn ends(now: Nanos);
    /// The window that is looked at begins, later than the trace ([`crate::Selected`]): what was told before is its
    /// initial state.
    fn opens(now: Nanos);
    /// The window that is looked at has ended: what is told later only says more of the time before.
    fn closes(now: Nanos);

    /// From now on this thread id belongs to the task: it is seen for the first time, or it called exec as a thread.
    /// `again`: the id belonged to another task, which has ended.
    fn appears(task: Slot, tid: Tid, again: bool);
    /// The task has got a name, or a new one.
    fn named(task: Slot, record: &NameRecord);
    /// The task may run on these CPUs only.
    fn allowed(task: Slot, record: &AffinityRecord);
    /// The task is scheduled like this.
    fn described(task: Slot, record: &TaskRecord);
    /// The task `child` was created. `sure`: its parent certainly ran at that time, on the CPU that recorded it.
    fn forked(parent: Option<Slot>, child: Slot, sure: bool, now: Nanos);
    /// The thread id belongs to another task from now on. The task has ended, even if that was not seen.
    fn replaced(task: Slot, now: Nanos);
    /// The task has become another program (`execve`); it is still running.
    fn execs(task: Slot, now: Nanos);
    /// The task called exit or was killed; it is still running.
    fn exits(task: Slot, now: Nanos);

    /// A wake-up of the task was requested, whatever the task does at present.
    fn waking(task: Slot, wake: Wake);
    /// A wake-up of the task is complete, whatever the task did before.
    fn woken(task: Slot, wake: Wake);
    /// From now on the task waits on this CPU's queue.
    fn queued(task: Slot, cpu: CpuId, now: Nanos);
    /// From now on the task no longer waits there.
    fn unqueued(task: Slot, now: Nanos);
    /// The task waited on this CPU's queue. `finished`: the wait ended before the trace did.
    fn waited(task: Slot, cpu: CpuId, from: Nanos, to: Nanos, finished: bool);
    /// A task that had been waiting got the CPU.
    fn served(task: Slot, cpu: CpuId, delay: Delay);
    /// The task got the CPU.
    fn started(task: Slot, cpu: CpuId, start: Start);
    /// The task left the CPU.
    fn stopped(task: Slot, cpu: CpuId, stop: Stop);
    /// A task that had been waiting on this CPU's queue since then got the CPU.
    fn takes(task: Slot, cpu: CpuId, since: Nanos, delay: Delay, start: Start)
        = waited(task, cpu, since, start.now, true), served(task, cpu, delay), started(task, cpu, start);
    /// The task left the CPU, which it had had since then.
    fn leaves(task: Slot, cpu: CpuId, since: Nanos, stop: Stop)
        = span(cpu, Occupant::Task(task), since, stop.now), stopped(task, cpu, stop);
    /// The task was migrated.
    fn migrated(task: Slot, moved: Move);

    /// During this span the CPU ran `who`.
    fn span(cpu: CpuId, who: Occupant, from: Nanos, to: Nanos);
    /// From now on the CPU runs `who`.
    fn occupied(cpu: CpuId, who: Occupant, now: Nanos);
    /// From now on the CPU has `length` runnable tasks, including the running one; `None` if that is unknown.
    fn queue(cpu: CpuId, now: Nanos, length: Option<u32>);

    /// Events of this CPU were lost before now.
    fn lost(cpu: CpuId, now: Nanos);
    /// It is no longer known which tasks wait on this CPU's queue.
    fn forgotten(cpu: CpuId, now: Nanos);
    /// The task ran on this CPU; what it has done since then is unknown.
    fn vanished(task: Slot, cpu: CpuId, since: Nanos);
    /// The task, which was assumed to wait, has had a CPU in the meantime, since an unknown time.
    fn doubted(task: Slot, now: Nanos);
    /// The CPU, which was assumed to be idle, has run a task in the meantime, since then or an unknown time.
    fn misjudged(cpu: CpuId, since: Option<Nanos>, now: Nanos);

    /// According to the event, this many pages of the process's memory moved from one node to another.
    fn pages(tgid: Tid, from: u16, to: u16, pages: u32, now: Nanos);
    /// The scheduler looked at other CPUs' queues on behalf of this one.
    fn looked(cpu: CpuId, why: Looking, word: u16, mask: u64);
    /// An interrupt of this kind and number ended on the CPU. It took this much of its time, without that of interrupts
    /// that came meanwhile.
    fn interrupted(cpu: CpuId, what: (Interrupt, u16), took: Nanos, now: Nanos);
    /// The task is about to leave its CPU, to sleep for this.
    fn sleeps(task: Slot, why: Sleep);
    /// A signal that the task does not handle ends it; its exit follows.
    fn killed(task: Slot, signal: u16, now: Nanos);
}

/// An observer that ignores all facts.
impl Observer for () {}
