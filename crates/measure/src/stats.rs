//! The sink that feeds the measures.

use crate::kept::{Kept, Nodes};
use crate::summing::About;
use crate::task_cpu::TaskCpus;
use crate::{Report, summing};
use schedlab_base::{AffinityRecord, Event, Meta, NameRecord, Nanos, Sink};
use schedlab_track::{Observer, Replay};

/// Statistics in the making: feed it a trace, then [`Stats::finish`].
///
/// Its memory grows with the number of tasks and CPUs, not of events. Another observer may hear along: then there is
/// one replay of the events for both.
#[derive(Debug)]
pub struct Stats<More = ()> {
    replay: Replay<(Kept, More)>,
    places: Nodes,
    about: About,
}

impl Stats {
    /// Statistics for a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self::with(meta, ())
    }

    /// Ends the statistics: at `end`, or else at the end of the metadata's span, but never before the last
    /// event. Tasks that run or wait then do so until then.
    #[must_use]
    pub fn finish(self, end: Option<Nanos>) -> Report {
        self.finish_both(end).0
    }
}

impl<More: Observer> Stats<More> {
    /// Statistics for a trace with this metadata, and another observer of it.
    #[must_use]
    pub fn with(meta: &Meta, more: More) -> Self {
        let places = Nodes::new(meta);
        Self { replay: Replay::new(meta, (Kept::new(&places), more)), places, about: About::new(meta) }
    }

    /// Also keeps what each task did on each CPU: [`Report::task_cpus`].
    #[must_use]
    pub fn by_task_cpu(mut self) -> Self {
        self.replay.observer.0.task_cpus = Some(TaskCpus::default());
        self
    }

    /// As [`Stats::finish`]: the statistics, and the other observer.
    #[must_use]
    pub fn finish_both(mut self, end: Option<Nanos>) -> (Report, More) {
        self.replay.finish(end);
        let Replay { tracker, observer: (kept, more) } = self.replay;
        (summing::report(&tracker, &kept, &self.places, self.about), more)
    }
}

impl<More: Observer> Sink for Stats<More> {
    fn events(&mut self, batch: &[Event]) {
        self.replay.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.replay.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.replay.affinity(record);
    }

    fn lasts(&mut self, until: Nanos) {
        self.replay.lasts(until);
    }
}
