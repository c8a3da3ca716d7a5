//! What a task's speed depends on besides the CPU's capacity: a busy SMT sibling, what is left in the caches, and how
//! far away its memory is.
//!
//! A machine without SMT with a load that states neither working sets nor memory has no [`Effects`] at all; then the
//! cost is one test at a context switch.

use crate::caches::{Caches, Missing, Place};
use crate::memory::{Memories, cost};
use crate::program::{Load, Op, Setting};
use crate::task::TaskId;
use schedlab_base::{CpuId, Nanos, SmtSpeeds};
use schedlab_machine::Machine;

/// A task's working set.
#[derive(Clone, Copy, Debug, Default)]
struct WorkingSet {
    bytes: u64,
    /// The caches that it was last in; `None` if the task has never run.
    place: Option<Place>,
}

/// A refill in progress on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Refill {
    missing: Missing,
    time: Nanos,
}

#[derive(Debug)]
pub(crate) struct Effects {
    /// The other CPUs of each CPU's core; empty if SMT costs nothing.
    siblings: Vec<Box<[CpuId]>>,
    smt: SmtSpeeds,
    /// `None` if no task states its working set, or if refilling is free.
    caches: Option<Caches>,
    sets: Vec<WorkingSet>,
    refills: Vec<Refill>,
    pub memories: Memories,
    /// The time that moving memory has taken from each CPU's running task and that has not been charged yet.
    pub owed: Vec<Nanos>,
    /// Whether memory has moved, so that running tasks may be faster or slower.
    pub stale: bool,
}

impl Effects {
    /// Returns the effects that matter to this load on this machine; `None` if there are none.
    pub fn of(machine: &Machine, load: &Load) -> Option<Box<Self>> {
        let costs = &machine.costs;
        let smt = machine.threads() > 1 && costs.smt_loss_percent > 0;
        let settings = || {
            let specs = load.tasks.iter().chain(&load.templates);
            specs.map(|spec| &spec.initial).chain(&load.settings)
        };
        let refills = costs.llc_refill_ns_per_kib > 0 || costs.memory_refill_ns_per_kib > 0;
        let cached = refills && settings().any(|setting| setting.working_set.is_some_and(|bytes| bytes > 0));
        let memory = settings().any(|setting| setting.memory.is_some() || setting.membind.is_some());
        let streams = || load.tasks.iter().chain(&load.templates).flat_map(|spec| &spec.program);
        let streams = machine.nodes() > 1 && streams().any(|op| matches!(op, Op::Mem { .. }));
        if !(smt || cached || memory || streams) {
            return None;
        }
        let cpus = machine.cpus.len();
        Some(Box::new(Self {
            siblings: if smt { siblings(machine) } else { Vec::new() },
            smt: SmtSpeeds::new(costs.smt_loss_percent),
            caches: cached.then(|| Caches::new(machine)),
            sets: Vec::new(),
            refills: vec![Refill::default(); cpus],
            memories: Memories::default(),
            owed: vec![0; cpus],
            stale: false,
        }))
    }

    /// Applies the setting of a new task, or a change of a task's own. Returns whether the task's speed may change.
    pub fn set(&mut self, machine: &Machine, load: &Load, p: TaskId, setting: &Setting) -> bool {
        if self.sets.len() <= p as usize {
            self.sets.resize(p as usize + 1, WorkingSet::default());
        }
        if let Some(bytes) = setting.working_set {
            self.sets[p as usize].bytes = bytes;
        }
        self.memories.set(machine, &load.memories, p, setting)
    }

    /// Handles that a task gets a CPU. Returns how long it waits until its working set is loaded.
    pub fn arrive(&mut self, machine: &Machine, cpu: CpuId, p: TaskId, now: Nanos) -> Nanos {
        let node = machine.cpus[cpu as usize].place.node;
        self.memories.arrive(machine, p, node, now);
        let cold = self.sets[p as usize].place.is_none();
        let missing = self.touch(machine, cpu, p);
        // The first time, its data is new, and loading it is a part of its own work.
        if cold || missing == Missing::default() {
            self.refills[cpu as usize] = Refill::default();
            return 0;
        }
        let costs = &machine.costs;
        let far = cost(missing.far, costs.memory_refill_ns_per_kib);
        let beyond = self.memories.farther(machine, p, node) * costs.remote_percent / 100;
        let time = cost(missing.near, costs.llc_refill_ns_per_kib) + far + far * beyond / 1000;
        self.refills[cpu as usize] = Refill { missing, time };
        time
    }

    /// Uses the working set of the task on a CPU. Returns what was not in the caches, and is from now on.
    pub fn touch(&mut self, machine: &Machine, cpu: CpuId, p: TaskId) -> Missing {
        let Some(caches) = &mut self.caches else { return Missing::default() };
        let WorkingSet { bytes, place } = self.sets[p as usize];
        if bytes == 0 && place.is_none() {
            return Missing::default();
        }
        let at = place_of(machine, cpu);
        self.sets[p as usize].place = Some(at);
        caches.touch(place, at, p, bytes)
    }

    /// Handles that a task leaves its CPU; `left` is the rest of the time that it had to wait for its data.
    pub fn leave(&mut self, machine: &Machine, cpu: CpuId, p: TaskId, now: Nanos, left: Nanos) {
        self.memories.leave(p, now);
        let Refill { missing, time } = std::mem::take(&mut self.refills[cpu as usize]);
        if left > 0 && time > 0 {
            let part = |bytes: u64| (u128::from(bytes) * u128::from(left.min(time)) / u128::from(time)) as u64;
            let missing = Missing { near: part(missing.near), far: part(missing.far) };
            if let Some(caches) = &mut self.caches {
                caches.forget(place_of(machine, cpu), p, missing);
            }
        }
    }

    /// Returns the other CPUs of a CPU's core.
    pub fn siblings(&self, cpu: CpuId) -> &[CpuId] {
        self.siblings.get(cpu as usize).map_or(&[], |siblings| siblings)
    }

    /// Returns the speed of a thread with `busy` busy siblings; 1024 is that of a thread alone on its core.
    pub fn smt_speed(&self, busy: usize) -> u32 {
        self.smt.with_busy(busy)
    }

    /// Returns the time that moving memory has taken from the task on a CPU; the caller charges it.
    pub fn take_owed(&mut self, cpu: CpuId) -> Nanos {
        let owed = std::mem::take(&mut self.owed[cpu as usize]);
        if owed > 0 {
            self.refills[cpu as usize] = Refill::default();
        }
        owed
    }
}

fn place_of(machine: &Machine, cpu: CpuId) -> Place {
    let cpu = &machine.cpus[cpu as usize];
    (cpu.cluster, cpu.place.llc)
}

fn siblings(machine: &Machine) -> Vec<Box<[CpuId]>> {
    let mut cores: Vec<Vec<CpuId>> = Vec::new();
    for (cpu, at) in (0..).zip(&machine.cpus) {
        let core = at.place.core as usize;
        if cores.len() <= core {
            cores.resize(core + 1, Vec::new());
        }
        cores[core].push(cpu);
    }
    let others = |(cpu, at): (CpuId, &schedlab_machine::Cpu)| {
        cores[at.place.core as usize].iter().copied().filter(|other| *other != cpu).collect()
    };
    (0..).zip(&machine.cpus).map(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_those_of_the_core_wherever_they_are_numbered() {
        let machine = schedlab_machine::load("1x2x2").unwrap();
        assert_eq!(siblings(&machine).iter().map(|s| s.to_vec()).collect::<Vec<_>>(), [[1], [0], [3], [2]]);
    }
}
