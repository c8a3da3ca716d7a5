//! `schedlab stats`: run time, wait time, latency, migrations, run queues and fairness of a trace.

mod interrupts;
mod rows;
mod schedstat;
mod sleeps;
mod sort;
pub mod table;
pub mod text;

use crate::partial;
use crate::selection::SelectionArgs;
use crate::ui::Ui;
use indicatif::ProgressBar;
use schedlab_base::{Event, Ignored, NameRecord, Result, Sink};
use schedlab_experiment::documents;
use schedlab_measure::Stats;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `stats` is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  schedlab stats trace.arrows\n  schedlab stats trace.arrows --by process --sort wait\n  \
                        schedlab stats trace.arrows --from 2s --to 3s --task 'nginx*'\n  \
                        schedlab stats perf.data --json | jq '.tasks[0].latency_us.p99'\n  \
                        schedlab stats trace.arrows --schedstat\n\n\
                        lat is the latency from wake-up to running; waking latency, from waking to running, is in the \
                        JSON. delay max is the longest wait of any kind; at is when it began, from the trace's start."
)]
pub struct Args {
    /// The trace: a file from `schedlab record`, `sim` or `import`, or a perf.data file.
    trace: PathBuf,
    /// What each row of the table stands for; the JSON always contains all of them.
    #[arg(long, value_enum, default_value_t = By::Task)]
    by: By,
    /// Sort the rows by this column: numbers from the highest down, names from A to Z.
    #[arg(long, value_enum, value_name = "COLUMN")]
    sort: Option<sort::Column>,
    /// Print every row, not just the first 30. For a recording around a command or with -p, also print the tasks that
    /// do not belong to it, which otherwise share a row.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print what /proc/schedstat would have shown for the trace, in the format of its kernel or of VERSION.
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
    /// Each thread.
    Task,
    /// Each thread on each CPU.
    TaskCpu,
    /// Each CPU.
    Cpu,
    /// Each NUMA node.
    Node,
    /// Each cgroup.
    Group,
    /// Each process: its threads together.
    Process,
    /// All tasks of the same name.
    Name,
}

/// Reads the trace and prints its statistics.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if let Some(version) = args.schedstat {
        return schedstat::run(&args.trace, version, ui);
    }
    let part = args.selection.part(&args.trace, ui)?;
    let mut source = schedlab_trace::open(&args.trace)?;
    if matches!(args.by, By::Cpu | By::Node) {
        partial::refuse(source.meta(), &args.trace, "--by")?;
    }
    let stats = Stats::of_part(source.meta(), part);
    let mut stats = of_rows(if ui.json { stats.with_teams() } else { stats }, args.by);
    let mut ticker = Ticker::new(ui);
    let read = source.run(&mut (&mut stats, &mut ticker));
    ticker.finish();
    let read = read?;
    read.refuse_if_nothing_is_left(&args.trace)?;
    let mut report = stats.finish(None);
    args.selection.check_window(report.total.span_us, &args.trace)?;
    if let Some(column) = args.sort {
        sort::sort(&mut report, args.by, column)?;
    }
    if ui.json {
        ui.print_json(&documents::stats(&args.trace, source.meta(), &read, &report));
    } else {
        let title = args.trace.display().to_string();
        let title = format!("{title}{}", args.selection.words(table::duration));
        let all = args.all || args.selection.selection().chooses_tasks();
        ui.print(&text::report(&title, source.meta(), &read, &report, args.by, all));
    }
    Ok(ExitCode::SUCCESS)
}

/// Statistics that keep what the rows of this table show.
pub fn of_rows(stats: Stats, by: By) -> Stats {
    match by {
        By::Process | By::Name => stats.with_teams(),
        By::TaskCpu => stats.by_task_cpu(),
        By::Task | By::Cpu | By::Node | By::Group => stats,
    }
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

    fn ignores(&self) -> Ignored {
        Ignored::ALL
    }
}
