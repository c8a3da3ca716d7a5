//! The table that `run` prints: experiment, figure, published, ours, verdict.

use crate::compare::{Beside, Case};
use crate::file::Kind;
use crate::outcome::{Judged, Outcome, Row, Where};
use crate::verdict::Verdict;
use schedlab_base::counted;
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
fn ours(row: &Row, real: Option<&Where>) -> String {
    let Some(measured) = row.measured else { return NOTHING.to_owned() };
    let place = match real {
        Some(real) => without_kernel(place(row), real),
        None => place(row),
    };
    match place {
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
fn cases(judged: &Judged, real: Option<&Where>) -> String {
    let mut out = String::new();
    for row in judged.rows.iter().filter(|row| row.has_published_cases()) {
        let mut lines = vec![["case", "published", OURS, "over the seeds", "verdict"].map(str::to_owned).to_vec()];
        lines.extend(row.cases.iter().map(|case| {
            vec![
                match real {
                    Some(real) => without_kernel(case.place(), real),
                    None => case.place(),
                },
                published(case.published.as_ref()),
                case.measured.map_or_else(|| NOTHING.to_owned(), number),
                range(case.range).unwrap_or_else(|| NOTHING.to_owned()),
                case.verdict.to_string(),
            ]
        }));
        if real.is_some() {
            put_beside(&mut lines, 4, row.cases.iter().map(|case| case.simulated.as_ref()));
        }
        let _ = write!(out, "\n{}, {}:\n\n{}", judged.experiment.file.id, row.name(), columns(&lines));
    }
    out
}

/// The heading of what is ours.
const OURS: &str = "ours";

/// Puts what the simulation has, and how far it is off, before this column, and calls ours what it then is.
fn put_beside<'a>(lines: &mut [Vec<String>], before: usize, simulated: impl Iterator<Item = Option<&'a Beside>>) {
    let heads = ["simulated", "off by"].map(str::to_owned);
    let cells = |beside: Option<&Beside>| {
        [beside.and_then(|beside| beside.measured).map_or_else(|| NOTHING.to_owned(), number), off(beside)]
    };
    for (line, cells) in lines.iter_mut().zip(std::iter::once(heads).chain(simulated.map(cells))) {
        drop(line.splice(before..before, cells));
    }
    for head in lines[0].iter_mut().filter(|head| head.as_str() == OURS) {
        "real".clone_into(head);
    }
}

/// How far a simulation is off the real kernel: `+3.1%`, and whether that is less than the real kernel's runs scatter.
pub(crate) fn off(beside: Option<&Beside>) -> String {
    let Some(off) = beside.and_then(|beside| beside.off) else { return NOTHING.to_owned() };
    let scatter = if beside.is_some_and(|beside| beside.within_scatter) { ", within its scatter" } else { "" };
    // A zero has no sign.
    match (off * 1000.0).round() {
        0.0 => format!("0.0%{scatter}"),
        tenths => format!("{:+.1}%{scatter}", tenths / 10.0),
    }
}

/// A place without the name of the one real kernel.
fn without_kernel(place: String, real: &Where) -> String {
    match place.strip_prefix(&format!("real {}", real.kernel)) {
        Some(rest) => rest.trim_start_matches(", ").to_owned(),
        None => place,
    }
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
    let real = outcome.real.as_ref();
    let mut rows = vec![["experiment", figure, "published", OURS, "verdict"].map(str::to_owned).to_vec()];
    let mut simulated = Vec::new();
    for judged in &outcome.experiments {
        let id = &judged.experiment.file.id;
        for row in &judged.rows {
            rows.push(vec![
                id.clone(),
                clip(row.name()),
                clip(&published(row.published.as_ref())),
                ours(row, real),
                verdict(row),
            ]);
            simulated.push(row.simulated.as_ref());
        }
        if judged.rows.is_empty() {
            simulated.push(None);
            rows.push(vec![id.clone(), NOTHING.into(), NOTHING.into(), NOTHING.into(), judged.verdict.to_string()]);
        }
    }
    if real.is_some() {
        put_beside(&mut rows, 4, simulated.into_iter());
    }
    if !has_published {
        rows.iter_mut().for_each(|row| drop(row.remove(2)));
    }
    let mut out = real.map(head).unwrap_or_default() + &columns(&rows);
    if let [judged] = &outcome.experiments[..] {
        out.push_str(&cases(judged, real));
    }
    for judged in &outcome.experiments {
        for row in &judged.rows {
            remark(&mut out, &judged.experiment.file.id, row);
        }
    }
    let count = |v: Verdict| outcome.experiments.iter().flat_map(|e| &e.rows).filter(|r| r.verdict == v).count();
    let runs = counted(outcome.runs_made() as u64, "run");
    let _ = write!(out, "\n{runs}; {} passed, {} failed", count(Verdict::Pass), count(Verdict::Fail));
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
    if real.is_some() {
        let _ = writeln!(out, "{}", agreement(outcome));
    }
    out
}

/// What is real and what is simulated.
fn head(real: &Where) -> String {
    let Where { on, kernel, simulated } = real;
    format!("real: {kernel} ({on}); simulated: {simulated}, on the same machine with the same seeds\n\n")
}

/// Whether the simulation agrees with the real kernel, over all cases that both have.
pub(crate) fn agreement(outcome: &Outcome) -> String {
    let profile = outcome.real.as_ref().map_or("", |real| &real.simulated);
    let cases: Vec<(&Case, &Beside)> = outcome
        .experiments
        .iter()
        .flat_map(|judged| &judged.rows)
        .flat_map(|row| &row.cases)
        .filter_map(|case| Some((case, case.simulated.as_ref()?)))
        .filter(|(case, beside)| case.measured.is_some() && beside.measured.is_some())
        .filter(|(case, _)| case.verdict != Verdict::Skipped)
        .collect();
    let mut off: Vec<f64> = cases.iter().filter_map(|(_, beside)| Some(beside.off?.abs() * 100.0)).collect();
    off.sort_by(f64::total_cmp);
    let (Some(middle), Some(most)) = (off.get(off.len() / 2), off.last()) else {
        return "the simulation has no figure in common with the real kernel".to_owned();
    };
    let same = cases.iter().filter(|(case, beside)| case.verdict == beside.verdict).count();
    let scatter = match cases.iter().filter(|(_, beside)| beside.within_scatter).count() {
        _ if cases.iter().all(|(case, _)| case.range.is_none()) => String::new(),
        1 => ", and 1 lies within the scatter of the real kernel's runs".to_owned(),
        n => format!(", and {n} lie within the scatter of the real kernel's runs"),
    };
    format!(
        "{profile} simulated has the real kernel's verdict in {same} of {}; its figures are off by \
         {middle:.1}% in the median and by {most:.1}% at most{scatter}",
        counted(cases.len() as u64, "case")
    )
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
    if let Some(look) = &row.look {
        say(&format!("{}\n  {}", look.sentence, look.command));
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
        let Some(first) = comparisons.first().filter(|first| !first.values.is_empty()) else { continue };
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

/// Columns padded to their widest cell, with a rule below the first row.
pub(crate) fn columns<R: AsRef<[String]>>(rows: &[R]) -> String {
    let mut lines = lines(rows, &[]);
    let rules: Vec<String> = widths(rows).iter().map(|width| "-".repeat(*width)).collect();
    lines.insert(lines.len().min(1), rules.join("  "));
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// A line for each row, its cells padded to the widest of their column; in the columns `right` they stand at the right.
pub(crate) fn lines<R: AsRef<[String]>>(rows: &[R], right: &[usize]) -> Vec<String> {
    let widths = widths(rows);
    let padded = |(column, (cell, width)): (usize, (&String, &usize))| match right.contains(&column) {
        true => format!("{cell:>width$}"),
        false => format!("{cell:<width$}"),
    };
    let line = |row: &R| row.as_ref().iter().zip(&widths).enumerate().map(padded).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect()
}

/// The widest cell of each column.
fn widths<R: AsRef<[String]>>(rows: &[R]) -> Vec<usize> {
    let width = |c: usize| rows.iter().map(|r| r.as_ref()[c].chars().count()).max().unwrap_or(0);
    (0..rows.first().map_or(0, |r| r.as_ref().len())).map(width).collect()
}
