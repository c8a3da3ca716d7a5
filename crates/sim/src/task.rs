//! A task as a scheduler sees it.

use crate::cpuset::CpuSet;
use crate::program::Policy;
use schedlab_base::{CpuId, Nanos, TaskState, Tid};

/// A task's number, dense from 0.
pub type TaskId = u32;

/// What a scheduler goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Policy.
    pub policy: Policy,
    /// Nice, -20..=19.
    pub nice: i8,
    /// Real-time priority, 1..=99; 0 for others.
    pub rt_priority: u8,
    /// A custom slice or a deadline task's runtime; 0: none.
    pub runtime: Nanos,
    /// Relative deadline.
    pub deadline: Nanos,
    /// Period.
    pub period: Nanos,
    /// A deadline task reclaims bandwidth that others leave unused (`SCHED_FLAG_RECLAIM`).
    pub reclaim: bool,
}

impl Attributes {
    /// Where a task with a real-time policy stands among all: 0 is the best, of real-time priority 99. `None` for other
    /// policies.
    #[inline]
    #[must_use]
    pub fn real_time_level(&self) -> Option<u8> {
        matches!(self.policy, Policy::Fifo | Policy::Rr).then(|| 99u8.saturating_sub(self.rt_priority))
    }

    /// The kernel's priority as traces carry it: 0..=99 for real time, 100..=139 for the rest.
    #[inline]
    #[must_use]
    pub fn prio(&self) -> i16 {
        match self.policy {
            Policy::Fifo | Policy::Rr => 99 - i16::from(self.rt_priority),
            Policy::Deadline => -1,
            Policy::Other | Policy::Batch | Policy::Idle => 120 + i16::from(self.nice),
        }
    }
}

/// Whether a task can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Running or on a queue.
    Runnable,
    /// Asleep; uninterruptible when it waits for a device.
    Sleeping {
        /// `D` rather than `S`.
        uninterruptible: bool,
    },
    /// Ended.
    Dead,
}

/// A task as a scheduler sees it.
#[derive(Clone, Debug)]
pub struct Task {
    /// What the scheduler goes by.
    pub attributes: Attributes,
    /// The CPU whose queue it is on, or where it last was.
    pub cpu: CpuId,
    /// Whether it can run.
    pub state: State,
    /// The scheduler has it, running or waiting: true from just before
    /// [`enqueue_task`](crate::Scheduler::enqueue_task) until just before
    /// [`dequeue_task`](crate::Scheduler::dequeue_task).
    pub on_rq: bool,
    /// Where it may run: those CPUs of its affinity that are online. While it sleeps they may all have gone offline.
    pub allowed: CpuSet,
    /// Its group, as an index into the load's groups.
    pub group: Option<u32>,
    /// Its user, for grouping by user.
    pub user: u32,
    /// Its session, for autogroups.
    pub session: u32,
    /// Utilisation clamps (0..=1024): the least and the most that it counts for.
    pub clamp: (u32, u32),
    /// When it last left a CPU.
    pub last_ran: Nanos,
}

/// The thread id under which a task is traced; 0 is idle.
#[inline]
#[must_use]
pub fn tid(p: TaskId) -> Tid {
    p as Tid + 1
}

impl State {
    #[inline]
    pub(crate) fn traced(self) -> TaskState {
        match self {
            Self::Runnable => TaskState::Runnable,
            Self::Sleeping { uninterruptible: false } => TaskState::Sleeping,
            Self::Sleeping { uninterruptible: true } => TaskState::Uninterruptible,
            Self::Dead => TaskState::Dead,
        }
    }
}
