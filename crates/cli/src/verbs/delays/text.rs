//! Delays as text for people.

use super::super::stats::table::{Table, counted, duration, grouped, percent, shorten};
use super::{Args, By};
use crate::partial;
use schedlab_base::Meta;
use schedlab_experiment::documents::gantt;
use schedlab_measure::delays::{After, CulpritSum, DelayReport, Share, TaskRef, VictimSum, Wait};
use schedlab_trace::ReadReport;
use std::fmt::Write;

/// Rows of the totals unless all are asked for.
const TOP: usize = 10;

/// Culprits of a wait that are named.
const NAMED: usize = 6;

/// The whole text: head, waits, totals, doubts.
pub fn report(args: &Args, meta: &Meta, read: &ReadReport, report: &DelayReport) -> String {
    let mut out = args.trace.display().to_string();
    for (what, value) in [("", &meta.source), ("kernel ", &meta.kernel), ("machine ", &meta.machine)] {
        if !value.is_empty() {
            let _ = write!(out, " · {what}{value}");
        }
    }
    out.push_str(&args.selection.words(duration));
    let total = &report.total;
    let _ = writeln!(
        out,
        "\n{} for {}: {} waited {}, for {} in total\n",
        counted(total.cpus, "CPU"),
        duration(total.span_us),
        counted(total.tasks, "task"),
        counted(total.waits, "time"),
        duration(total.wait_us)
    );
    out.push_str(&partial::remark(meta));
    if !report.waits.is_empty() {
        let _ = writeln!(out, "The longest waits:\n");
        for (number, wait) in (1..).zip(&report.waits) {
            out.push_str(&one(args, number, wait));
        }
    }
    out.push_str(&totals(args, report));
    doubts(&mut out, read, report);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn one(args: &Args, number: usize, wait: &Wait) -> String {
    let margin = " ".repeat(5);
    let mut out = String::new();
    let end = if wait.finished { "" } else { " (not over then)" };
    let _ = writeln!(
        out,
        "{number:>3}. {} waited {} on cpu{}, from {} to {}{end}, after {}{}",
        task(&wait.task),
        duration(wait.duration_us),
        wait.cpu,
        duration(wait.start_us),
        duration(wait.end_us),
        match wait.after {
            After::Wakeup => "a wakeup",
            After::Fork => "a fork",
            After::Preemption => "a preemption",
        },
        if wait.began_before { " before the window" } else { "" }
    );
    let _ = writeln!(out, "{margin}meanwhile: {}", meanwhile(wait));
    if wait.queues.len() > 1 {
        let queues = wait.queues.iter().map(|queue| format!("cpu{} {}", queue.cpu, duration(queue.wait_us)));
        let more = wait.queues.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more (--json shows them)") } else { String::new() };
        let _ = writeln!(out, "{margin}queues: {}{more}", queues.take(NAMED).collect::<Vec<_>>().join(", then "));
    }
    if wait.preempted_by.len() > 1 {
        let chain: Vec<String> = wait.preempted_by.iter().map(task).collect();
        let _ = writeln!(out, "{margin}preempted by {}", chain.join(", preempted by "));
    }
    if wait.idle_allowed_us > 0.0 {
        let unknown = if wait.affinity_known { "" } else { " (if it may run anywhere; its affinity is not known)" };
        let _ = writeln!(out, "{margin}another allowed CPU was idle for {}{unknown}", duration(wait.idle_allowed_us));
    }
    if wait.doubtful {
        let _ = writeln!(out, "{margin}doubtful: the trace contradicts itself; the task may have run meanwhile");
    }
    let _ = writeln!(out, "{margin}{}\n", gantt(&args.trace, wait));
    out
}

/// What ran, each with its time.
fn meanwhile(wait: &Wait) -> String {
    let part = |what: String, us: f64| {
        let share = if wait.duration_us > 0.0 { us / wait.duration_us } else { 0.0 };
        format!("{what} {} ({})", duration(us), percent(share))
    };
    let mut parts: Vec<String> =
        wait.culprits.iter().take(NAMED).map(|culprit| part(task(&culprit.task), culprit.run_us)).collect();
    let rest: f64 = wait.culprits.iter().skip(NAMED).map(|culprit| culprit.run_us).sum::<f64>() + wait.other_us;
    if rest > 0.0 {
        let more = wait.culprits.len().saturating_sub(NAMED);
        parts.push(part(counted(more as u64, "other task"), rest));
    }
    if wait.idle_us > 0.0 {
        parts.push(part("idle".to_owned(), wait.idle_us));
    }
    if wait.unknown_us > 0.0 {
        parts.push(part("unknown".to_owned(), wait.unknown_us));
    }
    parts.join(", ")
}

fn task(task: &TaskRef) -> String {
    if task.task.is_empty() { format!("tid {}", task.tid) } else { format!("{} {}", shorten(&task.task), task.tid) }
}

fn share(share: &Share) -> String {
    let name = if share.name.is_empty() { "?".to_owned() } else { shorten(&share.name) };
    share.tgid.map_or(name.clone(), |tgid| format!("{name} {tgid}"))
}

fn totals(args: &Args, report: &DelayReport) -> String {
    let (culprits, victims) = match args.by {
        By::Task => (culprits(&report.culprits, task), victims(&report.victims, task)),
        By::Name => (culprits(&report.culprits_by_name, share), victims(&report.victims_by_name, share)),
        By::Process => (culprits(&report.culprits_by_process, share), victims(&report.victims_by_process, share)),
        By::Group => (culprits(&report.culprits_by_group, share), victims(&report.victims_by_group, share)),
    };
    let total = &report.total;
    let mut out = String::new();
    if total.wait_us > 0.0 {
        let mut table = Table::new(1, ["ran while others waited", "for", "share"]);
        let mut rows = culprits;
        rows.push(["(idle, about to run it)".to_owned(), duration(total.idle_us), share_of(total.idle_us, report)]);
        rows.push(["(unknown)".to_owned(), duration(total.unknown_us), share_of(total.unknown_us, report)]);
        let last = rows.split_off(rows.len() - 2);
        out.push_str(&table_of(&mut table, rows, last, args.all));
        let mut table = Table::new(1, ["waited", "for", "share", "waits", "longest"]);
        out.push_str(&table_of(&mut table, victims, Vec::new(), args.all));
    }
    if !report.chains.is_empty() {
        let mut table = Table::new(3, ["task", "preempted by", "preempted by", "times"]);
        let row = |chain: &schedlab_measure::delays::ChainCount| {
            let [a, b, c] = chain.names.each_ref().map(|name| shorten(name));
            [a, b, c, grouped(chain.count)]
        };
        out.push_str(&table_of(&mut table, report.chains.iter().map(row).collect(), Vec::new(), args.all));
    }
    out
}

fn share_of(us: f64, report: &DelayReport) -> String {
    percent(us / report.total.wait_us)
}

/// The first rows, how many more there are, and the last ones.
fn table_of<const N: usize>(table: &mut Table, rows: Vec<[String; N]>, last: Vec<[String; N]>, all: bool) -> String {
    let limit = if all { usize::MAX } else { TOP };
    let more = rows.len().saturating_sub(limit);
    rows.into_iter().take(limit).chain(last).for_each(|row| table.row(row));
    let mut out = table.render();
    if more > 0 {
        let _ = writeln!(out, "... and {} more (--all shows them)", grouped(more as u64));
    }
    out.push('\n');
    out
}

fn culprits<K>(sums: &[CulpritSum<K>], name: impl Fn(&K) -> String) -> Vec<[String; 3]> {
    sums.iter().map(|sum| [name(&sum.of), duration(sum.caused_us), percent(sum.share)]).collect()
}

fn victims<K>(sums: &[VictimSum<K>], name: impl Fn(&K) -> String) -> Vec<[String; 5]> {
    let row = |sum: &VictimSum<K>| {
        [name(&sum.of), duration(sum.wait_us), percent(sum.share), grouped(sum.waits), duration(sum.longest_us)]
    };
    sums.iter().map(row).collect()
}

fn doubts(out: &mut String, read: &ReadReport, report: &DelayReport) {
    let total = &report.total;
    if total.losses > 0 {
        let times = counted(total.losses, "time");
        let _ = writeln!(out, "events were lost {times}: waits across these losses are left out");
    }
    if total.contradictions > 0 {
        let _ = writeln!(
            out,
            "contradictions: {} (some switches were not recorded, and what ran around them is a guess)",
            grouped(total.contradictions)
        );
    }
    if let Some(cut) = &read.cut {
        let _ = writeln!(out, "the file was cut off: {}", cut.what);
    }
}
