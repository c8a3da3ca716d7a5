//! An answer in words: a line for each thing that changes.

use super::judge::{Outcome, Verdict};
use super::{Kind, Predicted};
use schedlab_measure::compared::FIGURES;

/// How many lines there are of groups, names and tasks.
const MOST: usize = 12;

/// The lines, what changes most first.
pub(super) fn of(duration: &Outcome, rows: &[Predicted]) -> Vec<String> {
    let mut lines = vec![format!("all tasks: the time until all is done {}", change(duration))];
    let (all, others) = rows.split_first().expect("the first row is all tasks");
    for key in ["wait_us", "latency_p50_us", "latency_p99_us", "slices", "migrations"] {
        if let Some(outcome) = all.figures.get(key) {
            lines.push(format!("all tasks: {} {}", name(key), change(outcome)));
        }
    }
    let (changed, same): (Vec<&Predicted>, Vec<&Predicted>) = others.iter().partition(|row| row.size() > 0.0);
    for row in changed.iter().take(MOST) {
        lines.extend(row.most().map(|(key, own, _)| format!("{}: {} {}", row.row.label, name(key), change(own))));
    }
    if changed.len() > MOST {
        lines.push(format!("and {} more rows that change", changed.len() - MOST));
    }
    let tasks = same.iter().filter(|row| row.row.kind == Kind::Task).count();
    match tasks {
        0 => {}
        1 => lines.push("1 task: no change that the model could tell".to_owned()),
        n => lines.push(format!("{n} tasks: no change that the model could tell")),
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
fn change(outcome: &Outcome) -> String {
    let how = match outcome.verdict {
        Verdict::Same => return "stays the same".to_owned(),
        Verdict::Scatters => {
            return format!("has no change that the model could tell: {}", scatter(outcome));
        }
        Verdict::WithinError => {
            let signed = format!("{}{}", if outcome.change < 0.0 { "-" } else { "+" }, percent(outcome.change.abs()));
            return format!("has no change that the model could tell: {signed}{}", off(outcome));
        }
        Verdict::Rises | Verdict::RisesUnvalidated if outcome.change >= 2.0 => {
            format!("rises to {:.1} times", outcome.change + 1.0)
        }
        Verdict::Rises | Verdict::RisesUnvalidated => format!("rises by {}", percent(outcome.change)),
        Verdict::Falls | Verdict::FallsUnvalidated => format!("falls by {}", percent(-outcome.change)),
    };
    how + &off(outcome)
}

/// Between what the seeds leave it open.
fn scatter(outcome: &Outcome) -> String {
    match outcome.interval {
        Some([low, high]) => format!("{:+.0}% to {:+.0}% by the scatter of the seeds", low * 100.0, high * 100.0),
        None => "the seeds scatter too much".to_owned(),
    }
}

/// How far the model is off.
fn off(outcome: &Outcome) -> String {
    match (outcome.error, outcome.typical_error) {
        (Some(own), Some(typical)) if typical > own.abs() + 0.005 => {
            format!(" (the model is {} off here, {} in the median task)", percent(own.abs()), percent(typical))
        }
        (Some(own), _) => format!(" (the model is {} off here)", percent(own.abs())),
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
