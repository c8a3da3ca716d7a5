//! What is known of a task and of a CPU.

use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::Policy;
use schedlab_sim::{Attributes, TaskId};

/// The policy of a task, of those that there were.
pub fn policy(attributes: &Attributes) -> Policy {
    attributes.policy.among(&[Policy::Fifo, Policy::Rr])
}

/// A task, beside its counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// Its policy.
    pub policy: Policy,
    /// It called `sched_yield()`, and its CPU has not chosen since.
    pub yielded: bool,
    /// It is on the queue.
    pub queued: bool,
    /// 1 to 99; 0 for OTHER.
    pub rt_priority: i32,
    /// What its nice level adds to its goodness.
    pub bonus: i32,
    /// Where it last ran, or runs.
    pub processor: CpuId,
    /// Where it runs.
    pub on_cpu: Option<CpuId>,
    /// Who forked it.
    pub parent: Option<TaskId>,
    /// For how long it runs on average, the last times counting most.
    pub avg_slice: Nanos,
}

/// A CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// Who runs there.
    pub curr: Option<TaskId>,
    /// Whose address space is in use there.
    pub address_space: Option<TaskId>,
    /// When it last switched.
    pub last_schedule: Nanos,
    /// When it was last asked for while it was idle.
    pub asked: Option<Nanos>,
    /// Who runs there yielded to nobody.
    pub goes_on: bool,
    /// The other thread of its core, where every core has two.
    pub sibling: Option<CpuId>,
}

/// The CPUs of a machine, all idle.
pub fn cpus(machine: &Machine) -> Vec<Cpu> {
    let cpus = &machine.cpus;
    let sibling = |me: &schedlab_machine::Cpu| {
        let mut others =
            cpus.iter().filter(|c| c.place.core == me.place.core && c.place.cpu != me.place.cpu).map(|c| c.place.cpu);
        others.next().filter(|_| others.next().is_none())
    };
    let siblings: Vec<_> = cpus.iter().map(sibling).collect();
    let threaded = siblings.iter().all(Option::is_some);
    siblings.into_iter().map(|sibling| Cpu { sibling: sibling.filter(|_| threaded), ..Cpu::default() }).collect()
}
