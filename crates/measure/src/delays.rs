//! Delays: the longest waits with what ran meanwhile, and sums by culprit and by victim.
//!
//! # What a wait is
//! As in the statistics: from the instant at which a task becomes runnable (woken, new, or off its CPU while it is
//! runnable) to the one at which it gets a CPU. A move to another queue does not end it.
//!
//! # Culprits
//! At each instant of a wait, the task that has the CPU on whose queue the waiting task is then. That CPU may also be
//! idle (it is about to switch), or what it runs is unknown. So the parts add up to the wait. In the sums each culprit
//! is charged with its time once for each task that waits for its CPU.
//!
//! # Cost
//! What ran is written down once, in a log of each CPU (`ran`), so that an event costs the same however many
//! tasks wait. Memory grows with tasks and CPUs, and with the number of waits that are kept.

mod allowed;
mod chain;
mod found;
mod parts;
mod ran;
mod report;
mod sums;
mod watch;

pub use report::{ChainCount, Culprit, CulpritSum, DelayReport, Queue, Share, TaskRef, Total, VictimSum, Wait};
pub use watch::After;

use crate::names::Names;
use schedlab_base::{AffinityRecord, Event, Ignored, Meta, NameRecord, Nanos, Sink};
use schedlab_track::{Kept, Part, View, observers};
use watch::Watch;

/// So many of the longest waits are kept unless another number is given.
pub const WORST: usize = 20;

/// Delays in the making: feed it a trace, then [`Delays::finish`].
#[derive(Debug)]
pub struct Delays {
    view: View<Watching>,
}

#[derive(Debug)]
struct Watching {
    watch: Watch,
    names: Names,
}

observers!(Watching: watch, names);

impl Delays {
    /// Delays in this part of a trace with this metadata, or in the whole; the `worst` longest waits are kept. Of the
    /// part's tasks the waits count; culprits are all tasks.
    #[must_use]
    pub fn new(meta: &Meta, part: Option<Part>, worst: usize) -> Self {
        let chosen = part.as_ref().and_then(|part| part.tasks.clone());
        let whole = part.as_ref().is_none_or(|part| part.from == 0);
        let watch = Watch::new(worst, chosen, whole);
        let watching = Watching { watch, names: Names::default() };
        Self { view: View::new(meta, part, Kept::Story, watching) }
    }

    /// Ends it: at `end`, or else at the end of the metadata's span, but never before the last event.
    #[must_use]
    pub fn finish(self, end: Option<Nanos>) -> DelayReport {
        let viewed = self.view.finish(end);
        let Watching { watch, names } = &viewed.observer;
        report::report(&viewed.tracker, viewed.bounds, viewed.events, watch, names)
    }
}

impl Sink for Delays {
    fn events(&mut self, batch: &[Event]) {
        self.view.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.view.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.view.affinity(record);
    }

    fn lasts(&mut self, until: Nanos) {
        self.view.lasts(until);
    }

    fn ignores(&self) -> Ignored {
        self.view.ignored()
    }
}
