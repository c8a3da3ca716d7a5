//! The location of the tasks' memory: bytes on each node, for each task that has memory.

use crate::program::{MemorySpec, Setting};
use crate::task::{TaskId, tid};
use schedlab_base::{NOWHERE, Nanos, PAGE, Payload, Tid};
use schedlab_machine::Machine;

/// Stands for no node, memory or kind of memory of a task.
const NONE: u32 = u32::MAX;
/// The distance of a node to itself.
const LOCAL: u32 = 10;

/// One task's memory, or memory that tasks share.
#[derive(Debug)]
struct Memory {
    /// The bytes on each node.
    pages: Box<[u64]>,
    /// The sum of the pages: what has been touched.
    touched: u64,
    bytes: u64,
    part: u64,
    nodes: Box<[(u32, u32)]>,
    pinned: bool,
    /// The process that it belongs to: the task that had it first.
    owner: TaskId,
}

impl Memory {
    /// Touches the next part of the memory, for a task whose memory comes from the node `home`.
    fn touch(&mut self, home: u32, mut tell: impl FnMut(u32, u64)) {
        let part = self.part.min(self.bytes - self.touched);
        self.touched += part;
        let here = [(home, 1)];
        let nodes = if self.nodes.is_empty() { &here[..] } else { &self.nodes };
        let all: u64 = nodes.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut left = part;
        for (at, &(node, weight)) in nodes.iter().enumerate() {
            let share = (u128::from(part) * u128::from(weight) / u128::from(all.max(1))) as u64 / PAGE * PAGE;
            // Whole pages; the last node gets the remainder.
            let bytes = if at + 1 == nodes.len() { left } else { share };
            left -= bytes;
            self.pages[node as usize] += bytes;
            tell(node, bytes);
        }
    }
}

/// The state of a task.
#[derive(Debug)]
struct Holder {
    /// The index into `Load::memories`, and (`memory`) that into the memories; NONE if it has none.
    spec: u32,
    memory: u32,
    /// Its own memory, kept while it uses another.
    own: u32,
    /// Whether it has touched its part.
    touched: bool,
    /// The node that it first ran on, or the nearest node from which its memory may come.
    home: u32,
    bind: Option<Box<[u32]>>,
    bound_percent: u32,
    /// The CPU time with this memory since the last request, and since when it has been increasing (`Nanos::MAX` if the
    /// task is on no CPU).
    used: Nanos,
    since: Nanos,
}

impl Default for Holder {
    fn default() -> Self {
        let (spec, memory, own, home) = (NONE, NONE, NONE, NONE);
        Self { spec, memory, own, touched: false, home, bind: None, bound_percent: 0, used: 0, since: Nanos::MAX }
    }
}

/// All memory of all tasks.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    holders: Vec<Holder>,
    memories: Vec<Memory>,
    /// The memory of each shared kind, once a task has it.
    shared: Vec<u32>,
    /// What has not been recorded in the trace yet.
    untold: Vec<Payload>,
}

/// Notes that bytes of a process's memory moved from one node to another, in the form that the trace records.
fn tell(untold: &mut Vec<Payload>, owner: TaskId, (from, to): (Option<u32>, Option<u32>), bytes: u64) {
    let node = |node: Option<u32>| node.map_or(NOWHERE, |node| node as u16);
    let mut left = bytes.div_ceil(PAGE);
    while left > 0 {
        let pages = left.min(u32::MAX.into()) as u32;
        untold.push(Payload::Pages { tgid: tid(owner), from: node(from), to: node(to), pages });
        left -= u64::from(pages);
    }
}

impl Memories {
    /// Applies a new task's setting, or a change of its memory. Returns whether anything changed.
    pub fn set(&mut self, machine: &Machine, specs: &[MemorySpec], p: TaskId, setting: &Setting) -> bool {
        if self.holders.len() <= p as usize {
            self.holders.resize_with(p as usize + 1, Holder::default);
        }
        let holder = &mut self.holders[p as usize];
        if let Some(nodes) = &setting.membind {
            holder.bind = Some(nodes.as_slice().into());
            if !nodes.contains(&holder.home) {
                holder.home = NONE;
            }
        }
        let Some(spec) = setting.memory.filter(|spec| *spec != holder.spec) else { return setting.membind.is_some() };
        let MemorySpec { bytes, ref nodes, pinned, shared, parts, bound_percent } = specs[spec as usize];
        self.shared.resize(specs.len(), NONE);
        let known = if shared { self.shared[spec as usize] } else { holder.own };
        let part = if shared { bytes.div_ceil(u64::from(parts.max(1))) } else { bytes };
        let pages = vec![0; machine.nodes()].into();
        let fresh = Memory { pages, touched: 0, bytes, part, nodes: nodes.as_slice().into(), pinned, owner: p };
        let memory = if known == NONE {
            self.memories.push(fresh);
            (self.memories.len() - 1) as u32
        } else {
            if !shared {
                let old = std::mem::replace(&mut self.memories[known as usize], fresh);
                for (node, bytes) in (0..).zip(&old.pages) {
                    tell(&mut self.untold, p, (Some(node), None), *bytes);
                }
            }
            known
        };
        if shared {
            self.shared[spec as usize] = memory;
        } else {
            holder.own = memory;
        }
        (holder.spec, holder.memory, holder.touched) = (spec, memory, false);
        (holder.bound_percent, holder.used) = (bound_percent, 0);
        true
    }

    /// Handles that the task gets a CPU of this node: it touches what it has not touched yet.
    pub fn arrive(&mut self, machine: &Machine, p: TaskId, node: u32, now: Nanos) {
        let holder = &mut self.holders[p as usize];
        holder.since = now;
        if holder.home == NONE {
            let from = &machine.distances[node as usize];
            let near = |nodes: &[u32]| nodes.iter().copied().min_by_key(|n| (from[*n as usize], *n));
            holder.home = holder.bind.as_deref().and_then(near).unwrap_or(node);
        }
        if holder.memory != NONE && !holder.touched {
            holder.touched = true;
            let memory = &mut self.memories[holder.memory as usize];
            let owner = memory.owner;
            let untold = &mut self.untold;
            memory.touch(holder.home, |node, bytes| tell(untold, owner, (None, Some(node)), bytes));
        }
    }

    /// Handles that the task leaves its CPU.
    pub fn leave(&mut self, p: TaskId, now: Nanos) {
        let holder = &mut self.holders[p as usize];
        holder.used += now.saturating_sub(holder.since);
        holder.since = Nanos::MAX;
    }

    /// Returns how much further than local a task's memory is from a node, on average, in thousandths of the local
    /// distance: 1100 for memory that is all at distance 21.
    pub fn farther(&self, machine: &Machine, p: TaskId, node: u32) -> u64 {
        let holder = &self.holders[p as usize];
        let from = &machine.distances[node as usize];
        let beyond = |to: usize| u128::from(from[to].saturating_sub(LOCAL)) * 1000 / u128::from(LOCAL);
        match self.memories.get(holder.memory as usize) {
            Some(memory) if memory.touched > 0 => {
                let weighted = |(to, bytes): (usize, &u64)| u128::from(*bytes) * beyond(to);
                let sum: u128 = memory.pages.iter().enumerate().map(weighted).sum();
                (sum / u128::from(memory.touched)) as u64
            }
            _ if holder.home == NONE => 0,
            _ => beyond(holder.home as usize) as u64,
        }
    }

    /// Returns the percentage of a `Run` that is spent waiting for memory when it is local.
    pub fn bound_percent(&self, p: TaskId) -> u32 {
        self.holders[p as usize].bound_percent
    }

    /// Returns the process that a task belongs to by its memory: itself, unless it shares another task's memory.
    pub fn process(&self, p: TaskId) -> Tid {
        tid(self.of(p).map_or(p, |memory| memory.owner))
    }

    fn of(&self, p: TaskId) -> Option<&Memory> {
        self.memories.get(self.holders.get(p as usize)?.memory as usize)
    }

    /// Returns how many bytes of a task's memory are on each node; empty for a task without memory.
    pub fn pages(&self, p: TaskId) -> &[u64] {
        self.of(p).map_or(&[], |memory| &memory.pages)
    }

    /// Returns the number of a task's memory; `None` if the task states none.
    pub fn memory_of(&self, p: TaskId) -> Option<u32> {
        self.holders.get(p as usize).map(|holder| holder.memory).filter(|memory| *memory != NONE)
    }

    /// Returns the nodes that a task's memory must come from.
    pub fn membind(&self, p: TaskId) -> Option<&[u32]> {
        self.holders.get(p as usize)?.bind.as_deref()
    }

    /// Returns whether a task's memory cannot be moved.
    pub fn is_pinned(&self, p: TaskId) -> bool {
        self.of(p).is_some_and(|memory| memory.pinned)
    }

    /// Divides a task's CPU time since the last call by where its memory is now; `into` has an entry for each node.
    pub fn take_accesses(&mut self, p: TaskId, now: Nanos, into: &mut [u64]) {
        let Some(holder) = self.holders.get_mut(p as usize) else { return };
        let used = holder.used + now.saturating_sub(holder.since);
        holder.used = 0;
        if holder.since < now {
            holder.since = now;
        }
        let Some(memory) = self.memories.get(holder.memory as usize).filter(|memory| memory.touched > 0) else {
            return;
        };
        for (slot, bytes) in into.iter_mut().zip(&memory.pages) {
            *slot = (u128::from(used) * u128::from(*bytes) / u128::from(memory.touched)) as u64;
        }
    }

    /// Moves up to `bytes` bytes of a task's memory between two nodes, and returns how many were moved.
    pub fn move_pages(&mut self, p: TaskId, from: u32, to: u32, bytes: u64) -> u64 {
        let Some(holder) = self.holders.get(p as usize) else { return 0 };
        let Some(memory) = self.memories.get_mut(holder.memory as usize) else { return 0 };
        if memory.pinned || from == to {
            return 0;
        }
        let moved = bytes.min(memory.pages[from as usize]);
        memory.pages[from as usize] -= moved;
        memory.pages[to as usize] += moved;
        if moved > 0 {
            tell(&mut self.untold, memory.owner, (Some(from), Some(to)), moved);
        }
        moved
    }

    /// Removes and returns what has not been recorded in the trace yet.
    pub fn take_untold(&mut self) -> std::vec::Drain<'_, Payload> {
        self.untold.drain(..)
    }
}

/// Returns the time to copy `bytes` bytes at `ns_per_kib` ns a KiB.
#[must_use]
pub fn cost(bytes: u64, ns_per_kib: Nanos) -> Nanos {
    (u128::from(bytes) * u128::from(ns_per_kib) / 1024) as Nanos
}
