//! A task as a scheduler sees it.

use crate::cpuset::CpuSet;
use crate::program::Policy;
use schedlab_base::{CpuId, Nanos, TaskState, Tid};

/// A task's number, dense from 0.
pub type TaskId = u32;

/// The attributes by which a task is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The scheduling policy.
    pub policy: Policy,
    /// The nice level, -20..=19.
    pub nice: i8,
    /// The real-time priority, 1..=99; 0 for other policies.
    pub rt_priority: u8,
    /// A custom slice, or a deadline task's runtime, in ns; 0 means none.
    pub runtime: Nanos,
    /// The relative deadline, in ns.
    pub deadline: Nanos,
    /// The period, in ns.
    pub period: Nanos,
    /// Whether a deadline task reclaims bandwidth that others leave unused (`SCHED_FLAG_RECLAIM`).
    pub reclaim: bool,
}

impl Attributes {
    /// Returns the rank of a task with a real-time policy: 0, for real-time priority 99, is the best. `None` for other
    /// policies.
    #[inline]
    #[must_use]
    pub fn real_time_level(&self) -> Option<u8> {
        matches!(self.policy, Policy::Fifo | Policy::Rr).then(|| 99u8.saturating_sub(self.rt_priority))
    }

    /// Returns the kernel's priority as traces contain it: 0..=99 for real-time, 100..=139 for fair policies, -1 for
    /// deadline.
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

/// Whether a task is runnable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Running, or waiting on a queue.
    Runnable,
    /// Asleep; uninterruptibly if it waits for a device.
    Sleeping {
        /// Whether its state is `D` rather than `S`.
        uninterruptible: bool,
    },
    /// Ended.
    Dead,
}

/// A task as a scheduler sees it.
#[derive(Clone, Debug)]
pub struct Task {
    /// The attributes by which it is scheduled: its own, or better ones that a waiter of a mutex that it holds lends
    /// it.
    pub attributes: Attributes,
    /// The CPU whose queue it is on, or where it last was.
    pub cpu: CpuId,
    /// Whether it is runnable.
    pub state: State,
    /// Whether the scheduler has it, running or waiting: from just before
    /// [`enqueue_task`](crate::Scheduler::enqueue_task) until just before
    /// [`dequeue_task`](crate::Scheduler::dequeue_task).
    pub on_rq: bool,
    /// Where it may run: those CPUs of its affinity that are online. While it sleeps they may all have gone offline.
    pub allowed: CpuSet,
    /// Whether its affinity names a single CPU (`nr_cpus_allowed == 1`).
    pub pinned: bool,
    /// Its group, an index into the load's groups, or [`ROOT_GROUP`](crate::program::ROOT_GROUP).
    pub group: u32,
    /// Its user, for grouping by user.
    pub user: u32,
    /// Its session, for autogroups, or [`NO_SESSION`](crate::program::NO_SESSION).
    pub session: u32,
    /// The utilisation clamps, minimum and maximum (0..=1024).
    pub clamp: (u16, u16),
}

/// Returns the thread id of a task in a trace; 0 is the idle task.
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

#[cfg(test)]
mod tests {
    use super::Task;

    /// A load may have a million of them.
    #[test]
    fn a_task_takes_a_cache_line() {
        assert_eq!(size_of::<Task>(), 64);
    }
}
