//! Each CPU's fair tasks in the order in which load balancing looks at them (`rq->cfs_tasks`). A task moves to the head
//! when it is enqueued, and in some releases also when it is picked. Load balancing searches from the tail.

use schedlab_base::CpuId;
use schedlab_sim::TaskId;

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    to_head: u32,
    to_tail: u32,
}

/// The lists of all CPUs, stored in one arena.
#[derive(Debug, Default)]
pub struct TaskLists {
    links: Vec<Link>,
    /// The head and the tail of each CPU's list.
    ends: Vec<(u32, u32)>,
}

impl TaskLists {
    /// Creates an empty list for each CPU.
    pub(super) fn new(cpus: u32) -> Self {
        Self { links: Vec::new(), ends: vec![(NIL, NIL); cpus as usize] }
    }

    /// Makes room for a new task.
    pub(super) fn grow(&mut self, p: TaskId) {
        if self.links.len() <= p as usize {
            self.links.resize(p as usize + 1, Link { to_head: NIL, to_tail: NIL });
        }
    }

    /// Adds a task at the head of a CPU's list.
    #[inline]
    pub(super) fn add(&mut self, cpu: CpuId, p: TaskId) {
        let (head, tail) = &mut self.ends[cpu as usize];
        self.links[p as usize] = Link { to_head: NIL, to_tail: *head };
        if *head == NIL {
            *tail = p;
        } else {
            self.links[*head as usize].to_head = p;
        }
        *head = p;
    }

    /// Removes a task from a CPU's list.
    #[inline]
    pub(super) fn remove(&mut self, cpu: CpuId, p: TaskId) {
        let Link { to_head, to_tail } = self.links[p as usize];
        let (head, tail) = &mut self.ends[cpu as usize];
        if to_head == NIL {
            *head = to_tail;
        } else {
            self.links[to_head as usize].to_tail = to_tail;
        }
        if to_tail == NIL {
            *tail = to_head;
        } else {
            self.links[to_tail as usize].to_head = to_head;
        }
    }

    /// Moves a task to the head of a CPU's list.
    #[inline]
    pub(super) fn move_to_head(&mut self, cpu: CpuId, p: TaskId) {
        if self.ends[cpu as usize].0 != p {
            self.remove(cpu, p);
            self.add(cpu, p);
        }
    }

    /// Moves a task to the tail of a CPU's list.
    pub(super) fn move_to_tail(&mut self, cpu: CpuId, p: TaskId) {
        if self.ends[cpu as usize].1 == p {
            return;
        }
        self.remove(cpu, p);
        let (head, tail) = &mut self.ends[cpu as usize];
        self.links[p as usize] = Link { to_head: *tail, to_tail: NIL };
        if *tail == NIL {
            *head = p;
        } else {
            self.links[*tail as usize].to_tail = p;
        }
        *tail = p;
    }

    /// The queued tasks of a CPU from the head to the tail, like [`TaskLists::from_tail`].
    pub fn from_head(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = self.ends[cpu as usize].0;
        std::iter::from_fn(move || {
            let p = (at != NIL).then_some(at)?;
            at = self.links[p as usize].to_tail;
            Some(p)
        })
    }

    /// The queued tasks of a CPU from the tail to the head, including the running task, delayed tasks and tasks in
    /// throttled groups.
    pub fn from_tail(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = self.ends[cpu as usize].1;
        std::iter::from_fn(move || {
            let p = (at != NIL).then_some(at)?;
            at = self.links[p as usize].to_head;
            Some(p)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_at_the_tail() {
        let mut lists = TaskLists::new(2);
        for p in 0..6 {
            lists.grow(p);
            lists.add(p % 2, p);
        }
        let order = |lists: &TaskLists, cpu| lists.from_tail(cpu).collect::<Vec<_>>();
        assert_eq!((order(&lists, 0), order(&lists, 1)), (vec![0, 2, 4], vec![1, 3, 5]));
        lists.move_to_head(0, 0);
        lists.move_to_head(0, 4);
        assert_eq!(order(&lists, 0), [2, 0, 4]);
        lists.move_to_tail(0, 4);
        assert_eq!((order(&lists, 0), lists.from_head(0).collect::<Vec<_>>()), (vec![4, 2, 0], vec![0, 2, 4]));
        lists.move_to_tail(0, 0);
        lists.move_to_tail(0, 0);
        assert_eq!((order(&lists, 0), lists.from_head(0).collect::<Vec<_>>()), (vec![0, 4, 2], vec![2, 4, 0]));
        for p in [0, 2, 4] {
            lists.remove(0, p);
        }
        assert_eq!(order(&lists, 0), [0; 0]);
        lists.add(0, 2);
        assert_eq!((order(&lists, 0), order(&lists, 1)), (vec![2], vec![1, 3, 5]));
    }
}
