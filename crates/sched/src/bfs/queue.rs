//! The one queue: waiting tasks, best priority first, and in order of arrival within a priority.

use super::rules::{ISO_PRIO, MAX_RT_PRIO, PRIO_LIMIT};
use schedlab_base::Nanos;
use schedlab_sim::TaskId;

/// The number of priorities whose tasks are ordered by deadline: ISO, normal, IDLEPRIO.
const DEADLINE_LEVELS: usize = (PRIO_LIMIT - ISO_PRIO) as usize;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    deadline: Nanos,
    task: TaskId,
}

/// All runnable tasks that are not running.
#[derive(Debug, Default)]
pub struct Queue {
    /// Real-time tasks and their priorities, in the order in which they will run.
    real_time: Vec<(u8, TaskId)>,
    /// The other tasks of each priority, in order of arrival. The kernel keeps lists here and scans them, too.
    levels: [Vec<Waiting>; DEADLINE_LEVELS],
}

impl Queue {
    /// Returns whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.real_time.is_empty() && self.levels.iter().all(Vec::is_empty)
    }

    /// Adds `p` at the end of the list of its priority.
    pub fn push(&mut self, p: TaskId, prio: u8, deadline: Nanos) {
        if prio < MAX_RT_PRIO {
            let at = self.real_time.partition_point(|(other, _)| *other <= prio);
            self.real_time.insert(at, (prio, p));
        } else {
            self.levels[(prio - ISO_PRIO) as usize].push(Waiting { deadline, task: p });
        }
    }

    /// Removes `p` from the list of its priority.
    pub fn remove(&mut self, p: TaskId, prio: u8) {
        if prio < MAX_RT_PRIO {
            self.real_time.retain(|(_, q)| *q != p);
        } else {
            let level = &mut self.levels[(prio - ISO_PRIO) as usize];
            if let Some(at) = level.iter().position(|w| w.task == p) {
                level.remove(at);
            }
        }
    }

    /// Iterates over the waiting tasks, best priority first, each priority in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.real_time.iter().map(|(_, p)| *p).chain(self.levels.iter().flatten().map(|w| w.task))
    }

    /// Removes and returns the task that runs next: the first real-time task, otherwise the task with the earliest
    /// deadline on the best list, the first of equals (`earliest_deadline_task`). It considers only tasks that are
    /// `allowed`, and shifts the deadlines of tasks that are sticky to another CPU left by `bias`. It scans every
    /// waiting task.
    pub fn take_next(&mut self, allowed: impl Fn(TaskId) -> bool, bias: impl Fn(TaskId) -> u32) -> Option<TaskId> {
        if let Some(at) = self.real_time.iter().position(|(_, p)| allowed(*p)) {
            return Some(self.real_time.remove(at).1);
        }
        for level in &mut self.levels {
            let mut best = None;
            let mut earliest = Nanos::MAX;
            for (i, w) in level.iter().enumerate() {
                // A bias can only make the deadline later.
                if w.deadline < earliest && allowed(w.task) {
                    let deadline = w.deadline << bias(w.task);
                    if deadline < earliest {
                        (best, earliest) = (Some(i), deadline);
                    }
                }
            }
            if let Some(at) = best {
                return Some(level.remove(at).task);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::{IDLE_PRIO, NORMAL_PRIO};
    use super::*;

    fn order(queue: &mut Queue) -> Vec<TaskId> {
        std::iter::from_fn(|| queue.take_next(|_| true, |_| 0)).collect()
    }

    #[test]
    fn priority_then_deadline_then_order_of_coming() {
        let mut queue = Queue::default();
        let all = [(0, IDLE_PRIO, 1), (1, NORMAL_PRIO, 9), (2, NORMAL_PRIO, 7), (3, NORMAL_PRIO, 7), (4, ISO_PRIO, 99)];
        for (p, prio, deadline) in all {
            queue.push(p, prio, deadline);
        }
        for (p, prio) in [(5, 50), (6, 10), (7, 50)] {
            queue.push(p, prio, 0);
        }
        assert_eq!(order(&mut queue), [6, 5, 7, 4, 2, 3, 1, 0]);
        assert!(queue.is_empty());
    }

    #[test]
    fn who_is_stuck_elsewhere_goes_later_and_who_may_not_run_here_not_at_all() {
        let mut queue = Queue::default();
        for (p, deadline) in [(0, 10), (1, 15), (2, 5)] {
            queue.push(p, NORMAL_PRIO, deadline);
        }
        let next = queue.take_next(|p| p != 2, |p| u32::from(p == 0));
        assert_eq!(next, Some(1));
        assert_eq!(queue.take_next(|p| p == 1, |_| 0), None);
        queue.remove(2, NORMAL_PRIO);
        assert_eq!(order(&mut queue), [0]);
    }
}
