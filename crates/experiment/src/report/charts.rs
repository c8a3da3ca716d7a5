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
use crate::scalar::Scalar;
use schedlab_chart::{Bar, Line, LineChart, Mark, bars, lines};
use schedlab_measure::Heat;

/// Fewer wake-ups than these make no histogram worth looking at.
const FEW_WAKEUPS: u64 = 10;

/// The file's own charts: ours over what was published.
pub fn charts(page: &mut Page, judged: &Judged) {
    let experiment = &judged.experiment;
    let results = Results::new(experiment, &judged.runs);
    for (file, chart) in experiment.file.charts.iter().zip(&experiment.charts) {
        let along = |expr: &Expr, kernel: Option<usize>| along(&results, judged, file, expr, kernel);
        let asked = |k: &usize| file.kernels.is_empty() || file.kernels.contains(&experiment.file.kernels[*k].name);
        let mut drawn: Vec<Line> = (0..experiment.file.kernels.len())
            .filter(asked)
            .map(|k| Line {
                label: experiment.kernel_label(k).to_owned(),
                mark: Mark::Ours,
                points: along(&chart.y, Some(k)),
            })
            .collect();
        drawn.extend(chart.published.iter().map(|(label, expr)| Line {
            label: label.clone(),
            mark: Mark::Published,
            points: along(expr, Some(0)),
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
    let shown = &judged.experiment.points[judged.experiment.shown_point()];
    let values = &judged.experiment.file.sweep[&chart.x];
    let at = |value: &Scalar| {
        let mut point: Point = shown.clone();
        point.0.insert(chart.x.clone(), value.clone());
        Some((value.number()?, results.number(expr, kernel, &point)?))
    };
    let mut points: Vec<(f64, f64)> = values.iter().filter_map(at).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// CPUs by time: the kernels of a heat map one below the other, on one scale.
pub fn heatmaps(page: &mut Page, judged: &Judged) {
    let experiment = &judged.experiment;
    for (index, file) in experiment.file.heatmaps.iter().enumerate() {
        let of = |r: &RunResult| r.heats.iter().find(|(i, _)| *i == index).map(|(_, heat)| (r.kernel, heat.clone()));
        let drawn: Vec<(usize, Heat)> = judged.runs.iter().filter_map(of).collect();
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
    let drawings: Vec<String> = comparisons
        .iter()
        .map(|c| {
            let rows: Vec<Bar> =
                c.values.iter().map(|(label, value)| Bar { label: label.clone(), value: *value }).collect();
            bars(&c.label, &c.unit, &rows)
        })
        .collect();
    page.grid(&drawings);
}

/// What went on in the runs of the shown point.
pub fn details(page: &mut Page, judged: &Judged) {
    let shown: Vec<&Run> = judged.runs.iter().filter_map(|r| r.detail.as_deref()).collect();
    let label = judged.experiment.points[judged.experiment.shown_point()].label();
    let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
    page.heading(&format!("The kernels side by side{at}"));
    runs::figures(page, &shown);
    if shown.iter().any(|r| r.series.latency.iter().sum::<u64>() >= FEW_WAKEUPS) {
        page.heading(&format!("From wake-up to running{at}"));
        runs::latencies(page, &shown);
    }
    page.heading(&format!("Which task had each CPU{at}"));
    runs::shares(page, &shown);
}
