//! The sink that feeds the measures.

use crate::kept::{Kept, Nodes};
use crate::summing::About;
use crate::task_cpu::TaskCpus;
use crate::{Report, TaskStats, TeamStats, summing};
use schedlab_base::{AffinityRecord, Event, Ignored, Meta, NameRecord, Nanos, Sink};
use schedlab_track::{Kept as Told, Observer, Part, View, Viewed};

/// Statistics in the making: feed it a trace, then [`Stats::finish`].
///
/// Its memory grows with the number of tasks and CPUs, not of events. Another observer may hear along: then there is
/// one replay of the events for both.
#[derive(Debug)]
pub struct Stats<More = ()> {
    view: View<(Kept, More)>,
    places: Nodes,
    teams: bool,
    about: About,
    ignores: Ignored,
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
        let places = Nodes::new(meta);
        let view = View::new(meta, part, Told::Figures, (Kept::new(&places), ()));
        Self { view, places, teams: false, about: About::new(meta), ignores: Ignored::ALL }
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

    /// As [`Stats::finish`], and sums up teams of tasks: `choose` gives the places of each team's tasks in the report's
    /// list.
    #[must_use]
    pub fn finish_with_teams(
        self,
        end: Option<Nanos>,
        choose: &dyn Fn(&[TaskStats]) -> Vec<Vec<usize>>,
    ) -> (Report, Vec<TeamStats>) {
        let ((report, teams), ()) = self.finish_all(end, choose);
        (report, teams)
    }
}

impl<More: Observer> Stats<More> {
    /// Statistics for a trace with this metadata, and another observer of it.
    #[must_use]
    pub fn with(meta: &Meta, more: More) -> Self {
        let places = Nodes::new(meta);
        let view = View::new(meta, None, Told::Figures, (Kept::new(&places), more));
        Self { view, places, teams: false, about: About::new(meta), ignores: Ignored::default() }
    }

    /// Also keeps what each task did on each CPU: [`Report::task_cpus`].
    #[must_use]
    pub fn by_task_cpu(mut self) -> Self {
        self.view.parts().1.0.task_cpus = Some(TaskCpus::default());
        self
    }

    /// As [`Stats::finish`]: the statistics, and the other observer.
    #[must_use]
    pub fn finish_both(self, end: Option<Nanos>) -> (Report, More) {
        let ((report, _), more) = self.finish_all(end, &|_| Vec::new());
        (report, more)
    }

    fn finish_all(self, end: Option<Nanos>, choose: summing::Choose) -> ((Report, Vec<TeamStats>), More) {
        let Viewed { tracker, observer: (kept, more), bounds, events } = self.view.finish(end);
        let looked_at = summing::LookedAt { bounds, events, teams: self.teams, about: self.about };
        (summing::report(&tracker, &kept, &self.places, looked_at, choose), more)
    }
}

impl<More: Observer> Sink for Stats<More> {
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

    /// The measures look at no priority and no waker; whether the other observer does is not known.
    fn ignores(&self) -> Ignored {
        self.ignores
    }
}
