//! Memory as a scheduler sees it: where a task's pages are, how it uses them, and moving them.

use super::Core;
use crate::memory::{Memories, cost};
use crate::task::TaskId;
use schedlab_base::{CpuId, Event, Nanos};

impl Core {
    fn memories(&self) -> Option<&Memories> {
        self.effects.as_deref().map(|effects| &effects.memories)
    }

    /// Returns how many bytes of a task's memory are on each node; empty for a task without memory.
    #[must_use]
    pub fn pages(&self, p: TaskId) -> &[u64] {
        self.memories().map_or(&[], |memories| memories.pages(p))
    }

    /// Returns the number of a task's memory; tasks with the same number share it. `None` if the task states no memory.
    #[must_use]
    pub fn memory_of(&self, p: TaskId) -> Option<u32> {
        self.memories()?.memory_of(p)
    }

    /// Returns the nodes that a task's memory must come from (`MPOL_BIND`). NUMA balancing leaves such memory alone.
    #[must_use]
    pub fn membind(&self, p: TaskId) -> Option<&[u32]> {
        self.memories()?.membind(p)
    }

    /// Returns whether a task's memory cannot be moved.
    #[must_use]
    pub fn is_pinned(&self, p: TaskId) -> bool {
        self.memories().is_some_and(|memories| memories.is_pinned(p))
    }

    /// Returns the CPU time in ns that a task has spent with its memory on each node since the last call, which is what
    /// hinting faults sample. A task uses all of its memory alike, so the time is divided as the memory is now. `into`
    /// has an entry for each node; it is filled with 0 for a task without memory.
    pub fn take_accesses(&mut self, p: TaskId, into: &mut [u64]) {
        into.fill(0);
        let now = self.now;
        if let Some(effects) = self.effects.as_deref_mut() {
            effects.memories.take_accesses(p, now, into);
        }
    }

    /// Moves up to `bytes` bytes of a task's memory from one node to another, and returns how many were moved. If the
    /// task is running, it pays with its own time, as the fault that moves a page is its own.
    pub fn move_pages(&mut self, p: TaskId, from: u32, to: u32, bytes: u64) -> u64 {
        let per_kib = self.machine.costs.page_move_ns_per_kib;
        let cpu = self.task(p).cpu;
        let Some(effects) = self.effects.as_deref_mut() else { return 0 };
        let moved = effects.memories.move_pages(p, from, to, bytes);
        if moved > 0 {
            self.trace_pages(cpu);
            self.spend(p, cost(moved, per_kib));
        }
        moved
    }

    /// Charges `time` ns of kernel work on a task's memory to the task, if it is running.
    pub fn spend(&mut self, p: TaskId, time: Nanos) {
        let cpu = self.task(p).cpu;
        let runs = self.curr(cpu) == Some(p);
        let Some(effects) = self.effects.as_deref_mut() else { return };
        if runs {
            effects.owed[cpu as usize] += time;
        }
        effects.stale = true;
    }

    /// Records the pages that were touched or given back since the last call.
    pub(crate) fn trace_pages(&mut self, cpu: CpuId) {
        let Some(effects) = self.effects.as_deref_mut() else { return };
        let time = self.now;
        self.events.extend(effects.memories.take_untold().map(|what| Event { time, cpu, what }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpuset::CpuSet;
    use crate::effects::Effects;
    use crate::program::{Load, MemorySpec, ROOT_GROUP, Setting, Start, TaskSpec};
    use crate::task::{Attributes, State, Task};

    const KIB: u64 = 1024;

    fn task(cpu: CpuId) -> Task {
        Task {
            attributes: Attributes::default(),
            cpu,
            state: State::Runnable,
            allowed: CpuSet::ALL,
            pinned: false,
            group: ROOT_GROUP,
            user: 0,
            session: 0,
            clamp: (0, 1024),
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
    fn memory_is_where_its_first_user_runs_unless_bound_elsewhere() {
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
    fn tasks_that_share_memory_touch_a_part_of_it_each() {
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
        assert!(effects.stale, "the speeds of its users are computed anew");
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
        // A quarter is three times as far away: half of the time takes 1 + 2 / 4 times as long.
        assert_eq!(cx.speed(0, 0), 1024 * 4 / 5);
        // A stream takes 1.5 times as long; in terms of a run, which takes 1.25 times as long anyway, 1.2.
        assert_eq!(cx.stream(0, 0, 1_000_000), 1_200_000);
        cx.machine.costs.remote_percent = 0;
        assert_eq!((cx.speed(0, 0), cx.stream(0, 0, 1000)), (1024, 1000));
    }
}
