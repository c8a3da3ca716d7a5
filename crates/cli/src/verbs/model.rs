//! `schedlab model`: makes a workload from a trace, to be simulated under other schedulers.

pub mod validate;

use super::stats::table::{counted, grouped};
use crate::partial;
use crate::selection::SelectionArgs;
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, Meta, Nanos, PathText, Result, parse_duration};
use schedlab_experiment::as_recorded;
use schedlab_measure::{Part, Stats};
use schedlab_workload::Workload;
use schedlab_workload::from_trace::{Model, ModelBuilder, Options, Report};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use validate::{ValidateArgs, validate};

/// What `model` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  schedlab model t.arrows -o load.json
  schedlab model t.arrows --tasks 20 --min-run 1ms -o load.json
  schedlab model t.arrows -o load.json --validate
  schedlab model t.arrows --from 10s --to 12s --group /system.slice -o load.json
  schedlab sim --kernel linux-6.12 --machine 2x6 --workload load.json")]
pub struct Args {
    /// The trace.
    trace: PathBuf,
    /// The workload file to write (default: standard output).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    validate: ValidateArgs,
    /// Overwrite the file if it exists.
    #[arg(long, requires = "output")]
    force: bool,
}

/// What the model is to have.
#[derive(clap::Args)]
pub struct ModelArgs {
    /// Keep only the N busiest tasks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tasks: Option<u32>,
    /// Leave out tasks that ran for less than this in total (1ms, 500us).
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub min_run: Option<Nanos>,
    /// Fold repeated cycles, more and more loosely, until there are at most N events.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub most_events: u32,
    /// Do not bind tasks to the CPUs that they may use (a smaller machine may lack them).
    #[arg(long)]
    pub no_pin: bool,
}

impl ModelArgs {
    fn options(&self) -> Options {
        Options {
            tasks: self.tasks.map(|n| n as usize),
            min_run: self.min_run.unwrap_or(0),
            most_events: self.most_events as usize,
            pin: !self.no_pin,
        }
    }
}

/// What was recorded.
pub struct Recorded {
    pub meta: Meta,
    pub stats: Stats,
}

/// Builds the model and writes it.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let target = args.output.as_deref().map(|output| Target::new(output, args.force)).transpose()?;
    let part = args.selection.part(&args.trace, ui)?;
    let (Model { workload, mut report }, recorded) = read(&args.trace, &args.model, part, args.validate.validate, ui)?;
    let mut text = written(&workload, &args.trace, &mut report)?;
    tell(&report, ui);
    let validated = recorded.map(|recorded| validate(&args.validate, recorded, (&workload, &report), ui));
    let validated = validated.transpose().map_err(|e| e.file(&args.trace))?;
    if let Some(validated) = &validated {
        text = schedlab_workload::write(&Workload { validation: Some(validated.kept()), ..workload });
    }
    let to_file = target.is_some();
    if let Some(target) = target {
        target.write_all(text.as_bytes())?;
    }
    match (to_file, validated) {
        (false, None) => ui.print(&text),
        (_, Some(validated)) if !ui.json => ui.print(&validate::text(&validated)),
        (_, validated) if ui.json => {
            ui.print_json(
                &json!({ "workload": args.output.as_deref().map(PathText), "report": report, "validation": validated }),
            );
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the model, and measures what is modelled if that is wanted. The trace is read once: it may be a pipe.
pub fn read(
    trace: &Path,
    model: &ModelArgs,
    part: Option<Part>,
    measured: bool,
    ui: &Ui,
) -> Result<(Model, Option<Recorded>)> {
    let mut source = schedlab_trace::open(trace)?;
    partial::refuse_without_waits(source.meta(), trace, "model")?;
    let meta = source.meta().clone();
    let mut stats = measured.then(|| Stats::of_part(&meta, part.clone()));
    let mut builder =
        ModelBuilder::of_part(&meta, part.unwrap_or_default()).with_smt_loss(as_recorded::smt_loss(&meta));
    let progress = ui.progress(None, "reading the trace");
    let read = match &mut stats {
        Some(stats) => source.run(&mut (&mut builder, stats))?,
        None => source.run(&mut builder)?,
    };
    progress.finish_and_clear();
    read.refuse_if_nothing_is_left(trace)?;
    let mut model = builder.finish(&model.options()).map_err(|e| e.file(trace))?;
    if let Some(cut) = read.cut {
        model.report.was_cut(cut.what);
    }
    Ok((model, stats.map(|stats| Recorded { meta, stats })))
}

/// The workload's text, which is read back to check that it means the same.
fn written(workload: &Workload, trace: &Path, report: &mut Report) -> Result<String> {
    let text = schedlab_workload::write(workload);
    let back = schedlab_workload::parse(text.as_bytes(), Path::new("the model"))?;
    report.remarks.extend(back.warnings);
    if back.tasks.len() != workload.tasks.len() {
        return Err(Error::input("the trace's tasks have names that a workload cannot hold").file(trace));
    }
    Ok(text)
}

fn seconds(ns: Nanos) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

fn tell(report: &Report, ui: &Ui) {
    let all = report.modelled_ns + report.left_out_ns;
    ui.note(format!(
        "{} over {}; {} modelled with {} of CPU time ({:.2}% of what was recorded)",
        counted(report.events, "event"),
        seconds(report.span_ns),
        counted(report.tasks as u64, "task"),
        seconds(report.modelled_ns),
        report.modelled_ns as f64 * 100.0 / all.max(1) as f64,
    ));
    ui.note(format!(
        "the workload demands {} in {}; of its sleeps, {} end by another task's wake-up, {} by themselves",
        seconds(report.demand_ns),
        counted(report.workload_events, "event"),
        grouped(report.waits),
        grouped(report.sleeps),
    ));
    if report.left_out > 0 {
        let tasks = counted(report.left_out as u64, "task");
        ui.note(format!("left out: {tasks} with {}", seconds(report.left_out_ns)));
    }
    if report.pinned > 0 {
        ui.note(format!(
            "bound to some of the CPUs, as recorded: {} (--no-pin frees them)",
            counted(report.pinned as u64, "task")
        ));
    }
    if report.interrupts_ns > 0 {
        ui.note(format!("interrupts took {}, not the tasks that they interrupted", seconds(report.interrupts_ns)));
    }
    report.remarks.iter().for_each(|remark| ui.note(remark));
}
