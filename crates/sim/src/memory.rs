//! Where the tasks' memory is: bytes on each node, for each task that has any.

use crate::core::Core;
use crate::program::{MemorySpec, Setting};
use crate::task::{TaskId, tid};
use schedlab_base::{CpuId, Event, NOWHERE, Nanos, PAGE, Payload, Tid};
use schedlab_machine::Machine;

/// As a task's node, memory or kind of memory: none.
const NONE: u32 = u32::MAX;
/// The distance of a node to itself.
const LOCAL: u32 = 10;

/// One task's memory, or one that tasks share.
#[derive(Debug)]
struct Memory {
    /// Bytes on each node.
    pages: Box<[u64]>,
    /// Their sum: what has been touched.
    touched: u64,
    bytes: u64,
    part: u64,
    nodes: Box<[(u32, u32)]>,
    pinned: bool,
    /// The process that has it: the task that had it first.
    owner: TaskId,
}

impl Memory {
    /// Touches the next part of it, by a task whose memory comes from the node `home`.
    fn touch(&mut self, home: u32, mut tell: impl FnMut(u32, u64)) {
        let part = self.part.min(self.bytes - self.touched);
        self.touched += part;
        let here = [(home, 1)];
        let nodes = if self.nodes.is_empty() { &here[..] } else { &self.nodes };
        let all: u64 = nodes.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut left = part;
        for (at, &(node, weight)) in nodes.iter().enumerate() {
            let share = (u128::from(part) * u128::from(weight) / u128::from(all.max(1))) as u64 / PAGE * PAGE;
            // Whole pages; the last node has what is left over.
            let bytes = if at + 1 == nodes.len() { left } else { share };
            left -= bytes;
            self.pages[node as usize] += bytes;
            tell(node, bytes);
        }
    }
}

/// What is known of a task.
#[derive(Debug)]
struct Holder {
    /// Index into `Load::memories`, and into the memories; NONE: it has none.
    spec: u32,
    memory: u32,
    /// Its own memory, kept for when it has another.
    own: u32,
    /// It has touched its part.
    touched: bool,
    /// The node that it first ran on, or the nearest from which its memory may come.
    home: u32,
    bind: Option<Box<[u32]>>,
    bound_percent: u32,
    /// CPU time with this memory since it was last asked for, and since when more of it passes (`Nanos::MAX`: it is on
    /// no CPU).
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
    /// What the trace does not have yet.
    untold: Vec<Payload>,
}

/// Bytes of the memory of a process that go from one node to another, as the trace records them.
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
    /// Tells of a task, or what it changes about its memory. Says whether anything changed.
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

    /// The task comes onto a CPU of this node: it touches what it has not touched yet.
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

    /// The task leaves its CPU.
    pub fn leave(&mut self, p: TaskId, now: Nanos) {
        let holder = &mut self.holders[p as usize];
        holder.used += now.saturating_sub(holder.since);
        holder.since = Nanos::MAX;
    }

    /// How much farther than local its memory is from a node, on the average, in tenths of the local distance times
    /// 1000: 1100 for memory that is all at distance 21.
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

    /// The part of a `Run` that waits for local memory, in percent.
    pub fn bound_percent(&self, p: TaskId) -> u32 {
        self.holders[p as usize].bound_percent
    }

    /// The process that a task belongs to by its memory: itself, unless it shares another's.
    pub fn process(&self, p: TaskId) -> Tid {
        tid(self.of(p).map_or(p, |memory| memory.owner))
    }

    fn of(&self, p: TaskId) -> Option<&Memory> {
        self.memories.get(self.holders.get(p as usize)?.memory as usize)
    }
}

/// Memory as a scheduler sees it.
impl Core {
    fn memories(&self) -> Option<&Memories> {
        self.effects.as_deref().map(|effects| &effects.memories)
    }

    /// How many bytes of a task's memory each node holds; empty for a task without any.
    #[must_use]
    pub fn pages(&self, p: TaskId) -> &[u64] {
        self.memories().and_then(|m| m.of(p)).map_or(&[], |memory| &memory.pages)
    }

    /// Which memory a task has; tasks with the same number share it. `None`: it states none.
    #[must_use]
    pub fn memory_of(&self, p: TaskId) -> Option<u32> {
        self.memories()?.holders.get(p as usize).map(|holder| holder.memory).filter(|memory| *memory != NONE)
    }

    /// The nodes that a task's memory must come from (`MPOL_BIND`); NUMA balancing leaves such memory alone.
    #[must_use]
    pub fn membind(&self, p: TaskId) -> Option<&[u32]> {
        self.memories()?.holders.get(p as usize)?.bind.as_deref()
    }

    /// The CPU time in ns that a task has spent with its memory on each node since this was last asked: what hinting
    /// faults sample. A task uses all of its memory alike, so it is divided as the memory now is. `into` has a place
    /// for each node; it is filled with 0 for a task without memory.
    pub fn take_accesses(&mut self, p: TaskId, into: &mut [u64]) {
        into.fill(0);
        let now = self.now;
        let Some(memories) = self.effects.as_deref_mut().map(|effects| &mut effects.memories) else { return };
        let Some(holder) = memories.holders.get_mut(p as usize) else { return };
        let used = holder.used + now.saturating_sub(holder.since);
        holder.used = 0;
        if holder.since < now {
            holder.since = now;
        }
        let Some(memory) = memories.memories.get(holder.memory as usize).filter(|memory| memory.touched > 0) else {
            return;
        };
        for (slot, bytes) in into.iter_mut().zip(&memory.pages) {
            *slot = (u128::from(used) * u128::from(*bytes) / u128::from(memory.touched)) as u64;
        }
    }

    /// Tells the trace of pages that were touched or given back.
    pub(crate) fn trace_pages(&mut self, cpu: CpuId) {
        let Some(effects) = self.effects.as_deref_mut() else { return };
        let time = self.now;
        self.events.extend(effects.memories.untold.drain(..).map(|what| Event { time, cpu, what }));
    }

    /// Moves up to so many bytes of a task's memory from one node to another, and says how many were moved.
    /// The time that it takes is the task's, where it runs: the fault that moves a page is its own.
    pub fn move_pages(&mut self, p: TaskId, from: u32, to: u32, bytes: u64) -> u64 {
        let per_kib = self.machine.costs.page_move_ns_per_kib;
        let cpu = self.task(p).cpu;
        let Some(effects) = self.effects.as_deref_mut() else { return 0 };
        let Some(holder) = effects.memories.holders.get(p as usize) else { return 0 };
        let Some(memory) = effects.memories.memories.get_mut(holder.memory as usize) else { return 0 };
        if memory.pinned || from == to {
            return 0;
        }
        let moved = bytes.min(memory.pages[from as usize]);
        memory.pages[from as usize] -= moved;
        memory.pages[to as usize] += moved;
        if moved > 0 {
            tell(&mut effects.memories.untold, memory.owner, (Some(from), Some(to)), moved);
            self.trace_pages(cpu);
            self.spend(p, cost(moved, per_kib));
        }
        moved
    }

    /// Whether a task's memory cannot be moved.
    #[must_use]
    pub fn is_pinned(&self, p: TaskId) -> bool {
        self.memories().and_then(|memories| memories.of(p)).is_some_and(|memory| memory.pinned)
    }

    /// The kernel works for a task with memory for so long, in the task's own time where it runs.
    pub fn spend(&mut self, p: TaskId, time: Nanos) {
        let cpu = self.task(p).cpu;
        let runs = self.curr(cpu) == Some(p);
        let Some(effects) = self.effects.as_deref_mut() else { return };
        if runs {
            effects.owed[cpu as usize] += time;
        }
        effects.stale = true;
    }
}

/// What so many bytes cost at so many ns a KiB.
#[must_use]
pub fn cost(bytes: u64, ns_per_kib: Nanos) -> Nanos {
    (u128::from(bytes) * u128::from(ns_per_kib) / 1024) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpuset::CpuSet;
    use crate::effects::Effects;
    use crate::program::{Load, Start, TaskSpec};
    use crate::task::{Attributes, State, Task};

    const KIB: u64 = 1024;

    fn task(cpu: CpuId) -> Task {
        Task {
            attributes: Attributes::default(),
            cpu,
            state: State::Runnable,
            allowed: CpuSet::ALL,
            group: None,
            user: 0,
            session: 0,
            clamp: (0, 1024),
            last_ran: 0,
            on_rq: false,
        }
    }

    /// Four nodes of two CPUs in a row; task p runs on CPU p, and has the memory of `of[p]`.
    fn core(memories: Vec<MemorySpec>, of: &[Setting]) -> Core {
        let text = "sockets = 4\ncores = 2\nthreads = 1\ndistances = [[10, 20, 30, 40], [20, 10, 20, 30], \
                    [30, 20, 10, 20], [40, 30, 20, 10]]\n[costs]\npage_move_ns_per_kib = 1000\n";
        let machine = schedlab_machine::MachineFile::parse(&schedlab_machine::tomltext::TomlText::new("m.toml", text));
        let machine = machine.expect("a machine");
        let tasks = of.iter().map(|initial| TaskSpec { initial: initial.clone(), ..TaskSpec::default() }).collect();
        let load = Load { tasks, memories, ..Load::default() };
        let mut cx = Core::new(machine, 1_000_000, 1_000_000, Start::Wake);
        cx.effects = Effects::of(&cx.machine, &load);
        for (p, spec) in (0..).zip(&load.tasks) {
            cx.tasks.push(task(p));
            cx.cpus[p as usize].curr = Some(p);
            let effects = cx.effects.as_deref_mut().expect("there is memory");
            effects.set(&cx.machine, &load, p, &spec.initial);
            effects.arrive(&cx.machine, p, p, 0);
        }
        cx
    }

    fn memory(spec: u32) -> Setting {
        Setting { memory: Some(spec), ..Setting::default() }
    }

    #[test]
    fn memory_is_where_its_first_user_runs_unless_told_otherwise() {
        let spec = MemorySpec { bytes: 100, parts: 1, ..MemorySpec::default() };
        let bound = Setting { membind: Some(vec![1, 3]), ..memory(0) };
        let far = MemorySpec { nodes: vec![(3, 1)], ..spec.clone() };
        let cx = core(vec![spec, far], &[memory(0), memory(1), memory(0), Setting::default(), bound]);
        assert_eq!(
            (cx.pages(0), cx.pages(1), cx.pages(2)),
            (&[100, 0, 0, 0][..], &[0, 0, 0, 100][..], &[0, 100, 0, 0][..])
        );
        assert_eq!((cx.pages(3), cx.memory_of(3)), (&[][..], None));
        assert_eq!(cx.pages(4), [0, 100, 0, 0], "from node 2 nodes 1 and 3 are as near");
        assert_eq!((cx.membind(4), cx.membind(0)), (Some(&[1, 3][..]), None));
    }

    #[test]
    fn who_shares_memory_touches_each_a_part_of_it() {
        let spec = MemorySpec { bytes: 90, shared: true, parts: 4, ..MemorySpec::default() };
        let cx = core(vec![spec], &[memory(0), memory(0), memory(0), memory(0), memory(0)]);
        assert_eq!(cx.pages(0), [46, 44, 0, 0], "23 each; the last of four finds 21 left, the fifth nothing");
        assert_eq!((cx.pages(4), cx.memory_of(4)), (cx.pages(0), cx.memory_of(0)));
    }

    #[test]
    fn accesses_are_the_cpu_time_by_where_the_memory_is() {
        let spec = MemorySpec { bytes: 400 * KIB, parts: 1, ..MemorySpec::default() };
        let mut cx = core(vec![spec], &[memory(0)]);
        assert_eq!(cx.move_pages(0, 0, 2, 100 * KIB), 100 * KIB);
        assert_eq!(cx.pages(0), [300 * KIB, 0, 100 * KIB, 0]);
        let effects = cx.effects.as_deref_mut().expect("there is memory");
        assert!(effects.stale, "whoever uses it is to be looked at");
        assert_eq!(effects.take_owed(0), 100_000, "100 KiB at 1000 ns");
        cx.now = 1_000_000;
        let mut seen = [9; 4];
        cx.take_accesses(0, &mut seen);
        assert_eq!(seen, [750_000, 0, 250_000, 0]);
        cx.now = 1_400_000;
        let effects = cx.effects.as_deref_mut().expect("there is memory");
        effects.memories.leave(0, 1_400_000);
        cx.now = 9_000_000;
        cx.take_accesses(0, &mut seen);
        assert_eq!(seen, [300_000, 0, 100_000, 0], "off the CPU it uses nothing");
        cx.take_accesses(0, &mut seen);
        assert_eq!(seen, [0; 4]);
        assert_eq!(cx.move_pages(0, 2, 0, u64::MAX), 100 * KIB, "no more than there is");
        assert_eq!(cx.move_pages(0, 1, 0, 1), 0);
    }

    #[test]
    fn far_memory_slows_what_is_bound_by_it() {
        let spec = MemorySpec { bytes: 400, parts: 1, bound_percent: 50, ..MemorySpec::default() };
        let mut cx = core(vec![spec], &[memory(0)]);
        assert_eq!(cx.speed(0, 0), 1024);
        cx.move_pages(0, 0, 2, 100);
        // A quarter is three times as far: half of the time takes 1 + 2 / 4 times as long.
        assert_eq!(cx.speed(0, 0), 1024 * 4 / 5);
        // A stream takes 1.5 times as long; in time of a run, which takes 1.25 times as long anyhow, 1.2.
        assert_eq!(cx.stream(0, 0, 1_000_000), 1_200_000);
        cx.machine.costs.remote_percent = 0;
        assert_eq!((cx.speed(0, 0), cx.stream(0, 0, 1000)), (1024, 1000));
    }
}
