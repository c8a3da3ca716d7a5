//! What the tasks of a run report about themselves, as text.

use super::super::stats::table::{counted, grouped};
use schedlab_live::{Bursts, Computed, Execution, Reported};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What the tasks with `x-work` computed: a line for each kind.
fn computed(execution: &Execution) -> String {
    let mut kinds: BTreeMap<(&str, &str), Vec<&Computed>> = BTreeMap::new();
    for computed in execution.tasks.iter().filter_map(|task| task.computed.as_ref()) {
        kinds.entry((&computed.work, &computed.unit)).or_default().push(computed);
    }
    let mut text = String::new();
    for ((work, unit), of) in kinds {
        let rates = || of.iter().map(|computed| computed.rate);
        let _ = write!(
            text,
            "\n{work}, {}: {} {unit} in all, {} to {} each; ",
            counted(of.len() as u64, "task"),
            grouped(rates().sum::<f64>() as u64),
            grouped(rates().fold(f64::INFINITY, f64::min) as u64),
            grouped(rates().fold(0.0, f64::max) as u64),
        );
        let checked: u64 = of.iter().map(|computed| computed.checked).sum();
        let worst = of.iter().filter_map(|computed| computed.error).fold(0.0, f64::max);
        let _ = match (checked, of.iter().any(|computed| computed.passed == Some(false))) {
            (0, _) => writeln!(text, "no result was checked, because none was complete: run it for longer"),
            (_, false) => {
                writeln!(text, "{} checked, with an error of at most {worst:.2e}", counted(checked, "result"))
            }
            (_, true) => writeln!(text, "{} results checked, and SOME ARE WRONG", grouped(checked)),
        };
    }
    text
}

/// What was computed, and how exact the work was.
pub fn work(execution: &Execution) -> String {
    let Bursts { count, timed, error_us, .. } = &execution.bursts;
    if *timed == 0 {
        return computed(execution);
    }
    computed(execution)
        + &format!(
            "\n{} bursts; the {} that were timed by the threads' CPU clocks are {:.1} us off on average (p90 {:.1}, \
             p99 {:.1}, max {:.1} us); calibrated at {:.3} ns a loop\n",
            grouped(*count),
            grouped(*timed),
            error_us.mean,
            error_us.p90,
            error_us.p99,
            error_us.max,
            execution.calibration.ns_per_loop
        )
}

/// A row for each task.
pub fn tasks(workload: &str, kernel: &str, execution: &Execution) -> String {
    let width = execution.tasks.iter().map(|task| task.name.chars().count()).max().unwrap_or(0).max(4);
    let mut text =
        format!("{workload} on this machine, {kernel}: {:.3} s, not recorded\n\n", execution.duration_us / 1e6);
    let _ = writeln!(
        text,
        "{:width$}  {:>9}  {:>12}  {:>9}  {:>9}  {:>8}  {:>6}  ended",
        "task", "bursts", "CPU ms", "error us", "max us", "periods", "missed"
    );
    for Reported { name, ended, cpu_us, bursts, periods, missed, .. } in &execution.tasks {
        let _ = writeln!(
            text,
            "{name:width$}  {:>9}  {:>12.3}  {:>9.1}  {:>9.1}  {:>8}  {:>6}  {}",
            grouped(bursts.count),
            cpu_us / 1e3,
            bursts.error_us.mean,
            bursts.error_us.max,
            grouped(*periods),
            grouped(*missed),
            if *ended { "yes" } else { "no" }
        );
    }
    text + &work(execution)
}
