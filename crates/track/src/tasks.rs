//! The tasks of a trace: a slot for each life of a thread id.

use schedlab_base::{CpuId, Nanos, Tid};
use std::ops::{Index, IndexMut};

/// The highest thread id that is accepted: the kernel's `PID_MAX_LIMIT`.
const MAX_TID: Tid = 1 << 22;

/// With more lives than this, a reused thread id keeps its old slot, so that memory stays bounded.
const MAX_LIVES: usize = 1 << 20;

const NONE: u32 = u32::MAX;

/// Stands for "never".
pub(crate) const NEVER: Nanos = Nanos::MAX;

/// A task's index, numbered without gaps in the order of first sight.
pub type Slot = u32;

/// What a task does, as far as the trace shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Not seen yet, or events about it were lost.
    Unknown,
    /// Not runnable.
    Sleeping,
    /// Runnable, but not running.
    Waiting,
    /// On a CPU.
    Running,
    /// It has left its CPU for good.
    Dead,
}

/// Whether a task is seen when it leaves a CPU: some systems hide some tasks from tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// It has not left one yet.
    Unknown,
    /// It was on a CPU that then ran others, and was never seen to leave one.
    Unseen,
    /// It was seen to leave one.
    Seen,
}

/// One life of a thread id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// The thread id.
    pub(crate) tid: Tid,
    /// What the task does.
    pub(crate) status: Status,
    /// Whether the recorder sees it leave CPUs.
    pub(crate) leaves: Leaves,
    /// Its priority, when it was last told.
    pub(crate) prio: i16,
    /// The CPU that it runs on or waits for.
    pub(crate) cpu: CpuId,
    /// The epoch of that CPU when the task began to wait.
    pub(crate) epoch: u32,
    /// Since when it has been doing that (if it waits: on its present CPU's queue); if unknown, when it was last known.
    pub(crate) since: Nanos,
    /// Since when it has been waiting, on any queue.
    pub(crate) queued: Nanos,
    /// When it was woken, if it waits for that reason.
    pub(crate) wakeup: Nanos,
    /// When its waking began.
    pub(crate) waking: Nanos,
}

impl Task {
    fn new(tid: Tid) -> Self {
        Self {
            tid,
            status: Status::Unknown,
            leaves: Leaves::Unknown,
            prio: 120,
            cpu: 0,
            epoch: 0,
            since: 0,
            queued: 0,
            wakeup: NEVER,
            waking: NEVER,
        }
    }

    /// Returns whether it runs on this CPU.
    pub(crate) fn is_on(&self, cpu: CpuId) -> bool {
        self.status == Status::Running && self.cpu == cpu
    }
}

/// All tasks, found by thread id without hashing.
#[derive(Debug)]
pub(crate) struct TaskTable {
    slots: Vec<u32>,
    tasks: Vec<Task>,
}

impl TaskTable {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), tasks: Vec::new() }
    }

    /// Returns the slot of the thread's present life, if it has been seen.
    #[inline]
    pub(crate) fn seen(&self, tid: Tid) -> Option<Slot> {
        self.slots.get(tid as usize).copied().filter(|slot| *slot != NONE)
    }

    /// Adds a slot for a thread that has not been seen. Returns `None` if the id is impossible.
    #[cold]
    pub(crate) fn add(&mut self, tid: Tid) -> Option<Slot> {
        if !(0..=MAX_TID).contains(&tid) {
            return None;
        }
        let at = tid as usize;
        if at >= self.slots.len() {
            // Doubling the size avoids copying the table each time when thread ids keep rising.
            let size = (at + 1).next_power_of_two().clamp(1024, MAX_TID as usize + 1);
            self.slots.resize(size.max(at + 1), NONE);
        }
        self.slots[at] = self.tasks.len() as Slot;
        self.tasks.push(Task::new(tid));
        Some(self.slots[at])
    }

    /// Begins the next life of a slot's thread id, and returns its slot.
    pub(crate) fn reborn(&mut self, slot: Slot) -> Slot {
        let tid = self[slot].tid;
        if self.tasks.len() >= MAX_LIVES {
            self[slot] = Task::new(tid);
            return slot;
        }
        let new = self.tasks.len() as Slot;
        self.tasks.push(Task::new(tid));
        self.slots[tid as usize] = new;
        new
    }

    /// Gives the task in this slot, whose id is `old`, the id `new`, which was seen before. Returns `false` if there is
    /// no room for that.
    pub(crate) fn rename(&mut self, slot: Slot, old: Tid, new: Tid) -> bool {
        let room = self.tasks.len() < MAX_LIVES;
        if room {
            self.slots[new as usize] = slot;
            self.slots[old as usize] = NONE;
            self[slot].tid = new;
        }
        room
    }

    /// Iterates over every slot and its task.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Task)> {
        (0..).zip(&self.tasks)
    }

    /// Returns the task in this slot, if there is one.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<&Task> {
        self.tasks.get(slot as usize)
    }
}

impl Index<Slot> for TaskTable {
    type Output = Task;

    #[inline]
    fn index(&self, slot: Slot) -> &Task {
        &self.tasks[slot as usize]
    }
}

impl IndexMut<Slot> for TaskTable {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Task {
        &mut self.tasks[slot as usize]
    }
}
