//! The counters of all tasks, side by side: recalculating them is one pass over an array, and its cost grows with the
//! number of tasks, sleepers included, as it did in the kernel.

use schedlab_sim::TaskId;

/// Not in the list.
const NONE: u32 = u32::MAX;

/// The counter of each living task, and what it gains in each epoch, in the order of the kernel's list of all tasks.
#[derive(Debug, Default)]
pub struct Counters {
    left: Vec<i32>,
    refill: Vec<i32>,
    owner: Vec<TaskId>,
    /// Where in the arrays a task is.
    slot: Vec<u32>,
}

impl Counters {
    /// A task comes to be, with `left` ticks; it gains `refill` in each epoch (`SET_LINKS`).
    pub fn insert(&mut self, p: TaskId, left: i32, refill: i32) {
        if self.slot.len() <= p as usize {
            self.slot.resize(p as usize + 1, NONE);
        }
        self.slot[p as usize] = self.owner.len() as u32;
        self.owner.push(p);
        self.left.push(left);
        self.refill.push(refill);
    }

    /// A task is gone (`REMOVE_LINKS`).
    pub fn remove(&mut self, p: TaskId) {
        let at = std::mem::replace(&mut self.slot[p as usize], NONE) as usize;
        self.owner.remove(at);
        self.left.remove(at);
        self.refill.remove(at);
        for q in &self.owner[at..] {
            self.slot[*q as usize] -= 1;
        }
    }

    /// Whether a task has come to be.
    #[must_use]
    pub fn has(&self, p: TaskId) -> bool {
        self.slot.get(p as usize).is_some_and(|slot| *slot != NONE)
    }

    /// How many ticks a task has left.
    #[inline]
    #[must_use]
    pub fn left(&self, p: TaskId) -> i32 {
        self.left[self.slot[p as usize] as usize]
    }

    /// The same, to be changed.
    #[inline]
    pub fn left_mut(&mut self, p: TaskId) -> &mut i32 {
        &mut self.left[self.slot[p as usize] as usize]
    }

    /// What a task gains in each epoch, in ticks.
    #[inline]
    #[must_use]
    pub fn refill(&self, p: TaskId) -> i32 {
        self.refill[self.slot[p as usize] as usize]
    }

    /// The nice level of a task changed.
    pub fn set_refill(&mut self, p: TaskId, refill: i32) {
        self.refill[self.slot[p as usize] as usize] = refill;
    }

    /// A new epoch: everybody keeps half of what is left, and gains a slice.
    pub fn recalculate(&mut self) {
        for (left, refill) in self.left.iter_mut().zip(&self.refill) {
            *left = (*left >> 1) + refill;
        }
    }

    /// Every task and its counter, the oldest first.
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
