//! `schedlab record`: records the scheduling events of this kernel, during a command, for a time, or until some
//! processes end.

use super::stats::table::grouped;
use crate::target::{Draft, Target};
use crate::ui::Ui;
use schedlab_base::{Error, Nanos, PathText, Result, Tid, counted};
use schedlab_capture::{CommandStatus, Ending, Options, Recorded, Recorder, buffer_in_range};
use schedlab_trace::{Summary, Writer};
use serde_json::json;
use std::ffi::OsString;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `record` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab record -- make -j8\n  schedlab record -o web.arrows --duration 10s\n  \
    schedlab record -p $(pidof postgres | tr ' ' ,) --duration 1m\n  schedlab record --irq --duration 10s\n\nThe exit \
    status is 0 when the recording worked, whatever the command's was; that one is printed.\nRecording needs root. \
    Ctrl-C ends it, and the file is complete.")]
pub struct Args {
    /// The trace to write.
    #[arg(short, long, value_name = "FILE", default_value = "schedlab.arrows")]
    output: PathBuf,
    /// Stop after this time (10s, 250ms); a command that is still running is asked to end.
    #[arg(long, short, value_parser = schedlab_base::parse_duration)]
    duration: Option<Nanos>,
    /// Record until these processes end, and remember them as what the recording is about, with their threads, their
    /// children and those that they fork. Everything else on the machine is recorded too.
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pids: Vec<Tid>,
    /// With -p: record only the processes and their children. This costs the least, but the trace does not show what
    /// else ran: it has no idle time, no run queues and no shares of CPUs.
    #[arg(long, requires = "pids")]
    only: bool,
    /// Record the time that interrupts take from CPUs, too: devices, soft interrupts, the CPU's timer, and what the
    /// hypervisor takes. `stats` shows it, and `model` takes it out of what the tasks did.
    #[arg(long)]
    irq: bool,
    /// Record the frequencies of CPUs, too, where the kernel knows them: `view` draws their mean over time.
    #[arg(long)]
    freq: bool,
    /// Record what tasks sleep for, too: a time, a lock, a pipe, a socket, a file, a child. `stats` shows it, and
    /// `model` need not guess what a timer woke. Each system call in which a task may sleep costs a little more.
    #[arg(long)]
    why: bool,
    /// The size of the kernel's buffer for each CPU (512K, 8M); a larger one survives longer bursts (default: 8M, or
    /// less if memory is scarce).
    #[arg(long, value_name = "SIZE", value_parser = parse_buffer, allow_hyphen_values = true)]
    buffer: Option<u64>,
    /// Give the recorder this real-time priority (SCHED_FIFO, 1 to 99) from the start, so that no load keeps it from
    /// emptying the kernel's buffers; the command does not inherit it. Without it, the recorder is an ordinary task and
    /// gets priority 1 once it cannot keep up, because other tasks have the CPUs.
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u32).range(1..=99))]
    realtime: Option<u32>,
    /// Replace the trace if it exists, once the new one is complete.
    #[arg(long)]
    force: bool,
    /// The command to record, which starts once recording is on; with --json its output goes to standard error.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Makes the recording.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let target = Target::new(&args.output, args.force)?;
    let forever = args.command.is_empty() && args.duration.is_none() && args.pids.is_empty();
    let recorder = Recorder::new(Options {
        command: args.command,
        processes: args.pids,
        only: args.only,
        irq: args.irq,
        freq: args.freq,
        why: args.why,
        realtime: args.realtime,
        duration: args.duration,
        buffer_kib: args.buffer,
        command_to_stderr: ui.json,
        at_once: false,
        label: None,
        quiet: false,
    })?;
    let (draft, file) = target.begin()?;
    if let Some(part) = draft.part() {
        let (part, output) = (part.display(), args.output.display());
        ui.note(format!("the recording is in {part} until it is complete; then it replaces {output}"));
    }
    if forever {
        ui.note("recording everything; Ctrl-C ends it");
    }
    let bar = ui.progress(None, "recording");
    // Until its head is complete, the file is useless. After that, its events are worth keeping.
    let mut useless = u64::MAX;
    let recorded = recorder.record(
        |meta| Writer::new(BufWriter::with_capacity(1 << 20, file), meta).inspect(|writer| useless = writer.bytes()),
        |progress| {
            bar.set_message(format!("recording: {} events, {} lost", grouped(progress.events), grouped(progress.lost)));
            bar.tick();
        },
    );
    bar.finish_and_clear();
    match recorded {
        Ok((written, recorded)) => {
            complete(&draft)?;
            report(&args.output, &written, &recorded, args.only, ui);
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            // A recording cannot be repeated, so its events are kept.
            if let Some(file) = draft.abandon(useless) {
                ui.note(format!("what was recorded before the failure is in {}", file.display()));
            }
            Err(error.file(&args.output))
        }
    }
}

/// Gives the recording its final name, or reports where it is.
fn complete(draft: &Draft) -> Result<()> {
    draft.complete().map_err(|error| match draft.part() {
        Some(part) => error.mend(format!("the recording is in {}", part.display())),
        None => error,
    })
}

fn report(path: &Path, written: &Summary, recorded: &Recorded, only: bool, ui: &Ui) {
    let per_event = if recorded.events == 0 { None } else { Some(written.bytes as f64 / recorded.events as f64) };
    if ui.json {
        ui.print_json(&json!({
            "file": PathText(path),
            "events": recorded.events,
            "lost": recorded.lost,
            "gaps": recorded.gaps,
            "late": recorded.late,
            "restored": recorded.restored,
            "promoted_us": recorded.promoted_ns.map(|ns| ns as f64 / 1e3),
            "highest_us": recorded.highest_ns.map(|ns| ns as f64 / 1e3),
            "duration_us": recorded.duration_ns as f64 / 1e3,
            "bytes": written.bytes,
            "bytes_per_event": per_event,
            "ending": recorded.ending,
            "command": recorded.command,
        }));
        nothing(recorded, only, ui);
        return;
    }
    let lost = match (recorded.lost, recorded.gaps) {
        (0, 0) => "none lost".to_owned(),
        (lost, gaps) => {
            let or = if recorded.promoted_ns.is_some() { "" } else { " or --realtime 99" };
            format!("{} lost at {}, each marked; try --buffer 32M{or}", grouped(lost), counted(gaps, "place"))
        }
    };
    ui.note(format!(
        "{}: {} in {:.3} s, {lost}; {}{}",
        path.display(),
        counted(recorded.events, "event"),
        recorded.duration_ns as f64 / 1e9,
        counted(written.bytes, "byte"),
        per_event.map_or_else(String::new, |n| format!(", {n:.1} an event")),
    ));
    if recorded.restored > 0 {
        let switches = counted(recorded.restored, "switch");
        ui.note(format!("this machine hides idle tasks; restored from CPU times: {switches} from them"));
    }
    if let Some(at) = recorded.promoted_ns {
        let since = |at: Nanos, whom: &str| format!("since {:.3} s it ran before all {whom} tasks", at as f64 / 1e9);
        let highest = recorded.highest_ns.map_or_else(String::new, |at| format!(", and {}", since(at, "real-time")));
        ui.note(format!("the load left the recorder too little of the CPUs: {}{highest}", since(at, "ordinary")));
    }
    nothing(recorded, only, ui);
    if recorded.ending == Ending::Processes {
        ui.note("the processes have ended");
    }
    say_status(recorded.command, ui);
}

/// Says how the recorded command ended, if not well.
pub fn say_status(command: Option<CommandStatus>, ui: &Ui) {
    match command {
        None | Some(CommandStatus { code: Some(0), .. }) => {}
        Some(CommandStatus { code: Some(code), .. }) => ui.note(format!("the command's exit status was {code}")),
        Some(CommandStatus { signal, .. }) => {
            ui.note(format!("the command was ended by signal {}", signal.unwrap_or(0)));
        }
    }
}

/// Says that nothing was recorded, and the likely cause.
fn nothing(recorded: &Recorded, only: bool, ui: &Ui) {
    if recorded.events > 0 {
        return;
    }
    let cause = if only {
        "the processes slept all the time, or ran without a break. Without --only, the trace shows what else ran"
    } else {
        "the kernel reported no scheduling event on any CPU: the host may hide them, as some virtual machines and \
         sandboxes do"
    };
    ui.note(format!("nothing was recorded. The likely cause: {cause}"));
}

/// Parses the size of a CPU's buffer, in KiB. One that cannot be had is refused before anything runs or boots.
pub fn parse_buffer(text: &str) -> Result<u64> {
    parse_kib(text).and_then(buffer_in_range)
}

/// Parses a size with its unit into KiB: `512K`, `8M`, `1G`.
fn parse_kib(text: &str) -> Result<u64> {
    let bad = || Error::input(format!("\"{text}\" is no size")).mend("write a number and a unit: 512K, 8M, 1G");
    let text = text.trim();
    let (number, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 0),
        Some((at, 'm' | 'M')) => (&text[..at], 10),
        Some((at, 'g' | 'G')) => (&text[..at], 20),
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_carry_their_unit() {
        assert_eq!(
            (parse_kib("512K").unwrap(), parse_kib("8M").unwrap(), parse_kib("1g").unwrap()),
            (512, 8192, 1 << 20)
        );
        for bad in ["", "8", "M", "-1M", "1.5M", "99999999999999999G", "8Mé"] {
            assert!(parse_kib(bad).is_err(), "{bad} was taken");
        }
    }

    #[test]
    fn a_buffer_that_cannot_be_had_is_refused_at_once() {
        let message = |text: &str| parse_buffer(text).err().map(|e| e.to_string());
        assert_eq!(
            message("4G").unwrap(),
            "a buffer of 4194304 KiB for each CPU is out of range; choose from 64K to 1G"
        );
        assert_eq!((message("64K"), message("1G"), message("63K").is_some()), (None, None, true));
    }

    #[test]
    fn thousands_are_separated() {
        let all = [0, 999, 1000, 1234567].map(grouped);
        assert_eq!(all, ["0", "999", "1,000", "1,234,567"]);
    }
}
