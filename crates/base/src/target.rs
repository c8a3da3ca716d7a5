//! What a recording was made for, and how much of the machine it covers.

use crate::Tid;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The tasks that a recording was made for. The children that they fork during the recording belong to it too; the fork
/// events in the trace show which tasks those are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The command that was started for the recording; none if it was made of running processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The processes that were asked for, or the command's process.
    pub processes: Vec<Tid>,
    /// The threads that belong to it at the start: those of the processes and of all their descendants.
    pub threads: Vec<Tid>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.command, &self.processes[..]) {
            (Some(command), _) => write!(f, "{command}"),
            (None, [one]) => write!(f, "process {one}"),
            (None, several) => {
                let ids: Vec<_> = several.iter().map(Tid::to_string).collect();
                write!(f, "processes {}", ids.join(", "))
            }
        }
    }
}

/// Which events a partial recording has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Every event in which a task of the target takes part, its switches onto a CPU and off it among them.
    Tasks,
    /// The events that happened while a task of the target was running. When it got a CPU is not among them.
    Inside,
    /// The events of some CPUs. What tasks did on the other CPUs is not known.
    Cpus,
}

/// A recording that does not cover the whole machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// Which events it has.
    pub covers: Coverage,
    /// What it was limited to, as text: `process 812`, `CPUs 0-3`.
    pub only: String,
}

impl Partial {
    /// A sentence that says why a figure of the whole machine cannot be given.
    #[must_use]
    pub fn reason(&self) -> String {
        let only = &self.only;
        match self.covers {
            Coverage::Tasks => format!("the recording has only the events of {only}: what else ran is not known"),
            Coverage::Inside => {
                format!("the recording has only what happened while {only} ran: when tasks got a CPU is not known")
            }
            Coverage::Cpus => format!("the recording has only the events of {only}: what ran elsewhere is not known"),
        }
    }

    /// How to record what is missing.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self.covers {
            Coverage::Tasks => "record without --only: then the rest of the machine is in the trace too",
            Coverage::Inside | Coverage::Cpus => "record all CPUs: perf sched record, or perf record -a",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_by_its_command_or_its_processes() {
        let of = |processes: &[Tid]| Target { processes: processes.to_vec(), ..Target::default() };
        assert_eq!(of(&[7]).to_string(), "process 7");
        assert_eq!(of(&[7, 9]).to_string(), "processes 7, 9");
        assert_eq!(Target { command: Some("make -j8".into()), ..of(&[7]) }.to_string(), "make -j8");
    }
}
