//! How well simulations of a model repeat the recording that it was made from.
//!
//! Tasks are matched by their thread ids, with which the names of the model's tasks end (`rustc-4711`). Figures of the
//! simulations are means over their seeds. An error is relative to what was recorded.

use crate::Report;
use crate::compared::{Compared, LEAST_WAIT};
use schedlab_base::{Coverage, Tid};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Tasks with less than this part of one CPU's time are not judged one by one.
const LEAST_SHARE: f64 = 0.01;

/// Tasks with this part of all waiting are compared one by one, however little they ran: it is their waits that matter.
const LEAST_PART_OF_WAITING: f64 = 0.01;

/// A task in the recording and in the simulations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedTask {
    /// Its name.
    pub name: String,
    /// Its thread id in the recording.
    pub tid: Tid,
    /// As recorded.
    pub recorded: Compared,
    /// As simulated.
    #[serde(flatten)]
    pub simulated: Simulated,
}

/// Figures of several simulations, which differ by their seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Simulated {
    /// Their means.
    #[serde(rename = "simulated")]
    pub mean: Compared,
    /// The least of each figure.
    #[serde(rename = "simulated_least")]
    pub least: Compared,
    /// The greatest of each figure.
    #[serde(rename = "simulated_most")]
    pub most: Compared,
}

/// A recording and simulations of its model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// How many simulations there were.
    pub seeds: usize,
    /// All modelled tasks together, as recorded.
    pub recorded: Compared,
    /// As simulated.
    #[serde(flatten)]
    pub simulated: Simulated,
    /// The modelled tasks that used over 1% of a CPU or waited for over 1% of all waiting, those first that ran and
    /// waited longest.
    pub tasks: Vec<ComparedTask>,
    /// The errors that say how far to trust the model.
    pub errors: Errors,
}

/// Relative errors: 0.1 is 10% too much, -0.1 is 10% too little. None where nothing was recorded to compare with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Errors {
    /// Of the time that all tasks waited.
    pub wait: Option<f64>,
    /// The median size of the error of one task's wait, over the tasks that used over 1% of a CPU.
    pub task_wait_median: Option<f64>,
    /// The size that nine of ten such tasks do not exceed.
    pub task_wait_p90: Option<f64>,
    /// Of the number of slices.
    pub slices: Option<f64>,
    /// Of the median latency.
    pub latency_p50: Option<f64>,
    /// Of its 99th percentile.
    pub latency_p99: Option<f64>,
    /// Spearman's rank correlation of the waits of these tasks.
    pub rank: Option<f64>,
}

impl Validation {
    /// Compares a recording, which covers the whole machine or no more than this, with simulations of its model, of
    /// which there is at least one. `keys` are the names of the model's tasks.
    #[must_use]
    pub fn of<'a>(
        (recorded, covers): (&Report, Option<Coverage>),
        simulated: impl ExactSizeIterator<Item = &'a Report>,
        keys: &BTreeSet<&str>,
    ) -> Self {
        let seeds = simulated.len();
        let mut ours: BTreeMap<Tid, Vec<Compared>> = BTreeMap::new();
        let mut whole = Vec::with_capacity(seeds);
        for (seed, report) in simulated.enumerate() {
            for task in &report.tasks {
                let Some(tid) = recorded_tid(&task.name, keys) else { continue };
                let own = &mut ours.entry(tid).or_insert_with(|| vec![Compared::default(); seeds])[seed];
                *own = own.map2(Compared::of(&task.sums), |sum, one| sum + one);
            }
            whole.push(Compared::of(&report.total.sums));
        }
        // A thread id may have had several lives.
        let mut lives: BTreeMap<Tid, (String, Compared)> = BTreeMap::new();
        for task in recorded.tasks.iter().filter(|task| ours.contains_key(&task.tid)) {
            let life = lives.entry(task.tid).or_insert_with(|| (task.name.to_string(), Compared::default()));
            life.1 = life.1.map2(Compared::of(&task.sums).told_by(covers), |sum, one| sum + one);
        }
        let sum = |of: &mut dyn Iterator<Item = Compared>| of.fold(Compared::default(), |a, b| a.map2(b, |a, b| a + b));
        let all = sum(&mut lives.values().map(|(_, own)| *own));
        let all = all.with_latencies(&Compared::of(&recorded.total.sums));
        let sum_of = |seed: usize| sum(&mut ours.values().map(|own| own[seed])).with_latencies(&whole[seed]);
        let simulated = Simulated::of((0..seeds).map(sum_of));
        let is_busy = |own: &Compared| own.run_us >= recorded.total.span_us * LEAST_SHARE;
        let waits = |own: &Compared| own.wait_us > 0.0 && own.wait_us >= all.wait_us * LEAST_PART_OF_WAITING;
        let compared = lives.into_iter().filter(|(_, (_, own))| is_busy(own) || waits(own));
        let mut tasks: Vec<ComparedTask> = compared
            .map(|(tid, (name, recorded))| {
                let simulated = Simulated::of(ours[&tid].iter().copied());
                ComparedTask { name, tid, recorded, simulated }
            })
            .collect();
        let long = |task: &ComparedTask| task.recorded.run_us + task.recorded.wait_us;
        tasks.sort_by(|a, b| long(b).total_cmp(&long(a)).then(a.tid.cmp(&b.tid)));
        let busy: Vec<&ComparedTask> = tasks.iter().filter(|task| is_busy(&task.recorded)).collect();
        let errors = Errors::of(&all, &simulated.mean, &busy);
        Self { seeds, recorded: all, simulated, tasks, errors }
    }
}

impl Simulated {
    /// Of one set of figures for each simulation.
    fn of(runs: impl ExactSizeIterator<Item = Compared>) -> Self {
        let share = 1.0 / runs.len() as f64;
        let with = |all: Option<Self>, one: Compared| {
            let scaled = one.map2(one, |value, _| value * share);
            let Some(all) = all else { return Some(Self { mean: scaled, least: one, most: one }) };
            Some(Self {
                mean: all.mean.map2(scaled, |sum, one| sum + one),
                least: all.least.map2(one, f64::min),
                most: all.most.map2(one, f64::max),
            })
        };
        runs.fold(None, with).unwrap_or_default()
    }
}

impl ComparedTask {
    /// The error of its wait.
    #[must_use]
    pub fn wait_error(&self) -> f64 {
        let (was, is) = (self.recorded.wait_us, self.simulated.mean.wait_us);
        (is - was) / was.max(self.recorded.run_us * LEAST_WAIT)
    }
}

impl Errors {
    fn of(recorded: &Compared, simulated: &Compared, tasks: &[&ComparedTask]) -> Self {
        let error = |was: f64, is: f64| (was > 0.0).then(|| (is - was) / was);
        let mut sizes: Vec<f64> = tasks.iter().map(|task| task.wait_error().abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let at = |part: f64| Some(*sizes.get((part * sizes.len() as f64).ceil().max(1.0) as usize - 1)?);
        Self {
            wait: error(recorded.wait_us, simulated.wait_us),
            task_wait_median: at(0.5),
            task_wait_p90: at(0.9),
            slices: error(recorded.slices, simulated.slices),
            latency_p50: error(recorded.latency_p50_us, simulated.latency_p50_us),
            latency_p99: error(recorded.latency_p99_us, simulated.latency_p99_us),
            rank: spearman(
                &tasks.iter().map(|task| task.recorded.wait_us).collect::<Vec<_>>(),
                &tasks.iter().map(|task| task.simulated.mean.wait_us).collect::<Vec<_>>(),
            ),
        }
    }
}

/// The thread id of the modelled task that a simulated one stands for. The simulated name is a key, or a key and the
/// number of the task among those forked from it (`rustc-4711-0`). A key like `rustc-4711.2` is of a further life of
/// 4711.
#[must_use]
pub fn recorded_tid(name: &str, keys: &BTreeSet<&str>) -> Option<Tid> {
    let key = if keys.contains(name) { name } else { name.rsplit_once('-')?.0 };
    keys.get(key)?.rsplit_once('-')?.1.split('.').next()?.parse().ok()
}

/// Spearman's rank correlation; none for fewer than three values, or where all are equal.
fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < 3 {
        return None;
    }
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let sum = |of: &mut dyn Iterator<Item = (f64, f64)>| of.map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let both = sum(&mut a.iter().copied().zip(b.iter().copied()));
    let alone = |of: &[f64]| sum(&mut of.iter().map(|x| (*x, *x)));
    let scale = (alone(&a) * alone(&b)).sqrt();
    (scale > 0.0).then(|| both / scale)
}

/// The rank of each value, from 0 on; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let same = values.iter().filter(|other| *other == value).count() as f64;
        below + (same - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskStats;

    fn report(tasks: &[(&str, Tid, f64, f64)]) -> Report {
        let mut report = Report::default();
        report.total.span_us = 1_000_000.0;
        for (name, tid, run_us, wait_us) in tasks {
            let mut task = TaskStats { name: (*name).into(), tid: *tid, ..TaskStats::default() };
            (task.sums.run.run_us, task.sums.wait.wait_us) = (*run_us, *wait_us);
            report.tasks.push(task);
        }
        report
    }

    #[test]
    fn tasks_are_matched_by_their_thread_ids() {
        let recorded = report(&[
            ("make", 10, 500_000.0, 100_000.0),
            ("cc", 11, 300_000.0, 200_000.0),
            ("cc", 11, 100_000.0, 0.0),
            ("sh", 12, 50_000.0, 0.0),
            ("tiny", 13, 5_000.0, 9_000.0),
            ("unmodelled", 14, 900_000.0, 900_000.0),
        ]);
        let simulated = |make: f64| {
            report(&[
                ("make-10", 1, 500_000.0, make),
                ("cc-11", 2, 300_000.0, 150_000.0),
                ("cc-11.2-0", 3, 100_000.0, 30_000.0),
                ("sh-12", 4, 50_000.0, 50.0),
                ("tiny-13", 5, 5_000.0, 9_000.0),
            ])
        };
        let keys = BTreeSet::from(["make-10", "cc-11", "cc-11.2", "sh-12", "tiny-13"]);
        let found = Validation::of((&recorded, None), [simulated(100_000.0), simulated(140_000.0)].iter(), &keys);
        let names: Vec<_> = found.tasks.iter().map(|task| (task.name.as_str(), task.tid)).collect();
        // The tiny one hardly ran, but waited for 3% of all waiting.
        assert_eq!(names, [("make", 10), ("cc", 11), ("sh", 12), ("tiny", 13)]);
        assert_eq!((found.recorded.wait_us, found.simulated.mean.wait_us), (309_000.0, 309_050.0));
        assert_eq!((found.simulated.least.wait_us, found.simulated.most.wait_us), (289_050.0, 329_050.0));
        let make = &found.tasks[0].simulated;
        assert_eq!([make.least.wait_us, make.mean.wait_us, make.most.wait_us], [100_000.0, 120_000.0, 140_000.0]);
        let errors: Vec<f64> = found.tasks.iter().map(|task| (task.wait_error() * 1e6).round() / 1e6).collect();
        // Of the shell, which never waited, 50 us against 1% of its run time.
        assert_eq!(errors, [0.2, -0.1, 0.1, 0.0]);
        // They are of the busy tasks.
        assert_eq!((found.errors.task_wait_median, found.errors.rank), (Some(0.1), Some(1.0)));
        assert!((found.errors.task_wait_p90.unwrap() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn ranks_are_spearmans() {
        assert_eq!(spearman(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[30.0, 20.0, 10.0]), Some(-1.0));
        let tied = spearman(&[1.0, 2.0, 2.0, 4.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((tied - 0.948_683).abs() < 1e-6, "{tied}");
    }
}
