//! `schedlab run`: runs experiments, prints our figures beside the published ones, judges.

use crate::busy;
use crate::jobs::Jobs;
use crate::kept;
use crate::placement::Placed;
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, Nanos, Result, counted};
use schedlab_experiment::backend::{self, Backend};
use schedlab_experiment::{
    Baseline, Compared, Experiment, Outcome, Part, Selection, junit, parts, report, run_keeping, run_parts, text,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `run` is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  schedlab run experiments/cfs-17.toml\n  schedlab run experiments -o report.html\n  \
    schedlab run experiments -o report.html --keep traces\n  \
    schedlab run experiments --only qe-01 --kernel linux-6.12 --only n=3\n  \
    schedlab run experiments/cfs-17.toml --on vm:debian-6.1 --only nice=5 --repeats 3\n  \
    schedlab run experiments --json > before.json\n  \
    schedlab run experiments --baseline before.json --junit results.xml\n\n\
    Exit status: 0 all hold, 1 some fail or, with --baseline, something has changed, 2 bad input or output that cannot \
    be written, 3 nothing failed but something is undecided, or nothing could be judged or compared, 4 not permitted \
    or not possible on this machine."
)]
pub struct Args {
    /// Experiment files, or folders that contain them.
    #[arg(required = true, value_name = "FILE|DIR")]
    experiments: Vec<PathBuf>,
    /// Where to run: `sim`, the simulator, `live`, this kernel with real threads (one run at a time, as root), or
    /// `vm:KERNEL`, guests with this kernel (vm:debian-6.12, vm:/path/to/bzImage). A real kernel is judged, and shown
    /// beside what was published and beside a simulation of it.
    #[arg(long, default_value = "sim", value_name = "WHERE")]
    on: String,
    /// In guests: count time in instructions, so that equal runs give equal bytes.
    #[arg(long)]
    deterministic: bool,
    #[command(flatten)]
    placed: Placed,
    /// Run only this kernel, by its name in the file, its profile or its label; may be repeated.
    #[arg(short, long, value_name = "KERNEL")]
    kernel: Vec<String>,
    /// Run only this experiment (its id), this kernel, or these points of a sweep (n=3); may be repeated.
    #[arg(long, value_name = "ID|KERNEL|NAME=VALUE")]
    only: Vec<String>,
    /// Run each with seeds 1, 2, ... up to this, in place of the file's seeds; on a real kernel that is how often.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,
    /// Compare with what an earlier run printed with --json; exit with 1 if a metric or a verdict has changed.
    #[arg(long, value_name = "OLD.json")]
    baseline: Option<PathBuf>,
    /// Write a report: one self-contained HTML page.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the verdicts as JUnit XML, for CI.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Keep the traces of the runs behind expectations that do not hold in this folder, with a page each that shows the
    /// place that explains it; the report and the table lead there.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Overwrite the files if they exist.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    jobs: Jobs,
}

/// Runs all experiments named and prints what came out.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let backend = backend::parse(&args.on, args.deterministic)?;
    let [page, junit] = Target::two(args.output.as_deref(), args.junit.as_deref(), args.force)?;
    let baseline = args.baseline.as_deref().map(Baseline::open).transpose()?;
    let mut experiments = Vec::new();
    for file in files(&args.experiments)? {
        experiments.push(Experiment::open(&file)?);
    }
    if let Some(id) = twice(&experiments) {
        return Err(Error::input(format!("two experiments have the id \"{id}\"")).mend("give each its own"));
    }
    let selection = Selection::new(&experiments, &args.kernel, &args.only)?;
    let mut experiments = selection.apply(experiments)?;
    if let Some(repeats) = args.repeats {
        experiments.iter_mut().for_each(|experiment| experiment.file.seeds = (1..=u64::from(repeats)).collect());
    }
    if let Some(placement) = args.placed.choice() {
        experiments
            .iter_mut()
            .for_each(|experiment| experiment.file.workload.placement = Some(placement.word().into()));
    }
    if let Some(folder) = &args.keep {
        kept::prepare(folder, args.force)?;
    }
    busy::remark(args.on == "live", ui);
    let mut outcome = run_with_progress(experiments, &*backend, (args.jobs.count(), args.keep.as_deref()), ui)?;
    if let Some(folder) = &args.keep {
        keep_looks(&mut outcome, folder, args.output.as_deref(), ui)?;
    }
    for judged in &outcome.experiments {
        judged.remarks().iter().for_each(|remark| ui.note(format!("{}: {remark}", judged.experiment.file.id)));
    }
    let compared = baseline.map(|baseline| baseline.compare(&outcome, !selection.is_everything()));
    print(&outcome, compared.as_ref(), ui);
    // After the results: they are printed even if a file cannot be written.
    if let Some(page) = page {
        page.write_and_say(report::experiments(&outcome, &reproduce()).as_bytes(), ui)?;
    }
    if let Some(junit) = junit {
        junit.write_and_say(junit::write(&outcome)?.as_bytes(), ui)?;
    }
    let mut status = outcome.verdict().exit_status();
    if !selection.is_everything() && outcome.judges_nothing() {
        ui.note("no expectation can be judged by the selected part");
        status = 3;
    }
    Ok(ExitCode::from(with_baseline(status, compared.as_ref())))
}

/// Runs on a real kernel that take longer than this in its own time are announced.
const LONG: Nanos = 600_000_000_000;

/// What the backend's real kernel can run of the experiments; remarks name what is left out.
fn possible(experiments: Vec<Experiment>, backend: &dyn Backend, ui: &Ui) -> Result<Vec<Part>> {
    let parts = parts(experiments, backend)?;
    let (mut runs, mut time) = (0, 0);
    for part in &parts {
        part.remarks.iter().for_each(|remark| ui.note(remark));
        let (own, length) = part.length()?;
        (runs, time) = (runs + own, time + length);
    }
    if time > LONG {
        let minutes = time / 60_000_000_000;
        ui.note(format!(
            "{} of at least {} together; --only and --repeats make them fewer",
            counted(runs as u64, "run"),
            counted(minutes, "minute")
        ));
    }
    Ok(parts)
}

fn run_with_progress(
    experiments: Vec<Experiment>,
    backend: &dyn Backend,
    by: (usize, Option<&Path>),
    ui: &Ui,
) -> Result<Outcome> {
    let real = backend.real_kernel().is_some();
    let parts = if real { possible(experiments.clone(), backend, ui)? } else { Vec::new() };
    let bar = ui.progress(Some(1), if real { "running" } else { "simulating" });
    let progress = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let outcome = match real {
        true => run_parts(parts, backend, by, &progress),
        false => run_keeping(experiments, backend, by, &progress),
    };
    bar.finish_and_clear();
    outcome
}

/// Finds the places to look at, writes their pages, and removes the traces that nobody needs.
fn keep_looks(outcome: &mut Outcome, folder: &Path, report: Option<&Path>, ui: &Ui) -> Result<()> {
    outcome.find_looks()?;
    kept::write_pages(outcome.looks_mut(), report, ui)?;
    let needed: BTreeSet<PathBuf> = outcome.looks_mut().map(|look| look.trace.clone()).collect();
    let runs = outcome.experiments.iter().flat_map(|judged| &judged.runs);
    let all: BTreeSet<PathBuf> = runs.filter_map(|run| run.trace.clone()).collect();
    for trace in all.difference(&needed) {
        std::fs::remove_file(trace).map_err(|e| Error::system("cannot be removed", &e).file(trace))?;
    }
    match needed.len() {
        0 => ui.note("every expectation holds: no trace was kept"),
        n => ui.note(format!("kept {} in {}", counted(n as u64, "trace"), folder.display())),
    }
    Ok(())
}

fn print(outcome: &Outcome, compared: Option<&Compared>, ui: &Ui) {
    if ui.json {
        let mut document = outcome.to_json();
        if let Some(compared) = compared {
            document["baseline"] = serde_json::to_value(compared).expect("plain data is always JSON");
        }
        ui.print_json(&document);
        return;
    }
    ui.print(&text::side_by_side(outcome));
    ui.print(&text::table(outcome));
    if let Some(compared) = compared {
        ui.print(&compared.text());
    }
}

/// A failure and a change are 1; of the rest, what is not known is 3.
fn with_baseline(status: u8, compared: Option<&Compared>) -> u8 {
    match (status, compared.map_or(0, Compared::exit_status)) {
        (1, _) | (_, 1) => 1,
        (0, other) => other,
        (status, _) => status,
    }
}

/// The command that makes the same report again: the one that was given.
pub fn reproduce() -> report::Reproduce {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let command: Vec<String> = std::iter::once("schedlab".to_owned()).chain(words).collect();
    report::Reproduce {
        // Only a word with a zero byte cannot be quoted, and no argument has one.
        command: shlex::try_join(command.iter().map(String::as_str)).unwrap_or_else(|_| command.join(" ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The files named, and the `.toml` files of the folders named, by name.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(in_folder(path)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let fail = |e: std::io::Error| Error::system("cannot list", &e).file(folder);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Error::input("no experiment is in this folder").mend("it should hold .toml files").file(folder));
    }
    Ok(found)
}

fn twice(experiments: &[Experiment]) -> Option<&str> {
    let ids: Vec<&str> = experiments.iter().map(|e| e.file.id.as_str()).collect();
    ids.iter().enumerate().find(|(i, id)| ids[..*i].contains(id)).map(|(_, id)| *id)
}
