//! What there is to say of a model: what it holds, and what could not be modelled.

use super::{policy, track::Task};
use crate::{Action, Phase, Props};
use schedlab_base::Nanos;
use serde::Serialize;

/// How a model came about.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Events read.
    pub events: u64,
    /// Events that the recorder had lost, where their number was known.
    pub lost_events: u64,
    /// The trace's length.
    pub span_ns: Nanos,
    /// Tasks in the model.
    pub tasks: usize,
    /// CPU time of these tasks, as recorded.
    pub modelled_ns: Nanos,
    /// Tasks that ran, waited or were moved but are not in the model.
    pub left_out: usize,
    /// CPU time of those.
    pub left_out_ns: Nanos,
    /// CPU time that the workload demands.
    pub demand_ns: Nanos,
    /// Events in the workload's file.
    pub workload_events: u64,
    /// Blocks that end by another task's wake-up (executions of `sem_wait`).
    pub waits: u64,
    /// Blocks that end by themselves (executions of `sleep` and `timer`).
    pub sleeps: u64,
    /// Of these, the ones that another task's wake-up ended which is not in the model.
    pub unseen: u64,
    /// Tasks bound to a CPU.
    pub pinned: usize,
    /// What could not be modelled as recorded.
    pub remarks: Vec<String>,
}

impl Report {
    /// The priority that the task ran with for most of its time.
    pub(super) fn priority(&mut self, task: &Task, key: &str) -> Props {
        let most = task.prios.iter().max_by_key(|(prio, ns)| (*ns, std::cmp::Reverse(*prio)));
        let Some((prio, ns)) = most.copied() else { return Props::default() };
        if ns < task.run - task.run / 100 {
            self.remarks.push(format!("{key} changed its priority; the one it ran with longest is kept"));
        }
        if prio < 0 {
            self.remarks.push(format!("{key} is a deadline task; it is modelled as FIFO 99"));
        }
        policy(prio)
    }

    /// Counts what a task's phases will do.
    pub(super) fn count_phases(&mut self, phases: &[Phase]) {
        for phase in phases {
            let times = phase.loops.unwrap_or(1);
            self.workload_events += phase.events.len() as u64;
            for step in &phase.events {
                match step.what {
                    Action::Run(amount) => self.demand_ns = self.demand_ns.saturating_add(amount.mean * times),
                    Action::SemWait(_) => self.waits += times,
                    Action::Sleep(_) | Action::Timer { .. } => self.sleeps += times,
                    _ => {}
                }
            }
        }
    }
}
