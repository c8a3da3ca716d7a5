//! The parts of a report that draw runs side by side: figures compared, shares over time, latencies.

use super::chart::{Bar, Layer, Span, bars, heat, histograms, stack};
use super::page::Page;
use crate::run::Run;
use crate::series::Track;

/// Up to so many tasks are stacked; more are a heat map.
const MOST_LAYERS: usize = 8;

/// Bars for the main figures of each run.
pub fn figures(page: &mut Page, runs: &[&Run]) {
    let chart = |title: &str, unit: &str, get: &dyn Fn(&Run) -> Option<f64>| {
        let rows: Vec<Bar> = runs.iter().map(|r| Bar { label: r.label.clone(), value: get(r) }).collect();
        bars(title, unit, &rows)
    };
    let latency = |get: fn(&schedlab_measure::Latency) -> f64| {
        move |r: &Run| (r.report.total.sums.latency_us.count > 0).then(|| get(&r.report.total.sums.latency_us))
    };
    let woken = runs.iter().any(|r| r.report.total.sums.latency_us.count > 0);
    let mut drawings = Vec::new();
    if woken {
        drawings.push(chart("Wake-up latency, mean", "us", &latency(|l| l.mean)));
        drawings.push(chart("Wake-up latency, 99th percentile", "us", &latency(|l| l.p99)));
    }
    drawings.extend([
        chart("Switches while runnable (involuntary)", "", &|r| Some(r.report.total.sums.involuntary as f64)),
        chart("Moves between CPUs", "", &|r| Some(r.report.total.sums.migrations as f64)),
        chart("CPU time, all tasks", "s", &|r| Some(r.report.total.sums.run_us / 1e6)),
        chart("Time waited for a CPU, all tasks", "s", &|r| Some(r.report.total.sums.wait_us / 1e6)),
    ]);
    page.grid(&drawings);
}

/// Who had the CPUs when, one drawing a run.
pub fn shares(page: &mut Page, runs: &[&Run]) {
    for run in runs {
        let series = &run.series;
        let width = series.width;
        // The last window may be a part of one.
        let length = |k: usize| width.min(series.end.saturating_sub(k as u64 * width)).max(1) as f64;
        let layer = |track: &Track| Layer {
            label: track.name.clone(),
            values: track.windows.iter().enumerate().map(|(k, ns)| *ns as f64 / length(k)).collect(),
        };
        let span = Span { window_s: width as f64 * 1e-9, end_s: series.end as f64 * 1e-9 };
        let ran: Vec<&Track> = series.tasks.iter().filter(|t| t.run > 0).collect();
        let layers: Vec<Layer> = ran.iter().map(|t| layer(t)).collect();
        let drawing = if layers.len() <= MOST_LAYERS {
            stack(&run.label, span, series.cpus.len().max(1) as f64, &layers)
        } else {
            heat(&run.label, span, &layers)
        };
        page.figure("", &drawing);
    }
}

/// How long tasks waited from wake-up to running, one row a run; nothing where nobody was woken.
pub fn latencies(page: &mut Page, runs: &[&Run]) {
    let rows: Vec<_> = runs.iter().map(|r| (r.label.as_str(), &*r.series.latency)).collect();
    if rows.iter().any(|(_, h)| h.iter().any(|n| *n > 0)) {
        page.figure("", &histograms("wake-up latency by kernel", &rows));
    }
}
