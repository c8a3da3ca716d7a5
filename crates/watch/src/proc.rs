//! The run queues by /proc, where eBPF cannot be had.
//!
//! /proc shows which tasks are runnable and on which CPU, but neither which of them runs nor the state of all at one
//! instant. So of the tasks on a CPU one that could go elsewhere is taken to be the running one, and tasks that may be
//! waiting for a budget (a quota of their cgroup, a deadline) do not count. Both can only hide a violation.

use schedlab_base::{CpuId, CpuList, Error, Result, Tid};
use schedlab_capture::{Runnable, RunnableTask, online};
use schedlab_measure::{CpuNow, Looked, WaitingNow};
use std::collections::BTreeMap;

/// The run queues of the running kernel, put together from what /proc says of each task.
#[derive(Default)]
pub struct Proc {
    runnable: Runnable,
    /// The tasks at the last look.
    tasks: Vec<RunnableTask>,
    cpus: Vec<CpuNow>,
    waiting: Vec<WaitingNow>,
}

impl Looked for Proc {
    type Error = Error;

    fn cpus(&mut self, between: bool) -> Result<&[CpuNow]> {
        // Between the first and the last look of a watch only the tasks are read that were runnable at the first.
        self.tasks = match between {
            true => self.runnable.again(&self.tasks),
            false => self.runnable.all(std::process::id() as Tid),
        };
        let count = |cpu| self.tasks.iter().filter(|task| task.cpu == cpu).count() as u32;
        self.cpus = online().iter().map(|cpu| CpuNow { cpu, queued: count(cpu) }).collect();
        Ok(&self.cpus)
    }

    fn waiting(&mut self) -> Result<&[WaitingNow]> {
        let mut queues: BTreeMap<CpuId, Vec<&RunnableTask>> = BTreeMap::new();
        self.tasks.iter().for_each(|task| queues.entry(task.cpu).or_default().push(task));
        self.waiting.clear();
        for (cpu, tasks) in queues.into_iter().filter(|(_, tasks)| tasks.len() >= 2) {
            let mut running = false;
            for task in tasks {
                // Without an affinity it has ended meanwhile.
                let Some(allowed) = self.runnable.allowed(task) else { continue };
                let free = allowed.iter().any(|other| other != cpu);
                if self.runnable.has_budget(task) || (free && !std::mem::replace(&mut running, true)) {
                    continue;
                }
                self.waiting.push(waiting(task, allowed));
            }
        }
        Ok(&self.waiting)
    }
}

fn waiting(task: &RunnableTask, allowed: CpuList) -> WaitingNow {
    WaitingNow { tid: task.tid, name: task.comm.clone(), cpu: task.cpu, allowed: Some(allowed) }
}
