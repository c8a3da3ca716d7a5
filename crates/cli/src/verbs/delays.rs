//! `schedlab delays`: which tasks waited longest, and which tasks ran meanwhile.

mod text;

use super::stats::Ticker;
use crate::partial;
use crate::selection::SelectionArgs;
use crate::ui::Ui;
use schedlab_base::{CpuId, Meta, Partial, Result};
use schedlab_measure::delays::{DelayReport, Delays, WORST, Wait};
use schedlab_trace::ReadReport;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `delays` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  schedlab delays trace.arrows
  schedlab delays trace.arrows --worst 5 --by process
  schedlab delays trace.arrows --task 'nginx*' --from 2s --to 3s
  schedlab delays trace.arrows --json | jq '.waits[0].culprits'

A wait lasts from the instant at which a task becomes runnable to the one at which it gets a CPU. The culprits
are the tasks that ran on the CPU that it waited for. --task, --pid and --group select the tasks that waited.")]
pub struct Args {
    /// The trace: a file from `schedlab record`, `sim` or `import`, or a perf.data file.
    trace: PathBuf,
    /// Show this many of the longest waits.
    #[arg(long, value_name = "N", default_value_t = WORST as u32, value_parser = worst())]
    worst: u32,
    /// What the totals are summed by; the JSON always contains all of them.
    #[arg(long, value_enum, default_value_t = By::Task)]
    by: By,
    /// Show every row of the totals, not just the first 10.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// At most 10,000 waits are listed.
fn worst() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=10_000)
}

/// What a row of the totals stands for.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// A thread.
    Task,
    /// All tasks of the same name.
    Name,
    /// A process: its threads together.
    Process,
    /// A cgroup.
    Group,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    trace: TraceFacts<'a>,
    waits: Vec<Shown<'a>>,
    #[serde(flatten)]
    report: &'a DelayReport,
}

/// A wait with the command that draws it.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    wait: &'a Wait,
    gantt: String,
}

/// Where it comes from.
#[derive(Serialize)]
struct TraceFacts<'a> {
    file: &'a Path,
    source: &'a str,
    kernel: &'a str,
    machine: &'a str,
    /// Set if it does not cover the whole machine.
    partial: &'a Option<Partial>,
    #[serde(flatten)]
    read: &'a ReadReport,
}

/// Reads the trace and prints its longest waits and the totals.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let part = args.selection.part(&args.trace, ui)?;
    let mut source = schedlab_trace::open(&args.trace)?;
    partial::refuse_without_waits(source.meta(), &args.trace, "delays")?;
    let mut delays = Delays::new(source.meta(), part, args.worst as usize);
    let mut ticker = Ticker::new(ui);
    let read = source.run(&mut (&mut delays, &mut ticker));
    ticker.finish();
    let read = read?;
    let report = delays.finish(None);
    args.selection.check_window(report.total.span_us, &args.trace)?;
    if ui.json {
        let Meta { source, kernel, machine, partial, .. } = source.meta();
        let trace = TraceFacts { file: &args.trace, source, kernel, machine, partial, read: &read };
        let shown = |wait| Shown { wait, gantt: gantt(&args.trace, wait) };
        let document = Document { trace, waits: report.waits.iter().map(shown).collect(), report: &report };
        let mut document = serde_json::to_value(document).expect("plain data is always JSON");
        if partial.is_some() {
            withhold_idle(&mut document);
        }
        ui.print_json(&document);
    } else {
        ui.print(&text::report(&args, source.meta(), &read, &report));
    }
    Ok(ExitCode::SUCCESS)
}

/// A partial recording does not show which CPUs were idle.
fn withhold_idle(document: &mut Value) {
    let (waits, total) = (document["waits"].take(), &mut document["total"]);
    total["idle_us"] = Value::Null;
    let blank = |mut wait: Value| {
        ["idle_us", "idle_allowed_us"].into_iter().for_each(|key| wait[key] = Value::Null);
        wait
    };
    let waits = waits.as_array().cloned().unwrap_or_default();
    document["waits"] = waits.into_iter().map(blank).collect();
}

/// The command that draws the CPUs on whose queues the task was, for the time of its wait.
fn gantt(trace: &Path, wait: &Wait) -> String {
    let mut cpus: Vec<CpuId> = wait.queues.iter().map(|queue| queue.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let cpus: Vec<String> = cpus.iter().map(CpuId::to_string).collect();
    let ns = |us: f64| (us * 1e3).round() as u64;
    let (from, to, cpus) = (ns(wait.start_us), ns(wait.end_us), cpus.join(","));
    format!("schedlab gantt {} --from {from}ns --to {to}ns --cpu {cpus}", quoted(&trace.display().to_string()))
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
