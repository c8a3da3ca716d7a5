//! Traces that a verb keeps for its report, each with pages that show the places which explain what the report says.

use crate::ui::Ui;
use schedlab_base::{Error, Result};
use schedlab_experiment::Look;
use schedlab_view::{Initial, file, have_page, open, picked};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Makes the folder, whose name reports and commands contain. One that is not empty is used with `--force` only, as the
/// traces in it would be overwritten.
pub fn prepare(folder: &Path, force: bool) -> Result<()> {
    if folder.to_str().is_none() {
        return Err(Error::input("the name is not UTF-8").mend("choose another").file(folder).key("--keep"));
    }
    let failed = |e: std::io::Error| Error::input(format!("cannot be written: {e}")).file(folder).key("--keep");
    fs::create_dir_all(folder).map_err(failed)?;
    if !force && fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(Error::input("the folder is not empty").mend("choose another, or add --force").file(folder));
    }
    Ok(())
}

/// Writes a page for each place to look at, beside its trace, and notes its address as the report links to it.
pub fn write_pages<'a>(looks: impl Iterator<Item = &'a mut Look>, report: Option<&Path>, ui: &Ui) -> Result<()> {
    if !have_page() {
        return Ok(());
    }
    for (number, look) in looks.enumerate() {
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
    Ok(())
}

/// The page of the part of the traces around the place.
fn part(look: &Look) -> Result<String> {
    let open = |(id, path): (usize, &PathBuf)| {
        let loaded = open(id, path, None)?;
        loaded.read(&|| ())?;
        loaded.check()?;
        Ok(Arc::new(loaded))
    };
    let traces: Vec<_> = look.traces.iter().enumerate().map(open).collect::<Result<_>>()?;
    file(&traces, Some(&initial(look)))
}

/// What the page shows first: the place.
pub fn initial(look: &Look) -> Initial {
    Initial { from: Some(look.from_ns), to: Some(look.to_ns), by: None, pick: picked(&look.pick).ok() }
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
