//! Which task took the CPU from which, while the other still waits to have it back.

use schedlab_track::{Slot, row};
use std::collections::HashMap;

/// So long a chain is told.
pub(super) const LONGEST: usize = 8;

/// More different chains than this are counted together.
const MOST: usize = 1 << 16;

const NONE: Slot = u32::MAX;

/// The tasks that preempted one another: the first took the CPU from the task that waits, the second from the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    tasks: [Slot; LONGEST],
    length: u8,
}

impl Chain {
    pub(super) fn tasks(&self) -> &[Slot] {
        &self.tasks[..usize::from(self.length)]
    }

    fn before(&self, task: Slot) -> Self {
        let mut longer = Self { length: (self.length + 1).min(LONGEST as u8), ..Self::default() };
        longer.tasks[0] = task;
        let rest = usize::from(longer.length) - 1;
        longer.tasks[1..=rest].copy_from_slice(&self.tasks[..rest]);
        longer
    }
}

#[derive(Clone, Copy, Debug)]
struct Links {
    /// The task that took the CPU from this one, which waits since then.
    by: Slot,
    /// The task from which this one took the CPU, and which waits since then.
    of: Slot,
    /// The longest chain of its present wait.
    longest: Chain,
}

impl Default for Links {
    fn default() -> Self {
        Self { by: NONE, of: NONE, longest: Chain::default() }
    }
}

/// The preemptions of tasks that wait.
#[derive(Debug, Default)]
pub(super) struct Preemptions {
    links: Vec<Links>,
    /// How often a task was preempted by a second and that by a third.
    pub(super) counts: HashMap<[Slot; 3], u64>,
    /// Those that are not told apart.
    pub(super) left_out: u64,
}

impl Preemptions {
    /// The task begins to wait.
    #[inline]
    pub(super) fn waits(&mut self, task: Slot) {
        self.free(task);
        row(&mut self.links, task).longest.length = 0;
    }

    /// The longest chain of the task's wait.
    pub(super) fn longest(&self, task: Slot) -> Chain {
        self.links.get(task as usize).map(|links| links.longest).unwrap_or_default()
    }

    /// The task waits no more for the one that took its CPU: it has a CPU again, or another queue.
    #[inline]
    pub(super) fn free(&mut self, task: Slot) {
        let Some(links) = self.links.get_mut(task as usize) else { return };
        let by = std::mem::replace(&mut links.by, NONE);
        if by != NONE && self.links[by as usize].of == task {
            self.links[by as usize].of = NONE;
        }
    }

    /// The task leaves its CPU of its own accord.
    #[inline]
    pub(super) fn leaves(&mut self, task: Slot) {
        let Some(links) = self.links.get_mut(task as usize) else { return };
        let of = std::mem::replace(&mut links.of, NONE);
        if of != NONE && self.links[of as usize].by == task {
            self.links[of as usize].by = NONE;
        }
    }

    /// `by` takes the CPU from `task`, which waits from now on; `count` unless it is not in the window.
    pub(super) fn preempts(&mut self, by: Slot, task: Slot, count: bool) {
        row(&mut self.links, task);
        row(&mut self.links, by);
        self.leaves(by);
        self.links[by as usize].of = task;
        self.links[task as usize].by = by;
        let (mut chain, mut at) = (Chain::default().before(by), task);
        for _ in 0..LONGEST {
            let links = &mut self.links[at as usize];
            if chain.length > links.longest.length {
                links.longest = chain;
            }
            if let [second, third] = *chain.tasks()
                && count
            {
                let known = self.counts.len() < MOST || self.counts.contains_key(&[at, second, third]);
                let sum = if known { self.counts.entry([at, second, third]).or_default() } else { &mut self.left_out };
                *sum += 1;
            }
            let above = self.links[at as usize].of;
            if above == NONE || above == by {
                return;
            }
            (chain, at) = (chain.before(at), above);
        }
    }
}
