//! The model of a machine.

use schedlab_base::{Cost, CpuPlace, Nanos, counted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The largest number of CPUs in a machine (Linux's own `NR_CPUS` limit on x86-64).
pub(crate) const MAX_CPUS: u32 = 8192;

/// One logical CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its position and capacity.
    pub place: CpuPlace,
    /// Its cluster (CPUs that share an L2), numbered across the machine.
    pub cluster: u32,
}

/// The costs of operations on this machine, in ns of CPU time. With all costs 0, only the algorithm counts (`--costs
/// none`).
///
/// [`Costs::default`] sets everything to 0. A machine whose file gives no costs has measured ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// The time from a wake-up on another CPU, whose task it preempts, to the switch there.
    pub wakeup_to_switch_ns: Cost,
    /// The time from a wake-up by an interrupt, such as a timer's, on the CPU whose task it preempts to the switch.
    pub timer_to_switch_ns: Cost,
    /// The time from a wake-up by the running task that preempts this task itself to the switch: the rest of its system
    /// call.
    pub own_wakeup_to_switch_ns: Cost,
    /// The time from a tick that preempts to the switch.
    pub tick_to_switch_ns: Cost,
    /// The time from a running task's change of its own nice level or policy to the switch that it causes.
    pub change_to_switch_ns: Cost,
    /// The time to leave idle, from a wake-up by an interrupt on the idle CPU itself to the task's first instruction.
    pub idle_exit_ns: Cost,
    /// The same from a wake-up on another CPU.
    pub remote_idle_exit_ns: Cost,
    /// CPU time that it takes a task to wake another one on an idle CPU, until that CPU has been told.
    pub idle_wakeup_ns: Cost,
    /// How much those of the times above vary that are given as one number, as a standard deviation in percent of them.
    pub jitter_percent: u64,
    /// CPU time that a context switch takes from the next task, in addition to its bursts.
    pub context_switch_ns: Nanos,
    /// CPU time that a system call in which a task is blocked takes from it, in addition to its bursts: that before it
    /// leaves its CPU and that after it has got one again.
    pub blocking_call_ns: Nanos,
    /// CPU time that a system call takes from the task that wakes another one in it, in addition to its bursts, for
    /// each task that it wakes.
    pub waking_call_ns: Nanos,
    /// CPU time that it takes a task to fork another one, in addition to its bursts, before that one can run.
    pub forking_call_ns: Nanos,
    /// CPU time that it takes a forked task to set itself up, before its program begins.
    pub forked_task_ns: Nanos,
    /// CPU time that it takes a task to exit, behind its program.
    pub exit_ns: Nanos,
    /// The time to reload 1 KiB of a working set from the last-level cache into a core's own caches.
    pub llc_refill_ns_per_kib: Nanos,
    /// The time to reload 1 KiB of a working set from the local node's memory into the caches.
    pub memory_refill_ns_per_kib: Nanos,
    /// The time to move 1 KiB of a task's memory to another node.
    pub page_move_ns_per_kib: Nanos,
    /// NUMA balancing: the time to make 1 KiB of memory fault.
    pub hinting_scan_ns_per_kib: Nanos,
    /// NUMA balancing: the time that the faults on 1 KiB of memory take, without the time to move it.
    pub hinting_fault_ns_per_kib: Nanos,
    /// What newly idle balancing of a scheduling domain takes, whatever its CPUs. It only decides whether to balance:
    /// from 3.13 on the kernel measures it, and a CPU that expects to be idle for less does not look for tasks.
    pub newidle_domain_ns: Nanos,
    /// The same for each CPU of the domain; those of another node take more, by its distance.
    pub newidle_cpu_ns: Nanos,
    /// The share of its speed that each of two SMT siblings loses while both are busy, in percent, up to 50.
    pub smt_loss_percent: u64,
    /// How strongly distances between nodes are felt, in percent. At 100, memory at distance 20 costs twice as much as
    /// local memory.
    pub remote_percent: u64,
}

impl Costs {
    /// No costs: only the algorithm counts. What newly idle balancing is assumed to take is a part of the algorithm and
    /// takes no time.
    #[must_use]
    pub fn none() -> Self {
        Self { newidle_domain_ns: 300, newidle_cpu_ns: 60, ..Self::default() }
    }

    /// Whether an operation does not always take the same time.
    #[must_use]
    pub fn vary(&self) -> bool {
        let times = [
            self.wakeup_to_switch_ns,
            self.timer_to_switch_ns,
            self.own_wakeup_to_switch_ns,
            self.tick_to_switch_ns,
            self.change_to_switch_ns,
            self.idle_exit_ns,
            self.remote_idle_exit_ns,
            self.idle_wakeup_ns,
        ];
        self.jitter_percent > 0 || times.iter().any(Cost::varies)
    }

    /// Whether what a task does takes time before it has an effect on others.
    #[must_use]
    pub fn take_time_first(&self) -> bool {
        self.idle_wakeup_ns.most() > 0 || self.forking_call_ns > 0 || self.exit_ns > 0
    }

    /// The costs of a machine whose file gives none.
    ///
    /// Reloading caches is not part of a context switch's cost: it depends on the working set, and a task without a
    /// known working set pays nothing.
    #[must_use]
    pub(crate) fn measured() -> Self {
        Self {
            // The first four were measured with Debian's 6.1 and 6.12 kernels in a guest with deterministic time.
            wakeup_to_switch_ns: Cost::Fixed(3_000),
            timer_to_switch_ns: Cost::Fixed(3_000),
            own_wakeup_to_switch_ns: Cost::Fixed(0),
            tick_to_switch_ns: Cost::Fixed(8_000),
            // From `setpriority()` to the switch.
            change_to_switch_ns: Cost::Fixed(15_000),
            // A recorded or calibrated burst already contains it. On a Xeon X5550 it takes some 1.3 us (B. Sigoure,
            // "How long does it take to make a context switch?", 2010).
            context_switch_ns: 0,
            // So does it contain these, which a written one does not.
            blocking_call_ns: 0,
            waking_call_ns: 0,
            forking_call_ns: 0,
            forked_task_ns: 0,
            exit_ns: 0,
            // The latency of state C1 in the kernel's `intel_idle` for Xeons from Sandy Bridge on.
            idle_exit_ns: Cost::Fixed(2_000),
            remote_idle_exit_ns: Cost::Fixed(2_000),
            // A recorded burst of a model that does not know it contains it.
            idle_wakeup_ns: Cost::Fixed(0),
            jitter_percent: 0,
            // 56 clocks, 19 ns, for 64 bytes on a Xeon X5670 at 2.93 GHz (AnandTech, March 2010). Four outstanding
            // misses are assumed: a stream has ten, a chain of pointers one.
            llc_refill_ns_per_kib: 76,
            // 87 ns for 64 bytes on the same processor, also with four outstanding misses.
            memory_refill_ns_per_kib: 348,
            // Some 600 MB/s of `move_pages()` (B. Goglin and N. Furmento, 2009).
            page_move_ns_per_kib: 1_600,
            // A scan of 256 MiB "could take several milliseconds". Most took 1 to 4 ms; 2.1 ms is used here (Huang
            // Ying, "autonuma: Support to scan page table asynchronously", 2020).
            hinting_scan_ns_per_kib: 8,
            // 600 ns for a page of 4 KiB. On a Core i7 of the 11th generation the quickest fault on new memory took
            // 575 ns, including the clearing of the page, and half of the faults took less than 1013 ns.
            hinting_fault_ns_per_kib: 150,
            // Our choice: a CPU's averages are in a few cache lines, which another core has written.
            newidle_domain_ns: Self::none().newidle_domain_ns,
            newidle_cpu_ns: Self::none().newidle_cpu_ns,
            // Two threads do 16 to 28% more work than one (D. Marr et al., Intel Technology Journal, 2002); 2 x 61% is
            // 22% more.
            smt_loss_percent: schedlab_base::SMT_LOSS_PERCENT,
            // The firmware's distances are defined as relative latencies (ACPI, SLIT).
            remote_percent: 100,
        }
    }
}

/// The sizes of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// The size of a core's own caches together, or of the L2 that a cluster of cores shares, in KiB.
    pub l2_kib: u32,
    /// The size of a last-level cache, in KiB.
    pub llc_kib: u32,
}

impl Default for Caches {
    /// The caches of a Core i7 of 2009 to 2017: 256 KiB of L2 per core, 8 MiB of L3.
    fn default() -> Self {
        Self { l2_kib: 256, llc_kib: 8192 }
    }
}

/// A frequency that a CPU can run at, and the power it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerfState {
    /// The frequency in MHz.
    pub mhz: u32,
    /// The power of one busy CPU in uW.
    pub power_uw: u32,
}

/// CPUs that always run at the same frequency: a performance domain of the energy model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerfDomain {
    /// Its CPUs, all of the same capacity.
    pub cpus: Vec<u32>,
    /// Its frequencies in ascending order. At the last one a CPU has its full capacity.
    pub states: Vec<PerfState>,
}

/// The usual distance beyond which tasks are not placed (`RECLAIM_DISTANCE`).
pub const RECLAIM_DISTANCE: u32 = 30;
/// The distance between two sockets of AMD EPYC, and that beyond which tasks are not placed there.
pub const EPYC_DISTANCE: u32 = 32;

/// That of a machine that was written down before it could be said.
fn usual_reclaim_distance() -> u32 {
    RECLAIM_DISTANCE
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its CPUs, indexed by number.
    pub cpus: Vec<Cpu>,
    /// Distances between nodes as the firmware reports them (10 is local), one row per node.
    pub distances: Vec<Vec<u32>>,
    /// How many nodes a package holds, if known. A file whose sockets hold at most one node may leave open whether
    /// several nodes are dies of one package.
    pub nodes_per_package: Option<u32>,
    /// Beyond this distance kernels do not place tasks on exec, fork and wake-ups (`node_reclaim_distance`). Before 5.4
    /// it is [`RECLAIM_DISTANCE`] on any machine.
    #[serde(default = "usual_reclaim_distance")]
    pub reclaim_distance: u32,
    /// The sizes of the caches.
    pub caches: Caches,
    /// The costs of operations.
    pub costs: Costs,
    /// The energy model: performance domains in which every CPU occurs once; empty if there is none.
    pub energy: Vec<PerfDomain>,
    /// CPUs that are in no scheduling domain and that tasks use only if they name them (`isolcpus=`), in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolated: Vec<u32>,
    /// Sets of CPUs with scheduling domains of their own (cpuset partitions). The other CPUs are together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Vec<u32>>,
}

impl Machine {
    /// The CPUs that tasks use which name none: those that are neither isolated nor in a partition.
    #[must_use]
    pub fn common_cpus(&self) -> Vec<u32> {
        let apart = |cpu: &u32| self.isolated.contains(cpu) || self.partitions.iter().any(|part| part.contains(cpu));
        self.cpus.iter().map(|cpu| cpu.place.cpu).filter(|cpu| !apart(cpu)).collect()
    }

    /// Whether some CPUs are isolated or in a partition.
    #[must_use]
    pub fn is_split(&self) -> bool {
        !self.isolated.is_empty() || !self.partitions.is_empty()
    }

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

    /// The largest number of SMT threads of a core.
    #[must_use]
    pub fn threads(&self) -> usize {
        let mut per_core = std::collections::BTreeMap::new();
        for cpu in &self.cpus {
            *per_core.entry(cpu.place.core).or_insert(0) += 1;
        }
        per_core.into_values().max().unwrap_or(0)
    }

    /// A summary in one line: `2 sockets x 6 cores x 1 thread = 12 CPUs, 2 nodes`.
    #[must_use]
    pub fn summary(&self) -> String {
        let noun = |n: usize, word: &str| counted(n as u64, word);
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
