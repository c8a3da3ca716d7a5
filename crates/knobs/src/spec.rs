//! What the catalogue knows of a tunable of a machine.

use crate::values::Values;
use schedlab_base::{Error, Result, nearest};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The part of the kernel that a tunable belongs to. A user names the groups that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Group {
    Sched,
    Vm,
    Disk,
    Irq,
    Network,
    Limits,
}

impl Group {
    const NAMES: [(&str, Self); 6] = [
        ("sched", Self::Sched),
        ("vm", Self::Vm),
        ("disk", Self::Disk),
        ("irq", Self::Irq),
        ("network", Self::Network),
        ("limits", Self::Limits),
    ];
}

impl FromStr for Group {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::NAMES.into_iter().find(|(name, _)| *name == text).map(|(_, group)| group);
        found.ok_or_else(|| {
            let names = Self::NAMES.map(|(name, _)| name);
            let mend = nearest(text, names).map_or_else(
                || format!("known here: {}", names.join(", ")),
                |near| format!("did you mean \"{near}\"?"),
            );
            Error::input(format!("\"{text}\" is no group of tunables")).mend(mend)
        })
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.into_iter().find(|(_, group)| group == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

/// How much a wrong value can harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// A load may run slower.
    Low,
    /// Other loads may stall or starve for a while.
    Medium,
    /// The machine may hang, run out of memory, or lose data in a crash.
    High,
}

impl FromStr for Risk {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "low" => Ok(Self::Low),
            "medium" => Ok(Self::Medium),
            "high" => Ok(Self::High),
            _ => Err(Error::input(format!("\"{text}\" is no risk")).mend("it is low, medium or high")),
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// A tunable of the catalogue that a machine may have, once or once for each device, CPU or interrupt.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name in the catalogue: `vm.swappiness`, `queue.nr_requests`.
    pub name: &'static str,
    /// The part of the kernel.
    pub group: Group,
    /// How much a wrong value can harm.
    pub risk: Risk,
    /// The file, with `<dev>` and the like in place of what there are several of.
    pub path: &'static str,
    /// The unit; empty for a plain number.
    pub unit: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What a wrong value harms.
    pub harm: &'static str,
    /// The value that a system starts with, or the rule for it.
    pub default: &'static str,
    /// The values that this kernel takes; `None` if the catalogue does not say, and then it is never set.
    pub values: Option<Values>,
    /// The tunables, by their names in the catalogue, whose values the kernel changes when this one is set.
    pub changes: Vec<&'static str>,
    /// What can stand in for it; see [`crate::Here::instead`].
    pub instead: &'static str,
}

impl Spec {
    /// Whether a user may call it by this name: that of the catalogue, its last part, or the full one of a sysctl
    /// (`kernel.sched_autogroup_enabled`).
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let sysctl = self.path.strip_prefix("/proc/sys/").is_some_and(|path| path.replace('/', ".") == name);
        self.name == name || sysctl || self.name.rsplit(['.', '/']).next() == Some(name)
    }
}
