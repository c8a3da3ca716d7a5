//! Checks, after each event in debug builds, of the rules that every scheduler must keep
//! ([`Scheduler`](crate::Scheduler) states them).
//!
//! The engine keeps its own account of the tasks that a scheduler has ([`Task::on_rq`](crate::Task::on_rq)) and
//! compares it with the tasks that the scheduler lists on its queues. Only CPUs on which something changed are checked,
//! so an event costs a walk over one queue. A long queue is not walked after each event, so that the checks of many
//! tasks do not take most of the time: what is wrong on it is found some events later.

use crate::core::Core;
use crate::task::{State, TaskId};
use schedlab_base::CpuId;

/// The state of a task on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Ready,
    Shared,
    Throttled,
    Delayed,
}

/// The tasks on the queue of a CPU, as listed by [`Scheduler::queued`](crate::Scheduler::queued). The running task is
/// included if it is on the queue.
#[derive(Debug, Default)]
pub struct QueueList {
    tasks: Vec<(TaskId, Standing)>,
    unknown: bool,
}

impl QueueList {
    /// Adds a task that may be picked on this CPU.
    pub fn ready(&mut self, p: TaskId) {
        self.tasks.push((p, Standing::Ready));
    }

    /// Adds a task on a queue that all CPUs share. It may wait for another CPU while this one is idle.
    pub fn shared(&mut self, p: TaskId) {
        self.tasks.push((p, Standing::Shared));
    }

    /// Adds a runnable task that may not be picked until its budget is renewed.
    pub fn throttled(&mut self, p: TaskId) {
        self.tasks.push((p, Standing::Throttled));
    }

    /// Adds a sleeping task that is still on the queue (delayed dequeue).
    pub fn delayed(&mut self, p: TaskId) {
        self.tasks.push((p, Standing::Delayed));
    }

    /// Marks the list as unknown: the scheduler does not list its queues.
    pub fn unknown(&mut self) {
        self.unknown = true;
    }
}

/// A broken rule.
#[derive(Debug)]
pub(crate) struct Violation {
    /// The task that it concerns.
    pub task: TaskId,
    /// What is wrong.
    pub what: &'static str,
}

/// A queue that is shorter than this is walked after each event; one that is n times as long after each n-th.
const SHORT: usize = 64;

/// What the checks keep from one event to the next, so that they allocate nothing.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub list: QueueList,
    /// For each task, the number of the check in which it was last found on a queue.
    found: Vec<u32>,
    check: u32,
    /// For each CPU, how many events more its queue need not be walked.
    rest: Vec<u32>,
}

impl Checks {
    /// Whether the queue of a CPU is so long that it is walked later.
    pub fn can_wait(&mut self, cpu: CpuId) -> bool {
        let rest = self.rest.get_mut(cpu as usize).filter(|rest| **rest > 0);
        rest.map(|rest| *rest -= 1).is_some()
    }

    /// Clears the list of the previous check.
    pub fn clear(&mut self) {
        self.list.tasks.clear();
        self.list.unknown = false;
    }

    /// Returns the first rule that is broken on `cpu`, by the scheduler's list.
    pub fn violation(&mut self, cx: &Core, cpu: CpuId) -> Option<Violation> {
        self.rest.resize(cx.nr_cpus() as usize, 0);
        self.rest[cpu as usize] = (self.list.tasks.len() / SHORT).saturating_sub(1) as u32;
        let curr = cx.curr(cpu);
        if let Some(p) = curr
            && let Some(what) = wrong_with_running(cx, cpu, p)
        {
            return Some(Violation { task: p, what });
        }
        if self.list.unknown {
            return None;
        }
        self.check += 1;
        self.found.resize(cx.nr_tasks() as usize, 0);
        let mut waiting = 0;
        for &(p, standing) in &self.list.tasks {
            let before = std::mem::replace(&mut self.found[p as usize], self.check);
            if let Some(what) = wrong_with_queued(cx, cpu, p, standing, before == self.check) {
                return Some(Violation { task: p, what });
            }
            waiting += u32::from(standing != Standing::Delayed && curr != Some(p));
        }
        if waiting + u32::from(curr.is_some()) != cx.nr_on_rq[cpu as usize] {
            let lost = |p: &TaskId| {
                let task = cx.task(*p);
                task.on_rq && task.cpu == cpu && curr != Some(*p) && self.found[*p as usize] != self.check
            };
            let task = (0..cx.nr_tasks()).find(lost)?;
            return Some(Violation { task, what: "is runnable, does not run, and is on no queue" });
        }
        self.left_waiting(cx, cpu)
    }

    /// Finds a task that waits while its CPU is idle and was not asked to reschedule.
    fn left_waiting(&self, cx: &Core, cpu: CpuId) -> Option<Violation> {
        if cx.curr(cpu).is_some() || cx.need_resched(cpu) || !cx.online(cpu) {
            return None;
        }
        let waits = |standing| match standing {
            Standing::Ready => true,
            Standing::Shared => cx.nr_cpus() == 1,
            Standing::Throttled | Standing::Delayed => false,
        };
        let (task, _) = *self.list.tasks.iter().find(|(_, standing)| waits(*standing))?;
        Some(Violation { task, what: "waits on the queue of a CPU that is idle and was not asked to reschedule" })
    }
}

fn wrong_with_running(cx: &Core, cpu: CpuId, p: TaskId) -> Option<&'static str> {
    let task = cx.task(p);
    if task.state != State::Runnable || !task.on_rq {
        Some("runs, but is not runnable")
    } else if task.cpu != cpu {
        Some("runs here, but was moved to another CPU")
    } else {
        None
    }
}

fn wrong_with_queued(cx: &Core, cpu: CpuId, p: TaskId, standing: Standing, twice: bool) -> Option<&'static str> {
    let task = cx.task(p);
    if twice {
        Some("is on the queue twice")
    } else if standing == Standing::Delayed && task.on_rq {
        Some("is on the queue as if it slept, but is runnable")
    } else if standing != Standing::Delayed && !task.on_rq {
        Some("is on the queue, but is not runnable")
    } else if task.cpu != cpu {
        Some("is on the queue of another CPU than its own")
    } else {
        None
    }
}
