//! Charts with a value for each task: of the runs that the report shows, or of those along a parameter.

use super::Picture;
use crate::expr::{Expr, eval_list};
use crate::figures::Run;
use crate::measures::RunScope;
use schedlab_chart::{ColumnChart, Columns, Layer, Line, LineChart, Mark, Span, columns, lines, stack};

impl<'a> Picture<'a> {
    /// The shown runs of the kernels that are drawn.
    fn runs(&self) -> impl Iterator<Item = &'a Run> {
        let kernels: Vec<usize> = self.kernels().collect();
        let runs = &self.judged.runs;
        runs.iter().filter(move |r| kernels.contains(&r.kernel)).filter_map(|r| r.detail.as_deref())
    }

    /// An expression's value for each task of a run.
    fn of_tasks(&self, run: &Run, expr: &Expr) -> Vec<f64> {
        let experiment = &self.judged.experiment;
        let (point, tables) = (&experiment.points[experiment.shown_point()], &experiment.tables);
        let scope = RunScope { run, point, tables, stands_in: experiment.stands_in() };
        eval_list(expr, &scope)
    }

    /// A group of bars for each task, a bar for each kernel.
    pub(super) fn task_bars(&self) -> String {
        let Some((expr, _)) = &self.chart.tasks else { return String::new() };
        let series: Vec<Columns> = self
            .runs()
            .map(|run| Columns {
                label: run.label.clone(),
                mark: Mark::Ours,
                values: self.of_tasks(run, expr).into_iter().map(Some).collect(),
                ends: Vec::new(),
            })
            .collect();
        let most = series.iter().map(|s| s.values.len()).max().unwrap_or(0);
        let (x, y) = self.axes("task");
        columns(&ColumnChart {
            title: self.file.title.clone(),
            x,
            y,
            log: self.file.log,
            stacked: false,
            groups: (1..=most).map(|n| n.to_string()).collect(),
            series,
        })
    }

    /// A point for each task.
    pub(super) fn task_points(&self) -> String {
        let Some((expr, along)) = &self.chart.tasks else { return String::new() };
        let line = |run: &Run| {
            let y = self.of_tasks(run, expr);
            let x = match along {
                Some(along) => self.of_tasks(run, along),
                None => (1..=y.len()).map(|n| n as f64).collect(),
            };
            let points = x.into_iter().zip(y).collect();
            Line { label: run.label.clone(), mark: Mark::Points, points, scatter: Vec::new(), ends: Vec::new() }
        };
        let (x, y) = self.axes("task");
        let drawn = self.runs().map(line).collect();
        lines(&LineChart { title: self.file.title.clone(), x, y, log: self.file.log, lines: drawn })
    }

    /// One drawing a kernel: a bar for each value of the parameter, the tasks on top of each other.
    pub(super) fn stacked_tasks(&self) -> Vec<String> {
        let places = self.places();
        let drawing = |kernel: usize| {
            let of = |at| self.results.of_tasks(self.index, kernel, at);
            let bars: Vec<&[f64]> = places.iter().map(|(_, at)| of(at)).collect();
            let most = bars.iter().map(|values| values.len()).max().unwrap_or(0);
            let series = (0..most).map(|task| Columns {
                label: format!("task {}", task + 1),
                mark: Mark::Ours,
                values: bars.iter().map(|values| values.get(task).copied()).collect(),
                ends: Vec::new(),
            });
            self.pile(self.label(kernel), series.collect())
        };
        self.kernels().map(drawing).collect()
    }

    /// The share of each task in each window, in percent of what all of them had.
    pub(super) fn shares(&self) -> Vec<String> {
        let Some((expr, _)) = &self.chart.tasks else { return Vec::new() };
        let patterns = expr.patterns();
        let drawing = |run: &Run| {
            let series = &run.series;
            let wanted = |name: &str| patterns.is_empty() || patterns.iter().any(|p| schedlab_base::fits(p, name));
            let tracks: Vec<_> = series.tasks.iter().filter(|t| t.run > 0 && wanted(&t.name)).collect();
            let windows = tracks.iter().map(|t| t.windows.len()).max().unwrap_or(0);
            let had = |k: usize| tracks.iter().filter_map(|t| t.windows.get(k)).sum::<u64>().max(1) as f64;
            let sums: Vec<f64> = (0..windows).map(had).collect();
            let layer = |track: &&schedlab_measure::series::Track| Layer {
                label: track.name.clone(),
                values: track.windows.iter().zip(&sums).map(|(ns, sum)| 100.0 * *ns as f64 / sum).collect(),
            };
            let layers: Vec<Layer> = tracks.iter().map(layer).collect();
            let span = Span { window_s: series.width as f64 * 1e-9, end_s: series.end as f64 * 1e-9 };
            stack(&run.label, span, ("%", 100.0), &layers)
        };
        self.runs().map(drawing).collect()
    }
}
