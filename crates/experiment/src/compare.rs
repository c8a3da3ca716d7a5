//! Metrics of all runs, as expectations and charts compare them between kernels and points.

mod cases;
mod scope;

pub use cases::{Beside, Case};

use crate::experiment::Experiment;
use crate::expr::{Expr, eval_number};
use crate::points::Point;
use crate::run::RunResult;
use scope::CompareScope;

/// The metrics of all runs of an experiment, found by kernel, point and seed.
pub struct Results<'a> {
    experiment: &'a Experiment,
    runs: &'a [RunResult],
}

impl<'a> Results<'a> {
    /// The results of `experiment`; `runs` as its plan ordered them.
    #[must_use]
    pub fn new(experiment: &'a Experiment, runs: &'a [RunResult]) -> Self {
        Self { experiment, runs }
    }

    fn run(&self, kernel: usize, point: usize, seed: usize) -> &'a RunResult {
        let (points, seeds) = (self.experiment.points.len(), self.experiment.file.seeds.len());
        &self.runs[(kernel * points + point) * seeds + seed]
    }

    /// The values of the tasks in the first seed's run of a kernel at a point, as a chart draws them.
    #[must_use]
    pub fn of_tasks(&self, chart: usize, kernel: usize, point: &Point) -> &'a [f64] {
        let Some(point) = self.experiment.points.iter().position(|p| p == point) else { return &[] };
        let found = self.run(kernel, point, 0).of_tasks.iter().find(|(index, _)| *index == chart);
        found.map_or(&[], |(_, values)| values)
    }

    /// An expression's number for one kernel at one point, for each seed that has one.
    #[must_use]
    pub fn numbers(&self, expr: &Expr, kernel: Option<usize>, point: &Point) -> Vec<f64> {
        let seeds = 0..self.experiment.file.seeds.len();
        seeds.filter_map(|seed| eval_number(expr, &CompareScope { results: self, kernel, point, seed }).ok()).collect()
    }

    /// The mean of [`Self::numbers`].
    #[must_use]
    pub fn number(&self, expr: &Expr, kernel: Option<usize>, point: &Point) -> Option<f64> {
        let values = self.numbers(expr, kernel, point);
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}
