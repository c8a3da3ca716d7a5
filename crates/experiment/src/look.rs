//! The place in a trace that explains a figure: the longest wait of the tasks that it is of, or the longest time that a
//! CPU was idle while tasks waited for another one.

use schedlab_base::{Nanos, Result, duration_text};
use schedlab_measure::delays::Delays;
use schedlab_measure::{Bounds, Check, Chooser, Selection};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Shorter stretches of idle time beside waiting tasks are a CPU on its way to the task.
const LEAST: Nanos = 1_000_000;

/// What a figure is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    /// Patterns of task names; empty for all tasks.
    pub tasks: Vec<String>,
    /// Whether it is CPU time that was wasted.
    pub waste: bool,
}

/// A place in a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Look {
    /// The trace.
    pub trace: PathBuf,
    /// What happens there.
    pub sentence: String,
    /// What is shown around it, from the trace's start.
    pub from_ns: Nanos,
    /// The end of that.
    pub to_ns: Nanos,
    /// The row and the instant, as `schedlab view --pick` reads them.
    pub pick: String,
    /// The command that shows it.
    pub command: String,
    /// A page that shows it, as a link from the report; none if none was written.
    pub page: Option<String>,
}

/// Finds the place in a trace; none if no task waited.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn look(trace: &Path, subject: &Subject) -> Result<Option<Look>> {
    let wasted = if subject.waste { longest_violation(trace)? } else { None };
    match wasted {
        Some(found) => Ok(Some(found)),
        None => longest_wait(trace, &subject.tasks),
    }
}

/// The place in the middle of a stretch, with half of its length on both sides.
fn place(trace: &Path, (start_us, duration_us): (f64, f64), row: &str, sentence: String) -> Look {
    let us = |us: f64| us.max(0.0) as Nanos * 1000;
    let room = (duration_us / 2.0).max(10.0);
    let (from_ns, to_ns) = (us(start_us - room), us(start_us + duration_us + room));
    let at = |ns: Nanos| format!("{}us", ns / 1000);
    let pick = format!("{row}@{}", at(us(start_us + duration_us / 2.0)));
    let path = trace.to_string_lossy();
    let words =
        ["schedlab", "view", &path, "--from", &at(from_ns), "--to", &at(to_ns), "--pick", &pick].map(str::to_owned);
    let command = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
    Look { trace: trace.to_owned(), sentence, from_ns, to_ns, pick, command, page: None }
}

fn longest_violation(trace: &Path) -> Result<Option<Look>> {
    let mut source = schedlab_trace::open(trace)?;
    let mut check = Check::new(source.meta(), Bounds { threshold: LEAST, max_wasted: None });
    source.run(&mut check)?;
    let report = check.finish(None);
    let longest = report.violations.iter().max_by(|a, b| a.duration_us.total_cmp(&b.duration_us));
    Ok(longest.map(|v| {
        let waited = match &v.waiting[..] {
            [] => "a task".to_owned(),
            [task] => task.name.clone(),
            [task, ..] => format!("{} and {} more", task.name, v.waiting_tasks.saturating_sub(1)),
        };
        let long = duration_text(v.duration_us);
        let sentence = format!("CPU {} was idle for {long} while {waited} waited for CPU {}.", v.idle_cpu, v.busy_cpu);
        place(trace, (v.start_us, v.duration_us), &format!("cpu:{}", v.idle_cpu), sentence)
    }))
}

fn longest_wait(trace: &Path, tasks: &[String]) -> Result<Option<Look>> {
    let selection = Selection { names: tasks.to_vec(), ..Selection::default() };
    let mut part = None;
    if selection.chooses_tasks() {
        let mut source = schedlab_trace::open(trace)?;
        let mut chooser = Chooser::new(source.meta());
        source.run(&mut chooser)?;
        // The figure may be of tasks that this run does not have: then it is explained by all of them.
        part = chooser.finish(&selection).ok().map(|chosen| selection.part(Some(chosen))).transpose()?;
    }
    let mut source = schedlab_trace::open(trace)?;
    let mut delays = Delays::new(source.meta(), part, 1);
    source.run(&mut delays)?;
    let report = delays.finish(None);
    Ok(report.waits.first().map(|wait| {
        let long = duration_text(wait.duration_us);
        let idle = match wait.idle_allowed_us {
            idle if idle > 0.0 => {
                format!("; for {} of that another CPU was idle on which it may run", duration_text(idle))
            }
            _ => String::new(),
        };
        let sentence = format!("{} waited for {long} for CPU {}{idle}.", wait.task.task, wait.cpu);
        place(trace, (wait.start_us, wait.duration_us), &format!("task:{}", wait.task.tid), sentence)
    }))
}
