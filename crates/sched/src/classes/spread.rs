//! Functions that the classes share for placing tasks on other CPUs.

use schedlab_base::{CpuId, Release, v};
use schedlab_machine::Machine;
use schedlab_sim::{Core, CpuSet, TaskId};
use std::cell::Cell;
use std::rc::Rc;

/// How a release chooses one of several CPUs that are equally good. For each CPU it has the last one that was chosen
/// from there (`distribute_cpu_mask_prev`). All classes share one value.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// `None` for schedulers that are no release's.
    release: Option<Release>,
    last: Rc<[Cell<CpuId>]>,
}

impl Turns {
    /// Creates the state for a machine.
    #[must_use]
    pub fn new(release: Release, machine: &Machine) -> Self {
        Self { release: Some(release), last: machine.cpus.iter().map(|_| Cell::new(0)).collect() }
    }

    /// The next CPU in turn for which `fits` holds (`cpumask_any_and_distribute`), as CPU `asking` chooses it.
    fn next(&self, asking: CpuId, fits: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        let (cpus, last) = (self.last.len() as CpuId, &self.last[asking as usize]);
        let found = (last.get() + 1..cpus).chain(0..=last.get()).find(|cpu| fits(*cpu));
        found.inspect(|cpu| last.set(*cpu))
    }

    /// The CPU for a task whose CPU `from` its new affinity excludes (`__set_cpus_allowed_ptr`): the next in turn from
    /// 5.7 on, and the first before. `None` if the class decides.
    pub(super) fn after_affinity(&self, allowed: &CpuSet, from: CpuId) -> Option<CpuId> {
        match self.release {
            None => None,
            // "sched/core: Distribute tasks within affinity masks" (5.7).
            Some(release) if release >= v(5, 7) => self.next(from, |cpu| allowed.contains(cpu)),
            Some(_) => allowed.first(),
        }
    }
}

/// Whether a task can run on at most one online CPU.
pub(super) fn pinned(cx: &Core, p: TaskId) -> bool {
    let allowed = &cx.task(p).allowed;
    (0..cx.nr_cpus()).filter(|cpu| cx.online(*cpu) && allowed.contains(*cpu)).nth(1).is_none()
}

/// A CPU for which `fits` holds: preferably `home`, the CPU of the task. Otherwise it is taken from the smallest span
/// around `home` that has one (cache, package, machine): the CPU `asking` if it is in that span, or else the first, or
/// from 5.11 on the next in turn (`find_lowest_rq`, `find_later_rq`).
pub(super) fn nearest(
    cx: &Core,
    turns: &Turns,
    home: CpuId,
    asking: CpuId,
    fits: impl Fn(CpuId) -> bool,
) -> Option<CpuId> {
    if fits(home) {
        return Some(home);
    }
    let place = |cpu: CpuId| &cx.machine().cpus[cpu as usize].place;
    let spans: [&dyn Fn(CpuId) -> bool; 3] =
        [&|c| place(c).llc == place(home).llc, &|c| place(c).package == place(home).package, &|_| true];
    let in_turn = turns.release.is_some_and(|release| release >= v(5, 11));
    spans.into_iter().find_map(|within| {
        let fits_here = |cpu: CpuId| within(cpu) && fits(cpu);
        let other = || {
            if in_turn { turns.next(asking, fits_here) } else { (0..cx.nr_cpus()).find(|cpu| fits_here(*cpu)) }
        };
        Some(asking).filter(|cpu| fits_here(*cpu)).or_else(other)
    })
}

/// The capacities of the CPUs, where the placement of a class considers them: on machines whose CPUs differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes(Box<[u32]>);

impl Sizes {
    /// The capacities of a machine's CPUs if `considers` is set.
    pub fn new(machine: &Machine, considers: bool) -> Self {
        let all: Box<[u32]> = machine.cpus.iter().map(|cpu| cpu.place.capacity).collect();
        let differ = considers && all.iter().any(|capacity| *capacity != all[0]);
        Self(if differ { all } else { Box::default() })
    }

    /// The capacity of a CPU, or `None` if it does not matter.
    pub fn of(&self, cpu: CpuId) -> Option<u32> {
        self.0.get(cpu as usize).copied()
    }
}

/// The root domains of a machine (`struct root_domain`): within one of them the classes above the fair one move tasks,
/// lend run time and admit deadline tasks. A partition is one, the CPUs that are neither isolated nor in a partition
/// are one, and so are the isolated CPUs together (`def_root_domain`).
#[derive(Clone, Debug, Default)]
pub(super) struct Roots(Box<[u32]>);

impl Roots {
    /// The root domains of a machine.
    pub fn new(machine: &Machine) -> Self {
        if !machine.is_split() {
            return Self::default();
        }
        let isolated = 1 + machine.partitions.len() as u32;
        let root = |cpu: &CpuId| match machine.partitions.iter().position(|part| part.contains(cpu)) {
            Some(partition) => 1 + partition as u32,
            None if machine.isolated.contains(cpu) => isolated,
            None => 0,
        };
        Self(machine.cpus.iter().map(|cpu| root(&cpu.place.cpu)).collect())
    }

    /// The root domain of a CPU.
    pub fn of(&self, cpu: CpuId) -> u32 {
        self.0.get(cpu as usize).map_or(0, |root| *root)
    }

    /// Whether two CPUs are in the same root domain.
    pub fn join(&self, one: CpuId, other: CpuId) -> bool {
        self.of(one) == self.of(other)
    }

    /// How many CPUs of a machine with `all` are in the root domain of one.
    pub fn size(&self, cpu: CpuId, all: u32) -> u32 {
        if self.0.is_empty() { all } else { self.0.iter().filter(|root| **root == self.of(cpu)).count() as u32 }
    }

    /// Whether a task can be moved to a CPU: one that is online, of its affinity and of the root domain where it is.
    pub fn reach(&self, cx: &Core, p: TaskId, cpu: CpuId) -> bool {
        cx.online(cpu) && self.join(cpu, cx.task(p).cpu) && cx.task(p).allowed.contains(cpu)
    }
}
