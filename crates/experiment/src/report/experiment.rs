//! One experiment's part of a report.

use super::page::Page;
use super::{charts, verdicts};
use crate::file::TableFile;
use crate::outcome::Judged;
use schedlab_chart::escape;
use std::fmt::Write;

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
    page.heading(if published { "Published and ours" } else { "Expected and found" });
    verdicts::expectations(page, &judged.rows);
    charts::charts(page, judged);
    charts::heatmaps(page, judged);
    charts::metrics(page, judged);
    charts::details(page, judged);
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
