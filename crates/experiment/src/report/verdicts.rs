//! The verdicts of a report: in words, as links, as a table.

use super::looks::look;
use super::page::Page;
use crate::compare::Beside;
use crate::file::Kind;
use crate::outcome::{Judged, Outcome, Row};
use crate::text;
use crate::verdict::Verdict;
use schedlab_base::counted;
use schedlab_chart::{escape, number};
use std::fmt::Write;

/// `180 runs; 8 of 9 expectations hold, 1 fails`.
pub fn summary(outcome: &Outcome) -> String {
    let rows = || outcome.experiments.iter().flat_map(|e| &e.rows);
    let count = |v: Verdict| rows().filter(|r| r.verdict == v).count();
    let runs = outcome.runs_made();
    let judged = rows().count() - count(Verdict::Calibration);
    let mut text = format!(
        "{}; {} of {} hold",
        counted(runs as u64, "run"),
        count(Verdict::Pass),
        counted(judged as u64, "expectation")
    );
    for (verdict, one, several) in [
        (Verdict::Fail, "fails", "fail"),
        (Verdict::Undecided, "is undecided", "are undecided"),
        (Verdict::KnownDifference, "is a known difference", "are known differences"),
        (Verdict::Skipped, "was skipped", "were skipped"),
        (Verdict::Calibration, "beside them is a calibration", "beside them are calibrations"),
    ] {
        match count(verdict) {
            0 => {}
            1 => _ = write!(text, ", 1 {one}"),
            n => _ = write!(text, ", {n} {several}"),
        }
    }
    if outcome.real.is_some() {
        let _ = write!(text, ". {}", crate::text::agreement(outcome));
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
            whole(judged)
        );
    }
    page.push(&(html + "</table>\n"));
}

/// How many of its expectations are known differences, in words; empty if none is.
fn known_differences(judged: &Judged) -> String {
    match judged.rows.iter().filter(|r| r.verdict == Verdict::KnownDifference).count() {
        0 => String::new(),
        1 => "1 known difference".to_owned(),
        n => format!("{n} known differences"),
    }
}

/// The verdict on an experiment, with its known differences.
pub fn whole(judged: &Judged) -> String {
    let known = known_differences(judged);
    if known.is_empty() || judged.verdict == Verdict::KnownDifference {
        return chip(judged.verdict, "");
    }
    let (class, sign) = class_and_sign(Verdict::KnownDifference);
    format!("{} <span class=\"chip {class}\">{sign} {known}</span>", chip(judged.verdict, ""))
}

/// The verdict on an experiment as a sign alone, for the navigation.
pub fn sign(judged: &Judged) -> String {
    let sign = |verdict: Verdict, title: &str| {
        let (class, sign) = class_and_sign(verdict);
        format!("<span class=\"{class}\" title=\"{}\">{sign}</span>", escape(title))
    };
    let known = known_differences(judged);
    let verdict = sign(judged.verdict, &judged.verdict.to_string());
    if known.is_empty() || judged.verdict == Verdict::KnownDifference {
        return verdict;
    }
    verdict + &sign(Verdict::KnownDifference, &known)
}

/// A verdict as a small label.
pub fn chip(verdict: Verdict, suffix: &str) -> String {
    let (class, sign) = class_and_sign(verdict);
    format!("<span class=\"chip {class}\">{sign} {verdict}{suffix}</span>")
}

fn class_and_sign(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("pass", "\u{2713}"),
        Verdict::Fail => ("fail", "\u{2717}"),
        Verdict::Undecided => ("undecided", "?"),
        Verdict::KnownDifference => ("known", "\u{2260}"),
        Verdict::Calibration => ("skipped", "\u{25cb}"),
        Verdict::Skipped => ("skipped", "\u{2013}"),
    }
}

/// Every expectation with its figures and its verdict.
pub fn expectations(page: &mut Page, rows: &[Row]) {
    if rows.is_empty() {
        page.paragraph("This experiment states no expectation.");
        return;
    }
    let published = rows.iter().any(|r| r.published.is_some());
    let column = if published { "<th class=\"n\">published</th>" } else { "" };
    let real = rows.iter().any(|row| row.simulated.is_some());
    let mut html = format!(
        "<div class=\"scroll\"><table><tr><th>figure</th>{column}{}<th>expected</th><th>verdict</th></tr>",
        heads(real)
    );
    for row in rows {
        let small =
            |text: &str| if text.is_empty() { String::new() } else { format!("<small>{}</small>", escape(text)) };
        let measured = row.measured.map_or_else(|| "\u{2013}".to_owned(), number);
        let kind = if row.kind == Some(Kind::Shape) { " (shape)" } else { "" };
        let _ = write!(
            html,
            "<tr><td>{}{}</td>{}<td class=\"n\">{}{}</td>{}<td><code>{}</code></td><td>{}{}</td></tr>",
            escape(row.name()),
            small(row.claim.as_deref().unwrap_or("")),
            if published {
                format!("<td class=\"n\">{}</td>", escape(&text::published(row.published.as_ref())))
            } else {
                String::new()
            },
            escape(&measured),
            small(&text::place(row)) + &small(&over_seeds(row)),
            simulation(real, row.simulated.as_ref()),
            escape(&row.expected),
            chip(row.verdict, kind),
            why(row).iter().map(|text| small(text)).collect::<String>() + &look(row.look.as_ref())
        );
    }
    page.push(&(html + "</table></div>\n"));
}

/// The headings of what is ours: a figure, or a real kernel's with that of its simulation.
fn heads(real: bool) -> &'static str {
    match real {
        true => "<th class=\"n\">real</th><th class=\"n\">simulated</th>",
        false => "<th class=\"n\">ours</th>",
    }
}

/// The cell of the simulation, where there is that column: its figure, how far it is off, and its verdict.
fn simulation(real: bool, beside: Option<&Beside>) -> String {
    let Some(beside) = beside else {
        return if real { "<td class=\"n\">\u{2013}</td>".to_owned() } else { String::new() };
    };
    let figure = beside.measured.map_or_else(|| "\u{2013}".to_owned(), number);
    let off = beside.off.map(|_| format!("<small>off by {}</small>", text::off(Some(beside)))).unwrap_or_default();
    format!("<td class=\"n\">{}{off}<small>{}</small></td>", escape(&figure), beside.verdict)
}

/// Between which values the seeds lie.
fn over_seeds(row: &Row) -> String {
    text::range(row.range).map_or_else(String::new, |range| format!("seeds: {range}"))
}

/// Every published figure beside ours, for the expectations that have several.
pub fn cases(page: &mut Page, rows: &[Row]) {
    let real = rows.iter().any(|row| row.simulated.is_some());
    for row in rows.iter().filter(|row| row.has_published_cases()) {
        let mut html = format!(
            "<details><summary>{}: every figure</summary><table class=\"narrow\"><tr><th>case</th>\
             <th class=\"n\">published</th>{}<th class=\"n\">over the seeds</th>\
             <th>required</th><th>verdict</th></tr>",
            escape(row.name()),
            heads(real)
        );
        for case in &row.cases {
            let _ = write!(
                html,
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>{}<td class=\"n\">{}</td><td>{}</td>\
                 <td>{}</td></tr>",
                escape(&case.place()),
                escape(&text::published(case.published.as_ref())),
                escape(&case.measured.map_or_else(|| "\u{2013}".to_owned(), number)),
                simulation(real, case.simulated.as_ref()),
                escape(&text::range(case.range).unwrap_or_default()),
                escape(&case.required.map_or_else(String::new, |required| required.to_string())),
                chip(case.verdict, "")
            );
        }
        page.push(&(html + "</table></details>\n"));
    }
}

/// What was found where it fails or is undecided; the reason of the rest.
fn why(row: &Row) -> Vec<String> {
    match row.verdict {
        Verdict::Fail | Verdict::Undecided => row.findings(),
        _ => row.reason.iter().cloned().collect(),
    }
}
