//! The options that select a part of a trace; the same in every verb that reads one.

use crate::ui::Ui;
use schedlab_base::{Error, Nanos, Result, Tid, parse_duration};
use schedlab_measure::{Chooser, Chosen, Part, Selection};
use schedlab_trace::Input;
use std::path::Path;

/// Selects a part of a trace.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct SelectionArgs {
    /// Start this long after the start of the trace.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub from: Option<Nanos>,
    /// End this long after the start of the trace.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub to: Option<Nanos>,
    /// Select tasks with this name; * stands for any text, ? for one character. May be repeated.
    #[arg(long = "task", value_name = "PATTERN")]
    pub names: Vec<String>,
    /// Select the thread with this id, or the threads of the process with this id. May be repeated.
    #[arg(long = "pid", value_name = "PID")]
    pub pids: Vec<Tid>,
    /// Select tasks in this cgroup or in one below it; * and ? as in --task. May be repeated.
    #[arg(long = "group", value_name = "PATTERN")]
    pub groups: Vec<String>,
}

impl SelectionArgs {
    /// The selection.
    pub fn selection(&self) -> Selection {
        let Self { from, to, names, pids, groups } = self.clone();
        Selection { from, to, names, pids, groups }
    }

    /// The part of the trace that is selected; none if that is the whole. Where tasks are selected, this reads the
    /// trace for the first time.
    pub fn part(&self, trace: &Path, ui: &Ui) -> Result<Option<Part>> {
        let selection = self.selection();
        if selection.is_all() {
            return Ok(None);
        }
        // The window first: it can be refused without reading anything.
        selection.part(None)?;
        selection.part(self.chosen(trace, ui)?).map(Some)
    }

    /// The tasks that are selected; none if all are.
    pub fn chosen(&self, trace: &Path, ui: &Ui) -> Result<Option<Chosen>> {
        let selection = self.selection();
        if !selection.chooses_tasks() {
            return Ok(None);
        }
        if Input::is_read_once(trace) {
            return Err(Error::input("tasks cannot be selected from a pipe, because the trace must be read twice")
                .mend("save it to a file first")
                .file(trace));
        }
        let mut source = schedlab_trace::open(trace)?;
        let mut chooser = Chooser::new(source.meta());
        let bar = ui.progress(None, "selecting tasks");
        let read = source.run(&mut chooser);
        bar.finish_and_clear();
        read?;
        chooser.finish(&selection).map(Some).map_err(|e| e.file(trace))
    }

    /// Refuses a window in which no time passed: it begins after the end of the trace.
    pub fn check_window(&self, span_us: f64, trace: &Path) -> Result<()> {
        match self.from.filter(|from| *from > 0 && span_us == 0.0) {
            Some(_) => Err(ends_before_window(trace)),
            None => Ok(()),
        }
    }

    /// What is selected, for the head of a text; empty if that is the whole trace. `time` writes microseconds.
    pub fn words(&self, time: impl Fn(f64) -> String) -> String {
        let mut words = Vec::new();
        if self.from.is_some() || self.to.is_some() {
            let time = |ns: Nanos| time(ns as f64 / 1e3);
            let from = self.from.map_or_else(|| "the start".to_owned(), time);
            words.push(format!("from {from} to {}", self.to.map_or_else(|| "the end".to_owned(), time)));
        }
        let mut list = |what: &str, values: Vec<String>| {
            if !values.is_empty() {
                words.push(format!("{what} {}", values.join(" or ")));
            }
        };
        list("tasks", self.names.clone());
        list("pid", self.pids.iter().map(Tid::to_string).collect());
        list("group", self.groups.clone());
        if words.is_empty() { String::new() } else { format!(" · only {}", words.join(", ")) }
    }
}

/// The refusal of a window that begins after the end of the trace.
pub fn ends_before_window(trace: &Path) -> Error {
    Error::input("the trace ends before that").key("--from").file(trace)
}
