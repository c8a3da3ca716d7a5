//! The table that `run` prints: experiment, figure, published, ours, verdict.

use crate::file::Kind;
use crate::outcome::{Judged, Outcome, Row};
use crate::verdict::Verdict;
use schedlab_chart::number;
use std::fmt::Write;

/// Where there is no value.
const NOTHING: &str = "-";

/// The widest that a figure's cell may be, in characters.
const WIDEST: usize = 46;

/// What was published, as tables print it.
pub(crate) fn published(figure: Option<&serde_json::Value>) -> String {
    match figure {
        None => NOTHING.to_owned(),
        Some(serde_json::Value::Number(x)) => number(x.as_f64().unwrap_or_default()),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Ours, with the kernel and the point that it is of.
fn ours(row: &Row) -> String {
    let Some(measured) = row.measured else { return NOTHING.to_owned() };
    match place(row) {
        place if place.is_empty() => number(measured),
        place => format!("{} ({place})", number(measured)),
    }
}

/// The kernel and the point that our figure is of, and of how many it is the worst.
pub(crate) fn place(row: &Row) -> String {
    let mut place: Vec<String> = row.kernel.iter().cloned().collect();
    if !row.at.is_empty() {
        place.push(row.at.clone());
    }
    if row.cases.len() > 1 {
        place.push(format!("worst of {}", row.cases.len()));
    }
    place.join(", ")
}

/// The verdict, with how firm the claim is.
fn verdict(row: &Row) -> String {
    match (row.kind, row.verdict) {
        (Some(Kind::Shape), Verdict::Pass) => "pass (shape)".to_owned(),
        (_, verdict) => verdict.to_string(),
    }
}

fn clip(text: &str) -> String {
    if text.chars().count() <= WIDEST {
        return text.to_owned();
    }
    text.chars().take(WIDEST - 3).chain("...".chars()).collect()
}

/// The most cases of one expectation that are listed below the table.
const MOST_CASES: usize = 5;

/// Every published figure beside ours, where an expectation has several.
fn cases(judged: &Judged) -> String {
    let mut out = String::new();
    for row in judged.rows.iter().filter(|row| row.has_published_cases()) {
        let mut lines = vec![["case", "published", "ours", "over the seeds", "verdict"].map(str::to_owned).to_vec()];
        lines.extend(row.cases.iter().map(|case| {
            vec![
                case.place(),
                published(case.published.as_ref()),
                case.measured.map_or_else(|| NOTHING.to_owned(), number),
                range(case.range).unwrap_or_else(|| NOTHING.to_owned()),
                case.verdict.to_string(),
            ]
        }));
        let _ = write!(out, "\n{}, {}:\n\n{}", judged.experiment.file.id, row.name(), columns(&lines));
    }
    out
}

/// `2.97 to 3.11`; none if there is no scatter.
pub(crate) fn range(range: Option<[f64; 2]>) -> Option<String> {
    range.filter(|[low, high]| low < high).map(|[low, high]| format!("{} to {}", number(low), number(high)))
}

/// The table, then every published figure beside ours if there is one experiment, then what was found where something
/// does not plainly pass, then a line with the counts. A column that would be empty is left out.
#[must_use]
pub fn table(outcome: &Outcome) -> String {
    let all = || outcome.experiments.iter().flat_map(|e| &e.rows);
    let figure = if all().any(|r| r.figure.is_some()) { "figure" } else { "expectation" };
    let has_published = all().any(|r| r.published.is_some());
    let mut rows = vec![["experiment", figure, "published", "ours", "verdict"].map(str::to_owned).to_vec()];
    for judged in &outcome.experiments {
        let id = &judged.experiment.file.id;
        for row in &judged.rows {
            rows.push(vec![
                id.clone(),
                clip(row.name()),
                clip(&published(row.published.as_ref())),
                ours(row),
                verdict(row),
            ]);
        }
        if judged.rows.is_empty() {
            rows.push(vec![id.clone(), NOTHING.into(), NOTHING.into(), NOTHING.into(), judged.verdict.to_string()]);
        }
    }
    if !has_published {
        rows.iter_mut().for_each(|row| drop(row.remove(2)));
    }
    let mut out = columns(&rows);
    if let [judged] = &outcome.experiments[..] {
        out.push_str(&cases(judged));
    }
    for judged in &outcome.experiments {
        for row in &judged.rows {
            remark(&mut out, &judged.experiment.file.id, row);
        }
    }
    let count = |v: Verdict| outcome.experiments.iter().flat_map(|e| &e.rows).filter(|r| r.verdict == v).count();
    let runs: usize = outcome.experiments.iter().map(|e| e.runs.len()).sum();
    let _ = write!(out, "\n{runs} runs; {} passed, {} failed", count(Verdict::Pass), count(Verdict::Fail));
    for (verdict, word) in [
        (Verdict::Undecided, "undecided"),
        (Verdict::KnownDifference, "known difference"),
        (Verdict::Calibration, "calibration"),
        (Verdict::Skipped, "skipped"),
    ] {
        let countable = matches!(verdict, Verdict::KnownDifference | Verdict::Calibration);
        match count(verdict) {
            0 => continue,
            n => write!(out, ", {n} {word}{}", if n > 1 && countable { "s" } else { "" }),
        }
        .expect("a text takes everything");
    }
    out.push('\n');
    out
}

fn remark(out: &mut String, id: &str, row: &Row) {
    let mut say = |text: &str| {
        let _ = writeln!(out, "\n{id}, {}: {}: {text}", row.name(), row.verdict);
    };
    if matches!(row.verdict, Verdict::Fail | Verdict::Undecided) {
        let findings = row.findings();
        findings.iter().take(MOST_CASES).for_each(|finding| say(finding));
        if findings.len() > MOST_CASES {
            say(&format!("{} more cases; --json lists them", findings.len() - MOST_CASES));
        }
    }
    // The reason of an undecided case is in its finding.
    if row.verdict != Verdict::Undecided
        && let Some(reason) = &row.reason
    {
        say(reason);
    }
}

/// The kernels side by side, by every metric; empty where no experiment has any.
#[must_use]
pub fn side_by_side(outcome: &Outcome) -> String {
    let mut out = String::new();
    for judged in &outcome.experiments {
        let comparisons = judged.comparisons();
        let Some(first) = comparisons.first() else { continue };
        let id = &judged.experiment.file.id;
        let mut rows = vec![vec![if first.at.is_empty() { id.clone() } else { format!("{id} at {}", first.at) }]];
        rows[0].extend(first.values.iter().map(|(kernel, ..)| kernel.clone()));
        for c in &comparisons {
            let label = if c.unit.is_empty() { c.label.clone() } else { format!("{} ({})", c.label, c.unit) };
            let mut row = vec![label];
            row.extend(c.values.iter().map(|(_, value, _)| value.map_or_else(|| "-".to_owned(), number)));
            rows.push(row);
        }
        out.push_str(&columns(&rows));
        out.push('\n');
    }
    out
}

/// Columns padded to their widest cell.
pub(crate) fn columns<R: AsRef<[String]>>(rows: &[R]) -> String {
    let width = |c: usize| rows.iter().map(|r| r.as_ref()[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, |r| r.as_ref().len())).map(width).collect();
    let mut out = String::new();
    for (i, row) in rows.iter().enumerate() {
        let line: Vec<String> = row.as_ref().iter().zip(&widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
        let _ = writeln!(out, "{}", line.join("  ").trim_end());
        if i == 0 {
            let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
            let _ = writeln!(out, "{}", rules.join("  "));
        }
    }
    out
}
