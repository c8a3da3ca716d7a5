//! The lists of all levels of all CPUs. A task joins a list at its end and leaves it from anywhere, and a whole list
//! can be appended to another, each in constant time.

use schedlab_sim::TaskId;

/// Circular doubly linked lists. Each list has its own node, before its first task and after its last.
#[derive(Debug)]
pub struct Lists {
    /// The nodes of the lists, followed by those of the tasks: the previous and the next node.
    nodes: Vec<(u32, u32)>,
    lists: u32,
}

impl Lists {
    /// Creates this many empty lists.
    #[must_use]
    pub fn new(lists: u32) -> Self {
        Self { nodes: (0..lists).map(|list| (list, list)).collect(), lists }
    }

    /// Makes room for task `p`.
    pub fn grow(&mut self, p: TaskId) {
        for node in self.nodes.len() as u32..=self.lists + p {
            self.nodes.push((node, node));
        }
    }

    fn join(&mut self, left: u32, right: u32) {
        self.nodes[left as usize].1 = right;
        self.nodes[right as usize].0 = left;
    }

    /// Adds `p`, which must be on no list, at the end of `list`.
    pub fn push(&mut self, list: u32, p: TaskId) {
        let (node, last) = (self.lists + p, self.nodes[list as usize].0);
        self.join(last, node);
        self.join(node, list);
    }

    /// Removes `p` from the list that it is on.
    pub fn remove(&mut self, p: TaskId) {
        let node = self.lists + p;
        let (left, right) = self.nodes[node as usize];
        self.join(left, right);
        self.nodes[node as usize] = (node, node);
    }

    /// Moves all tasks of `from` to the end of `to`.
    pub fn append(&mut self, from: u32, to: u32) {
        let (last, first) = self.nodes[from as usize];
        if first != from {
            let end = self.nodes[to as usize].0;
            self.join(end, first);
            self.join(last, to);
            self.nodes[from as usize] = (from, from);
        }
    }

    /// Returns the first task of a list.
    #[must_use]
    pub fn first(&self, list: u32) -> Option<TaskId> {
        self.nodes[list as usize].1.checked_sub(self.lists)
    }

    /// Iterates over a list from its first task to its last.
    pub fn iter(&self, list: u32) -> impl Iterator<Item = TaskId> + '_ {
        std::iter::successors(self.first(list), |p| self.nodes[(self.lists + p) as usize].1.checked_sub(self.lists))
    }

    /// Iterates over a list from its last task to its first.
    pub fn backwards(&self, list: u32) -> impl Iterator<Item = TaskId> + '_ {
        let before = |node: u32| self.nodes[node as usize].0.checked_sub(self.lists);
        std::iter::successors(before(list), move |p| before(self.lists + p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Rng;

    #[test]
    fn lists_do_what_plain_queues_do() {
        let mut lists = Lists::new(5);
        lists.grow(30);
        let mut model: Vec<Vec<TaskId>> = vec![Vec::new(); 5];
        let mut rng = Rng::new(3);
        for _ in 0..20_000 {
            let (p, list) = (rng.below(31) as TaskId, rng.below(5) as u32);
            if let Some(on) = model.iter_mut().find(|queue| queue.contains(&p)) {
                on.retain(|q| *q != p);
                lists.remove(p);
            } else {
                model[list as usize].push(p);
                lists.push(list, p);
            }
            if rng.below(6) == 0 {
                let from = (list + 1) % 5;
                let moved = std::mem::take(&mut model[from as usize]);
                model[list as usize].extend(moved);
                lists.append(from, list);
            }
            for (list, queue) in model.iter().enumerate() {
                assert_eq!(&lists.iter(list as u32).collect::<Vec<_>>(), queue);
                assert!(lists.backwards(list as u32).eq(queue.iter().rev().copied()));
            }
        }
    }
}
