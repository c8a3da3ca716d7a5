//! One experiment's part of a report.

use super::page::Page;
use super::{heat, runs};
use crate::compare::Results;
use crate::expr::Expr;
use crate::figures::Run;
use crate::file::{ChartFile, Kind, TableFile};
use crate::outcome::{Judged, Outcome, Row};
use crate::points::Point;
use crate::run::RunResult;
use crate::scalar::Scalar;
use crate::text;
use crate::verdict::Verdict;
use schedlab_chart::{Bar, Line, LineChart, Mark, bars, escape, lines, number};
use schedlab_measure::Heat;
use std::fmt::Write;

/// Fewer wake-ups than these make no histogram worth looking at.
const FEW_WAKEUPS: u64 = 10;

/// `2 experiments, 180 runs: 8 expectations hold, 1 fails`.
pub fn summary(outcome: &Outcome) -> String {
    let count = |v: Verdict| outcome.experiments.iter().flat_map(|e| &e.rows).filter(|r| r.verdict == v).count();
    let runs: usize = outcome.experiments.iter().map(|e| e.runs.len()).sum();
    let mut text = format!("{runs} runs; of the expectations {} hold", count(Verdict::Pass));
    for (verdict, word) in [
        (Verdict::Fail, "fail"),
        (Verdict::Undecided, "undecided"),
        (Verdict::KnownDifference, "known to differ"),
        (Verdict::Skipped, "skipped"),
    ] {
        if count(verdict) > 0 {
            let _ = write!(text, ", {} {word}", count(verdict));
        }
    }
    text
}

/// The experiments with their verdicts, as links.
pub fn contents(page: &mut Page, outcome: &Outcome) {
    let mut html = String::from("<table><tr><th>experiment</th><th>what it asks</th><th>verdict</th></tr>");
    for judged in &outcome.experiments {
        let file = &judged.experiment.file;
        let _ = write!(
            html,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td></tr>",
            escape(&file.id),
            escape(&file.title),
            chip(judged.verdict, "")
        );
    }
    page.push(&(html + "</table>\n"));
}

fn chip(verdict: Verdict, suffix: &str) -> String {
    let (class, sign) = match verdict {
        Verdict::Pass => ("pass", "\u{2713}"),
        Verdict::Fail => ("fail", "\u{2717}"),
        Verdict::Undecided => ("undecided", "?"),
        Verdict::KnownDifference => ("known", "\u{2260}"),
        Verdict::Skipped => ("skipped", "\u{2013}"),
    };
    format!("<span class=\"chip {class}\">{sign} {verdict}{suffix}</span>")
}

/// Writes the experiment; `headed`: with its own heading, for a page of several.
pub fn write(page: &mut Page, judged: &Judged, headed: bool) {
    let file = &judged.experiment.file;
    page.push("<article>\n");
    if headed {
        let (id, title) = (escape(&file.id), escape(&file.title));
        page.push(&format!("<h2 id=\"{id}\">{id}: {title}</h2>\n<p>{}</p>\n", chip(judged.verdict, "")));
    }
    if !headed {
        page.push(&format!("<p>{}</p>\n", chip(judged.verdict, "")));
    }
    source(page, judged);
    let published = judged.rows.iter().any(|r| r.published.is_some());
    page.heading(if published { "Published and ours" } else { "Expected and found" });
    expectations(page, &judged.rows);
    charts(page, judged);
    heatmaps(page, judged);
    metrics(page, judged);
    details(page, judged);
    if !file.tables.is_empty() {
        page.heading("Tables");
        file.tables.iter().for_each(|t| table(page, t));
    }
    let notes: Vec<String> =
        file.notes.iter().cloned().chain(judged.remarks().into_iter().map(str::to_owned)).collect();
    if !notes.is_empty() {
        page.heading("Notes");
        page.list(&notes);
    }
    page.push("</article>\n");
}

fn source(page: &mut Page, judged: &Judged) {
    let file = &judged.experiment.file;
    let mut items: Vec<(&str, String)> = Vec::new();
    if let Some(source) = &file.source {
        items.push(("source", format!("{}; {}", source.work, source.place)));
        items.extend(source.setup.iter().map(|s| ("their setup", s.clone())));
        items.extend(source.claim.iter().map(|s| ("their result", s.clone())));
    }
    let kernels: Vec<String> = file
        .kernels
        .iter()
        .enumerate()
        .map(|(i, k)| {
            let label = judged.experiment.kernel_label(i);
            let set: Vec<String> = k.set.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let settings = if set.is_empty() { String::new() } else { format!(" with {}", set.join(", ")) };
            if label == k.kernel { format!("{label}{settings}") } else { format!("{label} ({}{settings})", k.kernel) }
        })
        .collect();
    items.push(("kernels", kernels.join("; ")));
    let seeds: Vec<String> = file.seeds.iter().map(u64::to_string).collect();
    let duration =
        file.duration.as_deref().map_or_else(|| "until all tasks end".to_owned(), |d| format!("of {d} each"));
    items.push(("machine", file.machine.clone()));
    items.push(("runs", format!("{} {duration}, seed {}", judged.runs.len(), seeds.join(", "))));
    let cells: String = items.iter().map(|(name, text)| format!("<dt>{name}</dt><dd>{}</dd>", escape(text))).collect();
    page.push(&format!("<dl>{cells}</dl>\n"));
}

fn expectations(page: &mut Page, rows: &[Row]) {
    if rows.is_empty() {
        page.paragraph("This experiment states no expectation.");
        return;
    }
    let published = rows.iter().any(|r| r.published.is_some());
    let column = if published { "<th class=\"n\">published</th>" } else { "" };
    let mut html = format!(
        "<div class=\"scroll\"><table><tr><th>figure</th>{column}<th class=\"n\">ours</th><th>expected</th>\
         <th>verdict</th></tr>"
    );
    for row in rows {
        let small =
            |text: &str| if text.is_empty() { String::new() } else { format!("<small>{}</small>", escape(text)) };
        let measured = row.measured.map_or_else(|| "\u{2013}".to_owned(), number);
        let kind = if row.kind == Kind::Shape { " (shape)" } else { "" };
        let _ = write!(
            html,
            "<tr><td>{}{}</td>{}<td class=\"n\">{}{}</td><td><code>{}</code></td><td>{}{}</td></tr>",
            escape(&row.figure),
            small(row.claim.as_deref().unwrap_or("")),
            if published { format!("<td class=\"n\">{}</td>", escape(&text::published(row))) } else { String::new() },
            escape(&measured),
            small(&text::place(row)),
            escape(&row.expected),
            chip(row.verdict, kind),
            small(row.reason.as_deref().unwrap_or(""))
        );
    }
    page.push(&(html + "</table></div>\n"));
}

/// The file's own charts: ours over what was published.
fn charts(page: &mut Page, judged: &Judged) {
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

/// CPUs by time: the kernels of a heat map one below the other, on one scale.
fn heatmaps(page: &mut Page, judged: &Judged) {
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

/// Every metric at the shown point, compared between the kernels.
fn metrics(page: &mut Page, judged: &Judged) {
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

fn details(page: &mut Page, judged: &Judged) {
    let shown: Vec<&Run> = judged.runs.iter().filter_map(|r| r.detail.as_deref()).collect();
    let label = judged.experiment.points[judged.experiment.shown_point()].label();
    let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
    page.heading(&format!("The kernels side by side{at}"));
    runs::figures(page, &shown);
    if shown.iter().any(|r| r.series.latency.iter().sum::<u64>() >= FEW_WAKEUPS) {
        page.heading(&format!("From wake-up to running{at}"));
        runs::latencies(page, &shown);
    }
    page.heading(&format!("Who had the CPUs when{at}"));
    runs::shares(page, &shown);
}

fn table(page: &mut Page, table: &TableFile) {
    let title = table.title.as_deref().unwrap_or(&table.name);
    let mut html = format!("<details><summary>{}</summary><table class=\"narrow\"><tr>", escape(title));
    for column in &table.columns {
        let _ = write!(html, "<th class=\"n\">{}</th>", escape(column));
    }
    html.push_str("</tr>");
    for row in &table.rows {
        let cells: String = row.iter().map(|c| format!("<td class=\"n\">{}</td>", escape(&c.to_string()))).collect();
        let _ = write!(html, "<tr>{cells}</tr>");
    }
    page.push(&(html + "</table></details>\n"));
}
