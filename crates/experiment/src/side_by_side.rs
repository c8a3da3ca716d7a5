//! Every metric at the point that is shown, kernel beside kernel.

use crate::experiment::Experiment;
use crate::file::MetricFile;
use crate::run::RunResult;

/// A metric, with its value under each kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The metric's name in the experiment's file.
    pub metric: String,
    /// What it is.
    pub label: String,
    /// Its unit; empty where it has none.
    pub unit: String,
    /// The parameters' values; empty without a sweep.
    pub at: String,
    /// Each kernel's label, the mean over its seeds (`None` where it is not defined), and the value of each seed.
    pub values: Vec<(String, Option<f64>, Vec<f64>)>,
}

/// Compares the kernels by every metric.
#[must_use]
pub fn comparisons(experiment: &Experiment, runs: &[RunResult]) -> Vec<Comparison> {
    let point = experiment.shown_point();
    let compared = |(name, metric): (&String, &MetricFile)| Comparison {
        metric: name.clone(),
        label: metric.label.clone().unwrap_or_else(|| name.clone()),
        unit: metric.unit.clone().unwrap_or_default(),
        at: experiment.points[point].label(),
        values: (0..experiment.file.kernels.len())
            .map(|kernel| {
                let seeds = seeds(runs, kernel, point, name);
                let mean = (!seeds.is_empty()).then(|| seeds.iter().sum::<f64>() / seeds.len() as f64);
                (experiment.kernel_label(kernel).to_owned(), mean, seeds)
            })
            .collect(),
    };
    experiment.file.metrics.iter().map(compared).collect()
}

/// The value of each seed that has one.
fn seeds(runs: &[RunResult], kernel: usize, point: usize, metric: &str) -> Vec<f64> {
    let of = |r: &&RunResult| r.kernel == kernel && r.point == point;
    runs.iter().filter(of).filter_map(|r| r.metrics.get(metric)?.clone().ok()).collect()
}
