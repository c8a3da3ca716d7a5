//! The longest waits.

use super::chain::Chain;
use super::parts::Ticket;
use super::watch::After;
use schedlab_base::{CpuId, Nanos};
use schedlab_track::Slot;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

type Rank = (Nanos, Reverse<Nanos>, Reverse<Slot>);

fn rank(task: Slot, from: Nanos, to: Nanos) -> Rank {
    (to - from, Reverse(from), Reverse(task))
}

/// A long wait.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) task: Slot,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) after: After,
    pub(super) before: bool,
    pub(super) finished: bool,
    pub(super) doubtful: bool,
    pub(super) queues: Vec<(CpuId, Nanos)>,
    /// What ran meanwhile, on each of the queues.
    pub(super) ran: Vec<Ticket>,
    pub(super) chain: Chain,
    /// How long any CPU that it was allowed on was idle, its own included.
    pub(super) idle: Nanos,
    pub(super) known: bool,
}

impl Found {
    /// The longest first; of equal ones the first.
    fn rank(&self) -> Rank {
        rank(self.task, self.from, self.to)
    }
}

/// In a heap the shortest is on top.
impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Found {}

/// As many of the longest as are wanted.
#[derive(Debug)]
pub(super) struct Longest {
    most: usize,
    found: BinaryHeap<Found>,
}

impl Longest {
    pub(super) fn new(most: usize) -> Self {
        Self { most, found: BinaryHeap::new() }
    }

    /// Whether this wait is one of them so far.
    #[inline]
    pub(super) fn wants(&self, task: Slot, from: Nanos, to: Nanos) -> bool {
        let longer = |found: &Found| rank(task, from, to) > found.rank();
        from < to && (self.found.len() < self.most || self.found.peek().is_some_and(longer))
    }

    /// Takes a wait that is wanted. Returns one that no longer is.
    pub(super) fn take(&mut self, found: Found) -> Option<Found> {
        let beyond = (self.found.len() >= self.most).then(|| self.found.pop()).flatten();
        self.found.push(found);
        beyond
    }

    /// Forgets all of them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Found> {
        self.found.drain()
    }

    /// The longest first.
    pub(super) fn sorted(&self) -> Vec<&Found> {
        let mut found: Vec<&Found> = self.found.iter().collect();
        found.sort();
        found
    }
}
