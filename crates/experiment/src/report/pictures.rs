//! The charts that an experiment's file asks for: ours over what was published.

mod tasks;

use super::page::Page;
use crate::compare::Results;
use crate::experiment::Chart;
use crate::expr::Expr;
use crate::file::{ChartFile, ChartKind};
use crate::outcome::Judged;
use crate::points::Point;
use crate::scalar::Scalar;
use schedlab_chart::{ColumnChart, Columns, Line, LineChart, Mark, columns, lines, pie};

/// A figure or a part, and what was published of it.
type Group = (Expr, Option<Expr>);

/// A chart with what it is drawn from.
struct Picture<'a> {
    judged: &'a Judged,
    results: Results<'a>,
    /// The chart's index in the file.
    index: usize,
    file: &'a ChartFile,
    chart: &'a Chart,
}

/// Draws the file's charts.
pub fn charts(page: &mut Page, judged: &Judged) {
    let experiment = &judged.experiment;
    for (index, (file, chart)) in experiment.file.charts.iter().zip(&experiment.charts).enumerate() {
        let picture = Picture { judged, results: Results::new(experiment, &judged.runs), index, file, chart };
        match file.kind {
            ChartKind::Lines => page.figure(&file.title, &picture.lines()),
            ChartKind::Bars if chart.tasks.is_some() => page.figure(&file.title, &picture.task_bars()),
            ChartKind::Bars => page.figure(&file.title, &picture.bars()),
            ChartKind::Points => page.figure(&file.title, &picture.task_points()),
            ChartKind::Stacked if chart.tasks.is_some() => picture.several(page, &picture.stacked_tasks()),
            ChartKind::Stacked => picture.several(page, &picture.stacked()),
            ChartKind::Pie => picture.pies(page),
            ChartKind::Shares => picture.several(page, &picture.shares()),
        }
    }
}

impl Picture<'_> {
    fn kernels(&self) -> impl Iterator<Item = usize> {
        let all = &self.judged.experiment.file.kernels;
        let asked = |k: &usize| self.file.kernels.is_empty() || self.file.kernels.contains(&all[*k].name);
        (0..all.len()).filter(asked)
    }

    fn label(&self, kernel: usize) -> &str {
        self.judged.experiment.kernel_label(kernel)
    }

    /// The values along the chart's parameter, each with its point; one without a value where there is none.
    fn places(&self) -> Vec<(Option<&Scalar>, Point)> {
        self.judged.experiment.along(self.file)
    }

    /// The point of a chart that has no parameter.
    fn place(&self) -> Point {
        let experiment = &self.judged.experiment;
        let first = self.places().into_iter().next().map(|(_, at)| at);
        first.unwrap_or_else(|| experiment.points[experiment.shown_point()].clone())
    }

    fn axes(&self, x: &str) -> (String, String) {
        let label = |given: &Option<String>, otherwise: &str| given.clone().unwrap_or_else(|| otherwise.to_owned());
        (label(&self.file.x_label, x), label(&self.file.y_label, self.file.y.as_deref().unwrap_or_default()))
    }

    fn lines(&self) -> String {
        let mut drawn: Vec<Line> = self.kernels().filter_map(|kernel| self.line(kernel)).collect();
        drawn.extend(self.chart.published.iter().map(|(label, expr)| Line {
            label: label.clone(),
            mark: Mark::Published,
            points: self.along(expr, Some(0)),
            scatter: Vec::new(),
            ends: Vec::new(),
        }));
        drawn.retain(|line| !line.points.is_empty());
        let (x, y) = self.axes(self.file.x.as_deref().unwrap_or_default());
        lines(&LineChart { title: self.file.title.clone(), x, y, log: self.file.log, lines: drawn })
    }

    fn line(&self, kernel: usize) -> Option<Line> {
        let expr = self.chart.y.as_ref()?;
        let points = self.along(expr, Some(kernel));
        let places = || self.places().into_iter().filter_map(|(value, at)| Some((value?.number()?, at)));
        let scatter: Vec<(f64, f64)> = places()
            .flat_map(|(x, at)| self.results.numbers(expr, Some(kernel), &at).into_iter().map(move |y| (x, y)))
            .collect();
        let ends = match &self.chart.error {
            Some(error) => {
                let half = self.along(error, Some(kernel));
                let of =
                    |(x, y): &(f64, f64)| half.iter().find(|(at, _)| at == x).map(|(_, half)| (*x, y - half, y + half));
                points.iter().filter_map(of).collect()
            }
            None => places().filter_map(|(x, at)| self.ends(expr, kernel, &at).map(|(l, h)| (x, l, h))).collect(),
        };
        // A point for each seed says nothing where the seeds do not differ.
        let differ = !self.judged.is_unseeded();
        let scatter = if differ { scatter } else { Vec::new() };
        Some(Line { label: self.label(kernel).to_owned(), mark: Mark::Ours, points, scatter, ends })
    }

    /// The expression's values along the chart's parameter, the others as the shown point has them.
    fn along(&self, expr: &Expr, kernel: Option<usize>) -> Vec<(f64, f64)> {
        let one =
            |(value, at): (Option<&Scalar>, Point)| Some((value?.number()?, self.results.number(expr, kernel, &at)?));
        let mut points: Vec<(f64, f64)> = self.places().into_iter().filter_map(one).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    }

    /// The least and the greatest over the seeds, where they differ.
    fn ends(&self, expr: &Expr, kernel: usize, at: &Point) -> Option<(f64, f64)> {
        let values = self.results.numbers(expr, Some(kernel), at);
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (x.min(l), x.max(h)));
        (low < high).then_some((low, high))
    }

    fn bars(&self) -> String {
        let (groups, published) = (self.groups(), |label: &str, values| Columns {
            label: label.to_owned(),
            mark: Mark::Published,
            values,
            ends: Vec::new(),
        });
        let mut series: Vec<Columns> = Vec::new();
        for kernel in self.kernels() {
            let of = |(_, expr, at): &(String, &Expr, Point)| {
                (self.results.number(expr, Some(kernel), at), self.ends(expr, kernel, at))
            };
            let (values, ends) = groups.iter().map(of).unzip();
            series.push(Columns { label: self.label(kernel).to_owned(), mark: Mark::Ours, values, ends });
        }
        // Where each figure names its own kernel, the kernels' columns are all the same.
        if series.windows(2).all(|pair| pair[0].values == pair[1].values) && series.len() > 1 {
            series.truncate(1);
            series[0].label = "ours".to_owned();
        }
        for (label, expr) in &self.chart.published {
            let of = |(_, _, at): &(String, &Expr, Point)| self.results.number(expr, Some(0), at);
            series.push(published(label, groups.iter().map(of).collect()));
        }
        if self.chart.groups.iter().any(|(_, published)| published.is_some()) {
            let at = self.place();
            let of = |(_, expr): &Group| self.results.number(expr.as_ref()?, Some(0), &at);
            series.push(published("published", self.chart.groups.iter().map(of).collect()));
        }
        let (x, y) = self.axes(self.file.x.as_deref().unwrap_or_default());
        let groups = groups.into_iter().map(|(label, ..)| label).collect();
        columns(&ColumnChart {
            title: self.file.title.clone(),
            x,
            y,
            log: self.file.log,
            stacked: false,
            groups,
            series,
        })
    }

    /// The groups of bars: the values of the parameter, or the figures that the file lists.
    fn groups(&self) -> Vec<(String, &Expr, Point)> {
        match &self.chart.y {
            Some(y) => self.places().into_iter().map(|(value, at)| (words(value), y, at)).collect(),
            None => {
                let (at, labels) = (self.place(), self.file.groups.iter().map(|group| group.label.clone()));
                labels.zip(&self.chart.groups).map(|(label, (expr, _))| (label, expr, at.clone())).collect()
            }
        }
    }

    /// One drawing a kernel, and one of what was published.
    fn stacked(&self) -> Vec<String> {
        let places = self.places();
        let published = self.chart.groups.iter().any(|(_, published)| published.is_some());
        let kernels = self.kernels().map(Some).chain(published.then_some(None));
        let drawing = |kernel: Option<usize>| {
            let series = self.file.groups.iter().zip(&self.chart.groups).map(|(group, (ours, theirs))| {
                let number = |(_, at): &(Option<&Scalar>, Point)| match kernel {
                    Some(kernel) => self.results.number(ours, Some(kernel), at),
                    None => self.results.number(theirs.as_ref()?, Some(0), at),
                };
                let values = places.iter().map(number).collect();
                Columns { label: group.label.clone(), mark: Mark::Ours, values, ends: Vec::new() }
            });
            self.pile(kernel.map_or("published", |kernel| self.label(kernel)), series.collect())
        };
        kernels.map(drawing).collect()
    }

    /// One drawing of `stacked`.
    fn pile(&self, label: &str, series: Vec<Columns>) -> String {
        let (x, y) = self.axes(self.file.x.as_deref().unwrap_or_default());
        columns(&ColumnChart {
            title: format!("{}, {label}", self.file.title),
            x: format!("{x} ({label})"),
            y,
            log: false,
            stacked: true,
            groups: self.places().iter().map(|(value, _)| words(*value)).collect(),
            series,
        })
    }

    fn pies(&self, page: &mut Page) {
        let mut drawings = Vec::new();
        for (value, at) in self.places() {
            let place = match (&self.file.x, value) {
                (Some(x), Some(value)) => format!(", {} {value}", self.file.x_label.as_deref().unwrap_or(x)),
                _ => String::new(),
            };
            let mut draw = |label: &str, number: &dyn Fn(&Group) -> Option<f64>| {
                let labels = self.file.groups.iter().map(|group| group.label.clone());
                let parts: Option<Vec<(String, f64)>> =
                    labels.zip(&self.chart.groups).map(|(label, group)| Some((label, number(group)?))).collect();
                drawings.extend(parts.map(|parts| pie(&format!("{label}{place}"), &parts)));
            };
            draw("published", &|(_, theirs)| self.results.number(theirs.as_ref()?, Some(0), &at));
            for kernel in self.kernels() {
                draw(self.label(kernel), &|(ours, _)| self.results.number(ours, Some(kernel), &at));
            }
        }
        page.heading(&self.file.title);
        page.grid(&drawings);
    }

    /// Several drawings below one heading.
    fn several(&self, page: &mut Page, drawings: &[String]) {
        page.heading(&self.file.title);
        drawings.iter().for_each(|drawing| page.figure("", drawing));
    }
}

/// A value along a parameter, as it is written below the axis.
fn words(value: Option<&Scalar>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}
