//! The charts that a report has of every experiment, and its heat maps.

use super::page::Page;
use super::{heat, runs};
use crate::figures::{MainFigures, Run};
use crate::outcome::Judged;
use crate::run::RunResult;
use crate::side_by_side::Comparison;
use schedlab_chart::{Bar, bars, number};
use schedlab_measure::Heat;

/// Fewer wake-ups than these make no histogram worth looking at.
const FEW_WAKEUPS: u64 = 10;

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
    if judged.experiment.file.seeds.len() > 1 && !judged.is_unseeded() {
        page.paragraph("A bar is the mean over the seeds, a point one seed.");
    }
}

/// Between which values the seeds lie; empty if they do not differ.
pub(super) fn range(seeds: &[f64]) -> String {
    let (low, high) = seeds.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (x.min(l), x.max(h)));
    if seeds.len() < 2 || low >= high {
        return String::new();
    }
    format!("{} to {} over {} seeds", number(low), number(high), seeds.len())
}

/// What went on in the runs of the shown point.
pub fn details(page: &mut Page, judged: &Judged) {
    let shown: Vec<&Run> = judged.runs.iter().filter_map(|r| r.detail.as_deref()).collect();
    let label = judged.experiment.points[judged.experiment.shown_point()].label();
    let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
    let what = if shown.len() == 1 { "The run" } else { "The kernels side by side" };
    page.heading(&format!("{what}{at}"));
    runs::figures(page, &main_figures(judged));
    let seeds = &judged.experiment.file.seeds;
    let at = if seeds.len() > 1 && !judged.is_unseeded() { format!("{at}, seed {}", seeds[0]) } else { at };
    if shown.iter().any(|r| r.series.latency.iter().sum::<u64>() >= FEW_WAKEUPS) {
        page.heading(&format!("From wake-up to running{at}"));
        runs::latencies(page, &shown);
    }
    page.heading(&format!("Which task had each CPU{at}"));
    runs::shares(page, &shown);
}

/// The main figures of each kernel's runs at the shown point.
fn main_figures(judged: &Judged) -> Vec<(&str, Vec<&MainFigures>)> {
    let of = |kernel: usize| {
        let runs = judged.runs.iter().filter(|r| r.kernel == kernel).filter_map(|r| r.main.as_ref());
        (judged.experiment.kernel_label(kernel), runs.collect())
    };
    (0..judged.experiment.file.kernels.len()).map(of).collect()
}
