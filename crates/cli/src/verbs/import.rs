//! `schedlab import`: a trace that another tool recorded, as a trace of schedlab's own.

use super::stats::table::{grouped, kinds_text};
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, PathText, Result, counted};
use schedlab_trace::{Input, Options, ReadReport, Source, Summary, Writer, foreign_formats, open_input};
use serde_json::json;
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `import` is asked.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// The recording; - reads a pipe from standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The trace to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// A folder with the formats of the recording's events, for a recording that was cut off and lost its own: a copy
    /// of /sys/kernel/tracing/events from the kernel that was recorded.
    #[arg(long, value_name = "DIR")]
    formats: Option<PathBuf>,
    /// Overwrite the trace if it exists.
    #[arg(long)]
    force: bool,
}

fn after_help() -> String {
    format!(
        "Examples:\n  schedlab import perf.data -o web.arrows\n  \
         perf sched record -o - -- make -j8 | schedlab import - -o make.arrows\n\n\
         It reads: {}. The format is recognised by the content.\n\
         A recording that was cut off is read as far as it goes, with a remark.",
        foreign_formats()
    )
}

/// Imports.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let target = Target::new(&args.output, args.force)?;
    let mut source = open(&args)?;
    let bar = ui.progress(args.file.metadata().ok().map(|m| m.len()).filter(|n| *n > 0), "importing");
    let moving = bar.clone();
    source.on_progress(Box::new(move |done, _| moving.set_position(done)));
    let imported = target.write(|file| fill(file, &args, &mut *source));
    bar.finish_and_clear();
    let (report, written) = imported?;
    tell(&args, &*source, &report, &written, ui);
    Ok(ExitCode::SUCCESS)
}

/// Opens the recording, which must be one of another tool's.
fn open(args: &Args) -> Result<Box<dyn Source>> {
    let options = Options { formats: args.formats.clone() };
    let source = open_input(Input::open(&args.file)?, &options)?;
    if source.format().own {
        return Err(Error::input("is a trace of schedlab's own already; it needs no import").file(&args.file));
    }
    Ok(source)
}

fn fill(output: File, args: &Args, source: &mut dyn Source) -> Result<(ReadReport, Summary)> {
    let path = &args.output;
    let mut writer = Writer::new(output, source.meta()).map_err(|e| e.file(path))?;
    let report = source.run(&mut writer)?;
    let written = writer.finish().map_err(|e| e.file(path))?;
    if report.events == 0 {
        let why = report.cut.as_ref().map_or("it holds none".to_owned(), |cut| cut.what.clone());
        return Err(Error::input(format!("no scheduling event can be read from it: {why}")).file(&args.file));
    }
    Ok((report, written))
}

fn tell(args: &Args, source: &dyn Source, report: &ReadReport, written: &Summary, ui: &Ui) {
    let found = source.findings();
    let per_event = written.bytes as f64 / report.events.max(1) as f64;
    if ui.json {
        ui.print_json(&json!({
            "file": PathText(&args.output),
            "source": source.meta().source,
            "kernel": source.meta().kernel,
            "clock": source.meta().clock,
            "partial": source.meta().partial,
            "events": report.events,
            "names": report.names,
            "other": found.other,
            "other_kinds": report.kinds,
            "malformed": found.malformed,
            "lost": found.lost,
            "late": found.late,
            "cut": report.cut,
            "formats_from": source.foreign_formats(),
            "bytes": written.bytes,
            "bytes_per_event": per_event,
        }));
        return;
    }
    let kinds = if report.kinds.is_empty() { String::new() } else { format!(": {}", kinds_text(report)) };
    ui.note(format!(
        "{}: {} ({} of other kinds skipped{kinds}), {}, {per_event:.1} an event",
        args.output.display(),
        counted(report.events, "event"),
        grouped(found.other),
        counted(written.bytes, "byte"),
    ));
    if let Some(partial) = &source.meta().partial {
        ui.note(format!("partial: {}", partial.reason()));
    }
    let remark = |count: u64, text: &str| {
        if count > 0 {
            ui.note(format!("{} {text}", grouped(count)));
        }
    };
    remark(found.lost, "records were lost while the recording was made; each gap is marked");
    remark(found.late, "records came too late to be put in order and are left out; each gap is marked");
    remark(found.malformed, "records are damaged and are left out");
    if let Some(folder) = source.foreign_formats() {
        ui.note(format!("the recording has lost the formats of its events; those in {} were used", folder.display()));
    }
    if let Some(cut) = &report.cut {
        ui.note(format!("the recording is cut at byte {}: {}", grouped(cut.offset), cut.what));
    }
}
