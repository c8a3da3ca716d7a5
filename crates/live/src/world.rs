//! What all tasks of a run share.

use crate::groups::Groups;
use crate::memory::{self, Block};
use crate::region::{Region, Slot};
use crate::sys;
use crate::work::Calibration;
use schedlab_base::{Error, Nanos, Result};
use schedlab_sim::program::{Load, Setting, TaskSpec};
use std::collections::HashMap;
use std::io::{PipeWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is to be run, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tasks, their programs and resources.
    pub load: Load,
    /// The capacity of each CPU; the fastest has 1024.
    pub capacities: Vec<u32>,
    /// The CPUs that the tasks begin on, if not all that this process may use.
    pub cpus: Option<Vec<u32>>,
    /// How long; until every task has ended where `None`.
    pub duration: Option<Nanos>,
    /// For every random draw.
    pub seed: u64,
    /// The file that `iorun` writes to.
    pub io_device: Option<PathBuf>,
    /// Whether holders of mutexes inherit the priority of those that wait.
    pub priority_inheritance: bool,
}

/// How long after its end a run ends itself, if its supervisor cannot.
const GRACE: Nanos = 300_000_000;

/// The state of a run: made before the first process of it is forked, so that all have it at the same address.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) region: Region,
    pub(crate) groups: Groups,
    pub(crate) calibration: Calibration,
    /// The capacities, if they differ.
    pub(crate) capacities: Vec<u32>,
    /// The memories that tasks share.
    shared: Vec<Option<Block>>,
    /// For each task, which of the parts of its memory it touches first.
    parts: Vec<u32>,
    /// Wakes the supervisor.
    pub(crate) notify: PipeWriter,
    /// The tasks of this process that have not ended.
    pub(crate) living: AtomicU32,
    /// How many must get ready before the run can start.
    pub(crate) expected: u32,
}

impl World {
    pub(crate) fn new(options: Options, groups: Groups, notify: PipeWriter, expected: u32) -> Result<Self> {
        let load = &options.load;
        if let Some(kib) = schedlab_capture::available_kib() {
            memory::fits(load, kib << 10)?;
        }
        let shared = load.memories.iter().map(|spec| {
            spec.shared
                .then(|| Block::new(spec.bytes, true).and_then(|block| block.place(spec).map(|()| block)))
                .transpose()
        });
        let mut counts: HashMap<u32, u32> = HashMap::new();
        let mut part = |setting: &Setting| {
            let count = setting.memory.map(|memory| counts.entry(memory).or_default());
            count.map_or(0, |count| std::mem::replace(count, *count + 1))
        };
        let alike = options.capacities.iter().all(|capacity| *capacity == 1024);
        Ok(Self {
            region: Region::new(load)?,
            groups,
            calibration: Calibration::measure(),
            capacities: if alike { Vec::new() } else { options.capacities.clone() },
            shared: shared.collect::<Result<_>>()?,
            parts: load.tasks.iter().map(|task| part(&task.initial)).collect(),
            notify,
            living: AtomicU32::new(0),
            expected,
            options,
        })
    }

    pub(crate) fn load(&self) -> &Load {
        &self.options.load
    }

    pub(crate) fn slot(&self, at: usize) -> &Slot {
        &self.region.slots()[at]
    }

    /// What the task of this slot is made from.
    pub(crate) fn spec(&self, at: usize) -> &TaskSpec {
        let load = self.load();
        load.tasks.get(at).unwrap_or_else(|| &load.templates[self.slot(at).template.load(Ordering::Relaxed) as usize])
    }

    /// The name of the task of this slot.
    pub(crate) fn name(&self, at: usize) -> String {
        match self.load().tasks.get(at) {
            Some(task) => task.name.clone(),
            None => format!("{}-{}", self.spec(at).name, self.slot(at).number.load(Ordering::Relaxed)),
        }
    }

    /// A memory for the task of this slot, with the pages touched that it is the first to touch.
    pub(crate) fn memory(&self, number: u32, slot: usize) -> Result<Block> {
        let spec = &self.load().memories[number as usize];
        let block = match self.shared[number as usize] {
            Some(block) => block,
            None => Block::new(spec.bytes, false).and_then(|block| block.place(spec).map(|()| block))?,
        };
        if let Some(part) = self.parts.get(slot).filter(|part| **part < spec.parts.max(1)) {
            block.first_touch(*part, spec.parts.max(1));
        }
        Ok(block)
    }

    /// How many slots are in use.
    pub(crate) fn used(&self) -> usize {
        let forked = self.region.control().forked.load(Ordering::Acquire) as usize;
        (self.load().tasks.len() + forked).min(self.region.slots().len())
    }

    /// When a task must have ended, whatever happens.
    pub(crate) fn over(&self) -> Nanos {
        self.region.span().1.saturating_add(GRACE)
    }

    /// One more is ready.
    pub(crate) fn ready(&self) {
        if self.region.control().ready.fetch_add(1, Ordering::AcqRel) + 1 == self.expected {
            self.wake_supervisor();
        }
    }

    /// Ends the run with an error.
    pub(crate) fn fail(&self, error: &Error) -> ! {
        self.region.fail(error);
        self.wake_supervisor();
        sys::pause_forever()
    }

    fn wake_supervisor(&self) {
        // If the supervisor has gone, this process is about to be killed.
        let _ = (&self.notify).write_all(b"!");
    }

    /// A task of this process has ended. The last one ends the process.
    pub(crate) fn leave(&self) {
        if self.living.fetch_sub(1, Ordering::AcqRel) == 1 {
            sys::exit(0);
        }
    }
}
