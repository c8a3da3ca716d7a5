//! Parses a document into a [`Workload`]: the top level and `global`. Tasks, their properties and events have modules
//! of their own. Checks that need the whole workload come last.

mod check;
mod event;
mod global;
mod groups;
mod irq;
mod jobs;
mod keys;
mod props;
mod recorded;
mod suspend;
mod task;
mod validation;

use crate::json::{self, Remark};
use crate::place::{At, Fields};
use crate::{Phase, Step, TaskDef, Workload};
use schedlab_base::{Error, Result};
use std::path::Path;

/// The largest number of tasks in a workload, counting instances.
pub(crate) const MAX_TASKS: u64 = 1_000_000;

/// The largest number of remarks that are kept.
const MAX_REMARKS: usize = 100;

/// Remarks about things that were accepted.
#[derive(Default)]
pub(crate) struct Remarks {
    all: Vec<Remark>,
    /// Whether a key that is not known is an error, not a remark.
    strict: bool,
}

impl Remarks {
    pub(crate) fn add(&mut self, at: &At, what: impl Into<String>) {
        self.all.push(Remark { line: at.line, key: at.path(), what: what.into() });
    }

    /// Whether there are more remarks than anyone would read.
    pub(crate) fn many(&self) -> bool {
        self.all.len() > 10 * MAX_REMARKS
    }

    /// Adds a remark about an event.
    pub(crate) fn step(&mut self, task: &TaskDef, phase: &Phase, step: &Step, what: impl Into<String>) {
        self.all.push(Remark { line: step.line, key: path_of(task, phase, &step.key), what: what.into() });
    }
}

/// The dotted path of a key in a phase.
#[must_use]
pub fn path_of(task: &TaskDef, phase: &Phase, key: &str) -> String {
    if phase.name.is_empty() {
        format!("tasks.{}.{key}", task.name)
    } else {
        format!("tasks.{}.phases.{}.{key}", task.name, phase.name)
    }
}

/// Parses a workload. `file` is used in messages, and its stem is the workload's name. No file is opened.
///
/// # Errors
/// When rt-app would refuse the text, a key or a name is unknown, or a number is out of range. The error names the
/// file, line and key.
pub fn parse(text: &[u8], file: &Path) -> Result<Workload> {
    parse_by(text, file, false)
}

/// [`parse`], except that a key that is not known is an error even if it resembles no known one.
///
/// # Errors
/// Those of [`parse`], and when a key is not known.
pub fn parse_strictly(text: &[u8], file: &Path) -> Result<Workload> {
    parse_by(text, file, true)
}

fn parse_by(text: &[u8], file: &Path, strict: bool) -> Result<Workload> {
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (mut workload, remarks) = document(text, strict).map_err(|e| e.file(file))?;
    workload.name = name;
    let mut lines: Vec<(u64, String)> = remarks
        .iter()
        .map(|r| (r.line, Error::input(&r.what).file(file).line(r.line).key(&r.key).to_string()))
        .collect();
    lines.sort_by_key(|(line, _)| *line);
    let more = lines.len().saturating_sub(MAX_REMARKS);
    workload.warnings = lines.into_iter().take(MAX_REMARKS).map(|(_, text)| text).collect();
    if more > 0 {
        workload.warnings.push(format!("{}: and {more} remarks more", file.display()));
    }
    let validated = workload.validation.as_ref().map(|own| format!("{}: {}", file.display(), own.remark()));
    workload.warnings.extend(validated);
    Ok(workload)
}

fn document(text: &[u8], strict: bool) -> Result<(Workload, Vec<Remark>)> {
    let (root, remarks) = json::read(text)?;
    let mut remarks = Remarks { all: remarks, strict };
    let at = At::root(root.line);
    let fields = Fields::of(&root, &at)?;
    keys::check_top(&fields, &mut remarks)?;
    let mut workload = Workload::default();
    if let Some(field) = fields.get("global") {
        workload.global = global::read(&Fields::of(field.value, &field.at)?, &mut remarks)?;
    }
    if let Some(field) = fields.get("resources") {
        global::check_resources(&field)?;
    }
    if let Some(field) = fields.get("x-groups") {
        workload.groups = groups::read(&field)?;
    }
    if let Some(field) = fields.get("x-sessions") {
        workload.sessions = recorded::read_sessions(&field)?;
    }
    if let Some(field) = fields.get("x-recorded") {
        workload.recorded = Some(recorded::read(&field)?);
    }
    if let Some(field) = fields.get("x-hotplug") {
        workload.hotplug = groups::read_hotplug(&field)?;
    }
    if let Some(field) = fields.get("x-irq") {
        workload.interrupts = irq::read(&field)?;
    }
    if let Some(field) = fields.get("x-validation") {
        workload.validation = Some(validation::read(&field)?);
    }
    let tasks = fields.get("tasks").ok_or_else(|| {
        at.error("no \"tasks\" here")
            .mend("a workload is { \"tasks\": { \"NAME\": { events } } }; fragments are to be merged first")
    })?;
    workload.tasks = task::read_all(&tasks, workload.global.default_policy, &mut remarks)?;
    if let Some(field) = fields.get("global") {
        workload.global.until = global::until(&Fields::of(field.value, &field.at)?, &workload.tasks)?;
    }
    suspend::resolve(&mut workload, &mut remarks);
    check::whole(&workload, &mut remarks)?;
    Ok((workload, remarks.all))
}

/// Whether a key stands for the event with this name.
pub(crate) fn is_event(key: &str, name: &str) -> bool {
    event::event_of(key).is_some_and(|(event, _)| event == name)
}
