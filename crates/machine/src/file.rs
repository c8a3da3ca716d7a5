//! The machine file: TOML that requires only sockets, cores and threads, and distances if there are several nodes.

mod build;

use crate::model::{Caches, Costs, Machine, PerfDomain, RECLAIM_DISTANCE};
use crate::tomltext::TomlText;
use schedlab_base::{Cost, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A machine as its TOML file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "schedlab machine")]
pub struct MachineFile {
    /// The machine's name (default: the file's name without `.toml`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Sockets (packages).
    #[schemars(range(min = 1, max = 8192))]
    pub sockets: u32,
    /// Cores per socket.
    #[schemars(range(min = 1, max = 8192))]
    pub cores: u32,
    /// SMT threads per core.
    #[schemars(range(min = 1, max = 8))]
    pub threads: u32,
    /// Distances between NUMA nodes as the firmware reports them: a square, symmetric matrix with 10 on the diagonal.
    /// Each node holds an equal share of the CPUs. Without a matrix the machine has one node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<Vec<u32>>,
    /// NUMA nodes per package (default: as many as a socket holds). If a socket holds at most one node and the file
    /// does not give this number, it stays open whether several nodes are dies of one package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub nodes_per_package: Option<u32>,
    /// Beyond this distance kernels from 5.4 on do not place tasks on exec, fork and wake-ups (default 30; 32 on AMD
    /// EPYC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 254))]
    pub reclaim_distance: Option<u32>,
    /// Cores that share a last-level cache (default: all cores of a socket, or of a node if a socket has several
    /// nodes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub llc_cores: Option<u32>,
    /// Cores that share an L2 (a cluster; default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub cluster_cores: Option<u32>,
    /// The capacity of each core of the machine, where the fastest has 1024 (default: 1024 for all).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<u32>,
    /// The size of a core's own caches, or of the L2 that a cluster shares, in KiB (default 256).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_777_216))]
    pub l2_kib: Option<u32>,
    /// The size of a last-level cache in KiB (default 8192).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_777_216))]
    pub llc_kib: Option<u32>,
    /// The costs of switches, wake-ups, migrations and shared resources.
    #[serde(default, skip_serializing_if = "CostsFile::is_default")]
    pub costs: CostsFile,
    /// The energy model: groups of cores that run at one frequency (default: none). Every core is in one group. Kernels
    /// from 5.0 on place tasks by it if capacities differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub performance_domains: Vec<PerfDomainFile>,
    /// CPUs that are not balanced, and that tasks use only if they name them (the boot parameter isolcpus=).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolcpus: Vec<u32>,
    /// Sets of CPUs that are balanced by themselves (cpuset partitions). A task that names no CPUs uses those that are
    /// in none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Vec<u32>>,
    /// Refused: CPUs without a tick (the boot parameter nohz_full=) are not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub nohz_full: Option<toml::Value>,
}

/// Cores that run at one frequency, and the power they take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerfDomainFile {
    /// The numbers of its cores, counted from 0 across the machine; all have the same capacity.
    pub cores: Vec<u32>,
    /// The frequencies in MHz, in ascending order.
    pub mhz: Vec<u32>,
    /// The power of one busy core at each frequency, in uW.
    pub power_uw: Vec<u32>,
}

impl PerfDomainFile {
    fn of(domain: &PerfDomain, threads: u32) -> Self {
        Self {
            cores: domain.cpus.iter().step_by(threads as usize).map(|cpu| cpu / threads).collect(),
            mhz: domain.states.iter().map(|state| state.mhz).collect(),
            power_uw: domain.states.iter().map(|state| state.power_uw).collect(),
        }
    }
}

/// Declares the part of the file that sets [`Costs`]. Each key is optional and has a measured default. Times may vary.
macro_rules! costs_file {
    (
        times { $($(#[$doc:meta])* $time:ident),* $(,)? }
        $($(#[$rest_doc:meta])* $key:ident <= $most:literal),* $(,)?
    ) => {
        /// The costs of switches, wake-ups, migrations and shared resources. `docs/machines.md` lists the default of
        /// each, with its source.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct CostsFile {
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                #[schemars(with = "Option<Time>")]
                pub $time: Option<Cost>,
            )*
            $(
                $(#[$rest_doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                #[schemars(range(max = $most))]
                pub $key: Option<u64>,
            )*
        }

        impl CostsFile {
            /// The costs, with defaults for the keys that are not given.
            #[must_use]
            pub fn costs(&self) -> Costs {
                let default = Costs::measured();
                let costs = Costs {
                    $($time: self.$time.unwrap_or(default.$time),)*
                    $($key: self.$key.unwrap_or(default.$key)),*
                };
                Costs { remote_idle_exit_ns: self.remote_idle_exit_ns.unwrap_or(costs.idle_exit_ns), ..costs }
            }

            /// Those that are not the defaults.
            #[must_use]
            pub fn of(costs: &Costs) -> Self {
                let default = Costs::measured();
                let remote = costs.remote_idle_exit_ns;
                let given = Self {
                    $($time: (costs.$time != default.$time).then_some(costs.$time),)*
                    $($key: (costs.$key != default.$key).then_some(costs.$key),)*
                };
                Self { remote_idle_exit_ns: (remote != costs.idle_exit_ns).then_some(remote), ..given }
            }

            /// The keys that are given, with their values.
            pub fn given(&self) -> impl Iterator<Item = (&'static str, Cost)> {
                let times = [$((stringify!($time), self.$time)),*];
                let rest = [$((stringify!($key), self.$key.map(Cost::Fixed))),*];
                times.into_iter().chain(rest).filter_map(|(key, value)| Some((key, value?)))
            }

            /// The first key whose value is too large, that value, and the largest value allowed.
            pub(crate) fn too_large(&self) -> Option<(&'static str, u64, u64)> {
                let times =
                    [$((concat!("costs.", stringify!($time)), self.$time.map(|time| time.most()), MOST_TIME)),*];
                let rest = [$((concat!("costs.", stringify!($key)), self.$key, $most)),*];
                let all = times.into_iter().chain(rest);
                all.filter_map(|(key, value, most)| Some((key, value?, most))).find(|(_, value, most)| value > most)
            }
        }
    };
}

/// The longest time that a wake-up or a tick may cost, in ns.
const MOST_TIME: u64 = 1_000_000_000;

/// How a [`Cost`] is written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only described, never made")]
enum Time {
    /// The same each time, in ns.
    Fixed(#[schemars(range(max = MOST_TIME))] u64),
    /// What 0, 10, 25, 50, 75, 90, 95, 99 and 100% of the times do not exceed, in ns: draws have these quantiles.
    Varying([u64; 9]),
}

costs_file! {
    times {
        /// The time from a wake-up on another CPU, whose task it preempts, to the switch there, in ns (default 3000).
        wakeup_to_switch_ns,
        /// The time from a wake-up by an interrupt, such as a timer's, on the CPU whose task it preempts to the switch,
        /// in ns (default 3000).
        timer_to_switch_ns,
        /// The time from a wake-up by the running task that preempts this task itself to the switch, the rest of its
        /// system call, in ns (default 0).
        own_wakeup_to_switch_ns,
        /// The time from a tick that preempts to the switch, in ns (default 8000).
        tick_to_switch_ns,
        /// The time from a running task's change of its own nice level or policy to the switch that it causes, in ns
        /// (default 15000).
        change_to_switch_ns,
        /// The time to leave idle, from a wake-up by an interrupt on the idle CPU to the task's first instruction, in
        /// ns (default 2000).
        idle_exit_ns,
        /// The same from a wake-up on another CPU, in ns (default: the same).
        remote_idle_exit_ns,
        /// CPU time that it takes a task to wake another one on an idle CPU, until that CPU has been told, in ns
        /// (default 0).
        idle_wakeup_ns,
    }
    /// How much those of the times above vary that are given as one number, as a standard deviation in percent of them
    /// (default 0).
    jitter_percent <= 100,
    /// CPU time that a context switch takes from the next task, in addition to its bursts, in ns (default 0).
    context_switch_ns <= 1_000_000_000,
    /// CPU time that a system call in which it is blocked takes from a task, beyond its bursts, in ns (default 0).
    blocking_call_ns <= 1_000_000_000,
    /// CPU time that a system call takes from the task that wakes another one in it, beyond its bursts, in ns for each
    /// task that it wakes (default 0).
    waking_call_ns <= 1_000_000_000,
    /// CPU time that it takes a task to fork another one, beyond its bursts, before that one can run, in ns (default
    /// 0).
    forking_call_ns <= 1_000_000_000,
    /// CPU time that it takes a forked task to set itself up, before its program begins, in ns (default 0).
    forked_task_ns <= 1_000_000_000,
    /// CPU time that it takes a task to exit, behind its program, in ns (default 0).
    exit_ns <= 1_000_000_000,
    /// The time to reload 1 KiB of a working set from the last-level cache into a core's own caches, in ns (default
    /// 76).
    llc_refill_ns_per_kib <= 1_000_000,
    /// The time to reload 1 KiB of a working set from the local node's memory into the caches, in ns (default 348).
    memory_refill_ns_per_kib <= 1_000_000,
    /// The time to move 1 KiB of a task's memory to another node, in ns (default 1600).
    page_move_ns_per_kib <= 1_000_000,
    /// NUMA balancing: the time to make 1 KiB of memory fault, in ns (default 8).
    hinting_scan_ns_per_kib <= 1_000_000,
    /// NUMA balancing: the time that the faults on 1 KiB of memory take, in ns (default 150).
    hinting_fault_ns_per_kib <= 1_000_000,
    /// What newly idle balancing of a scheduling domain takes, in ns (default 300). It only decides whether a CPU that
    /// expects to be idle for a short time balances; balancing takes no simulated time.
    newidle_domain_ns <= 1_000_000_000,
    /// The same for each CPU of the domain, in ns (default 60); those of another node take more, by its distance.
    newidle_cpu_ns <= 1_000_000,
    /// The share of its speed that each of two SMT siblings loses while both are busy, in percent (default 39).
    smt_loss_percent <= 50,
    /// How strongly distances between nodes are felt, in percent. At 100 (the default), memory at distance 20 costs
    /// twice as much as local memory.
    remote_percent <= 1000,
}

impl CostsFile {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl MachineFile {
    /// A machine of one node, with defaults for everything else.
    #[must_use]
    pub fn flat(name: &str, sockets: u32, cores: u32, threads: u32) -> Self {
        Self {
            name: Some(name.to_owned()),
            sockets,
            cores,
            threads,
            distances: Vec::new(),
            nodes_per_package: None,
            reclaim_distance: None,
            llc_cores: None,
            cluster_cores: None,
            capacities: Vec::new(),
            l2_kib: None,
            llc_kib: None,
            costs: CostsFile::default(),
            performance_domains: Vec::new(),
            isolcpus: Vec::new(),
            partitions: Vec::new(),
            nohz_full: None,
        }
    }

    /// Reads a file's text and builds its machine.
    ///
    /// # Errors
    /// When the text is not a machine file, or such a machine is impossible.
    pub fn parse(document: &TomlText) -> Result<Machine> {
        let file: Self = document.read()?;
        let stem = document.file.file_stem().map_or_else(|| "machine".into(), |s| s.to_string_lossy().into_owned());
        build::build(&file, &stem).map_err(|wrong| match wrong.mend {
            Some(mend) => document.error(wrong.key, wrong.what).mend(mend),
            None => document.error(wrong.key, wrong.what),
        })
    }

    /// Reads a file and builds its machine.
    ///
    /// # Errors
    /// Those of [`MachineFile::parse`], and when the file cannot be read.
    pub fn open(file: &Path) -> Result<Machine> {
        Self::parse(&TomlText::open(file)?)
    }

    /// Builds the machine that this file describes.
    ///
    /// # Errors
    /// When such a machine is impossible: it has no CPUs or too many, the matrix is not square, ...
    pub fn build(&self) -> Result<Machine> {
        build::build(self, "machine").map_err(build::Wrong::into_error)
    }

    /// The file that describes `machine`; `None` if its CPUs are not regular enough for a file.
    #[must_use]
    pub fn of(machine: &Machine) -> Option<Self> {
        let sockets = machine.sockets() as u32;
        let cores = machine.cores() as u32;
        if sockets == 0 {
            return None;
        }
        let nodes = machine.nodes() > 1;
        let by_core = |count: usize| Some(cores.checked_div(count as u32)?.max(1));
        let clusters = machine.cpus.iter().map(|c| c.cluster).collect::<std::collections::BTreeSet<_>>().len();
        let mut capacities = vec![0; cores as usize];
        for cpu in &machine.cpus {
            *capacities.get_mut(cpu.place.core as usize)? = cpu.place.capacity;
        }
        let even = capacities.iter().all(|c| *c == 1024);
        let mut file = Self {
            name: Some(machine.name.clone()),
            sockets,
            cores: cores / sockets,
            threads: machine.threads() as u32,
            distances: if nodes { machine.distances.clone() } else { Vec::new() },
            nodes_per_package: machine.nodes_per_package.filter(|nodes| *nodes == 1),
            reclaim_distance: Some(machine.reclaim_distance).filter(|distance| *distance != RECLAIM_DISTANCE),
            llc_cores: None,
            cluster_cores: (clusters as u32 != cores).then(|| by_core(clusters)).flatten(),
            capacities: if even { Vec::new() } else { capacities },
            l2_kib: (machine.caches.l2_kib != Caches::default().l2_kib).then_some(machine.caches.l2_kib),
            llc_kib: (machine.caches.llc_kib != Caches::default().llc_kib).then_some(machine.caches.llc_kib),
            costs: CostsFile::of(&machine.costs),
            performance_domains: machine
                .energy
                .iter()
                .map(|d| PerfDomainFile::of(d, machine.threads() as u32))
                .collect(),
            isolcpus: machine.isolated.clone(),
            partitions: machine.partitions.clone(),
            nohz_full: None,
        };
        let same = |file: &Self| file.build().is_ok_and(|built| built == *machine);
        if !same(&file) {
            file.llc_cores = by_core(machine.llcs());
        }
        same(&file).then_some(file)
    }

    /// This machine as TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("plain data is always TOML")
    }
}
