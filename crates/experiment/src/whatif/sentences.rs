//! An answer in words: a line for each thing that changes.

use super::judge::{Outcome, Verdict};
use super::{Kind, Predicted};
use crate::prediction::amount;
use schedlab_base::counted;
use schedlab_measure::compared::{FIGURES, Unit};
use serde::{Serialize, Serializer};
use std::fmt;

/// How many lines there are of groups, names and tasks.
const MOST: usize = 12;

/// A line. In JSON it is its text.
#[derive(Clone, Debug)]
pub struct Sentence {
    /// The text.
    pub text: String,
    /// The row whose waits it is about, by its place in the list of rows.
    pub row: Option<usize>,
}

impl Serialize for Sentence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The lines, what changes most first. Without a duration the load runs for a time, not until all is done.
pub(super) fn of(duration: Option<&Outcome>, rows: &[Predicted]) -> Vec<Sentence> {
    let of_none = |text: String| Sentence { text, row: None };
    let done = |own| of_none(format!("all tasks: the time until all is done {}", change("duration_us", own)));
    let mut lines: Vec<Sentence> = duration.map(done).into_iter().collect();
    for key in ["wait_us", "latency_p50_us", "latency_p99_us", "slices", "migrations"] {
        if let Some(outcome) = rows[0].figures.get(key) {
            let row = (key == "wait_us").then_some(0);
            lines.push(Sentence { text: format!("all tasks: {} {}", name(key), change(key, outcome)), row });
        }
    }
    let others = || rows.iter().enumerate().skip(1);
    let changed: Vec<(usize, &Predicted)> = others().filter(|(_, row)| row.size() > 0.0).collect();
    for (at, row) in changed.iter().take(MOST) {
        let text = row.most().map(|(key, own, _)| format!("{}: {} {}", row.row.label, name(key), change(key, own)));
        lines.extend(text.map(|text| Sentence { text, row: Some(*at) }));
    }
    if changed.len() > MOST {
        lines.push(of_none(format!(
            "and {} more that {}",
            counted((changed.len() - MOST) as u64, "row"),
            if changed.len() - MOST == 1 { "changes" } else { "change" }
        )));
    }
    let tasks = others().filter(|(_, row)| row.size() == 0.0 && row.row.kind == Kind::Task).count();
    match tasks {
        0 => {}
        n => lines.push(of_none(format!("{}: no change that the model could tell", counted(n as u64, "task")))),
    }
    lines
}

fn name(key: &str) -> &'static str {
    match key {
        "slices" => "the number of switches",
        "migrations" => "the number of migrations",
        _ => FIGURES.iter().find(|figure| figure.key == key).map_or("", |figure| figure.name),
    }
}

/// `falls by 41% (the model is 12% off here)`.
fn change(key: &str, outcome: &Outcome) -> String {
    let how = match outcome.verdict {
        Verdict::Same => return "stays the same".to_owned(),
        Verdict::Scatters => {
            return format!("has no change that the model could tell: {}", scatter(outcome));
        }
        Verdict::WithinError => {
            let signed = format!("{}{}", if outcome.change < 0.0 { "-" } else { "+" }, percent(outcome.change.abs()));
            return format!("has no change that the model could tell: {signed}{}", off(key, outcome));
        }
        Verdict::Rises | Verdict::RisesUnvalidated if outcome.change >= 2.0 => {
            format!("rises to {:.1} times", outcome.change + 1.0)
        }
        Verdict::Rises | Verdict::RisesUnvalidated => format!("rises by {}", percent(outcome.change)),
        Verdict::Falls | Verdict::FallsUnvalidated => format!("falls by {}", percent(-outcome.change)),
    };
    how + &off(key, outcome)
}

/// Between what the seeds leave it open.
fn scatter(outcome: &Outcome) -> String {
    match outcome.interval {
        Some([low, high]) => format!("{:+.0}% to {:+.0}% by the scatter of the seeds", low * 100.0, high * 100.0),
        None => "the seeds scatter too much".to_owned(),
    }
}

/// How far the model is off.
fn off(key: &str, outcome: &Outcome) -> String {
    let unit = FIGURES.iter().find(|figure| figure.key == key).map_or(Unit::Time, |figure| figure.unit);
    let here = |own: f64| match outcome.within {
        Some(least) => format!("less than {} off here", amount(least, unit)),
        None => format!("{} off here", percent(own.abs())),
    };
    match (outcome.error, outcome.typical_error) {
        (Some(own), Some(typical)) if typical > own.abs() + 0.005 => {
            format!(" (the model is {}, {} in the median task)", here(own), percent(typical))
        }
        (Some(own), _) => format!(" (the model is {})", here(own)),
        (None, Some(typical)) => format!(" (the model was {} off when it was validated)", percent(typical)),
        (None, None) => " (not validated: how far the model is off is not known)".to_owned(),
    }
}

fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if (0.05..9.95).contains(&percent) || (99.5..99.95).contains(&percent) {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}
