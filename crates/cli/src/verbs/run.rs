//! `schedlab run`: runs experiments, prints our figures beside the published ones, judges.

use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, Result};
use schedlab_experiment::{Experiment, backend, report, run_experiments, text};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `run` is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  schedlab run experiments/cfs-17.toml\n  schedlab run experiments -o report.html\n\n\
    Exit status: 0 all hold, 1 some fail, 2 bad input or output that cannot be written, \
    3 nothing failed but something is undecided."
)]
pub struct Args {
    /// Experiment files, or folders that contain them.
    #[arg(required = true, value_name = "FILE|DIR")]
    experiments: Vec<PathBuf>,
    /// Where to run: sim, the simulator, is the only one in this version.
    #[arg(long, default_value = "sim", value_name = "WHERE")]
    on: String,
    /// Write a report: one self-contained HTML page.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the report if it exists.
    #[arg(long)]
    force: bool,
    /// The number of simulations to run at once (default: the number of cores); the results do not depend on it.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// Runs all experiments named and tells what came out.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let backend = backend::parse(&args.on)?;
    let target = args.output.as_deref().map(|output| Target::new(output, args.force)).transpose()?;
    let mut experiments = Vec::new();
    for file in files(&args.experiments)? {
        experiments.push(Experiment::open(&file)?);
    }
    if let Some(id) = twice(&experiments) {
        return Err(Error::input(format!("two experiments have the id \"{id}\"")).mend("give each its own"));
    }
    let threads = args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let bar = ui.progress(Some(1), "simulating");
    let outcome = run_experiments(experiments, &*backend, threads, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let outcome = outcome?;
    for judged in &outcome.experiments {
        judged.remarks().iter().for_each(|remark| ui.note(format!("{}: {remark}", judged.experiment.file.id)));
    }
    if ui.json {
        ui.print_json(&outcome.to_json());
    } else {
        ui.print(&text::side_by_side(&outcome));
        ui.print(&text::table(&outcome));
    }
    // After the results: they are printed even if the report cannot be written.
    if let (Some(target), Some(output)) = (target, &args.output) {
        target.write_all(report::experiments(&outcome, &reproduce(&args)).as_bytes())?;
        ui.note(format!("wrote {}", output.display()));
    }
    Ok(ExitCode::from(outcome.verdict().exit_status()))
}

/// The command that makes the same report again.
fn reproduce(args: &Args) -> report::Reproduce {
    let files: Vec<String> = args.experiments.iter().map(|p| p.display().to_string()).collect();
    report::Reproduce {
        command: format!("schedlab run --on {} {} -o report.html", args.on, files.join(" ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The files named, and the `.toml` files of the folders named, by name.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
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
