//! The figures of one run, simulated or real: of the workload's own tasks.

use super::start::{Starting, Starts};
use crate::backend::Outcome;
use schedlab_base::{Meta, Sink};
use schedlab_measure::compared::Compared;
use schedlab_measure::{Bounds, Check};
use schedlab_measure::{Stats, TaskStats};
use std::collections::BTreeMap;

/// What a run showed.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// The CPU time of each task in us, by the task of the workload whose instance it is, the largest first: instances
    /// of one task stand for each other.
    pub(super) run: BTreeMap<String, Vec<f64>>,
    /// All of its tasks together.
    pub(super) all: Compared,
    /// The part of the CPUs' time that they were idle while a task waited that was allowed there.
    pub(super) wasted: f64,
    /// The length of the run in us.
    pub(super) span_us: f64,
    /// How its tasks began.
    pub(super) starts: Starts,
}

/// Measures a run as it goes on.
pub(super) struct Measuring {
    stats: Stats,
    check: Check,
    starting: Starting,
}

impl Measuring {
    /// Of a run with this metadata.
    pub(super) fn new(meta: &Meta) -> Self {
        // A run begins at 0, whatever happens first.
        let whole = Meta { span: meta.span.or(Some((0, 0))), ..meta.clone() };
        let check = Check::new(&whole, Bounds::default());
        Self { stats: Stats::new(&whole), check, starting: Starting::default() }
    }

    /// Hands `run` the sink for its events.
    pub(super) fn watch<T>(&mut self, run: impl FnOnce(&mut dyn Sink) -> T) -> T {
        run(&mut (&mut (&mut self.stats, &mut self.check), &mut self.starting))
    }

    /// The figures. `keys` are the tasks of the workload.
    pub(super) fn finish(self, outcome: &Outcome, keys: &[&str]) -> Figures {
        let own = |task: &TaskStats| match &outcome.own {
            Some(own) => own.contains(&task.tid),
            None => key_of(&task.name, keys).is_some(),
        };
        let choose = |tasks: &[TaskStats]| vec![(0..tasks.len()).filter(|at| own(&tasks[*at])).collect()];
        let (report, mut teams) = self.stats.finish_with_teams(Some(outcome.end), &choose);
        let mut run: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for task in report.tasks.iter().filter(|task| own(task)) {
            let Some(key) = key_of(&task.name, keys) else { continue };
            run.entry(key.to_owned()).or_default().push(task.sums.run.run_us);
        }
        run.values_mut().for_each(|of| of.sort_by(|a, b| b.total_cmp(a)));
        let check = self.check.finish(Some(outcome.end));
        let all = teams.pop().map(|team| Compared::of(&team.sums)).unwrap_or_default();
        let starts = self.starting.finish(outcome.own.as_ref());
        Figures { run, all, wasted: check.wasted_share, span_us: report.total.span_us, starts }
    }
}

/// The task of the workload of which the task with this name is an instance.
pub(super) fn key_of<'a>(name: &str, keys: &[&'a str]) -> Option<&'a str> {
    let known = |name: &str| keys.iter().find(|key| **key == name).copied();
    known(name).or_else(|| known(name.rsplit_once('-')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_belong_to_their_task() {
        let keys = ["hog", "nice-0", "middle-3"];
        let of = |name: &str| key_of(name, &keys);
        assert_eq!((of("hog-12"), of("hog"), of("nice-0-1")), (Some("hog"), Some("hog"), Some("nice-0")));
        assert_eq!((of("middle-3"), of("kworker-1"), of("nice-0")), (Some("middle-3"), None, Some("nice-0")));
    }
}
