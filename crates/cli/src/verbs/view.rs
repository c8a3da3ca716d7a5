//! `schedlab view`: traces on the screen, in the browser of this machine.

use crate::kept;
use crate::selection::ends_before_window;
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, Nanos, PathText, Result, parse_duration};
use schedlab_experiment::measured::Expressions;
use schedlab_experiment::{Look, look_among};
use schedlab_view::{Initial, Loaded, News, Picked, Serving, file, have_page, missing_page, open, picked, serve};
use serde_json::json;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// When so many events have been read, the page is opened, and the rest is read beside it.
const ENOUGH: u64 = 500_000;

/// Pages hear at most this often that more of a trace is there.
const NEWS: Duration = Duration::from_millis(250);

/// What `view` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  schedlab view trace.arrows
  schedlab view before.arrows after.arrows
  schedlab view trace.arrows --from 1.2s --to 1.3s
  schedlab view trace.arrows --pick task:4711@1.25s
  schedlab view before.arrows after.arrows --worst \"latency_p99_us['editor']\"
  schedlab view recording.arrows --follow
  schedlab view trace.arrows --from 1.2s --to 1.3s -o view.html

The page is served on this machine alone, at an address with a random token, until Ctrl-C.")]
pub struct Args {
    /// The traces: files from `schedlab record`, `sim` or `import`, or perf.data files; several are shown one below the
    /// other.
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// The first instant that is shown, from the trace's start (10ms, 1.5s).
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    from: Option<Nanos>,
    /// The end of what is shown.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    to: Option<Nanos>,
    /// Show a row for each CPU, or one for each task, first.
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Open the page at this place: a CPU or a task (by its thread id) of the first trace, and the instant, as in
    /// cpu:9@120ms or task:4711@1.2s; 2/cpu:9@120ms is in the second trace.
    #[arg(long, value_name = "ROW@TIME", value_parser = picked)]
    pick: Option<Picked>,
    /// Open the page at the place that explains this measure, written as in an experiment: the longest wait of the
    /// tasks that it names (latency_p99_us['editor']; all tasks for wait_s), or for wasted_s the longest time that a
    /// CPU was idle while tasks waited.
    #[arg(long, value_name = "MEASURE", conflicts_with_all = ["from", "to", "pick", "follow"])]
    worst: Option<String>,
    /// Mark CPUs that were idle for longer than this while tasks waited [default: 100ms, or 1ms if none was idle for
    /// so long].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    threshold: Option<Nanos>,
    /// Write the page with the traces, or the part from --from to --to, into this file instead of serving it; at most
    /// 300,000 spans and marks.
    #[arg(long, short, conflicts_with_all = ["follow", "port", "no_open"])]
    output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long, requires = "output")]
    force: bool,
    /// Go on reading while the traces are still being recorded.
    #[arg(long)]
    follow: bool,
    /// The port on 127.0.0.1; 0 takes any that is free.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Print the address only, and open no browser.
    #[arg(long)]
    no_open: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum By {
    Cpu,
    Task,
}

/// Serves the page until Ctrl-C.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && to <= from
    {
        return Err(Error::input("the window ends before it begins").key("--to").mend("give a --to after --from"));
    }
    let traces: Vec<Arc<Loaded>> = (0..)
        .zip(&args.traces)
        .map(|(id, path)| Ok(Arc::new(open(id, path, args.threshold)?)))
        .collect::<Result<_>>()?;
    if let Some(Picked { trace, .. }) = args.pick
        && trace >= traces.len()
    {
        return Err(Error::input(format!("there is no trace number {}", trace + 1)).key("--pick"));
    }
    let look = args.worst.as_deref().map(|measure| worst(&args.traces, measure)).transpose()?;
    let by = args.by.map(|by| if matches!(by, By::Cpu) { "cpu" } else { "task" });
    let asked = args.from.is_some() || args.to.is_some() || by.is_some() || args.pick.is_some();
    let initial = match &look {
        Some(look) => Some(Initial { by, ..kept::initial(look) }),
        None => asked.then_some(Initial { from: args.from, to: args.to, by, pick: args.pick }),
    };
    if let Some(output) = &args.output {
        write(output, args.force, &traces, initial.as_ref(), ui)?;
        if ui.json {
            ui.print_json(&json!({ "output": PathText(output), "look": look }));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !have_page() && !args.no_open {
        return Err(missing_page());
    }
    let from = initial.as_ref().and_then(|initial| initial.from);
    let serving = Serving::new(traces.clone(), args.port, initial)?;
    let address = serving.address();
    let status = Arc::new(AtomicU8::new(0));
    read(&traces, &serving.news(), (args.follow, from), &status, ui)?;
    if !args.follow {
        refuse_after_end(&traces, from)?;
    }
    announce(&args, &address, look.as_ref(), ui);
    serve(serving)?;
    Ok(ExitCode::from(status.load(Ordering::Relaxed)))
}

/// Refuses a first instant behind the end of all traces, each of which has been read to its end or beyond that instant.
fn refuse_after_end(traces: &[Arc<Loaded>], from: Option<Nanos>) -> Result<()> {
    match from {
        Some(from) if traces.iter().all(|loaded| loaded.indexer().index.end <= from) => {
            Err(ends_before_window(&traces[0].path))
        }
        _ => Ok(()),
    }
}

/// Starts to read the traces, each by a thread of its own, and returns when there is something to look at in all, from
/// the first instant on that is shown. What goes wrong later is said, and is the status.
fn read(
    traces: &[Arc<Loaded>],
    news: &News,
    (follow, from): (bool, Option<Nanos>),
    status: &Arc<AtomicU8>,
    ui: &Ui,
) -> Result<()> {
    let (sender, begun) = mpsc::channel();
    for loaded in traces {
        let (loaded, news) = (loaded.clone(), news.clone());
        let first = Cell::new(Some(sender.clone()));
        let (ui, status) = (ui.clone(), status.clone());
        std::thread::spawn(move || {
            let later = |error: Error| {
                ui.note(error.to_string());
                status.store(error.exit_status(), Ordering::Relaxed);
            };
            // The command goes on with what the first of these says.
            let settle = |result: Result<()>| match (first.take(), result) {
                (Some(first), result) => drop(first.send(result)),
                (None, Err(error)) => later(error),
                (None, Ok(())) => {}
            };
            if follow {
                settle(Ok(()));
            }
            let read = reading(&loaded, &news, (follow, from), &|| settle(Ok(())));
            let fine = read.is_ok();
            settle(read);
            news.ended(&loaded);
            if fine {
                loaded.check().unwrap_or_else(later);
                news.checked(&loaded);
            }
        });
    }
    drop(sender);
    begun.into_iter().collect()
}

/// Reads a trace, reports to the pages how far it is, and calls `enough` when there is something to look at.
fn reading(loaded: &Loaded, news: &News, (follow, from): (bool, Option<Nanos>), enough: &dyn Fn()) -> Result<()> {
    let (begun, last) = (Instant::now(), Cell::new(None::<Instant>));
    let grown = || {
        // Pages ask anew for what they show: the longer the reading takes, the more seldom.
        let pause = if follow { NEWS } else { NEWS.max(begun.elapsed() / 2) };
        if last.get().is_none_or(|last| last.elapsed() > pause) {
            last.set(Some(Instant::now()));
            news.grown(loaded);
        }
        let indexer = loaded.indexer();
        if indexer.counts().0 >= ENOUGH && from.is_none_or(|from| indexer.index.end > from) {
            drop(indexer);
            enough();
        }
    };
    if follow { loaded.follow(&grown) } else { loaded.read(&grown).and_then(|()| loaded.refuse_empty()) }
}

/// Writes the page with all that it needs of the traces.
fn write(output: &Path, force: bool, traces: &[Arc<Loaded>], initial: Option<&Initial>, ui: &Ui) -> Result<()> {
    if !have_page() {
        return Err(missing_page());
    }
    let target = Target::new(output, force)?;
    let bar = ui.progress(None, "reading");
    for loaded in traces {
        loaded.read(&|| ())?;
        loaded.refuse_empty()?;
        loaded.check()?;
    }
    bar.finish_and_clear();
    refuse_after_end(traces, initial.and_then(|initial| initial.from))?;
    let page = file(traces, initial)?;
    target.write_all(page.as_bytes())?;
    ui.note(format!("{}: {} bytes", output.display(), page.len()));
    Ok(())
}

/// The place that explains a measure.
fn worst(traces: &[PathBuf], measure: &str) -> Result<Look> {
    let expressions = Expressions::parse(&[measure.to_owned()]).map_err(|e| e.key("--worst"))?;
    let found = look_among(traces, &expressions.subject())?;
    found.ok_or_else(|| Error::input("no task waited, so that there is no place to show").key("--worst"))
}

fn announce(args: &Args, address: &str, look: Option<&Look>, ui: &Ui) {
    if let Some(look) = look {
        ui.note(&look.sentence);
    }
    if ui.json {
        ui.print_json(&json!({ "address": address, "look": look }));
    } else {
        ui.print(&format!("{address}\n"));
    }
    let display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if args.no_open || !display {
        return;
    }
    let mut browser = Command::new("xdg-open");
    browser.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match browser.spawn() {
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(e) => ui.note(format!("no browser could be opened ({e}): open the address yourself")),
    }
}
