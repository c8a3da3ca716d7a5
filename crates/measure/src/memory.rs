//! Memory: on which nodes each process has it, how much of it moved, and when it and its tasks came to rest.

use schedlab_base::{CpuId, NOWHERE, Nanos, PAGE, Tid};
use schedlab_track::{Move, Observer, Slot, row};
use serde::Serialize;
use std::collections::HashMap;

/// The memory of a process.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// Pages by node.
    on: Vec<(u16, u64)>,
    /// Pages that came from one node to another.
    moved: u64,
    /// The node that has most of it, and since when, if it came from another.
    home: Option<u32>,
    since: Option<Nanos>,
}

impl Memory {
    fn on(&mut self, node: u16) -> &mut u64 {
        let at = self.on.iter().position(|(known, _)| *known == node).unwrap_or_else(|| {
            self.on.push((node, 0));
            self.on.len() - 1
        });
        &mut self.on[at].1
    }

    fn all(&self) -> u64 {
        self.on.iter().map(|(_, pages)| pages).sum()
    }
}

/// Where the memory of each process is, as a trace tells it event by event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    of: HashMap<Tid, Memory>,
}

impl Places {
    fn move_pages(&mut self, tgid: Tid, from: u16, to: u16, pages: u32, now: Nanos) {
        let memory = self.of.entry(tgid).or_default();
        let mut pages = u64::from(pages);
        if from != NOWHERE {
            let there = memory.on(from);
            pages = pages.min(*there);
            *there -= pages;
        }
        if to != NOWHERE {
            *memory.on(to) += pages;
        }
        if from != NOWHERE && to != NOWHERE {
            memory.moved += pages;
        }
        // Of equal ones the one that it was on, or else the first.
        let most = memory.on.iter().filter(|(_, pages)| *pages > 0);
        let rank =
            |(node, pages): &&(u16, u64)| (*pages, memory.home == Some((*node).into()), std::cmp::Reverse(*node));
        let home = most.max_by_key(rank).map(|(node, _)| u32::from(*node));
        if home != memory.home && home.is_some() {
            // Where it is touched first is no change of where it is.
            memory.since = if from == NOWHERE { memory.since } else { Some(now) };
            memory.home = home;
        }
    }

    /// Whether the trace has told of no memory.
    pub(crate) fn are_unknown(&self) -> bool {
        self.of.is_empty()
    }

    /// The part of a process's memory that is on a node: pages there, and in all; none where it has none.
    pub(crate) fn part(&self, tgid: Tid, node: u32) -> Option<(u64, u64)> {
        let memory = self.of.get(&tgid)?;
        let there = memory.on.iter().find(|(on, _)| u32::from(*on) == node).map_or(0, |(_, pages)| *pages);
        Some((there, memory.all())).filter(|(_, all)| *all > 0)
    }
}

impl Observer for Places {
    fn pages(&mut self, tgid: Tid, from: u16, to: u16, pages: u32, now: Nanos) {
        self.move_pages(tgid, from, to, pages, now);
    }
}

/// The memory of a task's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryStats {
    /// Bytes on each of the nodes, in their order.
    pub bytes_by_node: Vec<u64>,
    /// Bytes that were moved from one node to another.
    pub moved_bytes: u64,
    /// The node that has most of it.
    pub node: Option<u32>,
}

/// What a task had to do with nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OfTask {
    /// Moves from a CPU of one node to one of another.
    pub(crate) node_migrations: u64,
    last: Option<Nanos>,
}

/// The measure.
#[derive(Debug, Default)]
pub(crate) struct MemoryTimes {
    places: Places,
    /// The index of each CPU's node; empty where there is one node alone.
    node_of: Vec<u32>,
    tasks: Vec<OfTask>,
}

impl MemoryTimes {
    /// `node_of`: the index of each CPU's node; empty where there is one node alone.
    pub(crate) fn new(node_of: Vec<u32>) -> Self {
        Self { node_of, ..Self::default() }
    }

    /// What a task had to do with nodes.
    pub(crate) fn task(&self, task: Slot) -> OfTask {
        self.tasks.get(task as usize).copied().unwrap_or_default()
    }

    fn memory(&self, process: Option<Tid>) -> Option<&Memory> {
        self.places.of.get(&process?)
    }

    /// When a task was last moved between nodes, or most of its memory was; none where neither ever happened.
    pub(crate) fn settled(&self, task: Slot, process: Option<Tid>) -> Option<Nanos> {
        self.task(task).last.max(self.memory(process).and_then(|memory| memory.since))
    }

    /// The memory of a task's process on these nodes; none where nothing is told of it.
    pub(crate) fn stats(&self, process: Option<Tid>, nodes: &[u32]) -> Option<MemoryStats> {
        let memory = self.memory(process)?;
        let on = |node: &u32| memory.on.iter().find(|(on, _)| u32::from(*on) == *node).map_or(0, |(_, pages)| *pages);
        let bytes_by_node = nodes.iter().map(|node| on(node) * PAGE).collect();
        Some(MemoryStats { bytes_by_node, moved_bytes: memory.moved * PAGE, node: memory.home })
    }
}

impl Observer for MemoryTimes {
    #[inline]
    fn migrated(&mut self, task: Slot, moved: Move) {
        let node = |cpu: CpuId| self.node_of.get(cpu as usize);
        // Where it is put before it is first runnable is no move.
        if !moved.first && node(moved.from) != node(moved.to) {
            let task = row(&mut self.tasks, task);
            task.node_migrations += 1;
            task.last = Some(moved.now);
        }
    }

    fn pages(&mut self, tgid: Tid, from: u16, to: u16, pages: u32, now: Nanos) {
        self.places.move_pages(tgid, from, to, pages, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_it_is_where_most_pages_are_and_a_tie_moves_nothing() {
        let mut places = Places::default();
        let mut pages = |time, from, to, pages| {
            places.move_pages(7, from, to, pages, time);
            let memory = &places.of[&7];
            (memory.home, memory.since, memory.moved)
        };
        assert_eq!(pages(1, NOWHERE, 1, 60), (Some(1), None, 0));
        assert_eq!(pages(2, NOWHERE, 0, 40), (Some(1), None, 0));
        assert_eq!(pages(3, 1, 0, 10), (Some(1), None, 10), "50 on either");
        assert_eq!(pages(4, 1, 0, 1), (Some(0), Some(4), 11));
        assert_eq!(pages(5, 1, 0, 1000), (Some(0), Some(4), 60), "no more than there were");
        assert_eq!(places.part(7, 0), Some((100, 100)));
        assert_eq!((places.part(7, 5), places.part(8, 0)), (Some((0, 100)), None));
        places.move_pages(7, 0, NOWHERE, 100, 6);
        assert_eq!(places.part(7, 0), None, "given back");
    }
}
