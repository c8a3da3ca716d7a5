//! The counters of all tasks, stored side by side. Recalculating them is one pass over an array. As in the kernel, its
//! cost grows with the number of tasks, sleepers included.

use schedlab_sim::TaskId;

/// Marks a task that is not in the list.
const NONE: u32 = u32::MAX;

/// The counter of each living task and what it gains in each epoch, in the order of the kernel's list of all tasks.
#[derive(Debug, Default)]
pub struct Counters {
    left: Vec<i32>,
    refill: Vec<i32>,
    owner: Vec<TaskId>,
    /// Each task's position in the arrays.
    slot: Vec<u32>,
}

impl Counters {
    /// Adds a new task with `left` ticks; it gains `refill` ticks in each epoch (`SET_LINKS`).
    pub fn insert(&mut self, p: TaskId, left: i32, refill: i32) {
        if self.slot.len() <= p as usize {
            self.slot.resize(p as usize + 1, NONE);
        }
        self.slot[p as usize] = self.owner.len() as u32;
        self.owner.push(p);
        self.left.push(left);
        self.refill.push(refill);
    }

    /// Removes a dead task (`REMOVE_LINKS`).
    pub fn remove(&mut self, p: TaskId) {
        let at = std::mem::replace(&mut self.slot[p as usize], NONE) as usize;
        self.owner.remove(at);
        self.left.remove(at);
        self.refill.remove(at);
        for q in &self.owner[at..] {
            self.slot[*q as usize] -= 1;
        }
    }

    /// Returns whether a task is in the list.
    #[must_use]
    pub fn has(&self, p: TaskId) -> bool {
        self.slot.get(p as usize).is_some_and(|slot| *slot != NONE)
    }

    /// Returns how many ticks a task has left.
    #[inline]
    #[must_use]
    pub fn left(&self, p: TaskId) -> i32 {
        self.left[self.slot[p as usize] as usize]
    }

    /// Returns a mutable reference to a task's remaining ticks.
    #[inline]
    pub fn left_mut(&mut self, p: TaskId) -> &mut i32 {
        &mut self.left[self.slot[p as usize] as usize]
    }

    /// Returns how many ticks a task gains in each epoch.
    #[inline]
    #[must_use]
    pub fn refill(&self, p: TaskId) -> i32 {
        self.refill[self.slot[p as usize] as usize]
    }

    /// Changes what a task gains in each epoch, after its nice level changed.
    pub fn set_refill(&mut self, p: TaskId, refill: i32) {
        self.refill[self.slot[p as usize] as usize] = refill;
    }

    /// Begins a new epoch: every task keeps half of its remaining ticks and gains a slice.
    pub fn recalculate(&mut self) {
        for (left, refill) in self.left.iter_mut().zip(&self.refill) {
            *left = (*left >> 1) + refill;
        }
    }

    /// Iterates over every task and its counter, oldest task first.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, i32)> + '_ {
        self.owner.iter().copied().zip(self.left.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::Counters;

    #[test]
    fn those_that_stay_keep_their_order_and_their_counters() {
        let mut counters = Counters::default();
        for p in 0..4 {
            counters.insert(p, p as i32, 10 * p as i32);
        }
        counters.remove(1);
        assert_eq!(counters.iter().collect::<Vec<_>>(), [(0, 0), (2, 2), (3, 3)]);
        *counters.left_mut(3) = 9;
        counters.set_refill(2, 7);
        counters.recalculate();
        assert_eq!(counters.iter().collect::<Vec<_>>(), [(0, 0), (2, 8), (3, 34)]);
    }

    #[test]
    fn who_sleeps_gains_no_more_than_twice_its_slice() {
        let mut counters = Counters::default();
        counters.insert(0, 0, 20);
        let epochs = std::iter::repeat_with(|| {
            counters.recalculate();
            counters.left(0)
        });
        assert_eq!(epochs.take(8).collect::<Vec<_>>(), [20, 30, 35, 37, 38, 39, 39, 39]);
    }
}
