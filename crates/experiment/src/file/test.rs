//! What makes an experiment a test of the battery: the `[test]` table.

use crate::scalar::Scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A test is an experiment that is asked of one kernel, which `schedlab test` names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestFile {
    /// The group that it belongs to: `fairness`, `response`, ...
    pub group: String,
    /// Why it matters, and why any sound scheduler meets the bounds.
    pub why: String,
    /// What the machine and the kernel must have; the test is skipped elsewhere.
    #[serde(default)]
    pub needs: NeedsFile,
    /// Numbers that follow from the machine, by name: an expression over `cpus`, `cores`, `llcs`, `sockets`, `nodes`
    /// and `threads` (of a core), rounded to a whole number. `{name}` in any text of `duration`, `sweep`, `workload`,
    /// `metrics` and `expectations` stands for it, and so does `{cpus}` itself. `{all}` lists the CPUs, and `{upper}`
    /// the upper half of them; `{siblings}` is the time that both threads of a core were busy, at least, of all cores.
    #[serde(default)]
    pub scale: BTreeMap<String, Scalar>,
    /// Tunables that the test needs, with their values. A live kernel must have these values already.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// Which kernels are known not to meet an expectation, and why.
    #[serde(default)]
    pub known: Vec<KnownFile>,
}

/// What a test needs, at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NeedsFile {
    /// CPUs.
    pub cpus: usize,
    /// Threads of a core.
    pub threads: usize,
    /// Last-level caches.
    pub llcs: usize,
    /// Nodes.
    pub nodes: usize,
    /// Whether all its CPUs must have the same capacity.
    pub symmetric: bool,
    /// What the kernel must be able to do.
    pub features: Vec<Need>,
}

impl Default for NeedsFile {
    fn default() -> Self {
        Self { cpus: 1, threads: 1, llcs: 1, nodes: 1, symmetric: false, features: Vec::new() }
    }
}

/// Something that not every kernel, or not every backend, can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Restricting a task to a set of CPUs.
    Affinity,
    /// Groups of tasks that share CPU time.
    Groups,
    /// Groups within groups.
    NestedGroups,
    /// Limits on the CPU time of a group.
    Quotas,
    /// A group for each session.
    Sessions,
    /// SCHED_FIFO and SCHED_RR.
    RealTime,
    /// A limit on the CPU time of real-time tasks.
    RtThrottling,
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_IDLE.
    Idle,
    /// CPUs that go offline and come back.
    Hotplug,
    /// Memory and tasks that are moved to each other.
    NumaBalancing,
}

/// A property that some kernels are known to lack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownFile {
    /// The profiles: `linux-2.6.11`, ...; a real kernel goes by the last release that is not after it.
    pub kernels: Vec<String>,
    /// The expectation, by its `figure`; all of the test when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// Only with these settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Scalar>,
    /// What the kernel does instead.
    pub reason: String,
    /// Where that is written down: a function of its source, a commit, a paper.
    pub source: String,
}
