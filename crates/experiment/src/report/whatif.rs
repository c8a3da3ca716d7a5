//! The report of a prediction: the answer in words, all tasks, and each row that counts.

use super::looks::look;
use super::page::{Page, Reproduce};
use crate::whatif::{Answer, Outcome, Place, Predicted, Variant};
use schedlab_base::counted;
use schedlab_chart::{Bar, bars, escape, number};
use schedlab_measure::compared::{FIGURES, Figure, Unit};
use std::fmt::Write;

/// The figures of all tasks that have a picture.
const DRAWN: [&str; 4] = ["wait_us", "latency_p50_us", "latency_p99_us", "slices"];

/// How long all of it takes.
const DURATION: Figure = Figure { key: "duration_us", name: "duration", unit: Unit::Time, wakeups: 0 };

/// The report of `schedlab whatif`; `load` is the name of the trace or of the model.
#[must_use]
pub fn whatif(load: &str, answer: &Answer, reproduce: &Reproduce) -> String {
    let lead = format!("As recorded: {}. {} of each.", place(&answer.baseline), counted(answer.seeds, "simulation"));
    let mut page = Page::new(&format!("What if: {load}"), &lead);
    trust(&mut page, answer);
    for (number, variant) in answer.variants.iter().enumerate() {
        part(&mut page, number, variant);
    }
    page.finish(reproduce)
}

fn place(place: &Place) -> String {
    let set: Vec<String> = place.set.iter().map(|(name, value)| format!(", {name}={value}")).collect();
    format!("{} on {}{}", place.kernel, place.machine, set.concat())
}

fn trust(page: &mut Page, answer: &Answer) {
    page.part("trust", "How far to trust it".to_owned());
    page.push("<article id=\"trust\"><h2>How far to trust it</h2>\n");
    match (&answer.validation, &answer.stored_errors) {
        (Some(validated), _) => {
            let guesswork = validated.doubts.guesswork.iter();
            page.list(&guesswork.map(|what| format!("This answer is guesswork: {what}")).collect::<Vec<_>>());
            page.paragraph(&format!("The simulation as recorded beside the recording: {}.", validated.trust));
            page.list(&validated.doubts.causes);
        }
        (None, Some(errors)) => {
            page.paragraph(&format!("When the model was made: {}.", crate::prediction::trust(errors)));
        }
        (None, None) => page.paragraph("The model was not validated: how far it is off is not known."),
    }
    page.push("</article>\n");
}

fn part(page: &mut Page, number: usize, variant: &Variant) {
    let id = format!("variant-{number}");
    page.part(&id, escape(&variant.name));
    page.push(&format!("<article id=\"{id}\"><h2>{}</h2>\n", escape(&variant.name)));
    page.push(&format!("<p class=\"lead\">{}</p>\n", escape(&place(&variant.place))));
    page.push(&sentences(variant));
    let (whole, others) = variant.rows.split_first().expect("the first row is all tasks");
    page.heading("All tasks");
    let drawings: Vec<String> = figures(whole).filter(|(figure, _)| DRAWN.contains(&figure.key)).map(picture).collect();
    page.grid(&drawings);
    let all = std::iter::once((&DURATION, &variant.duration_us)).chain(figures(whole));
    page.push(&table(all.map(|(figure, outcome)| ("", figure, outcome))));
    if !others.is_empty() {
        page.heading("What changes most first");
        page.push(&table(others.iter().flat_map(|row| {
            figures(row)
                .enumerate()
                .map(|(at, (figure, own))| (if at == 0 { row.row.label.as_str() } else { "" }, figure, own))
        })));
    }
    page.list(&variant.notes);
    page.push("</article>\n");
}

/// The answer in words; below a sentence, where to look.
fn sentences(variant: &Variant) -> String {
    let items = variant.sentences.iter().map(|sentence| {
        let place = sentence.row.and_then(|row| variant.rows[row].look.as_ref());
        format!("<li>{}{}</li>", escape(&sentence.text), look(place))
    });
    format!("<ul>{}</ul>\n", items.collect::<String>())
}

fn figures(row: &Predicted) -> impl Iterator<Item = (&'static Figure, &Outcome)> {
    FIGURES.iter().filter_map(|figure| Some((figure, row.figures.get(figure.key)?)))
}

fn picture((figure, outcome): (&'static Figure, &Outcome)) -> String {
    let scale = if figure.unit == Unit::Time { 1e3 } else { 1.0 };
    let bar = |label: &str, value: Option<f64>| Bar {
        label: label.to_owned(),
        value: value.map(|value| value / scale),
        scatter: Vec::new(),
    };
    let unit = if figure.unit == Unit::Time { "ms" } else { "" };
    let (recorded, simulated) = (bar("recorded", outcome.recorded), bar("simulated", Some(outcome.baseline)));
    bars(figure.name, unit, &[recorded, simulated, bar("as asked", Some(outcome.asked))])
}

fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a Figure, &'a Outcome)>) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table><tr><th></th><th>figure</th><th class=\"n\">recorded</th>\
         <th class=\"n\">simulated</th><th class=\"n\">as asked</th><th class=\"n\">change</th>\
         <th class=\"n\">model off by</th></tr>",
    );
    for (label, figure, own) in rows {
        let value = |value: f64| match figure.unit {
            Unit::Time => format!("{} ms", number(value / 1e3)),
            Unit::Count => number(value),
        };
        let (class, sign) = if own.verdict.changes() { ("", "") } else { ("undecided", " ?") };
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n {class}\">{:+.1}%{sign}</td><td class=\"n\">{}</td></tr>",
            escape(label),
            escape(figure.name),
            own.recorded.map_or_else(|| "\u{2013}".to_owned(), value),
            value(own.baseline),
            value(own.asked),
            own.change * 100.0,
            own.off_by(figure.unit).map_or_else(|| "\u{2013}".to_owned(), |off| escape(&off)),
        );
    }
    html.push_str("</table></div>\n");
    html + "<p>A change with a question mark is within the model's error or the scatter of the seeds.</p>\n"
}
