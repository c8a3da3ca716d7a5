//! The sink that feeds the measures.

use crate::kept::{Kept, Nodes};
use crate::summing::About;
use crate::task_cpu::TaskCpus;
use crate::{Report, Series, TaskStats, TeamStats, summing};
use schedlab_base::{AffinityRecord, Event, Ignored, Meta, NameRecord, Nanos, Sink};
use schedlab_track::{Kept as Told, Observer, Part, Replay, Selected, View, Viewed};

/// Statistics in the making: feed it a trace, then [`Stats::finish`].
///
/// Its memory grows with the number of tasks and CPUs, not of events.
#[derive(Debug)]
pub struct Stats(Measuring<()>);

/// Statistics and figures over time in the making, from one replay of the events. Of delays these statistics have those
/// after wake-ups alone: a task that never sleeps would have one each time that it is preempted.
#[derive(Debug)]
pub struct StatsOverTime(Measuring<Series>);

/// Statistics of parts of a trace in the making, from one replay of the events: each part's are as [`Stats::of_part`]
/// has them.
#[derive(Debug)]
pub struct StatsOfParts {
    replay: Replay<Vec<Selected<Kept>>>,
    places: Nodes,
    about: About,
}

/// What the first two are. It is not public: a generic type would be compiled anew in each crate that uses it.
#[derive(Debug)]
struct Measuring<More> {
    view: View<(Kept, More)>,
    places: Nodes,
    teams: bool,
    about: About,
}

impl Stats {
    /// Statistics for a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self::of_part(meta, None)
    }

    /// Statistics for a part of a trace with this metadata, or for the whole.
    #[must_use]
    pub fn of_part(meta: &Meta, part: Option<Part>) -> Self {
        Self(Measuring::new(meta, part, ()))
    }

    /// Sums the tasks up by process and by name too.
    #[must_use]
    pub fn with_teams(mut self) -> Self {
        self.0.teams = true;
        self
    }

    /// Also keeps what each task did on each CPU: [`Report::task_cpus`].
    #[must_use]
    pub fn by_task_cpu(mut self) -> Self {
        self.0.view.parts().1.0.task_cpus = Some(TaskCpus::default());
        self
    }

    /// Ends the statistics: at `end`, or else at the end of the metadata's span, but never before the last
    /// event. Tasks that run or wait then do so until then.
    #[must_use]
    pub fn finish(self, end: Option<Nanos>) -> Report {
        self.0.finish(end, &|_| Vec::new()).0.0
    }

    /// As [`Stats::finish`], and sums up teams of tasks: `choose` gives the places of each team's tasks in the report's
    /// list.
    #[must_use]
    pub fn finish_with_teams(
        self,
        end: Option<Nanos>,
        choose: &dyn Fn(&[TaskStats]) -> Vec<Vec<usize>>,
    ) -> (Report, Vec<TeamStats>) {
        self.0.finish(end, choose).0
    }
}

impl StatsOverTime {
    /// Statistics for a trace with this metadata, and these figures over time.
    #[must_use]
    pub fn new(meta: &Meta, series: Series) -> Self {
        let mut measuring = Measuring::new(meta, None, series);
        measuring.view.parts().1.0.measures.wakeups_alone = true;
        Self(measuring)
    }

    /// As [`Stats::finish`]: the statistics, and the figures over time.
    #[must_use]
    pub fn finish(self, end: Option<Nanos>) -> (Report, Series) {
        let ((report, _), series) = self.0.finish(end, &|_| Vec::new());
        (report, series)
    }
}

impl StatsOfParts {
    /// Statistics for these parts of a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta, parts: impl IntoIterator<Item = Part>) -> Self {
        let places = Nodes::new(meta);
        let kept = |part| Selected::new(part, Told::Figures, Kept::new(&places));
        let observers = parts.into_iter().map(kept).collect();
        Self { replay: Replay::new(meta, observers), places, about: About::new(meta) }
    }

    /// As [`Stats::finish_with_teams`], for each part.
    #[must_use]
    pub fn finish_with_teams(
        mut self,
        end: Option<Nanos>,
        choose: &dyn Fn(&[TaskStats]) -> Vec<Vec<usize>>,
    ) -> Vec<(Report, Vec<TeamStats>)> {
        self.replay.finish(end);
        let Replay { tracker, observer } = self.replay;
        let of_part = |part: Selected<Kept>| {
            let (bounds, events) = (part.bounds(), part.events);
            let looked_at = summing::LookedAt { bounds, events, teams: false, about: self.about };
            summing::report(&tracker, &part.inner, &self.places, looked_at, choose)
        };
        observer.into_iter().map(of_part).collect()
    }
}

impl<More: Observer> Measuring<More> {
    fn new(meta: &Meta, part: Option<Part>, more: More) -> Self {
        let places = Nodes::new(meta);
        let view = View::new(meta, part, Told::Figures, (Kept::new(&places), more));
        Self { view, places, teams: false, about: About::new(meta) }
    }

    fn finish(self, end: Option<Nanos>, choose: summing::Choose) -> ((Report, Vec<TeamStats>), More) {
        let Viewed { tracker, observer: (kept, more), bounds, events } = self.view.finish(end);
        let looked_at = summing::LookedAt { bounds, events, teams: self.teams, about: self.about };
        (summing::report(&tracker, &kept, &self.places, looked_at, choose), more)
    }
}

/// Makes a sink of a wrapper.
macro_rules! sink {
    ($wrapper:ty: $($replay:tt).+) => {
        impl Sink for $wrapper {
            fn events(&mut self, batch: &[Event]) {
                self.$($replay).+.events(batch);
            }

            fn name(&mut self, record: &NameRecord) {
                self.$($replay).+.name(record);
            }

            fn affinity(&mut self, record: &AffinityRecord) {
                self.$($replay).+.affinity(record);
            }

            fn lasts(&mut self, until: Nanos) {
                self.$($replay).+.lasts(until);
            }

            /// None of the measures looks at a priority or a waker.
            fn ignores(&self) -> Ignored {
                self.$($replay).+.ignored()
            }
        }
    };
}
sink!(Stats: 0.view);
sink!(StatsOverTime: 0.view);
sink!(StatsOfParts: replay);
