//! What each task did on each CPU.

use crate::measure::us;
use schedlab_base::{CpuId, Nanos, Tid};
use schedlab_track::{Observer, Occupant, Slot, Start};
use serde::Serialize;
use std::collections::BTreeMap;

/// A task on a CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskCpuStats {
    /// The task's name.
    pub name: String,
    /// Its thread id.
    pub tid: Tid,
    /// The CPU.
    pub cpu: CpuId,
    /// CPU time that it ran there.
    pub run_us: f64,
    /// The part of the task's CPU time that this is.
    pub run_share: f64,
    /// Time that it waited on this CPU's queue.
    pub wait_us: f64,
    /// How often it got this CPU.
    pub slices: u64,
    /// Whether the task belongs to the target of the recording; none if there is no target.
    pub target: Option<bool>,
}

/// What a task did on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    run: Nanos,
    wait: Nanos,
    slices: u64,
}

/// The parts of all tasks on all CPUs.
#[derive(Debug, Default)]
pub(crate) struct TaskCpus(BTreeMap<(Slot, CpuId), Part>);

impl TaskCpus {
    /// What the task did on each CPU on which it ran or waited. The rows lack what is the same for every CPU.
    pub(crate) fn of(&self, task: Slot) -> impl Iterator<Item = TaskCpuStats> {
        let parts = || self.0.range((task, 0)..=(task, CpuId::MAX));
        let all = parts().map(|(_, part)| part.run).fold(0, Nanos::saturating_add).max(1);
        parts().map(move |((_, cpu), part)| TaskCpuStats {
            cpu: *cpu,
            run_us: us(part.run),
            run_share: part.run as f64 / all as f64,
            wait_us: us(part.wait),
            slices: part.slices,
            ..TaskCpuStats::default()
        })
    }

    fn part(&mut self, task: Slot, cpu: CpuId) -> &mut Part {
        self.0.entry((task, cpu)).or_default()
    }
}

impl Observer for TaskCpus {
    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        if let Occupant::Task(task) = who {
            self.part(task, cpu).run += to.saturating_sub(from);
        }
    }

    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, _: bool) {
        self.part(task, cpu).wait += to.saturating_sub(from);
    }

    fn started(&mut self, task: Slot, cpu: CpuId, _: Start) {
        self.part(task, cpu).slices += 1;
    }
}
