//! `schedlab stats`: run time, wait time, latency, migrations, run queues and fairness of a trace.

mod schedstat;
mod sort;
pub mod table;
pub mod text;

use crate::selection::SelectionArgs;
use crate::ui::Ui;
use indicatif::ProgressBar;
use schedlab_base::{Event, Meta, NameRecord, Result, Sink};
use schedlab_measure::{Report, Stats};
use schedlab_trace::ReadReport;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `stats` is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  schedlab stats trace.arrows\n  schedlab stats trace.arrows --by process --sort wait\n  \
                        schedlab stats trace.arrows --from 2s --to 3s --task 'nginx*'\n  \
                        schedlab stats perf.data --json | jq '.tasks[0].latency_us.p99'\n  \
                        schedlab stats trace.arrows --schedstat\n\n\
                        lat is the latency from wakeup to running; waking latency, from waking to running, is in the \
                        JSON. delay max is the longest wait of any kind, at is when it began, from the trace's start."
)]
pub struct Args {
    /// The trace: of `schedlab record`, `sim` or `import`, or a perf.data file.
    trace: PathBuf,
    /// What a row of the table stands for; the JSON holds all of them.
    #[arg(long, value_enum, default_value_t = By::Task)]
    by: By,
    /// Sort the rows by this column: numbers from the highest down, names from A to Z.
    #[arg(long, value_enum, value_name = "COLUMN")]
    sort: Option<sort::Column>,
    /// Every row, not just the first 30.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    /// What /proc/schedstat would have said of the trace's time, in the format of its kernel, or of this VERSION.
    #[arg(
        long,
        value_name = "VERSION",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with_all = ["by", "all", "sort", "from", "to", "names", "pids", "groups"]
    )]
    schedstat: Option<Option<u32>>,
}

/// What a row stands for.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// A thread.
    Task,
    /// A CPU.
    Cpu,
    /// A NUMA node.
    Node,
    /// A cgroup.
    Group,
    /// A process: its threads together.
    Process,
    /// All tasks of the same name.
    Name,
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
    #[serde(flatten)]
    read: &'a ReadReport,
}

/// Reads the trace and prints its statistics.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if let Some(version) = args.schedstat {
        return schedstat::run(&args.trace, version, ui);
    }
    let part = args.selection.part(&args.trace, ui)?;
    let mut source = schedlab_trace::open(&args.trace)?;
    let mut stats = Stats::of_part(source.meta(), part).with_teams();
    let mut ticker = Ticker::new(ui);
    let read = source.run(&mut (&mut stats, &mut ticker));
    ticker.finish();
    let read = read?;
    let mut report = stats.finish(None);
    args.selection.check_window(report.total.span_us, &args.trace)?;
    if let Some(column) = args.sort {
        sort::sort(&mut report, args.by, column)?;
    }
    if ui.json {
        let Meta { source, kernel, machine, clock, .. } = source.meta();
        let trace = TraceFacts { file: &args.trace, source, kernel, machine, clock, read: &read };
        ui.print_json(&Document { trace, report: &report });
    } else {
        let title = args.trace.display().to_string();
        let title = format!("{title}{}", args.selection.words(table::duration));
        ui.print(&text::report(&title, source.meta(), &read, &report, args.by, args.all));
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows how far the reading has come.
pub struct Ticker(ProgressBar, u64);

impl Ticker {
    /// Begins.
    pub fn new(ui: &Ui) -> Self {
        Self(ui.progress(None, "reading"), 0)
    }

    /// Ends.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

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
