//! A sink that combines a tracker and an observer.

use crate::{Observer, Tracker};
use schedlab_base::{AffinityRecord, Event, Ignored, Meta, NameRecord, Nanos, Sink, TaskRecord};

/// Replays a trace to an observer. Feed it the trace, then call [`Replay::finish`].
#[derive(Debug)]
pub struct Replay<O> {
    /// The state of the CPUs and tasks.
    pub tracker: Tracker,
    /// The observer that receives the facts.
    pub observer: O,
}

impl<O: Observer> Replay<O> {
    /// Creates a replay of a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta, observer: O) -> Self {
        Self { tracker: Tracker::new(meta), observer }
    }

    /// What is ignored if the observer looks at neither priorities nor wakers.
    pub fn ignored(&self) -> Ignored {
        self.tracker.ignores()
    }

    /// Ends the trace: at `end`, otherwise at the end of the metadata's span, but never before the last event.
    pub fn finish(&mut self, end: Option<Nanos>) {
        self.tracker.finish(end, &mut self.observer);
    }
}

impl<O: Observer> Sink for Replay<O> {
    #[inline]
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            self.tracker.event(event, &mut self.observer);
        }
    }

    fn name(&mut self, record: &NameRecord) {
        self.tracker.name(record, &mut self.observer);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.tracker.affinity(record, &mut self.observer);
    }

    fn task(&mut self, record: &TaskRecord) {
        self.tracker.describe(record, &mut self.observer);
    }

    fn lasts(&mut self, until: Nanos) {
        self.tracker.lasts(until);
    }
}
