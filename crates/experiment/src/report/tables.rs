//! The tables of a report: what was published, and beside it ours.

use super::page::Page;
use crate::compare::Results;
use crate::expr::Expr;
use crate::file::TableFile;
use crate::outcome::Judged;
use crate::points::Point;
use schedlab_chart::{escape, number};
use std::fmt::Write;

/// One of the columns that are ours.
struct Ours<'a> {
    /// The table's column that it stands beside.
    column: usize,
    expr: &'a Expr,
    /// The kernel, where the expression leaves it open.
    kernel: Option<usize>,
    label: String,
}

/// Writes every table of the experiment.
pub fn tables(page: &mut Page, judged: &Judged) {
    let experiment = &judged.experiment;
    if experiment.file.tables.is_empty() {
        return;
    }
    page.heading("Tables, published and ours");
    let results = Results::new(experiment, &judged.runs);
    for (index, table) in experiment.file.tables.iter().enumerate() {
        let ours = columns(judged, index);
        let html = html(table, &results, index, &ours);
        let open = if ours.is_empty() { "" } else { " open" };
        let title = escape(table.title.as_deref().unwrap_or(&table.name));
        page.push(&format!("<details{open}><summary>{title}</summary><div class=\"scroll\">{html}</div></details>\n"));
    }
}

/// The columns of ours in a table: one for each kernel where the expression does not name its own.
fn columns(judged: &Judged, table: usize) -> Vec<Ours<'_>> {
    let experiment = &judged.experiment;
    let mut ours = Vec::new();
    for (&column, expr) in &experiment.ours[table] {
        let mut free = false;
        expr.references(&mut |r| free |= r.kernel.is_none() && experiment.metrics.contains_key(&r.path));
        if !free {
            ours.push(Ours { column, expr, kernel: None, label: "ours".to_owned() });
            continue;
        }
        for kernel in 0..experiment.file.kernels.len() {
            let label = format!("ours, {}", experiment.kernel_label(kernel));
            ours.push(Ours { column, expr, kernel: Some(kernel), label });
        }
    }
    ours
}

fn html(table: &TableFile, results: &Results, index: usize, ours: &[Ours]) -> String {
    let beside = |column: usize| ours.iter().filter(move |o| o.column == column);
    let mut html = String::from("<table class=\"narrow\"><tr>");
    for (c, column) in table.columns.iter().enumerate() {
        let _ = write!(html, "<th class=\"n\">{}</th>", escape(column));
        for own in beside(c) {
            let _ = write!(html, "<th class=\"n own\">{}</th>", escape(&own.label));
        }
    }
    html.push_str("</tr>");
    for (r, row) in table.rows.iter().enumerate() {
        html.push_str("<tr>");
        let point = results.row_point(index, r);
        for (c, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td class=\"n\">{}</td>", escape(&cell.to_string()));
            for own in beside(c) {
                let _ = write!(html, "<td class=\"n own\">{}</td>", own.cell(results, &point));
            }
        }
        html.push_str("</tr>");
    }
    html + "</table>"
}

impl Ours<'_> {
    /// The mean over the seeds; below it their range.
    fn cell(&self, results: &Results, point: &Point) -> String {
        let values = results.numbers(self.expr, self.kernel, point);
        if values.is_empty() {
            return "\u{2013}".to_owned();
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (x.min(l), x.max(h)));
        let range = crate::text::range(Some([low, high])).map_or_else(String::new, |r| format!("<small>{r}</small>"));
        format!("{}{range}", number(mean))
    }
}
