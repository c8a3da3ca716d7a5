//! What a machine is.

use schedlab_base::{CpuPlace, Nanos};

/// One logical CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Where it sits, and its capacity.
    pub place: CpuPlace,
    /// Its cluster (CPUs that share an L2), counted over the machine.
    pub cluster: u32,
}

/// What things cost on this machine, in ns of CPU time. All 0 is the bare algorithm (`--costs none`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// From a wake-up that preempts to the switch.
    pub wakeup_to_switch_ns: Nanos,
    /// From a tick that preempts to the switch.
    pub tick_to_switch_ns: Nanos,
    /// CPU time that a context switch takes from the task switched to.
    pub context_switch_ns: Nanos,
    /// Leaving idle, from the wake-up to the first instruction of the task.
    pub idle_exit_ns: Nanos,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its CPUs by number.
    pub cpus: Vec<Cpu>,
    /// Distances between nodes as the firmware tells them (10 is local); one row a node.
    pub distances: Vec<Vec<u32>>,
    /// What things cost.
    pub costs: Costs,
}
