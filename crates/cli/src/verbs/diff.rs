//! `schedlab diff`: what differs between two traces, or between two sets of traces of repeated runs.

use crate::partial;
use crate::selection::SelectionArgs;
use crate::ui::Ui;
use crate::verbs::stats::table::{Table, duration, grouped, shorten};
use schedlab_base::{Error, Result, counted};
use schedlab_experiment::diff::{
    Bound, By, Comparison, Earlier, Effect, Per, Question, Row, Ruling, Run, compare, read,
};
use schedlab_measure::compared::{FIGURES, Unit};
use schedlab_trace::Input;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How many rows the table has.
const ROWS: usize = 15;

/// How many lines the text has of what changed.
const LINES: usize = 15;

/// The endings of the traces in a folder.
const ENDINGS: [&str; 2] = ["arrows", "data"];

/// What `diff` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  schedlab diff before.arrows after.arrows
  schedlab diff runs-6.1 runs-6.12 --by role
  schedlab diff --a old-*.arrows --b new-*.arrows --fail-if 'wait > +10%' --fail-if 'server: p99 > +200us'

Exit status: 0 no bound is exceeded, 1 one is, 2 bad input, 3 none is but one is undecided.")]
pub struct Args {
    /// The first trace, or a folder with those of repeated runs (.arrows, .data).
    #[arg(value_name = "A", required_unless_present = "left", requires = "second",
          conflicts_with_all = ["left", "right"])]
    first: Option<PathBuf>,
    /// The second trace, or a folder with those of repeated runs.
    #[arg(value_name = "B")]
    second: Option<PathBuf>,
    /// The first traces, instead of A.
    #[arg(long = "a", value_name = "TRACE", num_args = 1.., requires = "right")]
    left: Vec<PathBuf>,
    /// The second traces, instead of B.
    #[arg(long = "b", value_name = "TRACE", num_args = 1.., requires = "left")]
    right: Vec<PathBuf>,
    /// How tasks are aligned: by name and order, by name, by name without its numbers, by process, or by cgroup.
    #[arg(long, value_enum, default_value_t = ByArg::Task)]
    by: ByArg,
    /// What sums are given for: the whole run, or a second of it.
    #[arg(long, value_enum, default_value_t = PerArg::Run)]
    per: PerArg,
    /// Into how many blocks of time to cut one trace each, for the intervals.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=1000))]
    blocks: u16,
    /// Fail if a figure grows by more than this: FIGURE > +10%, or ROW: FIGURE > +10%; may be repeated.
    #[arg(long, value_name = "BOUND")]
    fail_if: Vec<Bound>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print every row and every change, not just the first 15.
    #[arg(long)]
    all: bool,
}

/// How tasks are aligned.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ByArg {
    /// By name, and among those of one name by order.
    Task,
    /// All tasks of a name together.
    Name,
    /// All tasks together whose names differ by numbers only.
    Role,
    /// By the process's name, and among processes of one name by order.
    Process,
    /// By cgroup.
    Group,
}

/// What sums are given for.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PerArg {
    /// The whole run.
    Run,
    /// A second of it.
    Second,
}

/// Compares, and prints what got worse first.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let (a, b) = (files(&args.left, args.first.as_deref())?, files(&args.right, args.second.as_deref())?);
    let by = match args.by {
        ByArg::Task => By::Task,
        ByArg::Name => By::Name,
        ByArg::Role => By::Role,
        ByArg::Process => By::Process,
        ByArg::Group => By::Group,
    };
    let per = if args.per == PerArg::Run { Per::Run } else { Per::Second };
    let (a, b) = measure(&args, (&a, &b), by, ui)?;
    let comparison = compare(&Question { a, b, by, per }, &args.fail_if);
    if ui.json {
        ui.print_json(&comparison);
    } else {
        ui.print(&text(&comparison, args.all));
    }
    Ok(ExitCode::from(comparison.exit_status()))
}

/// The files of a set: those named, the trace, or the traces of the folder, by name.
fn files(named: &[PathBuf], one: Option<&Path>) -> Result<Vec<PathBuf>> {
    let Some(path) = one else { return Ok(named.to_vec()) };
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let fail = |e: std::io::Error| Error::system("cannot list", &e).file(path);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let file = entry.map_err(fail)?.path();
        if file.extension().is_some_and(|e| ENDINGS.iter().any(|ending| e == *ending)) {
            found.push(file);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Error::input("no trace is in this folder")
            .mend("it should hold .arrows or .data files")
            .file(path));
    }
    Ok(found)
}

/// Reads all traces. What was recorded comes first, because a model's tasks are called after it.
fn measure(args: &Args, (a, b): (&[PathBuf], &[PathBuf]), by: By, ui: &Ui) -> Result<(Vec<Run>, Vec<Run>)> {
    let bar = ui.progress(Some((a.len() + b.len()) as u64), "reading the traces");
    let blocks = if a.len() == 1 && b.len() == 1 { usize::from(args.blocks) } else { 0 };
    let read_all = |files: &[PathBuf], earlier: &Earlier| -> Result<Vec<Run>> {
        let one = |file: &PathBuf| {
            if Input::is_read_once(file) {
                let error = Error::input("a pipe cannot be compared, because the trace must be read twice");
                return Err(error.mend("save it to a file first").file(file));
            }
            partial::refuse_without_waits(schedlab_trace::open(file)?.meta(), file, "diff")?;
            let part = args.selection.part(file, ui)?;
            let run = read(file, part.as_ref(), by, blocks, earlier)?;
            args.selection.check_window(run.span_us(), file)?;
            bar.inc(1);
            Ok(run)
        };
        files.iter().map(one).collect()
    };
    let simulated = |files: &[PathBuf]| -> Result<bool> { Ok(schedlab_trace::open(&files[0])?.meta().source == "sim") };
    let names = |runs: &[Run]| -> Earlier { runs.iter().flat_map(|run| run.names().iter().cloned()).collect() };
    let measured = if simulated(a)? && !simulated(b)? {
        let right = read_all(b, &Earlier::new())?;
        (read_all(a, &names(&right))?, right)
    } else {
        let left = read_all(a, &Earlier::new())?;
        let right = read_all(b, &names(&left))?;
        (left, right)
    };
    bar.finish_and_clear();
    Ok(measured)
}

fn text(comparison: &Comparison, all: bool) -> String {
    let set = |files: &[String]| match files {
        [one] => one.clone(),
        several => format!("{} runs, {} to {}", several.len(), several[0], several[several.len() - 1]),
    };
    let mut out = format!("A: {}\nB: {}\n", set(&comparison.a), set(&comparison.b));
    comparison.head().iter().for_each(|line| out += &format!("{line}\n"));
    for (what, names) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        if let Some(first) = names.first() {
            let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
            out += &format!("only in {what}: {}{more}\n", shorten(first));
        }
    }
    comparison.remarks.iter().for_each(|remark| out += &format!("- {remark}\n"));
    let most = if all { usize::MAX } else { ROWS };
    out += &format!("\n{}", table(&comparison.rows, most));
    if comparison.rows.len() > most {
        out += &format!("and {} (--all prints them)\n", counted((comparison.rows.len() - most) as u64, "more row"));
    }
    out += "\n";
    let (sentences, most) = (comparison.sentences(), if all { usize::MAX } else { LINES });
    sentences.iter().take(most).for_each(|line| out += &format!("{line}\n"));
    if sentences.len() > most {
        out += &format!("and {} more changes (--all prints them)\n", sentences.len() - most);
    }
    for judged in &comparison.bounds {
        let ruling = match judged.ruling {
            Ruling::Held => "held",
            Ruling::Undecided => "undecided",
            Ruling::Exceeded => "exceeded",
        };
        out += &format!("\n{ruling}: {} ({})", judged.bound, judged.reason);
    }
    if comparison.bounds.is_empty() { out } else { out + "\n" }
}

/// The rows with their waits and latencies.
fn table(rows: &[Row], most: usize) -> String {
    let mut table = Table::new(2, ["", "figure", "A", "B", "change", "95% interval", "effect"]);
    for (at, row) in rows.iter().take(most).enumerate() {
        let mut label = shorten(&row.name);
        let mut add = |name: &str, unit: Unit, effect: &Effect| {
            table.row(std::iter::once(std::mem::take(&mut label)).chain(cells(name, unit, effect)));
        };
        if let Some(effect) = row.figures.get("duration_us") {
            add("duration", Unit::Time, effect);
        }
        for figure in FIGURES {
            let shown = at == 0 || matches!(figure.key, "wait_us" | "latency_p50_us" | "latency_p99_us");
            if let Some(effect) = row.figures.get(figure.key).filter(|_| shown) {
                let name = figure.name.strip_suffix(" of wake-up latency");
                add(&name.map_or_else(|| figure.name.to_owned(), |q| format!("latency {q}")), figure.unit, effect);
            }
        }
    }
    table.render()
}

fn cells(name: &str, unit: Unit, effect: &Effect) -> [String; 6] {
    let value = |value: f64| match unit {
        Unit::Time => duration(value),
        Unit::Count => grouped(value.round() as u64),
    };
    let percent = |part: f64| format!("{:+.1}%", part * 100.0);
    let interval = effect.interval.map(|[low, high]| format!("{} to {}", percent(low), percent(high)));
    [
        name.to_owned(),
        value(effect.a),
        value(effect.b),
        percent(effect.change),
        interval.unwrap_or_else(|| "-".to_owned()),
        effect.effect_size.map_or_else(|| "-".to_owned(), |g| format!("{g:+.1}")),
    ]
}
