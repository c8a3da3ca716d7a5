//! Recorded, simulated as recorded and simulated as asked, side by side.

use crate::verbs::model::validate::trust_text;
use crate::verbs::stats::table::{Table, duration, grouped, shorten};
use schedlab_base::counted;
use schedlab_experiment::whatif::{Answer, Outcome, Place, Predicted, Variant};
use schedlab_measure::compared::{FIGURES, Figure, Unit};
use std::path::Path;

/// How many rows the table of tasks has.
const ROWS: usize = 15;

/// What of each task is shown.
const SHOWN: [&str; 3] = ["wait_us", "latency_p50_us", "latency_p99_us"];

/// The whole answer. With `all`, every row.
pub fn text(load: &Path, answer: &Answer, all: bool) -> String {
    let seeds = counted(answer.seeds, "simulation");
    let mut out = format!("{} as recorded: {}; {seeds} of each\n", load.display(), place(&answer.baseline));
    match (&answer.validation, &answer.stored_errors) {
        (Some(validated), _) => out += &trust_text(validated),
        (None, Some(errors)) => {
            out += &format!("when the model was made: {}\n", schedlab_experiment::prediction::trust(errors));
        }
        (None, None) => out += "how far to trust it is not known: name the model's trace with --recording\n",
    }
    for variant in &answer.variants {
        out += &text_of(variant, all);
    }
    out
}

fn place(place: &Place) -> String {
    let set: Vec<String> = place.set.iter().map(|(name, value)| format!(", {name}={value}")).collect();
    format!("{} on {}{}", place.kernel, place.machine, set.concat())
}

fn text_of(variant: &Variant, all: bool) -> String {
    let mut out = format!("\n{}: {}\n\n", variant.name, place(&variant.place));
    let mut table = Table::new(1, ["all tasks", "recorded", "simulated", "as asked", "change", "model off by"]);
    let (whole, others) = variant.rows.split_first().expect("the first row is all tasks");
    table.row(cells("duration".to_owned(), Unit::Time, &variant.duration_us));
    for (figure, outcome) in figures(whole) {
        table.row(cells(short(figure), figure.unit, outcome));
    }
    out += &table.render();
    let most = if all { usize::MAX } else { ROWS };
    if !others.is_empty() {
        let mut table = Table::new(2, ["", "figure", "recorded", "simulated", "as asked", "change", "model off by"]);
        for row in others.iter().take(most) {
            let mut label = shorten(&row.row.label);
            for (figure, outcome) in figures(row).filter(|(figure, _)| SHOWN.contains(&figure.key)) {
                let figures = cells(short(figure), figure.unit, outcome);
                table.row(std::iter::once(std::mem::take(&mut label)).chain(figures));
            }
        }
        out += &format!("\n{}", table.render());
        if others.len() > most {
            out += &format!("and {} (--all prints them)\n", counted((others.len() - most) as u64, "more row"));
        }
    }
    out += "\n";
    for sentence in &variant.sentences {
        out += &format!("{sentence}\n");
        if let Some(look) = sentence.row.and_then(|row| variant.rows[row].look.as_ref()) {
            out += &format!("  {}\n  {}\n", look.sentence, look.command);
        }
    }
    for note in &variant.notes {
        out += &format!("- {note}\n");
    }
    out
}

/// The figures of a row, in their order.
fn figures(row: &Predicted) -> impl Iterator<Item = (&'static Figure, &Outcome)> {
    FIGURES.iter().filter_map(|figure| Some((figure, row.figures.get(figure.key)?)))
}

/// `p99 of wake-up latency` is `latency p99` in a table.
fn short(figure: &Figure) -> String {
    figure.name.strip_suffix(" of wake-up latency").map_or_else(|| figure.name.to_owned(), |q| format!("latency {q}"))
}

fn cells(name: String, unit: Unit, outcome: &Outcome) -> [String; 6] {
    let value = |value: f64| match unit {
        Unit::Time => duration(value),
        Unit::Count => grouped(value.round() as u64),
    };
    let signed = |part: f64| format!("{:+.1}%", part * 100.0);
    let recorded = outcome.recorded.map_or_else(|| "-".to_owned(), value);
    let mark = if outcome.verdict.changes() { "" } else { " ?" };
    [
        name,
        recorded,
        value(outcome.baseline),
        value(outcome.asked),
        signed(outcome.change) + mark,
        outcome.off_by(unit).unwrap_or_else(|| "-".to_owned()),
    ]
}
