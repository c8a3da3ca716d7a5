//! The sink that feeds the measures.

use crate::latency::LatencyTimes;
use crate::memory::MemoryTimes;
use crate::migrations::Migrations;
use crate::names::Names;
use crate::run_queue::RunQueues;
use crate::run_time::RunTimes;
use crate::tasks::{Slot, Status};
use crate::tracker::{Delay, MAX_CPUS, Observer, Occupant, Tracker};
use crate::wait_time::WaitTimes;
use crate::{Report, summing};
use schedlab_base::{CpuId, Event, Meta, NameRecord, Nanos, Payload, Sink, TaskState};
use std::collections::BTreeSet;

/// Statistics in the making: feed it a trace, then [`Stats::finish`].
///
/// Its memory grows with the number of tasks and CPUs, not of events.
#[derive(Debug)]
pub struct Stats {
    pub(crate) tracker: Tracker,
    pub(crate) measures: Measures,
    pub(crate) names: Names,
    /// The numbers of the nodes, and by CPU the index of its node among them.
    pub(crate) nodes: Vec<u32>,
    pub(crate) node_of: Vec<u32>,
}

/// All measures; each gets every call that it has an ear for.
#[derive(Debug)]
pub(crate) struct Measures {
    pub(crate) run: RunTimes,
    pub(crate) wait: WaitTimes,
    pub(crate) latency: LatencyTimes,
    pub(crate) migrations: Migrations,
    pub(crate) queues: RunQueues,
    pub(crate) memory: MemoryTimes,
}

impl Observer for Measures {
    #[inline]
    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        self.run.span(cpu, who, from, to);
    }

    #[inline]
    fn started(&mut self, task: Slot, cpu: CpuId) {
        self.run.started(task, cpu);
    }

    #[inline]
    fn stopped(&mut self, task: Slot, cpu: CpuId, state: TaskState) {
        self.run.stopped(task, cpu, state);
    }

    #[inline]
    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, finished: bool) {
        self.wait.waited(task, cpu, from, to, finished);
    }

    #[inline]
    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        self.latency.served(task, cpu, delay);
    }

    #[inline]
    fn migrated(&mut self, task: Slot, from: CpuId, to: CpuId) {
        self.migrations.migrated(task, from, to);
    }

    #[inline]
    fn queue(&mut self, cpu: CpuId, now: Nanos, length: Option<u32>) {
        self.queues.queue(cpu, now, length);
    }
}

impl Stats {
    /// Statistics for a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        let places = || meta.cpus.iter().filter(|place| place.cpu < MAX_CPUS);
        let nodes: Vec<u32> = places().map(|place| place.node).collect::<BTreeSet<_>>().into_iter().collect();
        let mut node_of = Vec::new();
        for place in places() {
            *crate::row(&mut node_of, place.cpu) = nodes.binary_search(&place.node).unwrap_or(0) as u32;
        }
        let several = if nodes.len() > 1 { node_of.clone() } else { Vec::new() };
        Self {
            tracker: Tracker::new(meta),
            measures: Measures {
                run: RunTimes::default(),
                wait: WaitTimes::default(),
                latency: LatencyTimes::default(),
                migrations: Migrations::default(),
                queues: RunQueues::new(several.clone()),
                memory: MemoryTimes::new(several),
            },
            names: Names::default(),
            nodes,
            node_of,
        }
    }

    /// Ends the statistics: at `end`, or else at the end of the metadata's span, but never before the last
    /// event. Tasks that run or wait then do so until then.
    #[must_use]
    pub fn finish(mut self, end: Option<Nanos>) -> Report {
        self.tracker.finish(end, &mut self.measures);
        summing::report(&self)
    }
}

impl Sink for Stats {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            self.tracker.event(event, &mut self.measures);
            let tasks = &mut self.tracker.tasks;
            match event.what {
                Payload::Fork { parent, child } => {
                    if let (Some(parent), Some(child)) = (tasks.slot(parent), tasks.slot(child)) {
                        self.names.inherit(parent, child);
                    }
                }
                Payload::Migrate { tid, from, to, .. } => {
                    // Where it is put before it is first runnable is no move.
                    if let Some(slot) = tasks.slot(tid).filter(|_| tid != 0)
                        && tasks[slot].status != Status::Unknown
                    {
                        self.measures.memory.migrated(slot, (from, to), event.time);
                    }
                }
                Payload::Pages { .. } => self.measures.memory.pages(event.time, &event.what),
                _ => {}
            }
        }
    }

    fn name(&mut self, record: &NameRecord) {
        if let Some(slot) = self.tracker.tasks.to_name(record.tid) {
            self.names.set(slot, record);
            self.measures.memory.named(slot, record);
        }
    }
}
