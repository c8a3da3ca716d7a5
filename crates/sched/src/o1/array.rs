//! A priority array: one list of tasks for each of 140 priorities, and a bitmap of the lists that are not empty.

use schedlab_sim::TaskId;

/// The number of priorities: 0 to 99 real-time, 100 to 139 ordinary. A smaller number is better.
pub const MAX_PRIO: u8 = 140;
const LEVELS: usize = MAX_PRIO as usize;
const NONE: TaskId = TaskId::MAX;

/// Each task's neighbours in the list that it is on. A task is on at most one list at a time.
#[derive(Debug, Default)]
pub struct Links(Vec<(TaskId, TaskId)>);

impl Links {
    /// Makes room for task `p`.
    pub fn grow(&mut self, p: TaskId) {
        if self.0.len() <= p as usize {
            self.0.resize(p as usize + 1, (NONE, NONE));
        }
    }

    /// Returns the task before `p` in its list.
    #[must_use]
    pub fn before(&self, p: TaskId) -> Option<TaskId> {
        some(self.0[p as usize].0)
    }

    /// Returns the task after `p` in its list.
    #[must_use]
    pub fn after(&self, p: TaskId) -> Option<TaskId> {
        some(self.0[p as usize].1)
    }

    fn join(&mut self, left: TaskId, right: TaskId) {
        if left != NONE {
            self.0[left as usize].1 = right;
        }
        if right != NONE {
            self.0[right as usize].0 = left;
        }
    }
}

fn some(p: TaskId) -> Option<TaskId> {
    (p != NONE).then_some(p)
}

/// One of a CPU's two arrays.
#[derive(Clone, Debug)]
pub struct PrioArray {
    bitmap: [u64; LEVELS.div_ceil(64)],
    nr_active: u32,
    /// The first and the last task of each list.
    ends: [(TaskId, TaskId); LEVELS],
}

impl Default for PrioArray {
    fn default() -> Self {
        Self { bitmap: [0; LEVELS.div_ceil(64)], nr_active: 0, ends: [(NONE, NONE); LEVELS] }
    }
}

impl PrioArray {
    /// Returns how many tasks are on the lists.
    #[inline]
    #[must_use]
    pub fn nr_active(&self) -> u32 {
        self.nr_active
    }

    /// Adds `p` at the end of the list of `prio`.
    pub fn push(&mut self, links: &mut Links, p: TaskId, prio: u8) {
        let last = std::mem::replace(&mut self.ends[prio as usize].1, p);
        links.join(last, p);
        links.0[p as usize].1 = NONE;
        if last == NONE {
            self.ends[prio as usize].0 = p;
            links.0[p as usize].0 = NONE;
            self.bitmap[prio as usize / 64] |= 1 << (prio % 64);
        }
        self.nr_active += 1;
    }

    /// Inserts `p` just before `at`, which must be on the list of `prio`.
    pub fn insert_before(&mut self, links: &mut Links, p: TaskId, at: TaskId, prio: u8) {
        let left = links.0[at as usize].0;
        links.0[p as usize].0 = left;
        links.join(left, p);
        links.join(p, at);
        if left == NONE {
            self.ends[prio as usize].0 = p;
        }
        self.nr_active += 1;
    }

    /// Removes `p` from the list of `prio`.
    pub fn remove(&mut self, links: &mut Links, p: TaskId, prio: u8) {
        let (left, right) = links.0[p as usize];
        links.join(left, right);
        let ends = &mut self.ends[prio as usize];
        if left == NONE {
            ends.0 = right;
        }
        if right == NONE {
            ends.1 = left;
        }
        if *ends == (NONE, NONE) {
            self.bitmap[prio as usize / 64] &= !(1 << (prio % 64));
        }
        self.nr_active -= 1;
    }

    /// Returns the first task of the best priority.
    #[must_use]
    pub fn first(&self) -> Option<TaskId> {
        self.level_from(0).map(|prio| self.ends[prio as usize].0)
    }

    /// Returns the first task of the list of `prio`.
    #[must_use]
    pub fn head(&self, prio: u8) -> Option<TaskId> {
        some(self.ends[prio as usize].0)
    }

    /// Returns the last task of the list of `prio`.
    #[must_use]
    pub fn last(&self, prio: u8) -> Option<TaskId> {
        some(self.ends[prio as usize].1)
    }

    /// Returns the best priority, `from` or worse, whose list is not empty.
    #[must_use]
    pub fn level_from(&self, from: u8) -> Option<u8> {
        let start = from as usize / 64;
        let words = self.bitmap.iter().enumerate().skip(start);
        words
            .map(|(i, word)| (i, if i == start { word & (u64::MAX << (from % 64)) } else { *word }))
            .find(|(_, word)| *word != 0)
            .map(|(i, word)| i as u8 * 64 + word.trailing_zeros() as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Rng;
    use std::collections::VecDeque;

    fn list(array: &PrioArray, links: &Links, prio: u8) -> Vec<TaskId> {
        let mut tasks: Vec<_> = std::iter::successors(array.last(prio), |p| links.before(*p)).collect();
        tasks.reverse();
        tasks
    }

    #[test]
    fn lists_do_what_plain_queues_do() {
        const TASKS: u32 = 60;
        let (mut array, mut links) = (PrioArray::default(), Links::default());
        links.grow(TASKS - 1);
        let mut model: Vec<VecDeque<TaskId>> = vec![VecDeque::new(); LEVELS];
        let mut on: Vec<Option<u8>> = vec![None; TASKS as usize];
        let mut rng = Rng::new(11);
        for _ in 0..20_000 {
            let p = rng.below(u64::from(TASKS)) as TaskId;
            if let Some(prio) = on[p as usize].take() {
                array.remove(&mut links, p, prio);
                model[prio as usize].retain(|q| *q != p);
            } else {
                let prio = [0, 63, 64, 99, 120, 127, 128, 139][rng.below(8) as usize];
                on[p as usize] = Some(prio);
                let queue = &mut model[prio as usize];
                if queue.is_empty() || rng.below(2) == 0 {
                    array.push(&mut links, p, prio);
                    queue.push_back(p);
                } else {
                    let i = rng.below(queue.len() as u64) as usize;
                    array.insert_before(&mut links, p, queue[i], prio);
                    queue.insert(i, p);
                }
            }
            let best = model.iter().position(|q| !q.is_empty());
            assert_eq!(array.level_from(0), best.map(|b| b as u8));
            assert_eq!(array.first(), best.map(|b| model[b][0]));
            assert_eq!(array.nr_active() as usize, model.iter().map(VecDeque::len).sum::<usize>());
            let from = rng.below(140) as u8;
            let worse = (from..MAX_PRIO).find(|l| !model[*l as usize].is_empty());
            assert_eq!(array.level_from(from), worse);
            assert_eq!(worse.map(|l| list(&array, &links, l)), worse.map(|l| model[l as usize].clone().into()));
        }
    }
}
