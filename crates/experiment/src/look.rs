//! The place in a trace that explains a figure: the longest wait of the tasks that it is of, or the longest time that a
//! CPU was idle while tasks waited for another one.

use crate::expr::{Expr, Reference, Selector};
use crate::measures;
use schedlab_base::{Nanos, Result, duration_text, path_text, path_texts};
use schedlab_measure::delays::Delays;
use schedlab_measure::{Bounds, Check, Chooser, Selection};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Shorter stretches of idle time beside waiting tasks are a CPU on its way to the task.
const LEAST: Nanos = 1_000_000;

/// What a figure is about.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Patterns of task names; empty for all tasks.
    pub tasks: Vec<String>,
    /// Whether it is CPU time that was wasted.
    pub waste: bool,
}

impl Subject {
    /// The tasks that an expression over these metrics names, and whether it is about waste.
    pub(crate) fn of(expr: &Expr, metrics: &BTreeMap<String, Expr>) -> Self {
        let mut subject = Self::default();
        let mut note = |reference: &Reference| {
            subject.waste |= measures::find(&reference.path).is_some_and(|measure| measure.is_of_waste());
            for selector in &reference.selectors {
                if let Selector::Pattern(pattern) = selector
                    && !subject.tasks.contains(pattern)
                {
                    subject.tasks.push(pattern.clone());
                }
            }
        };
        expr.references(&mut |reference| match metrics.get(&reference.path) {
            // A metric may be called as the measure that it is of.
            Some(metric) => metric.references(&mut note),
            None => note(reference),
        });
        subject
    }

    /// The tasks that any of the two names, and whether any is about waste.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.waste |= other.waste;
        self.tasks.extend(other.tasks);
        self
    }
}

/// A place in a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Look {
    /// The trace.
    #[serde(serialize_with = "path_text")]
    pub trace: PathBuf,
    /// All traces that are shown above each other there; the trace is one of them.
    #[serde(serialize_with = "path_texts")]
    pub traces: Vec<PathBuf>,
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

impl Look {
    /// The same place, with all of these traces above each other.
    #[must_use]
    pub(crate) fn among(mut self, traces: &[PathBuf]) -> Self {
        self.traces = traces.to_vec();
        let number = traces.iter().position(|own| *own == self.trace).map_or(1, |at| at + 1);
        if number > 1 {
            self.pick = format!("{number}/{}", self.pick);
        }
        self.command = self.written();
        self
    }

    fn written(&self) -> String {
        let paths = self.traces.iter().map(|path| path.to_string_lossy().into_owned());
        let window = ["--from", &at(self.from_ns), "--to", &at(self.to_ns), "--pick", &self.pick].map(str::to_owned);
        let words: Vec<String> =
            ["schedlab", "view"].map(str::to_owned).into_iter().chain(paths).chain(window).collect();
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
    }
}

/// Finds the place in a trace; none if no task waited.
///
/// # Errors
/// When the trace cannot be read.
pub fn look(trace: &Path, subject: &Subject) -> Result<Option<Look>> {
    Ok(found(trace, subject)?.map(|place| place.look))
}

/// Finds the place in several traces that are shown above each other: in the one where it lasts longest.
///
/// # Errors
/// When one of them cannot be read.
pub fn look_among(traces: &[PathBuf], subject: &Subject) -> Result<Option<Look>> {
    let mut longest: Option<Place> = None;
    for trace in traces {
        if let Some(place) = found(trace, subject)?
            && longest.as_ref().is_none_or(|longest| place.rank() > longest.rank())
        {
            longest = Some(place);
        }
    }
    Ok(longest.map(|place| place.look.among(traces)))
}

/// A place, and how long what happens there lasts.
struct Place {
    look: Look,
    duration_us: f64,
    waste: bool,
}

impl Place {
    /// Waste that was asked for comes before any wait.
    fn rank(&self) -> (bool, f64) {
        (self.waste, self.duration_us)
    }
}

fn found(trace: &Path, subject: &Subject) -> Result<Option<Place>> {
    let wasted = if subject.waste { longest_violation(trace)? } else { None };
    match wasted {
        Some(found) => Ok(Some(found)),
        None => longest_wait(trace, &subject.tasks),
    }
}

/// An instant as the command's options read it.
fn at(ns: Nanos) -> String {
    format!("{}us", ns / 1000)
}

/// The place in the middle of a stretch, with half of its length on both sides.
fn place(trace: &Path, (start_us, duration_us): (f64, f64), row: &str, sentence: String) -> Look {
    let us = |us: f64| us.max(0.0) as Nanos * 1000;
    let room = (duration_us / 2.0).max(10.0);
    let (from_ns, to_ns) = (us(start_us - room), us(start_us + duration_us + room));
    let pick = format!("{row}@{}", at(us(start_us + duration_us / 2.0)));
    let (trace, command) = (trace.to_owned(), String::new());
    let traces = vec![trace.clone()];
    let mut look = Look { trace, traces, sentence, from_ns, to_ns, pick, command, page: None };
    look.command = look.written();
    look
}

fn longest_violation(trace: &Path) -> Result<Option<Place>> {
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
        let look = place(trace, (v.start_us, v.duration_us), &format!("cpu:{}", v.idle_cpu), sentence);
        Place { look, duration_us: v.duration_us, waste: true }
    }))
}

fn longest_wait(trace: &Path, tasks: &[String]) -> Result<Option<Place>> {
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
        let look = place(trace, (wait.start_us, wait.duration_us), &format!("task:{}", wait.task.tid), sentence);
        Place { look, duration_us: wait.duration_us, waste: false }
    }))
}
