//! The verdicts of a report: in words, as links, as a table.

use super::page::Page;
use crate::file::Kind;
use crate::outcome::{Outcome, Row};
use crate::text;
use crate::verdict::Verdict;
use schedlab_chart::{escape, number};
use std::fmt::Write;

/// `2 experiments, 180 runs: 8 expectations hold, 1 fails`.
pub fn summary(outcome: &Outcome) -> String {
    let count = |v: Verdict| outcome.experiments.iter().flat_map(|e| &e.rows).filter(|r| r.verdict == v).count();
    let runs: usize = outcome.experiments.iter().map(|e| e.runs.len()).sum();
    let mut text = format!("{runs} runs; of the expectations {} hold", count(Verdict::Pass));
    for (verdict, word) in [
        (Verdict::Fail, "fail"),
        (Verdict::Undecided, "undecided"),
        (Verdict::KnownDifference, "known to differ"),
        (Verdict::Skipped, "skipped"),
    ] {
        if count(verdict) > 0 {
            let _ = write!(text, ", {} {word}", count(verdict));
        }
    }
    text
}

/// The experiments with their verdicts, as links.
pub fn contents(page: &mut Page, outcome: &Outcome) {
    let mut html = String::from("<table><tr><th>experiment</th><th>what it asks</th><th>verdict</th></tr>");
    for judged in &outcome.experiments {
        let file = &judged.experiment.file;
        let _ = write!(
            html,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td></tr>",
            escape(&file.id),
            escape(&file.title),
            chip(judged.verdict, "")
        );
    }
    page.push(&(html + "</table>\n"));
}

/// A verdict as a small label.
pub fn chip(verdict: Verdict, suffix: &str) -> String {
    let (class, sign) = match verdict {
        Verdict::Pass => ("pass", "\u{2713}"),
        Verdict::Fail => ("fail", "\u{2717}"),
        Verdict::Undecided => ("undecided", "?"),
        Verdict::KnownDifference => ("known", "\u{2260}"),
        Verdict::Skipped => ("skipped", "\u{2013}"),
    };
    format!("<span class=\"chip {class}\">{sign} {verdict}{suffix}</span>")
}

/// Every expectation with its figures and its verdict.
pub fn expectations(page: &mut Page, rows: &[Row]) {
    if rows.is_empty() {
        page.paragraph("This experiment states no expectation.");
        return;
    }
    let published = rows.iter().any(|r| r.published.is_some());
    let column = if published { "<th class=\"n\">published</th>" } else { "" };
    let mut html = format!(
        "<div class=\"scroll\"><table><tr><th>figure</th>{column}<th class=\"n\">ours</th><th>expected</th>\
         <th>verdict</th></tr>"
    );
    for row in rows {
        let small =
            |text: &str| if text.is_empty() { String::new() } else { format!("<small>{}</small>", escape(text)) };
        let measured = row.measured.map_or_else(|| "\u{2013}".to_owned(), number);
        let kind = if row.kind == Some(Kind::Shape) { " (shape)" } else { "" };
        let _ = write!(
            html,
            "<tr><td>{}{}</td>{}<td class=\"n\">{}{}</td><td><code>{}</code></td><td>{}{}</td></tr>",
            escape(row.name()),
            small(row.claim.as_deref().unwrap_or("")),
            if published { format!("<td class=\"n\">{}</td>", escape(&text::published(row))) } else { String::new() },
            escape(&measured),
            small(&text::place(row)),
            escape(&row.expected),
            chip(row.verdict, kind),
            small(row.reason.as_deref().unwrap_or(""))
        );
    }
    page.push(&(html + "</table></div>\n"));
}
