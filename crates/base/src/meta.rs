//! What is known of a trace as a whole.

use crate::{CpuId, Nanos, Tid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a CPU sits in its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlace {
    /// The CPU.
    pub cpu: CpuId,
    /// Its core (the same number for SMT siblings), counted over the machine.
    pub core: u32,
    /// Its last-level cache, counted over the machine.
    pub llc: u32,
    /// Its package (socket).
    pub package: u32,
    /// Its NUMA node.
    pub node: u32,
    /// Its capacity; 1024 is the machine's biggest CPU.
    pub capacity: u32,
}

/// The metadata at the head of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Who made the trace: `record`, `sim`, or `import:` and the format.
    pub source: String,
    /// The kernel: its release as `uname -r` says, or the simulated profile's name.
    pub kernel: String,
    /// The machine's name, where known.
    pub machine: String,
    /// The clock of the times: `sim`, `mono`, `perf`, `local`, ...
    pub clock: String,
    /// The time span that was recorded, first and last instant, where it is known beforehand.
    #[serde(default)]
    pub span: Option<(Nanos, Nanos)>,
    /// The places of the CPUs; at the least their numbers.
    pub cpus: Vec<CpuPlace>,
    /// How far memory is from node to node, as ACPI's SLIT counts (10 is a node's own); empty where unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<Vec<u32>>,
    /// Tasks found on a CPU at the start (CPU, tid), where known.
    #[serde(default)]
    pub running: Vec<(CpuId, Tid)>,
    /// Anything else: the command, the host, the seed, the tunables.
    #[serde(default)]
    pub notes: BTreeMap<String, String>,
}
