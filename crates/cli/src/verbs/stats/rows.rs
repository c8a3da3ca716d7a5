//! The tasks that a table lists: those that the recording was made for, or all.

use super::table::{grouped, shorten};
use schedlab_base::{Meta, counted};
use schedlab_measure::{Report, TaskCpuStats, TaskStats, TeamStats};

/// Which tasks have a row of their own.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    report: &'a Report,
    /// The other tasks, if they share a row.
    pub others: Option<&'a TeamStats>,
}

impl<'a> Rows<'a> {
    /// Those of the target, if the recording has one. With `all`, or if none of them ran, every task.
    pub fn new(report: &'a Report, all: bool) -> Self {
        let some = report.target.as_ref().is_some_and(|target| target.tasks > 0);
        let others = report.others.as_ref().filter(|others| some && !all && others.tasks > 0);
        Self { report, others }
    }

    /// The tasks with a row of their own, those of the target first.
    pub fn tasks(&self) -> Vec<&'a TaskStats> {
        let mut tasks: Vec<_> = self.report.tasks.iter().filter(|task| self.has(task.target)).collect();
        tasks.sort_by_key(|task| task.target == Some(false));
        tasks
    }

    /// The same tasks on each CPU.
    pub fn task_cpus(&self) -> Vec<&'a TaskCpuStats> {
        let rows = self.report.task_cpus.iter().flatten();
        let mut rows: Vec<_> = rows.filter(|row| self.has(row.target)).collect();
        rows.sort_by_key(|row| row.target == Some(false));
        rows
    }

    fn has(&self, target: Option<bool>) -> bool {
        self.others.is_none() || target == Some(true)
    }
}

/// What the recording was made for, as a line of text; empty if it was made for the whole machine.
pub fn target(meta: &Meta, report: &Report, rows: Rows) -> String {
    let (Some(target), Some(sums)) = (&meta.target, &report.target) else { return String::new() };
    let of = shorten_command(&target.to_string());
    let count = |n: u64| counted(n, "task");
    match (sums.tasks, rows.others) {
        (0, _) if meta.partial.is_some() => format!("target: {of}, which neither ran nor waited\n"),
        (0, _) => format!("target: {of}, which neither ran nor waited; these are the other tasks\n"),
        (n, Some(others)) => {
            let others = counted(others.tasks, "other task");
            format!("target: {of} ({}); {others} in one row (--all lists them)\n", count(n))
        }
        (n, None) if meta.partial.is_some() => format!("target: {of} ({})\n", count(n)),
        (n, None) => format!("target: {of} ({}), first in the table\n", count(n)),
    }
}

/// A command can be as long as a script.
fn shorten_command(text: &str) -> String {
    const LONGEST: usize = 60;
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The name of the row that the other tasks share.
pub fn others_name(others: &TeamStats) -> String {
    shorten(&format!("others ({})", grouped(others.tasks)))
}
