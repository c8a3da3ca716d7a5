//! What interrupts took, as text: by CPU, and by kind.

use super::table::{Table, duration, grouped, percent};
use schedlab_base::total;
use schedlab_measure::{InterruptStats, Report};
use std::collections::BTreeMap;

/// The kinds, as the columns have them.
const KINDS: [&str; 4] = ["timer", "irq", "softirq", "steal"];

/// Two tables, if the trace has interrupts: the time by CPU and kind, and by what they were.
pub fn text(report: &Report, limit: usize) -> String {
    let all = &report.interrupts;
    if all.is_empty() {
        return String::new();
    }
    let time = |of: &dyn Fn(&InterruptStats) -> bool| total(all.iter().filter(|i| of(i)).map(|i| i.took_us));
    let span = report.total.span_us;
    let mut cpus = Table::new(1, ["interrupts"].into_iter().chain(KINDS).chain(["together", "of time"]));
    let mut row = |head: String, on: &dyn Fn(&InterruptStats) -> bool, span: f64| {
        let kinds = KINDS.map(|kind| duration(time(&|i| i.kind == kind && on(i))));
        let sum = time(on);
        cpus.row([head].into_iter().chain(kinds).chain([duration(sum), percent(sum / span.max(1e-9))]));
    };
    for cpu in report.cpus.iter().map(|cpu| cpu.cpu).take(limit) {
        row(format!("CPU {cpu}"), &|i| i.cpu == cpu, span);
    }
    row("total".to_owned(), &|_| true, span * report.cpus.len() as f64);
    let mut by_name: BTreeMap<(&str, u16), (u64, f64, f64)> = BTreeMap::new();
    for i in all {
        let (count, took, longest) = by_name.entry((i.kind, i.number)).or_default();
        *count += i.count;
        *took += i.took_us;
        *longest = longest.max(i.longest_us);
    }
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.sort_by(|(_, a), (_, b)| b.1.total_cmp(&a.1));
    let mut kinds = Table::new(1, ["interrupt", "times", "time", "mean", "longest"]);
    for ((kind, number), (count, took, longest)) in rows.into_iter().take(limit) {
        let name = all.iter().find(|i| (i.kind, i.number) == (kind, number)).and_then(|i| i.name);
        let head = match (kind, name) {
            (_, Some(name)) => format!("{kind} {name}"),
            ("irq" | "softirq", None) => format!("{kind} {number}"),
            _ => kind.to_owned(),
        };
        kinds.row([head, grouped(count), duration(took), duration(took / count as f64), duration(longest)]);
    }
    format!("\n{}\n{}\n", cpus.render(), kinds.render())
}
