//! The sink that feeds the measures.

use crate::kept::{Kept, Nodes};
use crate::{Report, summing};
use schedlab_base::{AffinityRecord, Event, Meta, NameRecord, Nanos, Sink};
use schedlab_track::{Kept as Told, Observer, Part, Replay, Selected};

/// Statistics in the making: feed it a trace, then [`Stats::finish`].
///
/// Its memory grows with the number of tasks and CPUs, not of events. Another observer may hear along: then there is
/// one replay of the events for both.
#[derive(Debug)]
pub struct Stats<More = ()> {
    replay: Fed<More>,
    places: Nodes,
    teams: bool,
}

/// The whole trace, or a part of it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
enum Fed<More> {
    Whole(Replay<(Kept, More)>),
    Part(Replay<Selected<(Kept, More)>>),
}

impl Stats {
    /// Statistics for a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self::with(meta, ())
    }

    /// Statistics for a part of a trace with this metadata.
    #[must_use]
    pub fn of_part(meta: &Meta, part: Part) -> Self {
        let places = Nodes::new(meta);
        let selected = Selected::new(part, Told::Figures, (Kept::new(&places), ()));
        Self { replay: Fed::Part(Replay::new(meta, selected)), places, teams: false }
    }

    /// Sums the tasks up by process and by name too.
    #[must_use]
    pub fn with_teams(self) -> Self {
        Self { teams: true, ..self }
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
        let replay = Fed::Whole(Replay::new(meta, (Kept::new(&places), more)));
        Self { replay, places, teams: false }
    }

    /// As [`Stats::finish`]: the statistics, and the other observer.
    #[must_use]
    pub fn finish_both(self, end: Option<Nanos>) -> (Report, More) {
        let Self { replay, places, teams } = self;
        match replay {
            Fed::Whole(mut replay) => {
                replay.finish(end);
                let Replay { tracker, observer: (kept, more) } = replay;
                let looked_at = summing::LookedAt { bounds: tracker.bounds(), events: tracker.events, teams };
                (summing::report(&tracker, &kept, &places, looked_at), more)
            }
            Fed::Part(mut replay) => {
                replay.finish(end);
                let Replay { tracker, observer } = replay;
                let looked_at = summing::LookedAt { bounds: observer.bounds(), events: observer.events, teams };
                let (kept, more) = observer.inner;
                (summing::report(&tracker, &kept, &places, looked_at), more)
            }
        }
    }
}

impl<More: Observer> Sink for Stats<More> {
    fn events(&mut self, batch: &[Event]) {
        match &mut self.replay {
            Fed::Whole(replay) => replay.events(batch),
            Fed::Part(replay) => replay.events(batch),
        }
    }

    fn name(&mut self, record: &NameRecord) {
        match &mut self.replay {
            Fed::Whole(replay) => replay.name(record),
            Fed::Part(replay) => replay.name(record),
        }
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        match &mut self.replay {
            Fed::Whole(replay) => replay.affinity(record),
            Fed::Part(replay) => replay.affinity(record),
        }
    }
}
