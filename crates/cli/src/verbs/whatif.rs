//! `schedlab whatif`: what another kernel, other settings or another machine would do with a recorded load.

mod text;
mod variants;

use super::model::{ModelArgs, Recorded, read};
use super::run::reproduce;
use crate::jobs::Jobs;
use crate::kept;
use crate::selection::SelectionArgs;
use crate::setup;
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, Meta, Nanos, PathText, Result, parse_duration};
use schedlab_experiment::as_recorded::Setup;
use schedlab_experiment::fitted::fitted;
use schedlab_experiment::prediction::{doubts, kept_errors};
use schedlab_experiment::report;
use schedlab_experiment::whatif::{Answer, Question, Recording, Roster, answer};
use schedlab_measure::TaskStats;
use schedlab_workload::from_trace::{Model, Report};
use schedlab_workload::{TaskDef, Workload};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use variants::VariantArgs;

/// What `whatif` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  schedlab whatif t.arrows --kernel linux-6.12
  schedlab whatif t.arrows --kernel linux-6.1 --kernel linux-6.12 --machine z800 -o report.html
  schedlab whatif t.arrows --kernel linux-6.12 -o report.html --keep traces
  schedlab whatif t.arrows --set base_slice_ns=1000000
  schedlab whatif t.arrows --variant short:set.base_slice_ns=1000000 --variant new:kernel=linux-6.12,machine=2x6
  schedlab whatif load.json --recording t.arrows --kernel linux-6.12")]
pub struct Args {
    /// A trace, recorded or simulated, or a model that `schedlab model` wrote (.json).
    trace: PathBuf,
    /// The trace that the model was made from, to say how far to trust it.
    #[arg(long, value_name = "TRACE")]
    recording: Option<PathBuf>,
    #[command(flatten)]
    variants: VariantArgs,
    /// How many simulations of each, with their own seeds: in all but the first, bursts and sleeps vary by 2%.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// End each simulation after this time (default: when all tasks are done).
    #[arg(long, short, value_parser = parse_duration, allow_hyphen_values = true)]
    duration: Option<Nanos>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Write a report: one self-contained HTML page.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep the trace of the first simulation of each in this folder, with pages that show the places which explain
    /// the answer; the report and the text lead there.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Overwrite the files if they exist.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    jobs: Jobs,
    /// Print every row, not just the 15 that change most.
    #[arg(long)]
    all: bool,
}

/// The load: its model, its rows, and the recording where there is one.
struct Load {
    workload: Workload,
    roster: Roster,
    recording: Option<(Meta, Recording)>,
}

/// Simulates, and prints recorded, simulated as recorded and simulated as asked.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let target = args.output.as_deref().map(|path| Target::new(path, args.force)).transpose()?;
    args.variants.check()?;
    let load = load(&args, ui)?;
    let (baseline, remarks) = baseline(&args, &load)?;
    let variants = args.variants.setups(&baseline, &load.workload)?;
    variants.iter().try_for_each(|(_, setup)| fits(&load.workload, setup).map_err(|e| e.file(&args.trace)))?;
    if let Some(folder) = &args.keep {
        kept::prepare(folder, args.force)?;
    }
    let mut answer = ask(&args, load, (baseline, remarks), variants, ui)?;
    if args.keep.is_some() {
        kept::write_pages(answer.looks_mut(), args.output.as_deref(), ui)?;
    }
    if ui.json {
        ui.print_json(&json!({ "load": PathText(&args.trace), "whatif": answer }));
    } else {
        ui.print(&text::text(&args.trace, &answer, args.all));
    }
    if let Some(target) = target {
        let name = args.trace.display().to_string();
        target.write_and_say(report::whatif(&name, &answer, &reproduce()).as_bytes(), ui)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the trace and makes its model, or reads the model.
fn load(args: &Args, ui: &Ui) -> Result<Load> {
    let is_model = args.trace.extension().is_some_and(|extension| extension == "json");
    if !is_model {
        if args.recording.is_some() {
            let error = Error::input("only a model (.json) has a recording beside it").key("--recording");
            return Err(error.mend("leave it out: the trace is the recording"));
        }
        let part = args.selection.part(&args.trace, ui)?;
        let (Model { workload, report }, recorded) = read(&args.trace, &args.model, part, true, ui)?;
        return Ok(with_recording(workload, &report, recorded));
    }
    let path = args.trace.to_str().ok_or_else(|| Error::input("the name is not UTF-8").file(&args.trace))?;
    let workload = schedlab_workload::load(path)?;
    workload.warnings.iter().for_each(|warning| ui.note(warning));
    let Some(trace) = &args.recording else {
        let roster = Roster::new(&[], &workload);
        return Ok(Load { workload, roster, recording: None });
    };
    let part = args.selection.part(trace, ui)?;
    let (Model { workload: model, report }, recorded) = read(trace, &args.model, part, true, ui)?;
    let mut load = with_recording(workload, &report, recorded);
    // One that was written does not say where it was recorded.
    load.workload.recorded = load.workload.recorded.or(model.recorded);
    Ok(load)
}

fn with_recording(workload: Workload, model: &Report, recorded: Option<Recorded>) -> Load {
    let recording = recorded.map(|Recorded { meta, stats }| {
        let choose = |tasks: &[TaskStats]| Roster::new(tasks, &workload).of_recorded(tasks);
        let (report, rows) = stats.finish_with_teams(None, &choose);
        let doubts = doubts(&meta, &report, model);
        let covers = meta.covers();
        (meta, Recording { report, rows, covers, doubts })
    });
    let tasks = recording.as_ref().map_or(&[][..], |(_, own)| &own.report.tasks);
    Load { roster: Roster::new(tasks, &workload), workload, recording }
}

/// Where the load is simulated as recorded.
fn baseline(args: &Args, load: &Load) -> Result<(Setup, Vec<String>)> {
    let spec = args.variants.baseline()?;
    let meta = load.recording.as_ref().map(|(meta, _)| meta);
    let said = load.workload.recorded.is_some() || (spec.kernel.is_some() && spec.machine.is_some());
    if meta.is_none() && !said {
        return Err(Error::input("the model does not say which kernel and machine it was recorded on")
            .mend("name its trace with --recording, or write --baseline kernel=K,machine=M")
            .file(&args.trace));
    }
    let (kernel, machine) = (spec.kernel.as_deref(), spec.machine.as_deref());
    let (mut setup, remarks) =
        setup::as_recorded(meta, kernel, machine, &load.workload).map_err(|e| e.file(&args.trace))?;
    setup.set.retain(|(name, _)| !spec.set.iter().any(|(other, _)| other == name));
    setup.set.extend(spec.set);
    Ok((setup, remarks))
}

/// Refuses a machine that lacks a CPU to which a task is bound, other than the kernel's own threads of that CPU.
fn fits(workload: &Workload, setup: &Setup) -> Result<()> {
    let workload = fitted(workload, &setup.kernel, &setup.machine).workload;
    let there = |cpu: &u32| setup.machine.cpus.iter().any(|own| own.place.cpu == *cpu);
    let lacks = |task: &TaskDef| task.props.cpus.as_ref()?.iter().find(|cpu| !there(cpu)).copied();
    match workload.tasks.iter().find_map(|task| Some((task, lacks(task)?))) {
        Some((task, cpu)) => {
            let what = format!("{} is bound to CPU {cpu}, which the machine {} lacks", task.name, setup.machine.name);
            Err(Error::input(what).key("--machine").mend("--no-pin frees the tasks"))
        }
        None => Ok(()),
    }
}

fn ask(
    args: &Args,
    load: Load,
    (baseline, remarks): (Setup, Vec<String>),
    variants: Vec<(String, Setup)>,
    ui: &Ui,
) -> Result<Answer> {
    let Load { workload, roster, recording } = load;
    let recording = recording.map(|(_, mut recording)| {
        recording.doubts.causes.splice(0..0, remarks);
        recording
    });
    let runs = args.seeds * (1 + variants.len() as u64);
    let question = Question {
        workload: &workload,
        roster: &roster,
        recording,
        stored: workload.validation.as_ref().map(kept_errors),
        baseline,
        variants,
        seeds: args.seeds,
        duration: args.duration,
        keep: args.keep.as_deref(),
    };
    let bar = ui.progress(Some(runs), "simulating");
    let answer = answer(&question, args.jobs.count(), &|| bar.inc(1));
    bar.finish_and_clear();
    answer.map_err(|e| e.file(&args.trace))
}
