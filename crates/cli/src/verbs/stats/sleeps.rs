//! What tasks slept for, as text.

use super::table::{Table, duration, grouped};
use schedlab_measure::Report;

/// A table, if the trace contains it.
pub fn text(report: &Report) -> String {
    if report.sleeps.is_empty() {
        return String::new();
    }
    let mut table = Table::new(1, ["slept for", "times", "time", "mean", "longest"]);
    for s in &report.sleeps {
        let mean = duration(s.slept_us / s.count.max(1) as f64);
        table.row([s.why.to_owned(), grouped(s.count), duration(s.slept_us), mean, duration(s.longest_us)]);
    }
    format!("\n{}\n", table.render())
}
