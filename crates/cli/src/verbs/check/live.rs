//! `schedlab check --live`: the checker on the running kernel, until it is ended.

use super::Args;
use crate::ui::Ui;
use crate::verbs::stats::table::{counted, duration, grouped, shorten};
use schedlab_base::{Nanos, Result};
use schedlab_measure::{Finding, Timing, Work};
use schedlab_watch::{Alarm, By, CpuProfile, Live, Options, Profile, Summary};
use serde_json::json;
use std::fmt::Write;
use std::net::SocketAddr;
use std::process::ExitCode;

/// What the run queues are read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Source {
    /// By our own eBPF program, which reads the kernel's run queues.
    Ebpf,
    /// From /proc.
    Proc,
}

/// What only a live machine is asked.
#[derive(clap::Args)]
pub struct LiveArgs {
    /// Watch this machine instead of reading a trace, until Ctrl-C. Each violation is a line, with --json a JSON object
    /// on a line of its own.
    #[arg(
        long,
        conflicts_with_all = ["trace", "threshold", "max_wasted", "all", "from", "to", "names", "pids", "groups"]
    )]
    pub live: bool,
    /// With --live: how to read the run queues [default: ebpf if it works, or else proc].
    #[arg(long, conflicts_with = "trace", value_name = "SOURCE")]
    by: Option<Source>,
    /// With --live: serve figures for Prometheus at this address of the loopback interface, such as 127.0.0.1:9750.
    #[arg(long, conflicts_with = "trace", value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// With --live: stop after this many violations.
    #[arg(long, conflicts_with = "trace", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// With --live: stop after this time (60s).
    #[arg(long = "for", conflicts_with = "trace", value_name = "TIME", value_parser = schedlab_base::parse_duration)]
    length: Option<Nanos>,
}

/// Watches this machine.
pub fn run(args: &Args, timing: Timing, ui: &Ui) -> Result<ExitCode> {
    let LiveArgs { by, metrics, count, length, .. } = args.live;
    let by = by.map(|by| match by {
        Source::Ebpf => By::Ebpf,
        Source::Proc => By::Proc,
    });
    let options = Options { by, timing, count, duration: length, metrics };
    let live = Live::new(options, schedlab_capture::host())?;
    if let Some(why) = &live.instead {
        ui.note(format!("reading /proc, because eBPF does not work here: {why}"));
    }
    let us = |ns: Nanos| duration(ns as f64 / 1e3);
    let by = if live.by() == By::Ebpf { "by eBPF" } else { "in /proc" };
    let end = if length.is_none() && count.is_none() { "; Ctrl-C ends it" } else { "" };
    ui.note(format!(
        "looking at the run queues {by} every {}, and for {} at what looks wrong{end}",
        us(timing.every),
        us(timing.watch)
    ));
    let summary = live.run(|alarm| {
        if ui.json {
            line(ui, &json!(alarm));
        } else {
            ui.print(&text(alarm));
        }
        !ui.is_lost()
    })?;
    if ui.json {
        line(ui, &json!({ "summary": summary }));
    } else {
        ui.print(&last_words(&summary));
    }
    Ok(ExitCode::from(match summary.work {
        Work { violations: 1.., .. } => 1,
        Work { looks: 0, .. } => 3,
        Work { .. } => 0,
    }))
}

/// Prints a JSON object on one line.
fn line(ui: &Ui, value: &serde_json::Value) {
    ui.print(&format!("{value}\n"));
}

fn text(alarm: &Alarm) -> String {
    let Finding { idle_cpus, busy_cpus, level, distance, waiting, waiting_tasks, duration_us, .. } = &alarm.finding;
    let plural = |list: &str| if list.contains([',', '-']) { "CPUs" } else { "CPU" };
    let were = if idle_cpus.contains([',', '-']) { "were" } else { "was" };
    let names: Vec<String> =
        waiting.iter().take(4).map(|task| format!("{} {}", shorten(&task.name), task.tid)).collect();
    let more = waiting_tasks - names.len() as u64;
    let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
    let level = distance.map_or_else(|| level.name().to_owned(), |distance| format!("{} {distance}", level.name()));
    let mut out = format!(
        "{} {} {idle_cpus} {were} idle for {} while tasks waited on {} {busy_cpus} that may run there ({level}): \
         {}{more}\n",
        date(alarm.time_s as u64),
        plural(idle_cpus),
        duration(*duration_us),
        plural(busy_cpus),
        names.join(", ")
    );
    match (&alarm.profile, &alarm.no_profile) {
        (Some(profile), _) => out.push_str(&profiled(profile, &alarm.finding)),
        (None, Some(why)) => {
            let _ = writeln!(out, "    no profile: {why}");
        }
        (None, None) => {}
    }
    out
}

/// What went on after it was found, on the CPUs concerned.
fn profiled(profile: &Profile, finding: &Finding) -> String {
    let mut out = format!("    the next {}:\n", duration(profile.span_us));
    let concerned = |cpu: &&CpuProfile| cpu.cpu == finding.idle_cpu || cpu.cpu == finding.busy_cpu;
    for cpu in profile.cpus.iter().filter(concerned) {
        let mut parts: Vec<String> = cpu
            .tasks
            .iter()
            .take(4)
            .map(|t| format!("{} {} {}", shorten(&t.name), t.tid, duration(t.run_us)))
            .collect();
        for (what, time) in [("idle", cpu.idle_us), ("not known", cpu.unknown_us)] {
            if time > 0.0 {
                parts.push(format!("{what} {}", duration(time)));
            }
        }
        let _ = writeln!(out, "      cpu{}: {}", cpu.cpu, parts.join(", "));
    }
    for woken in profile.wakeups.iter().take(3) {
        let by = match woken.waker {
            0 => "an interrupt".to_owned(),
            tid => format!("{} {tid}", shorten(&woken.waker_name)),
        };
        let times = if woken.times == 1 { "once".to_owned() } else { format!("{} times", woken.times) };
        let name = shorten(&woken.name);
        let _ = writeln!(
            out,
            "      {name} {} was woken {times} by {by} on cpu{}, to run on cpu{}",
            woken.tid, woken.from_cpu, woken.to_cpu
        );
    }
    out
}

fn last_words(summary: &Summary) -> String {
    let Summary { span_us, work, looks_left_out, cpu_us, .. } = summary;
    let share = if *span_us > 0.0 { 100.0 * cpu_us / span_us } else { 0.0 };
    let mut out = format!(
        "{} in {}: {}, {}, {} of CPU time ({share:.2}% of a CPU)\n",
        counted(work.violations, "violation"),
        duration(*span_us),
        counted(work.looks, "look"),
        counted(work.watches, "watch"),
        duration(*cpu_us)
    );
    if *looks_left_out > 0 {
        let verb = if *looks_left_out == 1 { "was" } else { "were" };
        let looks = counted(*looks_left_out, "look");
        let _ = writeln!(out, "{looks} {verb} left out to use less than 1% of a CPU");
    }
    if work.looks == 0 {
        out.push_str("undecided: it ended before the first look\n");
    }
    out
}

/// A time as `2026-11-23T06:12:01Z`, from the seconds since 1970.
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Counted from 1 March 0000, so that a leap day is the last of its year. 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + next;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::{Summary, date, last_words};

    #[test]
    fn one_violation_is_one() {
        let mut summary = Summary { span_us: 2e6, looks_left_out: 1, ..Summary::default() };
        summary.work.violations = 1;
        summary.work.looks = 2;
        summary.work.watches = 1;
        let words = last_words(&summary);
        assert!(words.starts_with("1 violation in 2.000 s: 2 looks, 1 watch, "), "{words}");
        assert!(words.contains("\n1 look was left out") && !words.contains("undecided"), "{words}");
        assert!(last_words(&Summary::default()).ends_with("\nundecided: it ended before the first look\n"));
    }

    #[test]
    fn seconds_become_dates() {
        let of = [0, 951_782_400, 1_709_164_799, 4_102_444_800, 1_795_413_121];
        let dates = [
            "1970-01-01T00:00:00Z",
            "2000-02-29T00:00:00Z",
            "2024-02-28T23:59:59Z",
            "2100-01-01T00:00:00Z",
            "2026-11-23T05:52:01Z",
        ];
        assert_eq!(of.map(date), dates);
    }
}
