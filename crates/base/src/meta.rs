//! The metadata of a trace.

use crate::{Coverage, CpuId, Nanos, Partial, System, Target, Tid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The position of a CPU in its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlace {
    /// The CPU.
    pub cpu: CpuId,
    /// Its core, numbered across the machine; SMT siblings share the number.
    pub core: u32,
    /// Its last-level cache, numbered across the machine.
    pub llc: u32,
    /// Its package (socket).
    pub package: u32,
    /// Its NUMA node.
    pub node: u32,
    /// Its capacity; the machine's fastest CPU has 1024.
    pub capacity: u32,
}

/// The metadata stored at the head of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// What made the trace: `record`, `sim`, or `import:` and the format.
    pub source: String,
    /// The kernel's release as `uname -r` prints it, or the name of the simulated profile.
    pub kernel: String,
    /// The machine's name, where known.
    pub machine: String,
    /// The clock of the trace's times: `sim`, `mono`, `perf`, `local`, ...
    pub clock: String,
    /// The first and last instant of the recording, if they are known in advance.
    #[serde(default)]
    pub span: Option<(Nanos, Nanos)>,
    /// The CPUs with their positions; at least their numbers are valid.
    pub cpus: Vec<CpuPlace>,
    /// The distance of each node's memory from each node, as in ACPI's SLIT (10 is local); empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<Vec<u32>>,
    /// Tasks that were running at the start, as pairs of CPU and tid, if known.
    #[serde(default)]
    pub running: Vec<(CpuId, Tid)>,
    /// The tasks that the recording was made for, if it was made for some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// How much of the machine's scheduling it covers, if not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// What is known of the kernel, besides its release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// Anything else: the command, the host, the seed, the tunables.
    #[serde(default)]
    pub notes: BTreeMap<String, String>,
    /// Whether the end of the span cannot be relied on: the file ends before its end mark, so that nothing is known of
    /// the time after its last event; or it is a pipe, whose end nobody has seen yet. It is no part of the head.
    #[serde(skip)]
    pub open_end: bool,
}

impl Meta {
    /// The first and last instant of which the trace tells for certain, before its events have been read.
    #[must_use]
    pub fn told(&self) -> Option<(Nanos, Nanos)> {
        self.span.map(|(start, end)| (start, if self.open_end { start } else { end }))
    }

    /// What a partial recording covers.
    #[must_use]
    pub fn covers(&self) -> Option<Coverage> {
        self.partial.as_ref().map(|partial| partial.covers)
    }
}
