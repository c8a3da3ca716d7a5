//! `schedlab gantt`: who ran where and when, drawn in the terminal.

mod draw;

use crate::partial;
use crate::selection::SelectionArgs;
use crate::ui::Ui;
use draw::{Picture, TaskLabel};
use schedlab_base::{CpuId, CpuList, Error, Nanos, Result};
use schedlab_measure::lanes::{Census, CpuCells, Doing, Follow, Followed, Lanes, Span, Spans, TaskCells, Window};
use schedlab_measure::{Chosen, Slot};
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
  schedlab gantt t.arrows --cpu 0-3 --task 'nginx*'
  schedlab gantt t.arrows --by task --lanes 5 --json")]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// Draw only these CPUs (0-3,8): their lanes, or with --by task the tasks that ran on them or waited for them.
    #[arg(long, value_name = "CPUS")]
    cpu: Option<CpuList>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Draw one lane for each CPU, or one for each task [default: cpu; task if the recording covers only some tasks].
    #[arg(long, value_enum)]
    by: Option<By>,
    /// The width of the picture in columns (default: the terminal's width, or 80).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(40..=2000))]
    width: Option<u16>,
    /// The largest number of lanes: the first CPUs, those that stay idle last, or the busiest tasks.
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

impl Overview {
    /// At most so many CPUs: the first ones, but none on which nothing ran before one on which something did.
    fn first_cpus(&self, most: u16) -> Vec<CpuId> {
        let mut cpus = self.cpus.clone();
        cpus.sort_by_key(|cpu| !self.busy.contains_key(cpu));
        cpus.truncate(most.into());
        cpus.sort_unstable();
        cpus
    }
}

/// Draws the picture.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let (by, remark) = lanes_by(&args)?;
    let overview = overview(&args, ui)?;
    if ui.json {
        ui.print_json(&spans(&args, by, &overview)?);
        return Ok(ExitCode::SUCCESS);
    }
    let width = args.width.map_or_else(terminal_width, usize::from);
    let (window, length, color) = (overview.window, overview.length, colored(args.color));
    let picture = Picture { window, length, width, color, selected: args.selection.selection().chooses_tasks() };
    let text = match by {
        By::Cpu => {
            let cpus = overview.first_cpus(args.lanes);
            let cells = CpuCells::new(overview.window, picture.cpu_cells(), cpus.iter().copied());
            let drawn = follow(&args.trace, cells, overview.window)?.lanes;
            picture.cpus(&drawn, &overview.busy, &overview.tasks, overview.cpus.len() - cpus.len())
        }
        By::Task => {
            let tasks = &overview.tasks[..overview.tasks.len().min(args.lanes.into())];
            let cells = TaskCells::new(overview.window, picture.task_cells(tasks), tasks.iter().map(|t| t.task));
            let drawn = follow(&args.trace, cells, overview.window)?.lanes;
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
    partial::refuse_without_waits(meta, &args.trace, "gantt")?;
    if matches!(args.by, Some(By::Cpu)) {
        partial::refuse(meta, &args.trace, "--by")?;
    }
    let all_there_is = if meta.partial.is_some() { By::Task } else { By::Cpu };
    Ok((args.by.unwrap_or(all_there_is), partial::remark(meta)))
}

fn follow<L: Lanes>(trace: &Path, lanes: L, window: Window) -> Result<Followed<L>> {
    let mut source = schedlab_trace::open(trace)?;
    let mut follow = Follow::new(source.meta(), lanes, window);
    source.run(&mut follow)?.refuse_if_nothing_is_left(trace)?;
    Ok(follow.finish())
}

/// Reads the trace once, to learn its length and which tasks are in the window.
fn overview(args: &Args, ui: &Ui) -> Result<Overview> {
    let part = args.selection.selection().part(None)?;
    let chosen = args.selection.chosen(&args.trace, ui)?;
    let mut window = Window { from: part.from, to: part.to };
    let census = Sight { census: Census::new(window), cpus: args.cpu.clone(), near: BTreeSet::new() };
    let Followed { lanes: sight, length, mut cpus, tasks } = follow(&args.trace, census, window)?;
    let Sight { census, cpus: only, near } = sight;
    if length == 0 {
        return Err(Error::input("the trace has nothing to draw: no time passes in it").file(&args.trace));
    }
    if window.from >= length {
        let length = draw::time(length);
        return Err(Error::input(format!("the trace ends {length} after its start")).key("--from").file(&args.trace));
    }
    window.to = window.to.min(length);
    let wanted = |task: &Slot| {
        chosen.as_ref().is_none_or(|chosen: &Chosen| chosen.has(*task)) && (only.is_none() || near.contains(task))
    };
    let label = |(task, (tid, name)): (Slot, (_, String))| {
        let sum = census.tasks.get(&task).copied().unwrap_or_default();
        TaskLabel { task, tid, name: name.chars().take(64).collect(), sum }
    };
    let mut tasks: Vec<TaskLabel> = tasks.into_iter().filter(|(task, _)| wanted(task)).map(label).collect();
    tasks.sort_by_key(|t| (std::cmp::Reverse(t.sum.run), std::cmp::Reverse(t.sum.wait), t.tid));
    if let Some(only) = &only {
        cpus.retain(|cpu| only.contains(*cpu));
        if cpus.is_empty() {
            return Err(Error::input(format!("the trace has no CPU {only}")).key("--cpu").file(&args.trace));
        }
    }
    Ok(Overview { window, length, cpus, busy: census.busy, tasks })
}

/// A census, and the tasks that ran on some CPUs or waited for them in the window.
struct Sight {
    census: Census,
    cpus: Option<CpuList>,
    near: BTreeSet<Slot>,
}

impl Lanes for Sight {
    fn span(&mut self, span: &Span) {
        self.census.span(span);
        let here = self.cpus.as_ref().is_some_and(|cpus| cpus.contains(span.cpu));
        if here && matches!(span.doing, Doing::Running | Doing::Waiting) && self.census.window.clip(span).is_some() {
            self.near.insert(span.task);
        }
    }
}

/// The lanes' spans as JSON.
fn spans(args: &Args, by: By, overview: &Overview) -> Result<Value> {
    match by {
        By::Cpu => cpu_spans(args, overview),
        By::Task => task_spans(args, overview),
    }
}

fn cpu_spans(args: &Args, overview: &Overview) -> Result<Value> {
    let cpus = overview.first_cpus(args.lanes);
    let selected: BTreeSet<Slot> = overview.tasks.iter().map(|t| t.task).collect();
    let wanted =
        |s: &Span| s.doing == Doing::Running && cpus.binary_search(&s.cpu).is_ok() && selected.contains(&s.task);
    let found = follow(&args.trace, Spans::new(overview.window, MOST_SPANS, wanted), overview.window)?.lanes;
    let names: BTreeMap<Slot, &str> = overview.tasks.iter().map(|t| (t.task, t.name.as_str())).collect();
    let mut by_cpu: BTreeMap<CpuId, Vec<Value>> = BTreeMap::new();
    for Span { task, tid, cpu, from, to, .. } in found.kept {
        let span = json!({ "start_us": us(from), "end_us": us(to), "tid": tid, "name": names.get(&task) });
        by_cpu.entry(cpu).or_default().push(span);
    }
    let lane = |cpu: &CpuId| json!({ "cpu": cpu, "spans": by_cpu.remove(cpu).unwrap_or_default() });
    let lanes: Vec<Value> = cpus.iter().map(lane).collect();
    Ok(document(overview, lanes, overview.cpus.len(), found.left_out))
}

fn task_spans(args: &Args, overview: &Overview) -> Result<Value> {
    let tasks = &overview.tasks[..overview.tasks.len().min(args.lanes.into())];
    let shown: BTreeSet<Slot> = tasks.iter().map(|t| t.task).collect();
    let wanted = |s: &Span| shown.contains(&s.task);
    let found = follow(&args.trace, Spans::new(overview.window, MOST_SPANS, wanted), overview.window)?.lanes;
    let mut by_task: BTreeMap<Slot, Vec<Value>> = BTreeMap::new();
    for Span { task, doing, cpu, from, to, .. } in found.kept {
        let span = json!({ "start_us": us(from), "end_us": us(to), "state": doing.word(), "cpu": cpu });
        by_task.entry(task).or_default().push(span);
    }
    let lane = |t: &TaskLabel| {
        json!({
            "tid": t.tid, "name": t.name, "run_us": us(t.sum.run), "wait_us": us(t.sum.wait),
            "spans": by_task.remove(&t.task).unwrap_or_default(),
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
