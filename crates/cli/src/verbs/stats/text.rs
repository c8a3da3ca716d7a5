//! Statistics as text for people.

use super::By;
use super::interrupts;
use super::rows::{self, Rows};
use super::sleeps;
use super::table::{Table, counted, duration, grouped, kinds_text, percent, shorten};
use crate::partial;
use schedlab_base::{Coverage, Meta};
use schedlab_measure::{
    CpuStats, Fairness, GroupStats, NameStats, NodeStats, ProcessStats, QueueLength, Report, Sums, TaskCpuStats,
    TaskStats, TotalStats,
};
use schedlab_trace::ReadReport;
use std::fmt::Write;

/// So many rows unless all are asked for.
const TOP: usize = 30;

/// The whole text: head, table, totals, doubts. `title` is the file or what else the trace comes from.
pub fn report(title: &str, meta: &Meta, read: &ReadReport, report: &Report, by: By, all: bool) -> String {
    let mut out = head(title, meta, report);
    let limit = if all { usize::MAX } else { TOP };
    let listed = Rows::new(report, all);
    out.push_str(&rows::target(meta, report, listed));
    out.push_str(&partial::remark(meta));
    out.push_str(&nothing(report));
    out.push('\n');
    let (mut table, rows) = match by {
        By::Task => (tasks(report, listed, limit), listed.tasks().len()),
        By::TaskCpu => (task_cpus(listed, limit), listed.task_cpus().len()),
        By::Cpu => (cpus(report, limit), report.cpus.len()),
        By::Node => (nodes(report, limit), report.nodes.len()),
        By::Group => (groups(report, limit), report.groups.len()),
        By::Process => (processes(report, limit), report.processes.len()),
        By::Name => (names(report, limit), report.names.len()),
    };
    let covers = meta.covers();
    covers.iter().for_each(|covers| unknown_heads(*covers).for_each(|head| table.drop_head(head)));
    out.push_str(&table.render());
    if rows > limit {
        let _ = writeln!(out, "... and {} more (--all shows them)", grouped((rows - limit) as u64));
    }
    out.push('\n');
    if covers.is_none() {
        out.push_str(&foot(by, report));
    }
    if covers.is_none_or(|covers| covers == Coverage::Tasks) {
        out.push_str(&waits(report));
    }
    out.push_str(&interrupts::text(report, limit));
    out.push_str(&sleeps::text(report));
    out.push_str(&doubts(read, report, covers));
    out
}

fn head(title: &str, meta: &Meta, report: &Report) -> String {
    let total = &report.total;
    let mut out = title.to_owned();
    for (what, value) in [("", &meta.source), ("kernel ", &meta.kernel), ("machine ", &meta.machine)] {
        if !value.is_empty() {
            let _ = write!(out, " · {what}{value}");
        }
    }
    let _ = writeln!(
        out,
        "\n{} for {}: {}, {}",
        counted(total.cpus, "CPU"),
        duration(total.span_us),
        counted(total.tasks, "task"),
        counted(total.events, "event")
    );
    out
}

const FIGURES: [&str; 12] = [
    "run",
    "share",
    "wait",
    "slices",
    "volunt",
    "involunt",
    "migr",
    "lat p50",
    "lat p99",
    "lat max",
    "delay max",
    "at",
];

/// Says that there is nothing, if there is nothing.
fn nothing(report: &Report) -> String {
    match report.total.events {
        // In a part of a trace a task may run or wait without any event.
        0 if report.total.tasks == 0 => format!("no events were recorded in {}\n", duration(report.total.span_us)),
        _ => String::new(),
    }
}

/// The columns that a partial recording cannot fill, by their figures.
fn unknown_heads(covers: Coverage) -> impl Iterator<Item = &'static str> {
    schedlab_measure::partial::unknown(covers)
        .flat_map(|key| match key {
            "run_us" => &["run", "of task"][..],
            "share" => &["share"],
            "wait_us" => &["wait"],
            "slices" => &["slices"],
            "migrations" => &["migr"],
            "latency_us" => &["lat p50", "lat p99", "lat max"],
            "delay_us" => &["delay max", "at"],
            "queue" => &["queue"],
            "fairness" => &["Jain"],
            _ => &[],
        })
        .copied()
}

/// Some recorders write wakings only (`perf sched record` among them): then latency is from there.
fn only_wakings(report: &Report) -> bool {
    report.total.sums.latency.latency_us.count == 0 && report.total.sums.latency.waking_latency_us.count > 0
}

fn figures(sums: &Sums, share: f64, total: &TotalStats) -> Vec<String> {
    let measured = sums.latency.of_wakeups();
    let delay = &sums.latency.delay_us;
    // From the trace's start, as --from and --to take it.
    let began = sums.latency.delay_max_start_us.map(|start| start - total.trace_start_us);
    let latency = |us: f64| if measured.count == 0 { "-".to_owned() } else { duration(us) };
    vec![
        duration(sums.run.run_us),
        percent(share),
        duration(sums.wait.wait_us),
        grouped(sums.switches.slices),
        grouped(sums.switches.voluntary),
        grouped(sums.switches.involuntary),
        grouped(sums.moves.migrations),
        latency(measured.p50),
        latency(measured.p99),
        latency(measured.max),
        if delay.count == 0 { "-".to_owned() } else { duration(delay.max) },
        began.map_or_else(|| "-".to_owned(), duration),
    ]
}

fn tasks(report: &Report, rows: Rows, limit: usize) -> Table {
    let mut table = Table::new(2, ["task", "group", "tid", "allowed"].into_iter().chain(FIGURES));
    let listed = rows.tasks();
    let grouped = listed.iter().any(|task| task.group.is_some());
    for task in listed.iter().take(limit) {
        let TaskStats { name, tid, group, sums, share, .. } = task;
        let group = group.as_deref().unwrap_or(if grouped { "?" } else { "" });
        let allowed = allowed(report, task).unwrap_or_else(|| "?".to_owned());
        let names = [shown(name), shorten(group), tid.to_string(), allowed];
        table.row(names.into_iter().chain(figures(sums, *share, &report.total)));
    }
    let together = |name: String, sums: &Sums, share: f64| {
        let names = [name, String::new(), String::new(), String::new()];
        names.into_iter().chain(figures(sums, share, &report.total))
    };
    if let Some(others) = rows.others {
        table.row(together(rows::others_name(others), &others.sums, others.share));
    }
    table.row(together("total".to_owned(), &report.total.sums, whole(report)));
    if !listed.iter().any(|task| allowed(report, task).is_some_and(|cpus| cpus != ANYWHERE)) {
        table.drop_head("allowed");
    }
    if !grouped {
        table.drop_head("group");
    }
    table
}

/// What stands for all the CPUs of the trace.
const ANYWHERE: &str = "all";

/// Where a task may run, if the trace shows it.
fn allowed(report: &Report, task: &TaskStats) -> Option<String> {
    let cpus = task.allowed.as_deref()?;
    let all = report.cpus.iter().all(|cpu| cpus.contains(cpu.cpu));
    Some(if all { ANYWHERE.to_owned() } else { cpus.to_string() })
}

fn task_cpus(rows: Rows, limit: usize) -> Table {
    let mut table = Table::new(1, ["task", "tid", "cpu", "run", "of task", "wait", "slices"]);
    for row in rows.task_cpus().into_iter().take(limit) {
        let TaskCpuStats { name, tid, cpu, run_us, run_share, wait_us, slices, .. } = row;
        let figures = [duration(*run_us), percent(*run_share), duration(*wait_us), grouped(*slices)];
        table.row([shown(name), tid.to_string(), cpu.to_string()].into_iter().chain(figures));
    }
    table
}

/// The share of all tasks together.
fn whole(report: &Report) -> f64 {
    if report.total.sums.run.run_us > 0.0 { 1.0 } else { 0.0 }
}

/// The time of a CPU, node or machine of which nobody ran anything, and that of which nothing is known.
struct Off {
    idle_us: f64,
    unknown_us: f64,
}

/// A row of so many CPUs shows how busy they were: the part of the time that is known.
fn place_row(sums: &Sums, off: &Off, queue: &QueueLength, cpus: usize, total: &TotalStats) -> Vec<String> {
    let mut row = figures(sums, busy(sums, off, cpus, total), total);
    row.splice(2..2, [duration(off.idle_us), duration(off.unknown_us)]);
    row.extend([format!("{:.2}", queue.mean), queue.max.to_string()]);
    row
}

/// The part of the known time of so many CPUs that the row's tasks ran.
fn busy(sums: &Sums, off: &Off, cpus: usize, total: &TotalStats) -> f64 {
    let known = total.span_us * cpus as f64 - off.unknown_us;
    if known > 0.0 { sums.run.run_us / known } else { 0.0 }
}

fn all_off(total: &TotalStats) -> Off {
    Off { idle_us: total.idle_us, unknown_us: total.unknown_us }
}

fn place_table(names: &[&'static str]) -> Table {
    let mut heads: Vec<&str> = names.iter().copied().chain(FIGURES).chain(["queue", "max"]).collect();
    let run = names.len();
    heads[run + 1] = "busy";
    heads.splice(run + 2..run + 2, ["idle", "unknown"]);
    Table::new(0, heads)
}

fn cpus(report: &Report, limit: usize) -> Table {
    let mut table = place_table(&["cpu", "node"]);
    for CpuStats { cpu, node, idle_us, unknown_us, sums, queue, .. } in report.cpus.iter().take(limit) {
        let off = Off { idle_us: *idle_us, unknown_us: *unknown_us };
        let figures = place_row(sums, &off, queue, 1, &report.total);
        table.row([cpu.to_string(), node.to_string()].into_iter().chain(figures));
    }
    let total = &report.total;
    let figures = place_row(&total.sums, &all_off(total), &total.queue, total.cpus as usize, total);
    table.row(["total".to_owned(), String::new()].into_iter().chain(figures));
    table
}

fn nodes(report: &Report, limit: usize) -> Table {
    let mut table = place_table(&["node", "cpus"]);
    for NodeStats { node, cpus, idle_us, unknown_us, sums, queue, .. } in report.nodes.iter().take(limit) {
        let off = Off { idle_us: *idle_us, unknown_us: *unknown_us };
        let figures = place_row(sums, &off, queue, cpus.len(), &report.total);
        table.row([node.to_string(), cpus.len().to_string()].into_iter().chain(figures));
    }
    let total = &report.total;
    let figures = place_row(&total.sums, &all_off(total), &total.queue, total.cpus as usize, total);
    table.row(["total".to_owned(), total.cpus.to_string()].into_iter().chain(figures));
    table
}

fn groups(report: &Report, limit: usize) -> Table {
    let total = &report.total;
    let mut table = Table::new(1, ["group", "tasks"].into_iter().chain(FIGURES).chain(["queue", "Jain"]));
    for GroupStats { group, tasks, share, sums, fairness, queue_mean } in report.groups.iter().take(limit) {
        let name = group.as_deref().map_or("(no group known)".to_owned(), shorten);
        let ends = [format!("{queue_mean:.2}"), format!("{:.3}", fairness.jain)];
        table.row([name, grouped(*tasks)].into_iter().chain(figures(sums, *share, total)).chain(ends));
    }
    let ends = [format!("{:.2}", total.queue.mean), format!("{:.3}", total.fairness.jain)];
    let figures = figures(&total.sums, whole(report), total).into_iter().chain(ends);
    table.row(["total".to_owned(), grouped(total.tasks)].into_iter().chain(figures));
    table
}

fn processes(report: &Report, limit: usize) -> Table {
    let total = &report.total;
    let mut table = Table::new(1, ["process", "pid", "tasks"].into_iter().chain(FIGURES));
    for ProcessStats { tgid, name, team } in report.processes.iter().take(limit) {
        let pid = tgid.map_or_else(|| "?".to_owned(), |tgid| tgid.to_string());
        let figures = figures(&team.sums, team.share, total);
        table.row([shown(name), pid, grouped(team.tasks)].into_iter().chain(figures));
    }
    let figures = figures(&total.sums, whole(report), total);
    table.row(["total".to_owned(), String::new(), grouped(total.tasks)].into_iter().chain(figures));
    table
}

fn names(report: &Report, limit: usize) -> Table {
    let total = &report.total;
    let mut table = Table::new(1, ["name", "tasks"].into_iter().chain(FIGURES));
    for NameStats { name, team } in report.names.iter().take(limit) {
        let figures = figures(&team.sums, team.share, total);
        table.row([shown(name), grouped(team.tasks)].into_iter().chain(figures));
    }
    let figures = figures(&total.sums, whole(report), total);
    table.row(["total".to_owned(), grouped(total.tasks)].into_iter().chain(figures));
    table
}

fn shown(name: &str) -> String {
    if name.is_empty() { "?".to_owned() } else { shorten(name) }
}

/// The figures of the whole that have no column.
fn foot(by: By, report: &Report) -> String {
    let total = &report.total;
    let mut out = String::new();
    if !matches!(by, By::Cpu | By::Node) {
        let busy = busy(&total.sums, &all_off(total), total.cpus as usize, total);
        let told = total.sums.run.run_us + total.idle_us + total.unknown_us;
        // The rest of the time was that of tasks that are not selected.
        let all = total.span_us * total.cpus as f64 - told < 1.0;
        let _ = writeln!(
            out,
            "CPUs busy{} {}, idle {}; run queues {:.2} runnable on average, {} at most",
            if all { "" } else { " with these tasks" },
            percent(busy),
            duration(total.idle_us),
            total.queue.mean,
            total.queue.max
        );
    }
    let (what, fairness): (_, &Fairness) = match by {
        By::Task | By::TaskCpu | By::Process | By::Name => ("task", &total.fairness),
        By::Cpu => ("CPU", &total.fairness_cpus),
        By::Node => ("node", &total.fairness_nodes),
        By::Group => ("group", &total.fairness_groups),
    };
    let _ = writeln!(
        out,
        "run time among {}: Jain's index {:.4}, variance of the shares {:.3e}",
        counted(fairness.parties, what),
        fairness.jain,
        fairness.share_variance
    );
    out
}

/// What there is to say of waits and latencies.
fn waits(report: &Report) -> String {
    let (total, mut out) = (&report.total, String::new());
    if only_wakings(report) {
        out.push_str("latency is from waking to running: no wakeup of these tasks was recorded\n");
    }
    if total.sums.wait.wait_unfinished_us > 0.0 {
        let _ = writeln!(out, "{} of the wait was under way at the end", duration(total.sums.wait.wait_unfinished_us));
    }
    out
}

/// What makes the figures less than certain.
fn doubts(read: &ReadReport, report: &Report, covers: Option<Coverage>) -> String {
    let total = &report.total;
    let mut out = String::new();
    if total.losses > 0 {
        let _ = writeln!(
            out,
            "LOST: the recorder lost {} or more, in {}",
            counted(total.lost_events, "event"),
            counted(total.losses, "place")
        );
    }
    if total.unknown_us > 0.0 && covers.is_none() {
        let _ = writeln!(
            out,
            "unknown: what ran during {} of the CPUs' time (before a CPU's first switch, or around lost events)",
            duration(total.unknown_us)
        );
    }
    if let Some(cut) = &read.cut {
        let _ = writeln!(out, "CUT at byte {}: {}", grouped(cut.offset), cut.what);
    }
    if read.skipped > 0 {
        let kinds = if read.kinds.is_empty() { String::new() } else { format!(": {}", kinds_text(read)) };
        let _ = writeln!(out, "skipped: {} of kinds that are not read{kinds}", counted(read.skipped, "record"));
    }
    // Only times depend on them, and a recording from inside has none.
    if total.contradictions > 0 && covers != Some(Coverage::Inside) {
        let what = match covers {
            Some(Coverage::Tasks) => "run time or waits is not counted",
            _ => "run or idle time is a guess",
        };
        let _ = writeln!(
            out,
            "contradictions: {} (some switches were not recorded); {} of {what} because of that",
            grouped(total.contradictions),
            duration(total.contradicted_us)
        );
    }
    out
}
