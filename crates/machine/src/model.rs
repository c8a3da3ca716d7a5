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
    /// Bringing 1 KiB of a working set back into a core's own caches from the last-level cache.
    pub llc_refill_ns_per_kib: Nanos,
    /// Bringing 1 KiB of a working set back into the caches from the memory of the CPU's own node.
    pub memory_refill_ns_per_kib: Nanos,
    /// Moving 1 KiB of a task's memory to another node.
    pub page_move_ns_per_kib: Nanos,
    /// NUMA balancing: making 1 KiB of memory fault.
    pub hinting_scan_ns_per_kib: Nanos,
    /// NUMA balancing: the faults on 1 KiB of memory, beyond what moving it takes.
    pub hinting_fault_ns_per_kib: Nanos,
    /// How much of its speed each of two SMT siblings loses while both are busy, in percent, up to 50.
    pub smt_loss_percent: u64,
    /// How much of what the distances say is felt, in percent: at 100 memory at distance 20 costs twice as much as
    /// local.
    pub remote_percent: u64,
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
    /// | refill from the last-level cache | 76 ns a KiB | 56 clocks, 19 ns, for 64 bytes on a Xeon X5670 at 2.93 GHz (AnandTech, March 2010), four misses under way at a time (chosen: a stream has ten, a chain of pointers one) |
    /// | refill from memory | 348 ns a KiB | 87 ns for 64 bytes on the same, four misses at a time |
    /// | moving pages | 1600 ns a KiB | some 600 MB/s of `move_pages()` (B. Goglin and N. Furmento, 2009) |
    /// | making memory fault | 8 ns a KiB | a scan of 256 MiB "could take several milliseconds"; most took 1 to 4 ms, 2.1 here (Huang Ying, "autonuma: Support to scan page table asynchronously", 2020) |
    /// | hinting faults | 150 ns a KiB | 600 ns a page of 4 KiB: the quickest of the faults on new memory on a Core i7 of the 11th generation took 575 ns, clearing the page included; half of the faults, less than 1013 ns |
    /// | SMT | 39% | two threads do 16 to 28% more than one (D. Marr et al., Intel Technology Journal, 2002): 2 x 61% is 22% more |
    /// | remote memory | 100% | as the firmware's distances are defined: relative latencies (ACPI, SLIT) |
    ///
    /// The refill of caches is no part of the context switch's cost: it depends on the working set, and tasks of which
    /// none is told pay nothing.
    #[must_use]
    pub fn measured() -> Self {
        Self {
            wakeup_to_switch_ns: 3_000,
            tick_to_switch_ns: 8_000,
            change_to_switch_ns: 15_000,
            context_switch_ns: 0,
            idle_exit_ns: 2_000,
            llc_refill_ns_per_kib: 76,
            memory_refill_ns_per_kib: 348,
            page_move_ns_per_kib: 1_600,
            hinting_scan_ns_per_kib: 8,
            hinting_fault_ns_per_kib: 150,
            smt_loss_percent: 39,
            remote_percent: 100,
        }
    }

    /// Every cost by the name that it has in a machine's file.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("wakeup_to_switch_ns", self.wakeup_to_switch_ns),
            ("tick_to_switch_ns", self.tick_to_switch_ns),
            ("change_to_switch_ns", self.change_to_switch_ns),
            ("context_switch_ns", self.context_switch_ns),
            ("idle_exit_ns", self.idle_exit_ns),
            ("llc_refill_ns_per_kib", self.llc_refill_ns_per_kib),
            ("memory_refill_ns_per_kib", self.memory_refill_ns_per_kib),
            ("page_move_ns_per_kib", self.page_move_ns_per_kib),
            ("hinting_scan_ns_per_kib", self.hinting_scan_ns_per_kib),
            ("hinting_fault_ns_per_kib", self.hinting_fault_ns_per_kib),
            ("smt_loss_percent", self.smt_loss_percent),
            ("remote_percent", self.remote_percent),
        ]
    }
}

/// How much the caches hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// A core's own caches together, or those that a cluster of cores shares (the L2), in KiB.
    pub l2_kib: u32,
    /// A last-level cache, in KiB.
    pub llc_kib: u32,
}

impl Default for Caches {
    /// Those of a Core i7 of 2009 to 2017: 256 KiB of L2 a core, 8 MiB of L3.
    fn default() -> Self {
        Self { l2_kib: 256, llc_kib: 8192 }
    }
}

/// A frequency that a CPU can run at, and what it takes then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfState {
    /// In MHz.
    pub mhz: u32,
    /// The power of one busy CPU, in uW.
    pub power_uw: u32,
}

/// CPUs that run at one frequency: a performance domain of the energy model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfDomain {
    /// Its CPUs, which are all of one capacity.
    pub cpus: Vec<u32>,
    /// Its frequencies, the lowest first; at the last a CPU has its capacity.
    pub states: Vec<PerfState>,
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
    /// How many nodes a package holds, where it is known: a file whose sockets hold no more than one need not say
    /// whether its nodes are dies of a package.
    pub nodes_per_package: Option<u32>,
    /// How much the caches hold.
    pub caches: Caches,
    /// What things cost.
    pub costs: Costs,
    /// The energy model: performance domains that hold every CPU once; empty where there is none.
    pub energy: Vec<PerfDomain>,
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
