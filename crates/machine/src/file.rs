//! The machine file: TOML that needs no more than sockets, cores and threads, and distances where there are nodes.

use crate::build;
use crate::model::{Costs, Machine};
use crate::tomltext::TomlText;
use schedlab_base::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A machine as its TOML file describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "schedlab machine")]
pub struct MachineFile {
    /// The machine's name; the file's name without `.toml` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Sockets (packages).
    #[schemars(range(min = 1, max = 8192))]
    pub sockets: u32,
    /// Cores a socket.
    #[schemars(range(min = 1, max = 8192))]
    pub cores: u32,
    /// SMT threads a core.
    #[schemars(range(min = 1, max = 8))]
    pub threads: u32,
    /// Distances between NUMA nodes as the firmware tells them: a square, symmetric matrix with 10 on the diagonal.
    /// Each node holds an equal share of the CPUs. Without it the machine has one node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<Vec<u32>>,
    /// Cores that share a last-level cache; all of a socket's (of a node's, where a socket has several) unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub llc_cores: Option<u32>,
    /// Cores that share an L2 (a cluster); 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8192))]
    pub cluster_cores: Option<u32>,
    /// The capacity of each core over the whole machine, 1024 being the biggest; all 1024 unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<u32>,
    /// What things cost.
    #[serde(default, skip_serializing_if = "CostsFile::is_default")]
    pub costs: CostsFile,
}

/// The costs in ns; what is left out has the default that `docs/machines.md` lists with its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostsFile {
    /// From a wake-up that preempts to the switch (default 3000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub wakeup_to_switch_ns: Option<u64>,
    /// From a tick that preempts to the switch (default 8000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub tick_to_switch_ns: Option<u64>,
    /// From a running task's change of its own nice level or policy to the switch that it causes (default 15000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub change_to_switch_ns: Option<u64>,
    /// CPU time that a context switch takes from the task switched to, beyond what its bursts hold (default 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub context_switch_ns: Option<u64>,
    /// Leaving idle, from the wake-up to the task's first instruction (default 2000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub idle_exit_ns: Option<u64>,
}

impl CostsFile {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The costs, defaults filled in.
    #[must_use]
    pub fn costs(&self) -> Costs {
        let default = Costs::measured();
        Costs {
            wakeup_to_switch_ns: self.wakeup_to_switch_ns.unwrap_or(default.wakeup_to_switch_ns),
            tick_to_switch_ns: self.tick_to_switch_ns.unwrap_or(default.tick_to_switch_ns),
            change_to_switch_ns: self.change_to_switch_ns.unwrap_or(default.change_to_switch_ns),
            context_switch_ns: self.context_switch_ns.unwrap_or(default.context_switch_ns),
            idle_exit_ns: self.idle_exit_ns.unwrap_or(default.idle_exit_ns),
        }
    }

    fn of(costs: &Costs) -> Self {
        let default = Costs::measured();
        let given = |value: u64, default: u64| (value != default).then_some(value);
        Self {
            wakeup_to_switch_ns: given(costs.wakeup_to_switch_ns, default.wakeup_to_switch_ns),
            tick_to_switch_ns: given(costs.tick_to_switch_ns, default.tick_to_switch_ns),
            change_to_switch_ns: given(costs.change_to_switch_ns, default.change_to_switch_ns),
            context_switch_ns: given(costs.context_switch_ns, default.context_switch_ns),
            idle_exit_ns: given(costs.idle_exit_ns, default.idle_exit_ns),
        }
    }
}

impl MachineFile {
    /// A machine of one node with defaults for the rest.
    #[must_use]
    pub fn flat(name: &str, sockets: u32, cores: u32, threads: u32) -> Self {
        Self {
            name: Some(name.to_owned()),
            sockets,
            cores,
            threads,
            distances: Vec::new(),
            llc_cores: None,
            cluster_cores: None,
            capacities: Vec::new(),
            costs: CostsFile::default(),
        }
    }

    /// Reads a file's text and builds its machine.
    ///
    /// # Errors
    /// When the text is no machine file, or the machine it describes cannot be.
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
    /// As [`MachineFile::parse`], and when the file cannot be read.
    pub fn open(file: &Path) -> Result<Machine> {
        Self::parse(&TomlText::open(file)?)
    }

    /// Builds the machine that this describes.
    ///
    /// # Errors
    /// When there can be no such machine: no CPU, too many, a matrix that is not square, ...
    pub fn build(&self) -> Result<Machine> {
        build::build(self, "machine").map_err(build::Wrong::into_error)
    }

    /// The file that describes `machine`; `None` where its CPUs are not regular enough for one.
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
            llc_cores: None,
            cluster_cores: (clusters as u32 != cores).then(|| by_core(clusters)).flatten(),
            capacities: if even { Vec::new() } else { capacities },
            costs: CostsFile::of(&machine.costs),
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
