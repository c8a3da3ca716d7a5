//! One state machine for the life of every task: it replays the events of a trace and reports to observers what follows
//! from them.
//!
//! [`Tracker`] keeps which task is on which CPU and what each task does. For each event it reports to an [`Observer`]
//! the facts that follow: a task got a CPU, left it, became runnable, was moved; a CPU became idle; events were lost.
//! The measures, the lanes of a picture, and the model of a workload are observers. None of them replays events itself,
//! so they agree about which task ran when. [`Replay`] is the sink that combines a tracker and an observer.
//!
//! # Decisions
//! A trace can be incomplete or contradict itself. The tracker decides what follows from that, for all observers:
//!
//! - *At the start.* The occupant of a CPU is unknown until its first switch, unless the metadata names it. In a trace
//!   that is complete from its start on (its metadata has a span), the first switch shows which task ran until then.
//! - *Lost events.* From the CPU's last event before the loss until its next switch, it is unknown what the CPU runs.
//!   The task that ran there has vanished; the tasks that waited there may have run unseen, so their waits do not
//!   count.
//! - *An unseen switch.* If a CPU is left by another task than the one that it was last seen switching to, a switch
//!   between the two was not recorded (some systems hide some tasks from tracing). It counts as a contradiction. It is
//!   placed at the earliest possible instant, since hidden tasks are mostly short: not before the leaving task began to
//!   wait, went to sleep or vanished. The task that was assumed to run has vanished at that instant. If an idle task
//!   was not seen to leave its CPU (on some virtual machines none of a CPU's is), what was woken onto the CPU gets it
//!   as long after its wake-up as it takes where idle tasks are seen to leave. From the second on these are no
//!   contradictions. Nor are wake-ups that were asked for on another CPU, and which the idle task did unseen: as long
//!   after that as it takes where they are seen. A task that is seen to do something on an idle CPU has got it before.
//!   If the task had left its CPU runnable and was not woken, its group's quota or its own runtime may have been used
//!   up: the time until it leaves is unknown, of the CPU and of the task. Who was on the queue when the CPU became idle
//!   is kept from running in the same way, and waits on; who came later has had the CPU by then, in doubt.
//! - *A wake-up of a task that is already waiting.* The task has run and slept unseen. Its wait goes on, in doubt.
//! - *A wake-up of a running task.* The task had not gone to sleep yet. Nothing follows from the event.
//! - *A task starts on one CPU before it was seen leaving another.* The clocks of the CPUs differ a little. Each CPU's
//!   time counts as that CPU saw it; the late switch does not change what the task does.
//! - *A reused thread id* is another task, with a slot of its own.
//! - *A partial recording.* Only the tasks of its target are followed. A CPU that another task or the idle task gets is
//!   unknown, and so is what waits on the queues. A task of the target that leaves a CPU without having been seen to
//!   get it is a contradiction, and its time is not made up.

mod observer;
mod replay;
mod seen;
mod selected;
mod tasks;
mod tracker;
mod view;

pub use observer::{Delay, Move, Observer, Occupant, Start, Stop, Wake};
pub use replay::Replay;
pub use seen::Seen;
pub use selected::{Chosen, Kept, Part, Selected};
pub use tasks::Slot;
pub use tracker::{MAX_CPUS, Tracker};
pub use view::{View, Viewed};

/// The types that facts are made of, for the macro `observers!`.
#[doc(hidden)]
pub mod words {
    pub use crate::{Delay, Move, Occupant, Slot, Start, Stop, Wake};
    pub use schedlab_base::{AffinityRecord, CpuId, Interrupt, Looking, NameRecord, Nanos, Sleep, TaskRecord, Tid};
}

/// The entry of a table that grows as far as it is asked for.
#[inline]
pub fn row<T: Default>(table: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if index < table.len() {
        return &mut table[index];
    }
    grow(table, index)
}

#[cold]
fn grow<T: Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    table.resize_with(index + 1, T::default);
    &mut table[index]
}
