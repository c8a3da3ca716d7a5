//! The state of a task and of a CPU.

use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::Policy;
use schedlab_sim::{Attributes, TaskId};

/// Returns a task's policy, as one of those that these kernels have.
pub fn policy(attributes: &Attributes) -> Policy {
    attributes.policy.among(&[Policy::Fifo, Policy::Rr])
}

/// The state of a task, apart from its counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    /// Its policy.
    pub policy: Policy,
    /// Whether it has called `sched_yield()` since its CPU last picked a task.
    pub yielded: bool,
    /// Whether it is on the queue.
    pub queued: bool,
    /// The real-time priority, 1 to 99; 0 for OTHER.
    pub rt_priority: i32,
    /// What the nice level adds to its goodness.
    pub bonus: i32,
    /// The CPU where it runs or last ran.
    pub processor: CpuId,
    /// The CPU where it is running now.
    pub on_cpu: Option<CpuId>,
    /// The task that forked it.
    pub parent: Option<TaskId>,
    /// The average length of its runs; recent runs count most.
    pub avg_slice: Nanos,
}

/// The state of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// The running task.
    pub curr: Option<TaskId>,
    /// The task whose address space is loaded.
    pub address_space: Option<TaskId>,
    /// The time of the last switch.
    pub last_schedule: Nanos,
    /// When it was last asked to reschedule while idle.
    pub asked: Option<Nanos>,
    /// Whether its running task called `sched_yield()` while no other task waited, so that it simply goes on.
    pub goes_on: bool,
    /// The other thread of its core, if the core has exactly two.
    pub sibling: Option<CpuId>,
}

/// Creates the state of a machine's CPUs, all idle.
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
