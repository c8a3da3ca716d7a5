//! `schedlab sim`: one workload on one machine under one kernel; prints its statistics, keeps its trace.

mod inspect;

use super::stats::{By, of_rows, text};
use crate::setup;
use crate::target::Target;
use crate::ui::Ui;
use inspect::Inspection;
use schedlab_base::{Error, Event, Meta, NameRecord, Nanos, Result, Sink, parse_duration};
use schedlab_experiment::as_recorded::Setup;
use schedlab_experiment::backend::{Outcome, Request, again, head, meta, simulate};
use schedlab_machine::Costs;
use schedlab_measure::{Report, Stats};
use schedlab_trace::{ReadReport, Writer, beside};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// What makes a run, which `--again` takes from a trace.
const MADE_BY: [&str; 9] = ["kernel", "given", "workload", "machine", "set", "duration", "seed", "costs", "every_tick"];

/// What `sim` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab sim li:tasks=10 --kernel linux-6.12 --machine 4 --duration 10s\n  \
                  schedlab sim w.json --kernel linux-2.6.32 --machine z800 --set sched_latency_ns=20000000 \
                  -o t.arrows\n  \
                  schedlab sim li:tasks=3 --kernel linux-6.12 --duration 100ms --explain 0ms..20ms\n  \
                  schedlab sim --again t.arrows --explain 1200ms..1210ms --queues-at 1205ms --sched-debug 1205ms\n\n\
                  `schedlab kernels`, `machines` and `workloads` list the names.")]
pub struct Args {
    /// The workload: a file (.json, rt-app's language) or a preset (li:tasks=10).
    #[arg(value_name = "WORKLOAD", required_unless_present_any = ["workload", "again"])]
    given: Option<String>,
    /// The kernel to simulate; of a workload that was made from a trace, recorded (default) is the kernel of the
    /// trace, or the nearest that is not newer, with its settings; host is this machine's.
    #[arg(long, short)]
    kernel: Option<String>,
    /// The machine: a preset, a shorthand (4, 2x6, 4x15x2), host, recorded, or a machine file (.toml) (default:
    /// recorded if the workload was made from a trace, otherwise up).
    #[arg(long, short)]
    machine: Option<String>,
    /// The workload, as an option.
    #[arg(long, short, conflicts_with = "given")]
    workload: Option<String>,
    /// Re-run the simulation behind this trace, to look into it.
    #[arg(long, value_name = "TRACE", conflicts_with_all = MADE_BY)]
    again: Option<PathBuf>,
    /// Set a tunable, in its own unit, to the value that it has after scaling; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// How long to simulate (10s, 250ms) (default: the workload's own duration, or until every task has ended).
    #[arg(long, short, value_parser = parse_duration, allow_hyphen_values = true)]
    duration: Option<Nanos>,
    /// The seed of all random draws; the same seed gives the same bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Which costs of the machine to apply; `none` simulates the bare algorithm.
    #[arg(long, value_enum, default_value_t = CostsArg::Machine)]
    costs: CostsArg,
    /// Simulate every tick, even where it can change nothing (slower; the trace is the same).
    #[arg(long)]
    every_tick: bool,
    /// Also trace run-queue lengths, loads and the CPUs that the scheduler looks at.
    #[arg(long, requires = "output")]
    trace_queues: bool,
    /// Write the trace to this file.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
    /// What each row of the table stands for; the JSON always contains all of them.
    #[arg(long, value_enum, default_value_t = By::Task)]
    by: By,
    /// Print every row, not just the 30 that ran longest.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    inspect: inspect::InspectArgs,
}

/// Which costs count.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CostsArg {
    /// The costs in the machine's file, or the default costs.
    Machine,
    /// No costs.
    None,
}

/// Reads `name=value`.
pub fn setting(text: &str) -> Result<(String, String)> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| Error::input(format!("\"{text}\" sets nothing")).mend("write --set name=value"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    simulation: Facts<'a>,
    #[serde(flatten)]
    seen: &'a inspect::Document,
    #[serde(flatten)]
    report: &'a Report,
}

/// What was simulated.
#[derive(Serialize)]
struct Facts<'a> {
    kernel: &'a str,
    machine: &'a str,
    workload: &'a str,
    seed: u64,
    duration_us: f64,
    tasks: u32,
    notes: &'a [String],
}

/// The simulation that is asked for, or that made the trace that is named.
fn request(args: &Args, ui: &Ui) -> Result<Request> {
    if let Some(trace) = &args.again {
        return again::request(schedlab_trace::open(trace)?.meta()).map_err(|e| e.file(trace));
    }
    let Some(workload) = args.given.as_ref().or(args.workload.as_ref()) else {
        return Err(Error::input("no workload").mend("name one, or give --again TRACE"));
    };
    let workload = schedlab_workload::load(workload)?;
    for warning in &workload.warnings {
        ui.note(warning);
    }
    let (setup, remarks) = setup::of(args.kernel.as_deref(), args.machine.as_deref(), &workload)?;
    let Setup { kernel, mut machine, mut set } = setup;
    remarks.iter().for_each(|remark| ui.note(remark));
    if args.costs == CostsArg::None {
        machine.costs = Costs::none();
    }
    set.extend(args.set.iter().cloned());
    Ok(Request {
        kernel,
        machine,
        workload,
        set,
        duration: args.duration,
        seed: args.seed,
        skip_ticks: !args.every_tick,
    })
}

/// Simulates, prints the statistics, writes the trace where one is asked for.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let request = request(&args, ui)?;
    let meta = if args.output.is_some() { head(&request) } else { meta(&request) };
    let mut stats = of_rows(Stats::new(&meta), args.by);
    let inspection = Inspection::new(&args.inspect, &request.kernel, args.output.is_none(), ui);
    let outcome = match &args.output {
        None => simulate_with_progress(&request, &meta, &mut stats, &args.inspect, &inspection, ui)?,
        Some(path) => Target::new(path, args.force)?.write(|file| {
            let mut writer = Writer::named(file, &meta, path)?.with_queues(args.trace_queues);
            let sink = &mut (&mut stats, &mut writer);
            let outcome = simulate_with_progress(&request, &meta, sink, &args.inspect, &inspection, ui)?;
            writer.finish().map_err(|e| e.file(path))?;
            Ok(outcome)
        })?,
    };
    for note in &outcome.notes {
        ui.note(note);
    }
    if let Some(remark) = again::remark(&meta).filter(|_| args.output.is_some()) {
        ui.note(remark);
    }
    let report = stats.finish(Some(outcome.end));
    let seen = inspection.finish(&args.inspect, ui);
    if ui.json {
        let simulation = Facts {
            kernel: &request.kernel,
            machine: &request.machine.name,
            workload: &request.workload.name,
            seed: request.seed,
            duration_us: outcome.end as f64 / 1e3,
            tasks: outcome.tasks,
            notes: &[&request.workload.warnings[..], &outcome.notes].concat(),
        };
        ui.print_json(&Document { simulation, seen: &seen, report: &report });
    } else {
        let title = format!("{} on {}, {}", request.workload.name, request.machine.name, request.kernel);
        if !seen.is_empty() {
            ui.print_json(&seen);
        }
        ui.print(&text::report(&title, &meta, &ReadReport::default(), &report, args.by, args.all));
    }
    // The process is about to end: to free a large workload piece by piece would be for nothing.
    std::mem::forget(request);
    Ok(ExitCode::SUCCESS)
}

fn simulate_with_progress(
    request: &Request,
    meta: &Meta,
    sink: &mut dyn Sink,
    args: &inspect::InspectArgs,
    inspection: &Inspection,
    ui: &Ui,
) -> Result<Outcome> {
    let length = meta.span.map(|(_, end)| end / 1_000_000);
    let mut ticker = Ticker { bar: ui.progress(length, "simulating"), batches: 0 };
    let times = args.times();
    let mut names = inspection.clone();
    let sink = &mut (sink, &mut ticker);
    let outcome = match args.inspect(&times, inspection) {
        // Who looks into the scheduler does so while it stands still.
        Some(inspect) => simulate(request, &mut (sink, &mut names), Some(inspect)),
        None => beside(sink, |sink| simulate(request, sink, None)),
    };
    ticker.bar.finish_and_clear();
    outcome
}

/// Shows how far simulated time has come.
struct Ticker {
    bar: indicatif::ProgressBar,
    batches: u32,
}

impl Sink for Ticker {
    fn events(&mut self, batch: &[Event]) {
        self.batches += 1;
        if self.batches.is_multiple_of(64)
            && let Some(last) = batch.last()
        {
            self.bar.set_position(last.time / 1_000_000);
        }
    }

    fn name(&mut self, _: &NameRecord) {}
}
