//! One state machine for the life of every task: it replays the events of a trace and tells observers what follows.
//!
//! [`Tracker`] keeps who is on which CPU and what each task does. For each event it tells an [`Observer`] the facts
//! that follow: a task got a CPU, left it, became runnable, was moved; a CPU became idle; events were lost. The
//! measures, the lanes of a picture, and the model of a workload are observers. None of them replays events itself, so
//! they agree about who ran when. [`Replay`] is the sink that puts a tracker and an observer together.
//!
//! # Decisions
//! A trace can say too little, or contradict itself. What the tracker makes of that holds for all observers:
//!
//! - *At the start.* The occupant of a CPU is unknown until its first switch, unless the metadata names it. In a trace
//!   that is whole from its start on (its metadata has a span), the first switch tells who ran until then.
//! - *Lost events.* From the CPU's last event before the loss until its next switch, nobody knows what the CPU runs.
//!   The task that ran there has vanished; the tasks that waited there may have run unseen, and their waits do not
//!   count.
//! - *An unseen switch.* When a CPU is left by another task than the one that it was seen switching to, a switch
//!   between the two was not recorded (some systems hide some tasks from tracing). It counts as a contradiction, and is
//!   put at the earliest instant possible, since hidden tasks are mostly short: not before the task that left began to
//!   wait, went to sleep or vanished. The task that was thought to run has vanished at that instant.
//! - *A wake-up of a task that waits already*: it ran and slept, and nobody saw it. Its wait goes on, in doubt.
//! - *A wake-up of a running task*: it had not got round to sleeping. Nothing follows from it.
//! - *A task starts on one CPU before it was seen leaving another*: the clocks of the CPUs differ a little. Each CPU's
//!   time counts as that CPU saw it; the late switch changes nothing in what the task does.
//! - *A thread id that is used again* is another task, with a slot of its own.

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
    pub use schedlab_base::{AffinityRecord, CpuId, Looking, NameRecord, Nanos, Tid};
}

/// The entry of a table that grows as far as it is asked for.
#[inline]
pub fn row<T: Default>(table: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if index >= table.len() {
        grow(table, index);
    }
    &mut table[index]
}

#[cold]
fn grow<T: Default>(table: &mut Vec<T>, index: usize) {
    table.resize_with(index + 1, T::default);
}
