//! `schedlab delays`: which tasks waited longest, and which tasks ran meanwhile.

mod text;

use super::stats::Ticker;
use crate::partial;
use crate::selection::SelectionArgs;
use crate::ui::Ui;
use schedlab_base::Result;
use schedlab_experiment::documents;
use schedlab_measure::delays::{Delays, WORST};
use std::path::PathBuf;
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
    read.refuse_if_nothing_is_left(&args.trace)?;
    let report = delays.finish(None);
    args.selection.check_window(report.total.span_us, &args.trace)?;
    if ui.json {
        ui.print_json(&documents::delays(&args.trace, source.meta(), &read, &report));
    } else {
        ui.print(&text::report(&args, source.meta(), &read, &report));
    }
    Ok(ExitCode::SUCCESS)
}
