//! One file with the page and all that it needs of some traces, to be sent to somebody.

use crate::answers::{answer, mark_stream, violations};
use crate::arrow::stream;
use crate::assets::asset;
use crate::index::Index;
use crate::loaded::Loaded;
use crate::marks::{Kind, Mark, Marks};
use crate::measured;
use crate::query::{Body, Query};
use crate::rows::{By, Of};
use crate::server::Initial;
use crate::spans::NONE;
use crate::steps::{Steps, UNKNOWN};
use arrow_array::{ArrayRef, Float64Array, UInt8Array, UInt32Array};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schedlab_base::{Error, Nanos, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// So many spans and marks fit into one file.
pub const MOST_ITEMS: usize = 300_000;

const STYLE: &str = "<link rel=\"stylesheet\" href=\"app.css\">";
const SCRIPT: &str = "<script type=\"module\" src=\"app.js\"></script>";
const ICON: &str = "href=\"icon.svg\"";

/// The file as text.
///
/// # Errors
/// When there is too much for one file, or the page is missing.
pub fn file(traces: &[Arc<Loaded>], initial: Option<&Initial>) -> Result<String> {
    let text = |name| asset(name).and_then(|(_, _, bytes)| std::str::from_utf8(bytes).ok());
    let page = text("index.html").zip(text("app.js")).zip(text("app.css"));
    let ((html, script), style) = page.ok_or_else(missing_page)?;
    fits(traces, initial)?;
    Ok(embed(html, script, style, &bundle(traces, initial)?))
}

/// Why there is no page.
#[must_use]
pub fn missing_page() -> Error {
    Error::not_permitted("this schedlab was built without the page of the view, because Node was missing")
        .mend("install Node and build again (make build), or use a released schedlab; gantt draws in the terminal")
}

/// Puts everything into the page. What scripts and styles it may have, its policy says by their hashes.
fn embed(html: &str, script: &str, style: &str, bundle: &Value) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    // In JSON these stand in strings only, and a string may have them escaped.
    let data = bundle.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let script = script.replace("</script", "<\\/script");
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src blob: data:; base-uri 'none'; \
         form-action 'none'",
        hash(&script),
        hash(style)
    );
    let meta = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    let style = format!("{meta}\n<style>{style}</style>");
    let scripts = format!(
        "<script type=\"application/json\" id=\"bundle\">{data}</script>\n<script type=\"module\">{script}</script>"
    );
    let icon = asset("icon.svg").map_or(&[][..], |(_, _, bytes)| bytes);
    let icon = format!("href=\"data:image/svg+xml;base64,{}\"", STANDARD.encode(icon));
    html.replace(ICON, &icon).replace(STYLE, &style).replace(SCRIPT, &scripts)
}

fn window(index: &Index, initial: Option<&Initial>) -> (Nanos, Nanos) {
    let from = initial.and_then(|initial| initial.from).unwrap_or(0).min(index.end);
    (from, initial.and_then(|initial| initial.to).unwrap_or(index.end).clamp(from, index.end))
}

/// How many spans, steps and marks there are in this time.
fn count(index: &Index, (from, to): (Nanos, Nanos)) -> usize {
    let spans: usize = index.cpus.iter().chain(&index.tasks).map(|row| row.count(from, to)).sum();
    let steps = |steps: &Steps| {
        to.checked_sub(1).and_then(|end| steps.find(end)).map_or(0, |last| last + 1 - steps.find(from).unwrap_or(0))
    };
    let steps: usize = index.queues.iter().chain(&index.frequencies).map(steps).sum();
    spans + steps + index.wakes.within(from, to).len() + index.moves.within(from, to).len()
}

/// Refuses more than fits, and names a window that would.
fn fits(traces: &[Arc<Loaded>], initial: Option<&Initial>) -> Result<()> {
    let all = |initial: Option<&Initial>| -> usize {
        let one = |loaded: &Arc<Loaded>| {
            let indexer = loaded.indexer();
            count(&indexer.index, window(&indexer.index, initial))
        };
        traces.iter().map(one).sum()
    };
    let items = all(initial);
    if items <= MOST_ITEMS {
        return Ok(());
    }
    let (from, mut to) = window(&traces[0].indexer().index, initial);
    while to > from + 1 {
        to = from + (to - from) / 2;
        if all(Some(&Initial { from: Some(from), to: Some(to), ..Initial::default() })) <= MOST_ITEMS {
            break;
        }
    }
    let what = format!("{items} spans and marks do not fit into one file, which has at most {MOST_ITEMS}");
    Err(Error::input(what).key("--output").mend(format!("choose a part, such as --from {from}ns --to {to}ns")))
}

fn bundle(traces: &[Arc<Loaded>], initial: Option<&Initial>) -> Result<Value> {
    let (mut responses, mut arrows) = (Map::new(), Map::new());
    for loaded in traces {
        let (id, indexer) = (loaded.id, loaded.indexer());
        let index = &indexer.index;
        let (from, to) = window(index, initial);
        let stretch = format!("from={from}&to={to}");
        let asked = [
            ("rows?by=cpu", "rows", "by=cpu".to_owned()),
            ("rows?by=task", "rows", "by=task".to_owned()),
            ("lists?of=waits", "lists", format!("of=waits&limit=1000&{stretch}")),
            ("lists?of=violations", "lists", format!("of=violations&limit=1000&{stretch}")),
            ("wakers", "wakers", stretch.clone()),
            ("stats", "stats", if initial.is_some() { stretch.clone() } else { String::new() }),
            ("delays", "delays", if initial.is_some() { stretch.clone() } else { String::new() }),
        ];
        for (name, what, query) in asked {
            // What a trace does not have is missing in the file too.
            if let Ok(Body::Json(text)) = answer(loaded, what, &Query::new(&query)) {
                responses.insert(format!("api/{id}/{name}"), serde_json::from_str(&text).unwrap_or_default());
            }
        }
        for (name, by) in [("cpu", By::Cpu), ("task", By::Task)] {
            arrows.insert(format!("{id}/{name}"), packed(&spans(loaded, &indexer, by, (from, to))));
        }
        arrows.insert(format!("{id}/queue"), packed(&steps(&index.queues, index.end, (from, to))));
        if !index.frequencies.is_empty() {
            arrows.insert(format!("{id}/frequency"), packed(&steps(&index.frequencies, index.end, (from, to))));
        }
        let found = violations(loaded, index);
        let kinds = [
            (Kind::Wake, "wake", &index.wakes),
            (Kind::Migrate, "migrate", &index.moves),
            (Kind::Loss, "loss", &index.losses),
            (Kind::Violation, "violation", &found),
        ];
        for (kind, name, marks) in kinds {
            arrows.insert(format!("{id}/{name}"), packed(&all_marks(kind, marks, (from, to))));
        }
    }
    if let [a, b, ..] = traces
        && let Ok(Body::Json(text)) = measured::diff(a, b)
    {
        responses.insert("api/diff?a=0&b=1".to_owned(), serde_json::from_str(&text).unwrap_or_default());
    }
    let facts: Vec<Value> = traces.iter().map(|loaded| loaded.facts()).collect();
    let facts = json!({ "traces": facts, "view": initial.map(|initial| initial.to_json(traces)) });
    Ok(json!({ "traces": facts, "responses": responses, "arrow": arrows }))
}

fn packed(bytes: &[u8]) -> Value {
    STANDARD.encode(bytes).into()
}

fn all_marks(kind: Kind, marks: &Marks, (from, to): (Nanos, Nanos)) -> Vec<u8> {
    let touches = |mark: &Mark| mark.time <= to && mark.time + mark.duration >= from;
    let found: Vec<Mark> = marks.within(from, to + 1).map(|at| marks.get(at)).filter(touches).collect();
    mark_stream(kind, &found, found.len())
}

/// All spans of the rows.
fn spans(loaded: &Loaded, indexer: &crate::index::Indexer, by: By, (from, to): (Nanos, Nanos)) -> Vec<u8> {
    let index = &indexer.index;
    let (mut number, mut start, mut end, mut state, mut task) = (vec![], vec![], vec![], vec![], vec![]);
    for row in &loaded.rows(by, indexer, false).rows {
        let spans = match row.of {
            Of::Cpu(cpu) => index.cpus.get(cpu as usize),
            Of::Task(task) => index.tasks.get(task as usize),
            Of::Group(_) => None,
        };
        for span in spans.into_iter().flat_map(|spans| spans.within(from, to, index.end)) {
            number.push(row.row);
            start.push(span.from as f64);
            end.push(span.to as f64);
            state.push(span.state as u8);
            task.push(if span.who == NONE { u32::MAX } else { span.who });
        }
    }
    let columns = vec![
        ("row", Arc::new(UInt32Array::from(number)) as ArrayRef),
        ("start", Arc::new(Float64Array::from(start)) as ArrayRef),
        ("end", Arc::new(Float64Array::from(end)) as ArrayRef),
        ("state", Arc::new(UInt8Array::from(state)) as ArrayRef),
        ("task", Arc::new(UInt32Array::from(task)) as ArrayRef),
    ];
    stream(columns, &[])
}

/// The steps of each CPU, each until the next of that CPU. Outside of the window they are not known.
fn lengths(rows: &[Steps], end: Nanos, (from, to): (Nanos, Nanos)) -> Vec<(u32, Nanos, u32)> {
    let mut lengths = Vec::new();
    for (number, steps) in (0..).zip(rows) {
        if from > 0 {
            lengths.push((number, 0, u32::MAX));
        }
        let first = steps.find(from).unwrap_or(0);
        for (time, _, step) in (first..).map_while(|at| steps.get(at, end)).take_while(|(time, ..)| *time < to) {
            lengths.push((number, time.max(from), if step.value == UNKNOWN { u32::MAX } else { step.value as u32 }));
        }
        if to < end {
            lengths.push((number, to, u32::MAX));
        }
    }
    lengths
}

fn steps(rows: &[Steps], end: Nanos, window: (Nanos, Nanos)) -> Vec<u8> {
    let lengths = lengths(rows, end, window);
    let columns = vec![
        ("cpu", Arc::new(UInt32Array::from_iter_values(lengths.iter().map(|own| own.0))) as ArrayRef),
        ("start", Arc::new(Float64Array::from_iter_values(lengths.iter().map(|own| own.1 as f64))) as ArrayRef),
        ("length", Arc::new(UInt32Array::from_iter_values(lengths.iter().map(|own| own.2))) as ArrayRef),
    ];
    stream(columns, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Indexer;
    use schedlab_base::{Event, Meta, Payload, Sink};

    #[test]
    fn nothing_is_said_of_queues_outside_of_the_window() {
        let meta = Meta { running: vec![(0, 5)], span: Some((0, 100)), ..Meta::default() };
        let mut indexer = Indexer::new(&meta);
        let wake = |time, tid| Event { time, cpu: 0, what: Payload::Wakeup { tid, prio: 120, target: 0 } };
        indexer.events(&[wake(10, 6), wake(50, 7), wake(90, 8)]);
        indexer.finish();
        let (index, unknown) = (&indexer.index, u32::MAX);
        assert_eq!(lengths(&index.queues, 100, (40, 60)), [(0, 0, unknown), (0, 40, 2), (0, 50, 3), (0, 60, unknown)]);
        assert_eq!(lengths(&index.queues, 100, (0, 100)), [(0, 0, 1), (0, 10, 2), (0, 50, 3), (0, 90, 4)]);
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let html = format!("<!doctype html><head>{STYLE}</head><body>{SCRIPT}</body>");
        let bundle = json!({ "name": "</script><script>alert(1)</script>" });
        let page = embed(&html, "let a = 1;", "body { margin: 0 }", &bundle);
        assert_eq!(page.matches("<script").count(), 2);
        assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"));
        let hash = STANDARD.encode(Sha256::digest("let a = 1;"));
        assert!(page.contains(&format!("script-src 'sha256-{hash}'")) && !page.contains("unsafe-inline"));
        assert!(!page.contains("app.js") && !page.contains("app.css"));
    }
}
