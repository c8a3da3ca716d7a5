//! `schedlab gantt`: who ran where and when, drawn in the terminal.

mod draw;

use crate::partial;
use crate::ui::Ui;
use draw::{Picture, TaskLabel};
use schedlab_base::{Coverage, CpuId, Error, Nanos, Partial, Result, Tid, parse_duration};
use schedlab_measure::lanes::{Census, CpuCells, Doing, Follow, Followed, Lanes, Span, Spans, TaskCells, Window};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The most spans that `--json` prints.
const MOST_SPANS: usize = 200_000;

/// What `gantt` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  schedlab gantt t.arrows
  schedlab gantt t.arrows --from 10ms --to 30ms --by task
  schedlab gantt t.arrows --by task --lanes 5 --json")]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// Start at this time after the beginning of the trace.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    from: Option<Nanos>,
    /// End at this time after the beginning of the trace.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    to: Option<Nanos>,
    /// Draw one lane for each CPU, or one for each task [default: cpu; task if the recording covers only some tasks].
    #[arg(long, value_enum)]
    by: Option<By>,
    /// The width of the picture in columns (default: the terminal's width, or 80).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(40..=2000))]
    width: Option<u16>,
    /// The largest number of lanes: the first CPUs, or the busiest tasks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), default_value = "24")]
    lanes: u16,
    /// When to use colours; `auto` means on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, default_value = "auto")]
    color: Color,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Cpu,
    Task,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

/// What the first reading found.
struct Overview {
    window: Window,
    length: Nanos,
    cpus: Vec<CpuId>,
    busy: BTreeMap<CpuId, Nanos>,
    /// The tasks of the window, the busiest first.
    tasks: Vec<TaskLabel>,
}

/// Draws the picture.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let (by, remark) = lanes_by(&args)?;
    let overview = overview(&args)?;
    if ui.json {
        ui.print_json(&spans(&args, by, &overview)?);
        return Ok(ExitCode::SUCCESS);
    }
    let width = args.width.map_or_else(terminal_width, usize::from);
    let picture = Picture { window: overview.window, length: overview.length, width, color: colored(args.color) };
    let most = usize::from(args.lanes);
    let text = match by {
        By::Cpu => {
            let cpus = &overview.cpus[..overview.cpus.len().min(most)];
            let cells = CpuCells::new(overview.window, picture.cpu_cells(), cpus.iter().copied());
            let drawn = follow(&args.trace, cells)?.lanes;
            picture.cpus(&drawn, &overview.busy, &overview.tasks, overview.cpus.len() - cpus.len())
        }
        By::Task => {
            let tasks = &overview.tasks[..overview.tasks.len().min(most)];
            let cells = TaskCells::new(overview.window, picture.task_cells(tasks), tasks.iter().map(|t| t.tid));
            let drawn = follow(&args.trace, cells)?.lanes;
            picture.tasks(&drawn, tasks, overview.tasks.len() - tasks.len())
        }
    };
    ui.print_styled(&(remark + &text));
    Ok(ExitCode::SUCCESS)
}

/// What a lane is, and what to say of a partial recording: it does not show what a CPU did all the time, and some do
/// not show when tasks ran.
fn lanes_by(args: &Args) -> Result<(By, String)> {
    let source = schedlab_trace::open(&args.trace)?;
    let meta = source.meta();
    match (&meta.partial, args.by) {
        (Some(Partial { covers: Coverage::Tasks, .. }), Some(By::Cpu)) => {
            partial::refuse(meta, &args.trace, "--by")?;
        }
        (Some(Partial { covers: Coverage::Inside | Coverage::Cpus, .. }), _) => {
            partial::refuse(meta, &args.trace, "gantt")?;
        }
        _ => {}
    }
    let all_there_is = if meta.partial.is_some() { By::Task } else { By::Cpu };
    Ok((args.by.unwrap_or(all_there_is), partial::remark(meta)))
}

fn follow<L: Lanes>(trace: &Path, lanes: L) -> Result<Followed<L>> {
    let mut source = schedlab_trace::open(trace)?;
    let mut follow = Follow::new(source.meta(), lanes);
    source.run(&mut follow)?;
    Ok(follow.finish())
}

/// Reads the trace once, to learn its length and who is in the window.
fn overview(args: &Args) -> Result<Overview> {
    let from = args.from.unwrap_or(0);
    let mut window = Window { from, to: args.to.unwrap_or(Nanos::MAX) };
    if window.to <= from {
        return Err(Error::input("the window ends before it begins").key("--to").mend("give a --to after --from"));
    }
    let Followed { lanes: census, length, names } = follow(&args.trace, Census::new(window))?;
    if length == 0 {
        return Err(Error::input("the trace has nothing to draw: no time passes in it").file(&args.trace));
    }
    if from >= length {
        let length = draw::time(length);
        return Err(Error::input(format!("the trace ends {length} after its start")).key("--from").file(&args.trace));
    }
    window.to = window.to.min(length);
    let mut tasks: Vec<TaskLabel> = census
        .tasks
        .iter()
        .map(|(tid, sum)| TaskLabel { tid: *tid, name: names.get(tid).cloned().unwrap_or_default(), sum: *sum })
        .collect();
    tasks.sort_by_key(|t| (std::cmp::Reverse(t.sum.run), std::cmp::Reverse(t.sum.wait), t.tid));
    let cpus = census.busy.keys().copied().collect();
    Ok(Overview { window, length, cpus, busy: census.busy, tasks })
}

/// The lanes' spans as JSON.
fn spans(args: &Args, by: By, overview: &Overview) -> Result<Value> {
    match by {
        By::Cpu => cpu_spans(args, overview),
        By::Task => task_spans(args, overview),
    }
}

fn cpu_spans(args: &Args, overview: &Overview) -> Result<Value> {
    let cpus: Vec<CpuId> = overview.cpus.iter().copied().take(args.lanes.into()).collect();
    let wanted = |s: &Span| s.doing == Doing::Running && cpus.binary_search(&s.cpu).is_ok();
    let found = follow(&args.trace, Spans::new(overview.window, MOST_SPANS, wanted))?.lanes;
    let names: BTreeMap<Tid, &str> = overview.tasks.iter().map(|t| (t.tid, t.name.as_str())).collect();
    let mut by_cpu: BTreeMap<CpuId, Vec<Value>> = BTreeMap::new();
    for Span { tid, cpu, from, to, .. } in found.kept {
        let span = json!({ "start_us": us(from), "end_us": us(to), "tid": tid, "name": names.get(&tid) });
        by_cpu.entry(cpu).or_default().push(span);
    }
    let lane = |cpu: &CpuId| json!({ "cpu": cpu, "spans": by_cpu.remove(cpu).unwrap_or_default() });
    let lanes: Vec<Value> = cpus.iter().map(lane).collect();
    Ok(document(overview, lanes, overview.cpus.len(), found.left_out))
}

fn task_spans(args: &Args, overview: &Overview) -> Result<Value> {
    let tasks = &overview.tasks[..overview.tasks.len().min(args.lanes.into())];
    let tids: BTreeSet<Tid> = tasks.iter().map(|t| t.tid).collect();
    let wanted = |s: &Span| tids.contains(&s.tid);
    let found = follow(&args.trace, Spans::new(overview.window, MOST_SPANS, wanted))?.lanes;
    let mut by_task: BTreeMap<Tid, Vec<Value>> = BTreeMap::new();
    for Span { tid, doing, cpu, from, to } in found.kept {
        let span = json!({ "start_us": us(from), "end_us": us(to), "state": doing.word(), "cpu": cpu });
        by_task.entry(tid).or_default().push(span);
    }
    let lane = |t: &TaskLabel| {
        json!({
            "tid": t.tid, "name": t.name, "run_us": us(t.sum.run), "wait_us": us(t.sum.wait),
            "spans": by_task.remove(&t.tid).unwrap_or_default(),
        })
    };
    let lanes: Vec<Value> = tasks.iter().map(lane).collect();
    Ok(document(overview, lanes, overview.tasks.len(), found.left_out))
}

fn document(overview: &Overview, lanes: Vec<Value>, all: usize, spans_left_out: u64) -> Value {
    json!({
        "start_us": us(overview.window.from), "end_us": us(overview.window.to), "trace_us": us(overview.length),
        "lanes_left_out": all - lanes.len(), "spans_left_out": spans_left_out, "lanes": lanes,
    })
}

fn us(ns: Nanos) -> f64 {
    ns as f64 / 1e3
}

fn terminal_width() -> usize {
    let seen = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    seen.filter(|_| std::io::stdout().is_terminal()).unwrap_or(80).clamp(40, 2000)
}

fn colored(color: Color) -> bool {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            std::io::stdout().is_terminal() && unset("NO_COLOR") && !dumb
        }
    }
}
