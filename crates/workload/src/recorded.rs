//! On what the load of a workload was recorded.

use schedlab_base::{Cost, CpuPlace, Meta, System};
use serde::{Deserialize, Serialize};

/// `x-recorded`: on what the load of a workload was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recorded {
    /// The kernel: its release, or the name of the simulated profile.
    pub kernel: String,
    /// The machine's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The machine's CPUs.
    pub cpus: Vec<CpuPlace>,
    /// The distances between its nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<Vec<u32>>,
    /// What is known of the kernel, besides its release.
    pub system: System,
    /// What wake-ups cost there.
    #[serde(skip_serializing_if = "SeenCosts::is_empty")]
    pub costs: SeenCosts,
}

/// What wake-ups cost on a recorded machine, as far as the recording shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeenCosts {
    /// From the wake-up of a task by an interrupt on its idle CPU until the task runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_exit_ns: Option<Cost>,
    /// The same, if a task on another CPU woke it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_idle_exit_ns: Option<Cost>,
    /// CPU time that it takes a task to wake another one on an idle CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_wakeup_ns: Option<Cost>,
    /// From a wake-up on another CPU, whose task it preempts, until the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakeup_to_switch_ns: Option<Cost>,
    /// From a wake-up by an interrupt on the CPU whose task it preempts until the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_to_switch_ns: Option<Cost>,
    /// From a wake-up by the running task that preempts this task itself until the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_wakeup_to_switch_ns: Option<Cost>,
    /// From a tick that preempts until the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_to_switch_ns: Option<Cost>,
}

impl SeenCosts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> [Option<Cost>; 7] {
        [
            self.idle_exit_ns,
            self.remote_idle_exit_ns,
            self.idle_wakeup_ns,
            self.wakeup_to_switch_ns,
            self.timer_to_switch_ns,
            self.own_wakeup_to_switch_ns,
            self.tick_to_switch_ns,
        ]
    }
}

impl Recorded {
    /// What the metadata of a trace say.
    #[must_use]
    pub fn of(meta: &Meta) -> Self {
        Self {
            kernel: meta.kernel.clone(),
            machine: meta.machine.clone(),
            cpus: meta.cpus.clone(),
            distances: meta.distances.clone(),
            system: meta.system.clone().unwrap_or_default(),
            costs: SeenCosts::default(),
        }
    }
}
