//! A replay of a whole trace, or of a part of it: what [`crate::Replay`] is to a trace, for verbs that select.

use crate::{Kept, Observer, Part, Replay, Selected, Tracker};
use schedlab_base::{AffinityRecord, Event, Ignored, Meta, NameRecord, Nanos, Sink};

/// A replay to an observer: feed it the trace, then [`View::finish`]. Without a part, nothing stands in between.
#[derive(Debug)]
pub struct View<O>(Which<O>);

#[derive(Debug)]
enum Which<O> {
    Whole(Replay<O>),
    Part(Replay<Selected<O>>),
}

/// What is left when the trace has ended.
#[derive(Debug)]
pub struct Viewed<O> {
    /// The state of the CPUs and tasks.
    pub tracker: Tracker,
    /// Who was told.
    pub observer: O,
    /// From when to when, on the trace's clock.
    pub bounds: (Nanos, Nanos),
    /// The events in that time.
    pub events: u64,
}

impl<O: Observer> View<O> {
    /// A replay of this part of a trace with this metadata.
    pub fn new(meta: &Meta, part: Option<Part>, kept: Kept, observer: O) -> Self {
        Self(match part {
            None => Which::Whole(Replay::new(meta, observer)),
            Some(part) => Which::Part(Replay::new(meta, Selected::new(part, kept, observer))),
        })
    }

    /// What is ignored if the observer looks at neither priorities nor wakers.
    pub fn ignored(&self) -> Ignored {
        match &self.0 {
            Which::Whole(replay) => replay.ignored(),
            Which::Part(replay) => replay.ignored(),
        }
    }

    /// The state of the CPUs and tasks, and the observer.
    pub fn parts(&mut self) -> (&mut Tracker, &mut O) {
        match &mut self.0 {
            Which::Whole(replay) => (&mut replay.tracker, &mut replay.observer),
            Which::Part(replay) => (&mut replay.tracker, &mut replay.observer.inner),
        }
    }

    /// Ends the trace: at `end`, or else at the end of the metadata's span, but never before the last event.
    pub fn finish(self, end: Option<Nanos>) -> Viewed<O> {
        match self.0 {
            Which::Whole(mut replay) => {
                replay.finish(end);
                let Replay { tracker, observer } = replay;
                Viewed { bounds: tracker.bounds(), events: tracker.events, tracker, observer }
            }
            Which::Part(mut replay) => {
                replay.finish(end);
                let Replay { tracker, observer } = replay;
                Viewed { bounds: observer.bounds(), events: observer.events, tracker, observer: observer.inner }
            }
        }
    }
}

impl<O: Observer> Sink for View<O> {
    fn events(&mut self, batch: &[Event]) {
        match &mut self.0 {
            Which::Whole(replay) => replay.events(batch),
            Which::Part(replay) => replay.events(batch),
        }
    }

    fn name(&mut self, record: &NameRecord) {
        match &mut self.0 {
            Which::Whole(replay) => replay.name(record),
            Which::Part(replay) => replay.name(record),
        }
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        match &mut self.0 {
            Which::Whole(replay) => replay.affinity(record),
            Which::Part(replay) => replay.affinity(record),
        }
    }

    fn lasts(&mut self, until: Nanos) {
        match &mut self.0 {
            Which::Whole(replay) => replay.lasts(until),
            Which::Part(replay) => replay.lasts(until),
        }
    }
}
