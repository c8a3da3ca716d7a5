//! What a machine is.

use schedlab_base::{CpuPlace, Nanos};
use std::collections::BTreeSet;

/// The most CPUs a machine may have (Linux's own `NR_CPUS` limit on x86-64).
pub const MAX_CPUS: u32 = 8192;

/// One logical CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Where it sits, and its capacity.
    pub place: CpuPlace,
    /// Its cluster (CPUs that share an L2), counted over the machine.
    pub cluster: u32,
}

/// What things cost on this machine, in ns of CPU time. All 0 is the bare algorithm (`--costs none`).
///
/// [`Costs::default`] is free of charge; [`Costs::measured`] is what a machine has unless its file says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// From a wake-up that preempts to the switch.
    pub wakeup_to_switch_ns: Nanos,
    /// From a tick that preempts to the switch.
    pub tick_to_switch_ns: Nanos,
    /// From a running task's change of its own nice level or policy to the switch that it causes.
    pub change_to_switch_ns: Nanos,
    /// CPU time that a context switch takes from the task switched to, beyond what its bursts hold.
    pub context_switch_ns: Nanos,
    /// Leaving idle, from the wake-up to the first instruction of the task.
    pub idle_exit_ns: Nanos,
}

impl Costs {
    /// Everything free: the bare algorithm.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The costs of a machine whose file gives none, with their sources:
    ///
    /// | cost | default | source |
    /// |---|---|---|
    /// | wake-up to switch | 3 us | Debian's 6.1 and 6.12 kernels in a guest with deterministic time |
    /// | tick to switch | 8 us | the same |
    /// | change to switch | 15 us | the same: from `setpriority()` to the switch |
    /// | context switch | 0 | a recorded or calibrated burst holds it already; some 1.3 us on a Xeon X5550 (B. Sigoure, "How long does it take to make a context switch?", 2010) |
    /// | idle exit | 2 us | the latency of state C1 that the kernel's `intel_idle` gives for Xeons from Sandy Bridge on |
    ///
    /// The refill of caches is no part of the context switch's cost: it depends on the working set.
    #[must_use]
    pub fn measured() -> Self {
        Self {
            wakeup_to_switch_ns: 3_000,
            tick_to_switch_ns: 8_000,
            change_to_switch_ns: 15_000,
            context_switch_ns: 0,
            idle_exit_ns: 2_000,
        }
    }
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

impl Machine {
    /// The number of sockets (packages).
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.count(|cpu| cpu.place.package)
    }

    /// The number of cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.count(|cpu| cpu.place.core)
    }

    /// The number of last-level caches.
    #[must_use]
    pub fn llcs(&self) -> usize {
        self.count(|cpu| cpu.place.llc)
    }

    /// The number of NUMA nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.distances.len()
    }

    /// The most SMT threads that a core has.
    #[must_use]
    pub fn threads(&self) -> usize {
        let mut per_core = std::collections::BTreeMap::new();
        for cpu in &self.cpus {
            *per_core.entry(cpu.place.core).or_insert(0) += 1;
        }
        per_core.into_values().max().unwrap_or(0)
    }

    /// One line: `2 sockets x 6 cores x 1 thread = 12 CPUs, 2 nodes`.
    #[must_use]
    pub fn summary(&self) -> String {
        let noun = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        let (sockets, cores, threads) = (self.sockets(), self.cores(), self.threads());
        let shape = if sockets > 0 && cores.is_multiple_of(sockets) && cores * threads == self.cpus.len() {
            format!("{} x {} x {}", noun(sockets, "socket"), noun(cores / sockets, "core"), noun(threads, "thread"))
        } else {
            format!("{}, {}", noun(sockets, "socket"), noun(cores, "core"))
        };
        format!("{shape} = {}, {}", noun(self.cpus.len(), "CPU"), noun(self.nodes(), "node"))
    }

    fn count(&self, what: impl Fn(&Cpu) -> u32) -> usize {
        self.cpus.iter().map(what).collect::<BTreeSet<_>>().len()
    }
}
