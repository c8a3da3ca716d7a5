//! `schedlab check`: CPUs that were idle while tasks waited that were allowed to run there, in a trace or on this
//! machine.

mod live;
mod sampled;

use super::stats::table::{Table, counted, duration, grouped, percent, shorten};
use crate::partial;
use crate::selection::SelectionArgs;
use crate::ui::Ui;
use live::LiveArgs;
use sampled::Compared;
use schedlab_base::{Meta, Nanos, Result, parse_duration};
use schedlab_experiment::documents;
use schedlab_measure::{BoundWaiting, Bounds, Check, CheckReport, SampledCheck, THRESHOLD, Timing, Verdict, Violation};
use schedlab_trace::ReadReport;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `check` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  schedlab check trace.arrows
  schedlab check trace.arrows --threshold 20ms --max-wasted 500ms
  schedlab check trace.arrows --from 10s --to 20s --task 'worker*'
  schedlab check trace.arrows --every 1s --watch 100ms
  schedlab check --live
  schedlab check --live --json --metrics 127.0.0.1:9750 >> violations.jsonl
  schedlab check trace.arrows --json | jq '.violations[] | select(.level == \"numa\")'

Exit status: 0 no violation, 1 violations (with --max-wasted: more CPU time was wasted), 2 bad input or output
that cannot be written, 3 undecided: the trace has no events, covers only a part of the machine, has too many losses
or contradictions, or does not say enough about what the CPUs did. With --live: 0 none was found, 1 some were, 3 it
ended before the first look, 4 a right is missing.")]
pub struct Args {
    /// The trace: a file from `schedlab record`, `sim` or `import`, or a perf.data file.
    #[arg(required_unless_present = "live")]
    trace: Option<PathBuf>,
    /// Report a CPU that is idle for longer than this while tasks wait [default: 100ms].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    threshold: Option<Nanos>,
    /// Judge by the total of wasted CPU time alone, and accept up to this much.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    max_wasted: Option<Nanos>,
    /// Look only this often, as --live does [default: 1s]. With a trace, the verdict is by what these looks find.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    every: Option<Nanos>,
    /// Report what lasts for this long after a look [default: 100ms].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    watch: Option<Nanos>,
    /// Print every violation and all waiting by affinity, not just the longest.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Waiting by affinity is listed from this on, unless all is asked for.
const LEAST_BOUND_US: f64 = 1000.0;

/// So many sets of CPUs are listed, unless all are asked for, and so many tasks of each.
const TOP_BOUND: usize = 5;

/// So many violations unless all are asked for.
const TOP: usize = 20;

/// Reads the trace, prints what was found, and judges.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let timing = sampled::timing(args.every, args.watch)?;
    match &args.trace {
        None => live::run(&args, timing, ui),
        Some(trace) => of_trace(&args, trace, timing, ui),
    }
}

fn of_trace(args: &Args, file: &Path, timing: Timing, ui: &Ui) -> Result<ExitCode> {
    let part = args.selection.part(file, ui)?;
    let mut source = schedlab_trace::open(file)?;
    let looks = args.every.is_some() || args.watch.is_some();
    let threshold = args.threshold.unwrap_or(if looks { timing.watch } else { THRESHOLD });
    let bounds = Bounds { threshold, max_wasted: args.max_wasted };
    let mut sampled = looks.then(|| SampledCheck::new(source.meta(), timing, part.clone()));
    let mut check = Check::of_part(source.meta(), bounds, part);
    let bar = ui.progress(None, "reading");
    let read = match &mut sampled {
        Some(sampled) => source.run(&mut (&mut check, sampled)),
        None => source.run(&mut check),
    };
    bar.finish_and_clear();
    let read = read?;
    read.refuse_if_nothing_is_left(file)?;
    let mut report = check.finish(None);
    args.selection.check_window(report.span_us, file)?;
    let sampled = sampled.map(SampledCheck::finish);
    let sampled = sampled.as_ref().map(|sampled| Compared::new(sampled, &report));
    if let Some(sampled) = &sampled {
        report.verdict = sampled.verdict(&report);
    }
    if ui.json {
        let sampled = sampled.as_ref().map(|s| serde_json::to_value(s).expect("plain data is always JSON"));
        ui.print_json(&documents::check(file, source.meta(), &read, &report, sampled));
    } else {
        ui.print(&text(args, file, source.meta(), &read, &report, sampled.as_ref()));
    }
    Ok(ExitCode::from(match report.verdict {
        Verdict::Pass => 0,
        Verdict::Fail => 1,
        Verdict::Undecided => 3,
    }))
}

fn text(
    args: &Args,
    file: &Path,
    meta: &Meta,
    read: &ReadReport,
    report: &CheckReport,
    sampled: Option<&Compared>,
) -> String {
    let mut out = file.display().to_string();
    for (what, value) in [("", &meta.source), ("kernel ", &meta.kernel), ("machine ", &meta.machine)] {
        if !value.is_empty() {
            let _ = write!(out, " · {what}{value}");
        }
    }
    out.push_str(&args.selection.words(duration));
    let _ = writeln!(
        out,
        "\n{} for {}: {}, {}\n",
        counted(report.cpus, "CPU"),
        duration(report.span_us),
        counted(report.tasks, "task"),
        counted(report.events, "event")
    );
    if meta.partial.is_some() {
        return out + &partial::remark(meta) + &verdict(report);
    }
    out.push_str(&violations(args, report));
    out.push_str(&bound(args, report));
    out.push_str(&sampled.map_or_else(String::new, |sampled| sampled.text(args.all)));
    let _ = writeln!(
        out,
        "wasted: {} of CPU time ({} of what the CPUs had), idle in all: {}",
        duration(report.wasted_cpu_us),
        percent(report.wasted_share),
        duration(report.idle_us)
    );
    doubts(&mut out, read, report);
    out.push_str(&match sampled {
        None => verdict(report),
        Some(_) => sampled_verdict(report),
    });
    out
}

fn violations(args: &Args, report: &CheckReport) -> String {
    let threshold = duration(report.threshold_us);
    let count = report.violations.len() as u64 + report.violations_left_out;
    if count == 0 {
        return format!("No CPU was idle for more than {threshold} while a task waited that could have run there.\n\n");
    }
    let mut longest: Vec<&Violation> = report.violations.iter().collect();
    longest.sort_by(|a, b| b.duration_us.total_cmp(&a.duration_us).then(a.start_us.total_cmp(&b.start_us)));
    longest.truncate(if args.all { usize::MAX } else { TOP });
    let mut table = Table::new(6, ["from", "for", "idle", "busy", "level", "waiting", "balancer"]);
    for v in &longest {
        table.row([
            duration(v.start_us),
            format!("{}{}", duration(v.duration_us), if v.until_end { " (to the end)" } else { "" }),
            format!("cpu{}", v.idle_cpu),
            format!("cpu{}", v.busy_cpu),
            v.distance.map_or_else(|| v.level.name().to_owned(), |d| format!("{} {d}", v.level.name())),
            waiting(v),
            balancer(v),
        ]);
    }
    let mut out = format!(
        "{} a CPU was idle for more than {threshold} while tasks waited that could have run there\n\n{}",
        counted(count, "time"),
        table.render()
    );
    let more = count - longest.len() as u64;
    if more > 0 {
        let how = if args.all { "they are not kept" } else { "--all shows them" };
        let _ = writeln!(out, "... and {} more ({how})", grouped(more));
    }
    out.push('\n');
    out
}

/// Waiting that no scheduler could have avoided, because tasks are bound to CPUs.
fn bound(args: &Args, report: &CheckReport) -> String {
    let listed = |(at, wait): &(usize, &BoundWaiting)| args.all || (*at < TOP_BOUND && wait.wait_us >= LEAST_BOUND_US);
    let listed: Vec<_> = report.bound.iter().enumerate().filter(listed).map(|(_, wait)| wait).collect();
    let mut out = String::new();
    for wait in &listed {
        let cpus = |list: &str| format!("CPU{} {list}", if list.contains([',', '-']) { "s" } else { "" });
        let plural = if wait.idle.contains([',', '-']) { "were" } else { "was" };
        let tasks: Vec<String> = wait
            .waiting
            .iter()
            .take(TOP_BOUND)
            .map(|task| format!("{} {} {}", shorten(&task.name), task.tid, duration(task.wait_us)))
            .collect();
        let more = wait.waiting_tasks - tasks.len() as u64;
        let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
        let _ = writeln!(
            out,
            "{} of waiting was by tasks bound to {} while {} {plural} idle:\n  {}{more}",
            duration(wait.wait_us),
            cpus(&wait.allowed),
            cpus(&wait.idle),
            tasks.join(", "),
        );
    }
    if !listed.is_empty() {
        out.push('\n');
    }
    out
}

fn waiting(v: &Violation) -> String {
    let name = |task: &schedlab_measure::WaitingTask| match task.name.as_str() {
        "" => format!("tid {}", task.tid),
        name => format!("{} {}", shorten(name), task.tid),
    };
    let first: Vec<String> = v.waiting.iter().take(2).map(name).collect();
    let more = v.waiting_tasks.saturating_sub(first.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

/// What the balancer did meanwhile.
fn balancer(v: &Violation) -> String {
    let moved = format!("moved {} here, {} elsewhere", v.migrations_to_idle, v.migrations_elsewhere);
    match (v.looks, v.looked_at_busy) {
        (Some(looks), Some(seen)) => {
            let busy = format!("{} cpu{}", if seen { "also at" } else { "never at" }, v.busy_cpu);
            format!("looked {}, {busy}; {moved}", counted(looks, "time"))
        }
        _ => moved,
    }
}

fn doubts(out: &mut String, read: &ReadReport, report: &CheckReport) {
    if report.affinity_unknown > 0 {
        let _ = writeln!(
            out,
            "affinity unknown for {} of {}: taken as allowed everywhere",
            grouped(report.affinity_unknown),
            counted(report.tasks, "task")
        );
    }
    if report.unknown_us > 0.0 {
        let _ = writeln!(out, "not known what CPUs did for {} in all: not counted", duration(report.unknown_us));
    }
    if report.losses > 0 {
        let _ = writeln!(out, "events were lost {}", counted(report.losses, "time"));
    }
    if report.contradictions > 0 {
        let _ = writeln!(out, "contradictions: {} (some switches were not recorded)", grouped(report.contradictions));
    }
    if let Some(cut) = &read.cut {
        let _ = writeln!(out, "the file was cut off: {}", cut.what);
    }
}

fn sampled_verdict(report: &CheckReport) -> String {
    match report.verdict {
        Verdict::Pass => {
            "verdict: pass: the looks found no CPU idle beside waiting tasks for the whole watch\n".to_owned()
        }
        Verdict::Fail => {
            "verdict: fail: the looks found CPUs idle beside waiting tasks for the whole watch\n".to_owned()
        }
        Verdict::Undecided => verdict(report),
    }
}

fn verdict(report: &CheckReport) -> String {
    let (word, why) = match (report.verdict, report.max_wasted_us) {
        (Verdict::Pass, None) => ("pass", "no CPU was idle for too long beside waiting tasks".to_owned()),
        (Verdict::Pass, Some(most)) => ("pass", format!("no more than {} of CPU time was wasted", duration(most))),
        (Verdict::Fail, None) => ("fail", "CPUs were idle for too long beside waiting tasks".to_owned()),
        (Verdict::Fail, Some(most)) => ("fail", format!("more than {} of CPU time was wasted", duration(most))),
        (Verdict::Undecided, _) => ("undecided", report.reason.clone().unwrap_or_default()),
    };
    format!("verdict: {word}: {why}\n")
}
