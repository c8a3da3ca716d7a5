//! `schedlab exec`: runs a workload with real threads on this kernel or in a guest, records it, and prints the
//! statistics.

mod place;
mod tables;

use super::record::say_status;
use super::stats::{By, of_rows, table::grouped, text};
use super::vm::GuestArgs;
use crate::placement::Placed;
use crate::target::Target;
use crate::ui::Ui;
use place::Place;
use schedlab_base::{Error, Meta, Nanos, Result, counted, parse_duration};
use schedlab_capture::{Ending, Progress, Recorded, Recorder};
use schedlab_experiment::backend::Request;
use schedlab_experiment::backend::live;
use schedlab_live::{Execution, Runner};
use schedlab_measure::{Report, Stats};
use schedlab_trace::{ReadReport, Writer};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `exec` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab exec periodic:tasks=4,run=1ms --duration 5s\n  \
                  schedlab exec w.json --duration 10s -o live.arrows\n  \
                  schedlab exec messaging:groups=2 --json | jq '.execution.bursts.error_us'\n  \
                  schedlab exec --duration 10s -- stress-ng --cpu 4\n  \
                  schedlab exec li:tasks=3 -d 2s --on vm:debian-6.12 --machine 2 --deterministic -o t.arrows\n\n\
                  The workload is the one that `schedlab sim` simulates. Recording needs root; --no-record does not.")]
pub struct Args {
    /// The workload: a file (.json, rt-app's language) or a preset (li:tasks=10).
    #[arg(required_unless_present = "command")]
    workload: Option<String>,
    /// Where to run: `live`, this kernel, or `vm:KERNEL`, a guest (vm:debian-6.12, vm:/path/to/bzImage).
    #[arg(long, default_value = "live", value_name = "WHERE")]
    on: String,
    #[command(flatten)]
    guest: GuestArgs,
    /// How long to run (10s, 250ms) (default: the workload's own duration, or until every task has ended).
    #[arg(long, short, value_parser = parse_duration, allow_hyphen_values = true)]
    duration: Option<Nanos>,
    /// The seed of all random draws; each task draws the same values again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the trace to this file.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    placed: Placed,
    /// Run only: print what the tasks report about themselves, and record nothing.
    #[arg(long, conflicts_with_all = ["output", "buffer", "by", "all"])]
    no_record: bool,
    /// The size of the kernel's buffer for each CPU (512K, 8M); a larger one survives longer bursts.
    #[arg(long, value_name = "SIZE", value_parser = super::record::parse_buffer, allow_hyphen_values = true)]
    buffer: Option<u64>,
    /// What each row of the table stands for; the JSON always contains all of them.
    #[arg(long, value_enum, default_value_t = By::Task)]
    by: By,
    /// Print every row, and the tasks that do not belong to the workload, which otherwise share a row.
    #[arg(long)]
    all: bool,
    /// Run this command instead of a workload; with --json its output goes to standard error.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["workload", "no_record", "placement", "seed"])]
    command: Vec<OsString>,
}

/// What is run.
enum Subject<'a> {
    Workload(&'a Request, &'a Place),
    Command(&'a [OsString]),
}

impl Subject<'_> {
    fn name(&self) -> String {
        match self {
            Self::Workload(request, _) => request.workload.name.clone(),
            Self::Command(words) => words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
        }
    }
}

/// The options that the same verb gets in a guest.
fn inside(args: &Args) -> Vec<String> {
    args.buffer.into_iter().flat_map(|kib| ["--buffer".to_owned(), format!("{kib}K")]).collect()
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    execution: Facts<'a>,
    #[serde(flatten)]
    report: Option<&'a Report>,
}

/// What was run.
#[derive(Serialize)]
struct Facts<'a> {
    kernel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<&'a Recorded>,
    #[serde(flatten)]
    execution: Option<&'a Execution>,
    notes: &'a [String],
}

/// Runs the workload, and prints the statistics of its recording.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let place = Place::new(&args.on, &args.guest)?;
    let Some(name) = &args.workload else {
        place.refuse_guest("-- COMMAND")?;
        return run_recorded(&Subject::Command(&args.command), &args, ui);
    };
    let mut workload = schedlab_workload::load(name)?;
    workload.global.placement = args.placed.choice().unwrap_or(workload.global.placement);
    for warning in &workload.warnings {
        ui.note(warning);
    }
    let request = Request {
        kernel: place.kernel(),
        machine: place.machine(&args.guest)?,
        workload,
        set: args.guest.set.clone(),
        duration: args.duration,
        seed: args.seed,
        skip_ticks: true,
    };
    if args.no_record {
        place.refuse_guest("--no-record")?;
        return run_only(&request, ui);
    }
    run_recorded(&Subject::Workload(&request, &place), &args, ui)
}

/// Runs, records, and prints the statistics.
fn run_recorded(subject: &Subject, args: &Args, ui: &Ui) -> Result<ExitCode> {
    let run = match &args.output {
        None => record(subject, args, unnamed()?, ui)?,
        Some(path) => Target::new(path, args.force)?.write(|mut file| {
            if file.metadata().is_ok_and(|meta| meta.is_file()) {
                return record(subject, args, file, ui);
            }
            // What a device or a FIFO takes cannot be read back.
            let made = unnamed()?;
            let failed = |e: io::Error| Error::system("cannot write the trace", &e).file(path);
            let mut again = File::open(own_path(&made)).map_err(failed)?;
            let run = record(subject, args, made, ui)?;
            io::copy(&mut again, &mut file).map_err(failed)?;
            Ok(run)
        })?,
    };
    print(args, subject, &run, ui);
    Ok(ExitCode::SUCCESS)
}

/// The path by which an open file can be opened again.
fn own_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// What came of a run.
struct Run {
    meta: Meta,
    read: ReadReport,
    report: Report,
    recorded: Recorded,
    /// What the tasks of a workload report.
    execution: Option<Execution>,
    notes: Vec<String>,
}

/// Runs and records into `file`, and reads the statistics back from it: computing them meanwhile would disturb the run.
fn record(subject: &Subject, args: &Args, file: File, ui: &Ui) -> Result<Run> {
    let written = file.try_clone().map_err(|e| Error::system("cannot write the trace", &e))?;
    let bar = ui.progress(None, "running");
    let show = |progress: Progress| {
        bar.set_message(format!("running: {} events, {} lost", grouped(progress.events), grouped(progress.lost)));
        bar.tick();
    };
    let open = |meta: &Meta| {
        let file = BufWriter::with_capacity(1 << 20, file);
        match &args.output {
            Some(path) => Writer::named(file, meta, path),
            None => Writer::new(file, meta),
        }
    };
    let outcome = match subject {
        Subject::Workload(request, Place::Guest(vm)) => {
            let ran = vm.record(request, &inside(args), open, &mut |text| ui.note(text));
            ran.map(|(_, inside)| (inside.recorded, Some(inside.execution), inside.notes))
        }
        Subject::Workload(request, Place::Live) => live::plan(request).and_then(|(options, notes)| {
            // Nobody reads what a killed guest leaves.
            let quiet = schedlab_guest::agent::is_inside();
            let (_, recorded, execution) = live::record(request, options, args.buffer, quiet, open, show)?;
            Ok((recorded, Some(execution), notes))
        }),
        Subject::Command(command) => Recorder::new(schedlab_capture::Options {
            command: command.to_vec(),
            duration: args.duration,
            buffer_kib: args.buffer,
            command_to_stderr: ui.json,
            ..schedlab_capture::Options::default()
        })
        .and_then(|recorder| recorder.record(open, show))
        .map(|(_, recorded)| (recorded, None, Vec::new())),
    };
    bar.finish_and_clear();
    let (recorded, execution, notes) = outcome?;
    let mut source = schedlab_trace::open(own_path(&written))?;
    let meta = source.meta().clone();
    let mut stats = of_rows(Stats::new(&meta).with_teams(), args.by);
    let read = source.run(&mut stats)?;
    Ok(Run { meta, read, report: stats.finish(None), recorded, execution, notes })
}

/// A file without a name, which is gone when it is closed.
fn unnamed() -> Result<File> {
    let made = rustix::fs::memfd_create("schedlab-trace", rustix::fs::MemfdFlags::CLOEXEC);
    made.map(File::from).map_err(|e| Error::system("cannot make room for the trace", &e).mend("name a file with -o"))
}

/// Runs without recording.
fn run_only(request: &Request, ui: &Ui) -> Result<ExitCode> {
    let (options, notes) = live::plan(request)?;
    let mut runner = Runner::new(options)?;
    runner.start()?;
    runner.wait()?;
    let execution = runner.finish()?;
    notes.iter().for_each(|note| ui.note(note));
    if ui.json {
        ui.print_json(&document(&Subject::Workload(request, &Place::Live), Some(&execution), &notes, None));
    } else {
        ui.print(&tables::tasks(&request.workload.name, &request.kernel, &execution));
    }
    Ok(ExitCode::SUCCESS)
}

fn document<'a>(
    subject: &Subject<'a>,
    execution: Option<&'a Execution>,
    notes: &'a [String],
    run: Option<&'a Run>,
) -> Document<'a> {
    let (workload, seed) = match subject {
        Subject::Workload(request, _) => (Some(request.workload.name.as_str()), Some(request.seed)),
        Subject::Command(_) => (None, None),
    };
    let kernel = match subject {
        Subject::Workload(request, _) => request.kernel.clone(),
        Subject::Command(_) => live::kernel(),
    };
    let recorded = run.map(|run| &run.recorded);
    let facts = Facts { kernel, workload, seed, recorded, execution, notes };
    Document { execution: facts, report: run.map(|run| &run.report) }
}

fn print(args: &Args, subject: &Subject, run: &Run, ui: &Ui) {
    run.notes.iter().for_each(|note| ui.note(note));
    if let (lost @ 1.., gaps) = (run.recorded.lost, run.recorded.gaps) {
        ui.note(format!(
            "lost: {} at {}, each marked; try --buffer 32M",
            counted(lost, "event"),
            counted(gaps, "place")
        ));
    }
    if run.recorded.ending == Ending::Signal {
        ui.note(format!("a signal ended the run after {:.3} s", run.recorded.duration_ns as f64 / 1e9));
    }
    if ui.json {
        ui.print_json(&document(subject, run.execution.as_ref(), &run.notes, Some(run)));
    } else {
        ui.print(&text::report(&subject.name(), &run.meta, &run.read, &run.report, args.by, args.all));
        run.execution.iter().for_each(|execution| ui.print(&tables::work(execution)));
        say_status(run.recorded.command, ui);
    }
}
