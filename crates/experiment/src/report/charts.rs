//! The charts of a report: those that the file asks for, and those of every experiment.

use super::page::Page;
use super::{heat, runs};
use crate::compare::Results;
use crate::expr::Expr;
use crate::figures::Run;
use crate::file::ChartFile;
use crate::outcome::Judged;
use crate::points::Point;
use crate::run::RunResult;
use crate::side_by_side::Comparison;
use schedlab_chart::{Bar, Line, LineChart, Mark, bars, lines, number};
use schedlab_measure::Heat;

/// Fewer wake-ups than these make no histogram worth looking at.
const FEW_WAKEUPS: u64 = 10;

/// The file's own charts: ours over what was published.
pub fn charts(page: &mut Page, judged: &Judged) {
    let experiment = &judged.experiment;
    let results = Results::new(experiment, &judged.runs);
    for (file, chart) in experiment.file.charts.iter().zip(&experiment.charts) {
        let along = |expr: &Expr, kernel: Option<usize>| along(&results, judged, file, expr, kernel);
        let scatter = |expr: &Expr, kernel: usize| scatter(&results, judged, file, expr, kernel);
        let asked = |k: &usize| file.kernels.is_empty() || file.kernels.contains(&experiment.file.kernels[*k].name);
        let mut drawn: Vec<Line> = (0..experiment.file.kernels.len())
            .filter(asked)
            .map(|k| Line {
                label: experiment.kernel_label(k).to_owned(),
                mark: Mark::Ours,
                points: along(&chart.y, Some(k)),
                scatter: scatter(&chart.y, k),
            })
            .collect();
        drawn.extend(chart.published.iter().map(|(label, expr)| Line {
            label: label.clone(),
            mark: Mark::Published,
            points: along(expr, Some(0)),
            scatter: Vec::new(),
        }));
        drawn.retain(|line| !line.points.is_empty());
        page.figure(
            &file.title,
            &lines(&LineChart {
                title: file.title.clone(),
                x: file.x_label.clone().unwrap_or_else(|| file.x.clone()),
                y: file.y_label.clone().unwrap_or_else(|| file.y.clone()),
                log: file.log,
                lines: drawn,
            }),
        );
    }
}

/// The expression's values along the chart's parameter, the others as the shown point has them.
fn along(results: &Results, judged: &Judged, chart: &ChartFile, expr: &Expr, kernel: Option<usize>) -> Vec<(f64, f64)> {
    let at = |(x, point): (f64, Point)| Some((x, results.number(expr, kernel, &point)?));
    let mut points: Vec<(f64, f64)> = places(judged, chart).filter_map(at).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The values of each seed, where there are several.
fn scatter(results: &Results, judged: &Judged, chart: &ChartFile, expr: &Expr, kernel: usize) -> Vec<(f64, f64)> {
    if judged.experiment.file.seeds.len() < 2 {
        return Vec::new();
    }
    let at = |(x, point)| results.numbers(expr, Some(kernel), &point).into_iter().map(move |y| (x, y));
    places(judged, chart).flat_map(at).collect()
}

/// The places along a chart's parameter, and their points.
fn places<'a>(judged: &'a Judged, chart: &'a ChartFile) -> impl Iterator<Item = (f64, Point)> + 'a {
    let shown = &judged.experiment.points[judged.experiment.shown_point()];
    judged.experiment.file.sweep[&chart.x].iter().filter_map(|value| {
        let mut point: Point = shown.clone();
        point.0.insert(chart.x.clone(), value.clone());
        Some((value.number()?, point))
    })
}

/// CPUs by time: the kernels of a heat map one below the other, on one scale.
pub fn heatmaps(page: &mut Page, judged: &Judged) {
    let experiment = &judged.experiment;
    for (index, file) in experiment.file.heatmaps.iter().enumerate() {
        let of = |r: &RunResult| r.heats.iter().find(|(i, _)| *i == index).map(|(_, heat)| (r.kernel, heat.clone()));
        let drawn: Vec<(usize, Heat)> = judged.runs.iter().filter_map(of).collect();
        if drawn.is_empty() {
            continue;
        }
        let scale = heat::scale(drawn.iter().map(|(_, drawn)| drawn));
        page.heading(&file.title);
        for (kernel, heat) in &drawn {
            let title = experiment.kernel_label(*kernel);
            match heat::missing(heat) {
                Some(what) => page.paragraph(&format!("{title}: {what}.")),
                None => page.figure("", &heat::picture(heat, title, "", scale).inline()),
            }
        }
    }
}

/// Every metric at the shown point, compared between the kernels.
pub fn metrics(page: &mut Page, judged: &Judged) {
    let comparisons = judged.comparisons();
    let Some(first) = comparisons.first() else { return };
    page.heading(&if first.at.is_empty() { "Metrics".to_owned() } else { format!("Metrics at {}", first.at) });
    if first.values.len() == 1 {
        let cells = |c: &Comparison| {
            let (_, value, seeds) = &c.values[0];
            [c.label.clone(), c.unit.clone(), value.map_or_else(|| "no value".to_owned(), number), range(seeds)]
        };
        page.table(&comparisons.iter().map(cells).collect::<Vec<_>>());
        return;
    }
    let bar = |(label, value, seeds): &(String, Option<f64>, Vec<f64>)| Bar {
        label: label.clone(),
        value: *value,
        scatter: seeds.clone(),
    };
    let drawings: Vec<String> =
        comparisons.iter().map(|c| bars(&c.label, &c.unit, &c.values.iter().map(bar).collect::<Vec<_>>())).collect();
    page.grid(&drawings);
    if judged.experiment.file.seeds.len() > 1 {
        page.paragraph("A bar is the mean over the seeds, a point one seed.");
    }
}

/// Between which values the seeds lie; empty for one seed.
fn range(seeds: &[f64]) -> String {
    if seeds.len() < 2 {
        return String::new();
    }
    let (low, high) = seeds.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (x.min(l), x.max(h)));
    format!("{} to {} over {} seeds", number(low), number(high), seeds.len())
}

/// What went on in the runs of the shown point.
pub fn details(page: &mut Page, judged: &Judged) {
    let shown: Vec<&Run> = judged.runs.iter().filter_map(|r| r.detail.as_deref()).collect();
    let label = judged.experiment.points[judged.experiment.shown_point()].label();
    let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
    let seeds = &judged.experiment.file.seeds;
    let at = if seeds.len() > 1 { format!("{at}, seed {}", seeds[0]) } else { at };
    let what = if shown.len() == 1 { "The run" } else { "The kernels side by side" };
    page.heading(&format!("{what}{at}"));
    runs::figures(page, &shown);
    if shown.iter().any(|r| r.series.latency.iter().sum::<u64>() >= FEW_WAKEUPS) {
        page.heading(&format!("From wake-up to running{at}"));
        runs::latencies(page, &shown);
    }
    page.heading(&format!("Which task had each CPU{at}"));
    runs::shares(page, &shown);
}
