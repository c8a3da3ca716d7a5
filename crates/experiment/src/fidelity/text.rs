//! The tables of a comparison, as text and as Markdown.

use super::{Fidelity, Place, Row, Standing};
use crate::text::lines;
use schedlab_base::counted;
use schedlab_chart::number;
use std::fmt::Write;

const HEADS: [&str; 7] = ["load", "figure", "real", "runs", "simulated", "error", "bar"];

/// A value with its unit: times in the unit that fits.
fn value(x: f64, unit: &str) -> String {
    match unit {
        "us" if x.abs() >= 1e6 => format!("{} s", number(x / 1e6)),
        "us" if x.abs() >= 1e3 => format!("{} ms", number(x / 1e3)),
        "us" => format!("{} us", number(x)),
        "%" => format!("{x:.2}%"),
        _ => number(x.round()),
    }
}

fn cells(row: &Row) -> [String; 7] {
    let points = if row.unit == "%" { " points" } else { "%" };
    let bar = row.bar.map(|bar| format!("{:.0}%: {}", bar * 100.0, row.standing));
    [
        row.load.clone(),
        row.figure.to_owned(),
        value(row.real, row.unit),
        format!("{} to {}", value(row.range.0, row.unit), value(row.range.1, row.unit)),
        value(row.simulated, row.unit),
        row.error.map_or_else(|| "-".to_owned(), |error| format!("{:+.1}{points}", error * 100.0)),
        bar.unwrap_or_default(),
    ]
}

fn head(fidelity: &Fidelity, place: &Place) -> String {
    let set = place.set.iter().map(|(name, value)| format!("{name}={value}"));
    let costs = place.costs.iter().map(|(name, value)| format!("{name}={value}"));
    let set: Vec<String> = set.chain(costs).collect();
    let settings = if set.is_empty() { String::new() } else { format!(" ({})", set.join(" ")) };
    let cpus = counted(place.cpus as u64, "CPU");
    format!(
        "{} ({}) on {}, {cpus}; simulated: {}{settings}; {} of {} s each",
        place.kernel,
        place.on,
        place.machine,
        place.profile,
        counted(fidelity.repeats, "run"),
        number(fidelity.duration_s)
    )
}

fn of_place<'a>(fidelity: &'a Fidelity, place: &'a Place) -> impl Iterator<Item = &'a Row> {
    fidelity.rows.iter().filter(|row| row.on == place.on && row.machine == place.machine)
}

/// One sentence for each place, and one for the orders.
fn summary(fidelity: &Fidelity) -> String {
    let mut out = String::new();
    for place in &fidelity.places {
        let count = |standing: Standing| of_place(fidelity, place).filter(|row| row.standing == standing).count();
        let judged = of_place(fidelity, place).filter(|row| row.bar.is_some()).count();
        let _ = writeln!(
            out,
            "{} on {}: {} of {judged} figures within their bars, {} more within the kernel's own scatter, {} beyond",
            place.on,
            place.machine,
            count(Standing::Met),
            count(Standing::WithinScatter),
            count(Standing::Missed),
        );
    }
    let wrong: Vec<_> = fidelity.orders.iter().filter(|order| !order.right).collect();
    if !fidelity.orders.is_empty() {
        let (all, right) = (fidelity.orders.len(), fidelity.orders.len() - wrong.len());
        let _ = writeln!(out, "order of kernels where they differ by more than their scatter: {right} of {all} right");
    }
    for order in wrong {
        let (load, figure, machine) = (&order.load, order.figure, &order.machine);
        let _ = writeln!(
            out,
            "wrong: {load}, {figure} on {machine}: smaller under {} than {}",
            order.smaller, order.larger
        );
    }
    out
}

/// The tables as text.
#[must_use]
pub fn table(fidelity: &Fidelity) -> String {
    let mut out = String::new();
    for place in &fidelity.places {
        let _ = writeln!(out, "{}\n", head(fidelity, place));
        let rows: Vec<[String; 7]> =
            std::iter::once(HEADS.map(str::to_owned)).chain(of_place(fidelity, place).map(cells)).collect();
        lines(&rows, &[2, 3, 4, 5]).iter().for_each(|line| {
            let _ = writeln!(out, "{line}");
        });
        place.remarks.iter().for_each(|remark| {
            let _ = writeln!(out, "note: {remark}");
        });
        out.push('\n');
    }
    out + &summary(fidelity)
}

/// The tables as Markdown, for a page of documentation.
#[must_use]
pub fn markdown(fidelity: &Fidelity) -> String {
    let mut out = String::new();
    for place in &fidelity.places {
        let _ = write!(out, "### {} on {}\n\n{}.\n\n", place.on, place.machine, head(fidelity, place));
        let _ = writeln!(out, "| {} |\n|---|---|--:|--:|--:|--:|---|", HEADS.join(" | "));
        for row in of_place(fidelity, place) {
            let _ = writeln!(out, "| {} |", cells(row).join(" | "));
        }
        place.remarks.iter().for_each(|remark| {
            let _ = writeln!(out, "\nNote: {remark}.");
        });
        out.push('\n');
    }
    let lines: Vec<String> = summary(fidelity).lines().map(|line| format!("- {line}")).collect();
    out + &lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_with_its_units() {
        let row = Row {
            on: "live".into(),
            machine: "2".into(),
            load: "hogs".to_owned(),
            figure: "wait",
            unit: "us",
            real: 2_500_000.0,
            range: (2_400_000.0, 2_600_000.0),
            simulated: 900.0,
            error: Some(-0.5),
            bar: Some(0.2),
            standing: Standing::Missed,
        };
        assert_eq!(cells(&row)[2..], ["2.5 s", "2.4 s to 2.6 s", "900 us", "-50.0%", "20%: MISSED"]);
    }
}
