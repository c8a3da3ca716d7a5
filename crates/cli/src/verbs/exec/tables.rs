//! What the tasks of a run report about themselves, as text.

use super::super::stats::table::grouped;
use schedlab_live::{Bursts, Execution, Reported};
use std::fmt::Write;

/// How exact the work was: one line.
pub fn bursts(execution: &Execution) -> String {
    let Bursts { count, error_us, .. } = &execution.bursts;
    if *count == 0 {
        return String::new();
    }
    format!(
        "\n{} bursts, by the threads' CPU clocks {:.1} us off on average (p90 {:.1}, p99 {:.1}, max {:.1} us); \
         calibrated at {:.3} ns a loop\n",
        grouped(*count),
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
    text + &self::bursts(execution)
}
