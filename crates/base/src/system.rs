//! The facts about a kernel that decide how it schedules, besides its release.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known of the kernel of a trace. A fact that is not known is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct System {
    /// Timer ticks a second (`CONFIG_HZ`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// Where the kernel can be preempted: `none`, `voluntary`, `full`, `lazy` or `rt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// Whether sessions share as groups (autogroup).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autogroup: Option<bool>,
    /// Whether NUMA balancing is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<bool>,
    /// Whether several threads of a core are online.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<bool>,
    /// The CPUs that are isolated from balancing, as a list: `2-3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<String>,
    /// The CPUs that run without a tick (`nohz_full`), as a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nohz_full: Option<String>,
    /// The governors of the CPUs' frequencies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<String>,
    /// The version of the cgroup hierarchy that the scheduler uses: 1 or 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup_version: Option<u8>,
    /// The scheduler's tunables and features, by the names that `schedlab tunables` lists: numbers, `on`, `off`, words.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
    /// What could not be read, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, String>,
}

impl System {
    /// The most tunables and reasons that a file may contain.
    const MOST: usize = 1024;
    /// The longest text of one of them, in bytes.
    const LONGEST: usize = 4096;

    /// Checks what a file contains.
    ///
    /// # Errors
    /// With what is too much, or out of range.
    pub fn check(&self) -> Result<(), String> {
        let texts = [&self.preemption, &self.isolated, &self.nohz_full];
        let pairs = || self.tunables.iter().chain(&self.unreadable);
        let all = || texts.into_iter().flatten().chain(&self.governors).chain(pairs().flat_map(|(k, v)| [k, v]));
        if pairs().count() + self.governors.len() > Self::MOST {
            return Err(format!("it has more than {} facts", Self::MOST));
        }
        if all().any(|text| text.len() > Self::LONGEST) {
            return Err(format!("a text has more than {} bytes", Self::LONGEST));
        }
        match self.hz {
            Some(hz) if !(1..=1_000_000).contains(&hz) => Err(format!("hz is {hz}, not in 1..1000000")),
            _ => Ok(()),
        }
    }
}
