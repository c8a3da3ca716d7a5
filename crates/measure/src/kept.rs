//! What the statistics keep while a trace is read.

use crate::affinity::Affinities;
use crate::interrupts::Interrupts;
use crate::measures::Measures;
use crate::memory::MemoryTimes;
use crate::names::Names;
use crate::run_queue::RunQueues;
use crate::sleeps::Sleeps;
use crate::task_cpu::TaskCpus;
use schedlab_base::Meta;
use schedlab_track::{MAX_CPUS, observers, row};
use std::collections::BTreeSet;

/// What the statistics are made of.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) measures: Measures,
    pub(crate) queues: RunQueues,
    pub(crate) memory: MemoryTimes,
    pub(crate) names: Names,
    pub(crate) affinities: Affinities,
    pub(crate) interrupts: Interrupts,
    pub(crate) sleeps: Sleeps,
    /// Kept only if it is asked for.
    pub(crate) task_cpus: Option<TaskCpus>,
}

observers!(Kept: measures, queues, memory, names, affinities, interrupts, sleeps, task_cpus);

impl Kept {
    pub(crate) fn new(places: &Nodes) -> Self {
        let several = if places.numbers.len() > 1 { places.of.clone() } else { Vec::new() };
        Self {
            measures: Measures::default(),
            queues: RunQueues::new(several.clone()),
            memory: MemoryTimes::new(several),
            names: Names::default(),
            affinities: Affinities::default(),
            interrupts: Interrupts::default(),
            sleeps: Sleeps::default(),
            task_cpus: None,
        }
    }
}

/// Which CPU is on which node.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// The numbers of the nodes.
    pub(crate) numbers: Vec<u32>,
    /// By CPU the index of its node among them.
    pub(crate) of: Vec<u32>,
}

impl Nodes {
    pub(crate) fn new(meta: &Meta) -> Self {
        let places = || meta.cpus.iter().filter(|place| place.cpu < MAX_CPUS);
        let numbers: Vec<u32> = places().map(|place| place.node).collect::<BTreeSet<_>>().into_iter().collect();
        let mut of = Vec::new();
        for place in places() {
            *row(&mut of, place.cpu) = numbers.binary_search(&place.node).unwrap_or(0) as u32;
        }
        Self { numbers, of }
    }
}
