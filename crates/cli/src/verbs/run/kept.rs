//! The traces that `run --keep` keeps: those behind expectations that do not hold, each with a page that shows the
//! place.

use crate::ui::Ui;
use schedlab_base::{Error, Result};
use schedlab_experiment::{Look, Outcome};
use schedlab_measure::THRESHOLD;
use schedlab_view::{Initial, file, have_page, open, picked};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Makes the folder. One that is not empty is used with `--force` only, because the traces in it would be overwritten.
pub fn prepare(folder: &Path, force: bool) -> Result<()> {
    let failed = |e: std::io::Error| Error::input(format!("cannot be written: {e}")).file(folder).key("--keep");
    fs::create_dir_all(folder).map_err(failed)?;
    if !force && fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(Error::input("the folder is not empty").mend("choose another, or add --force").file(folder));
    }
    Ok(())
}

/// Finds the places to look at, writes their pages, and removes the traces that nobody needs.
pub fn finish(outcome: &mut Outcome, folder: &Path, report: Option<&Path>, ui: &Ui) -> Result<()> {
    outcome.find_looks()?;
    let mut needed = BTreeSet::new();
    for (number, look) in outcome.looks_mut().enumerate() {
        needed.insert(look.trace.clone());
        if !have_page() {
            continue;
        }
        let page = look.trace.with_extension(format!("{}.html", number + 1));
        match part(look) {
            Ok(text) => {
                fs::write(&page, text).map_err(|e| Error::input(format!("cannot be written: {e}")).file(&page))?;
                look.page = Some(link(&page, report));
            }
            // A wait among very many tasks does not fit into a page; the command shows it.
            Err(error) => ui.note(format!("no page was written of this place: {error}")),
        }
    }
    let runs = outcome.experiments.iter().flat_map(|judged| &judged.runs);
    let all: BTreeSet<PathBuf> = runs.filter_map(|run| run.trace.clone()).collect();
    for trace in all.difference(&needed) {
        fs::remove_file(trace).map_err(|e| Error::system("cannot be removed", &e).file(trace))?;
    }
    match needed.len() {
        0 => ui.note("every expectation holds: no trace was kept"),
        n => ui.note(format!("kept {n} {} in {}", if n == 1 { "trace" } else { "traces" }, folder.display())),
    }
    Ok(())
}

/// The page of the part of the trace around the place.
fn part(look: &Look) -> Result<String> {
    let loaded = open(0, &look.trace, THRESHOLD)?;
    loaded.read(&|| ())?;
    loaded.check()?;
    let pick = picked(&look.pick).ok();
    let initial = Initial { from: Some(look.from_ns), to: Some(look.to_ns), by: None, pick };
    file(&[Arc::new(loaded)], Some(&initial))
}

/// The page's address as the report has it: relative where the page is in the report's folder or below it.
fn link(page: &Path, report: Option<&Path>) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let page = absolute(page);
    let folder = report.map(absolute).and_then(|report| report.parent().map(Path::to_owned));
    let within = folder.as_deref().and_then(|folder| page.strip_prefix(folder).ok());
    let parts = within.unwrap_or(&page).components().filter_map(|part| match part {
        Component::Normal(name) => Some(encoded(&name.to_string_lossy())),
        _ => None,
    });
    let path = parts.collect::<Vec<_>>().join("/");
    if within.is_some() { path } else { format!("file:///{path}") }
}

/// A name as a part of an address.
fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'=' | b'+' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}
