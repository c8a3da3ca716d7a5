//! `schedlab stats`: run time, wait time, latency, migrations, run queues and fairness of a trace.

mod rows;
mod schedstat;
pub mod table;
pub mod text;

use crate::partial;
use crate::ui::Ui;
use indicatif::ProgressBar;
use schedlab_base::{Event, Meta, NameRecord, Partial, Result, Sink, Target};
use schedlab_measure::partial::withhold;
use schedlab_measure::{Report, Stats};
use schedlab_trace::ReadReport;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `stats` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab stats trace.arrows\n  schedlab stats trace.arrows --by cpu\n  \
                        schedlab stats perf.data --json | jq '.tasks[0].latency_us.p99'\n  \
                        schedlab stats trace.arrows --schedstat\n\n\
                        latency is the time from wake-up to running; the JSON also has waking_latency.")]
pub struct Args {
    /// The trace: a file from `schedlab record`, `sim` or `import`, or a perf.data file.
    trace: PathBuf,
    /// What each row of the table stands for; the JSON always contains all of them.
    #[arg(long, value_enum, default_value_t = By::Task)]
    by: By,
    /// Print every row, not just the 30 that ran longest. For a recording around a command or with -p, also print the
    /// tasks that do not belong to it, which otherwise share a row.
    #[arg(long)]
    all: bool,
    /// Print what /proc/schedstat would have shown for the trace, in the format of its kernel or of VERSION.
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, conflicts_with_all = ["by", "all"])]
    schedstat: Option<Option<u32>>,
}

/// What a row stands for.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Each thread.
    Task,
    /// A thread on a CPU.
    TaskCpu,
    /// A CPU.
    Cpu,
    /// A NUMA node.
    Node,
    /// A cgroup.
    Group,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    trace: TraceFacts<'a>,
    #[serde(flatten)]
    report: &'a Report,
}

/// Where the statistics come from.
#[derive(Serialize)]
struct TraceFacts<'a> {
    file: &'a Path,
    source: &'a str,
    kernel: &'a str,
    machine: &'a str,
    clock: &'a str,
    /// What the recording was made for.
    target: &'a Option<Target>,
    /// Set if it does not cover the whole machine.
    partial: &'a Option<Partial>,
    #[serde(flatten)]
    read: &'a ReadReport,
}

/// Reads the trace and prints its statistics.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if let Some(version) = args.schedstat {
        return schedstat::run(&args.trace, version, ui);
    }
    let mut source = schedlab_trace::open(&args.trace)?;
    if matches!(args.by, By::Cpu | By::Node) {
        partial::refuse(source.meta(), &args.trace, "--by")?;
    }
    let mut stats = Stats::new(source.meta());
    if args.by == By::TaskCpu {
        stats = stats.by_task_cpu();
    }
    let mut ticker = Ticker(ui.progress(None, "reading"), 0);
    let read = source.run(&mut (&mut stats, &mut ticker));
    ticker.0.finish_and_clear();
    let read = read?;
    let report = stats.finish(None);
    if ui.json {
        ui.print_json(&document(&args.trace, source.meta(), &read, &report));
    } else {
        let title = args.trace.display().to_string();
        ui.print(&text::report(&title, source.meta(), &read, &report, args.by, args.all));
    }
    Ok(ExitCode::SUCCESS)
}

fn document(file: &Path, meta: &Meta, read: &ReadReport, report: &Report) -> Value {
    let Meta { source, kernel, machine, clock, target, partial, .. } = meta;
    let trace = TraceFacts { file, source, kernel, machine, clock, target, partial, read };
    let document = serde_json::to_value(Document { trace, report });
    let mut document = document.expect("plain data is always JSON");
    partial.iter().for_each(|partial| withhold(&mut document, partial.covers));
    document
}

/// Shows how far the reading has come.
struct Ticker(ProgressBar, u64);

impl Sink for Ticker {
    fn events(&mut self, batch: &[Event]) {
        let before = self.1;
        self.1 += batch.len() as u64;
        if before >> 18 != self.1 >> 18 {
            self.0.set_message(format!("reading: {} events", table::grouped(self.1)));
            self.0.tick();
        }
    }

    fn name(&mut self, _: &NameRecord) {}
}
