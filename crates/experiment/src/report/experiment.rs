//! One experiment's part of a report.

use super::page::Page;
use super::{charts, pictures, tables, verdicts};
use crate::outcome::Judged;
use schedlab_chart::escape;

/// Writes the experiment; `headed`: with its own heading, for a page of several.
pub fn write(page: &mut Page, judged: &Judged, headed: bool) {
    let file = &judged.experiment.file;
    let (id, title) = (escape(&file.id), escape(&file.title));
    page.push(&format!("<article id=\"{id}\">\n"));
    page.part(&file.id, format!("{id} {}", verdicts::sign(judged)));
    if headed {
        page.push(&format!("<h2>{id}: {title}</h2>\n"));
    }
    page.push(&format!("<p>{}</p>\n", verdicts::whole(judged)));
    source(page, judged);
    let published = judged.rows.iter().any(|r| r.published.is_some());
    let real = judged.rows.iter().any(|r| r.simulated.is_some());
    page.heading(match (published, real) {
        (true, true) => "Published, real and simulated",
        (true, false) => "Published and ours",
        (false, _) => "Expected and found",
    });
    verdicts::expectations(page, &judged.rows);
    verdicts::cases(page, &judged.rows);
    if !judged.runs.is_empty() {
        tables::tables(page, judged);
        pictures::charts(page, judged);
        charts::heatmaps(page, judged);
        charts::metrics(page, judged);
        charts::details(page, judged);
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
            let mut settings = if set.is_empty() { String::new() } else { format!(" with {}", set.join(", ")) };
            if let Some(own) = &k.duration {
                settings.push_str(&format!(", runs of {}", filled(judged, own)));
            }
            if label == k.kernel { format!("{label}{settings}") } else { format!("{label} ({}{settings})", k.kernel) }
        })
        .collect();
    items.push(("kernels", kernels.join("; ")));
    let seeds: Vec<String> = file.seeds.iter().map(u64::to_string).collect();
    let unseeded = if judged.is_unseeded() { " (nothing depends on it)" } else { "" };
    let duration = match &file.duration {
        None => "until its tasks end".to_owned(),
        Some(text) => format!("of {} each", filled(judged, text)),
    };
    items.push(("machine", filled(judged, &file.machine)));
    items.push(("runs", format!("{} {duration}, seed {}{unseeded}", judged.runs_made(), seeds.join(", "))));
    let cells: String = items.iter().map(|(name, text)| format!("<dt>{name}</dt><dd>{}</dd>", escape(text))).collect();
    page.push(&format!("<dl>{cells}</dl>\n"));
}

/// A text of the file as the points fill it in: each value once, of many the first and the last.
fn filled(judged: &Judged, text: &str) -> String {
    let mut values: Vec<String> = Vec::new();
    for point in &judged.experiment.points {
        let value = point.fill(text);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    match &values[..] {
        [first, .., last] if values.len() > 6 => format!("{first} to {last}"),
        _ => values.join(", "),
    }
}
