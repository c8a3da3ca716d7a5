//! Recordings that the installed perf makes during the test in its various modes, compared with perf's own reading of
//! them. If perf is missing or may not record, the tests say so and pass.

mod support;

use schedlab_base::Payload;
use schedlab_trace::perf_data::PerfData;
use schedlab_trace::{Source, Trace};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Told, assert_agrees, perf_script};

const EVENTS: [&str; 8] =
    ["switch", "waking", "wakeup", "wakeup_new", "migrate_task", "process_fork", "process_exec", "process_exit"];

/// Records some hundred switches into the file with perf and these arguments. Returns `None`, and prints a reason to
/// standard error, if that is impossible here.
fn record(file: &Path, arguments: &str) -> Option<()> {
    run(file, &format!("{arguments} -o {}", file.display()), "")
}

fn run(file: &Path, arguments: &str, redirection: &str) -> Option<()> {
    // The script has its own mount namespace, so that a tracefs mounted for the test leaves nothing behind.
    let script = format!(
        "[ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing; \
         exec perf {arguments} -- sh -c 'for i in 1 2 3; do sleep 0.002 | cat & done; wait' {redirection}"
    );
    let run = Command::new("unshare").args(["-m", "sh", "-c", &script]).stdin(Stdio::null()).output();
    match run {
        Ok(output) if output.status.success() && file.metadata().is_ok_and(|m| m.len() > 0) => Some(()),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            eprintln!("skipped: perf cannot record here: {}", why.trim().lines().next().unwrap_or("no reason given"));
            None
        }
        Err(e) => {
            eprintln!("skipped: perf or unshare is missing: {e}");
            None
        }
    }
}

/// The events that perf itself reads from a file.
fn perf_events(file: &Path) -> Vec<Told> {
    let output = Command::new("perf")
        .args(["script", "--ns", "-F", "tid,cpu,time,event,trace", "-i"])
        .arg(file)
        .output()
        .expect("perf recorded a moment ago");
    perf_script(&String::from_utf8_lossy(&output.stdout))
}

/// Reads the file and compares. Events that we make from perf's own records are not in perf's text.
fn agrees(file: &Path) -> (Trace, PerfData) {
    let mut source = PerfData::open(file).unwrap();
    let mut trace = Trace::default();
    trace.report = source.run(&mut trace).unwrap();
    let perf = perf_events(file);
    let has = |is: fn(&Payload) -> bool| perf.iter().any(|t| is(&t.event.what));
    let (forks, execs) = (has(|p| matches!(p, Payload::Fork { .. })), has(|p| matches!(p, Payload::Exec { .. })));
    trace.events.retain(|e| match e.what {
        Payload::Fork { .. } => forks,
        Payload::Exec { .. } => execs,
        Payload::Lost { .. } => false,
        _ => true,
    });
    assert!(perf.len() > 10, "perf recorded {} events", perf.len());
    assert_agrees(&trace, &perf);
    (trace, source)
}

fn events() -> String {
    EVENTS.map(|e| format!("-e sched:sched_{e}")).join(" ")
}

#[test]
fn perf_sched_record() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let Some(()) = record(&file, "sched record") else { return };
    let (trace, _) = agrees(&file);
    assert!(trace.names.iter().any(|n| n.tgid.is_some()));
    let host = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let (mut source, mut whole) = (PerfData::open(&file).unwrap(), Trace::default());
    source.run(&mut whole).unwrap();
    assert_eq!(source.meta().kernel, host.trim());
    assert!(!source.meta().cpus.is_empty());
    assert!(whole.events.iter().any(|e| matches!(e.what, Payload::Exec { .. })), "perf's records include exec");
}

#[test]
fn compressed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let Some(()) = record(&file, &format!("record -a -R -c 1 -z {}", events())) else { return };
    agrees(&file);
}

#[test]
fn through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let Some(()) = run(&file, "sched record -o -", &format!("> {}", file.display())) else { return };
    assert_eq!(std::fs::read(&file).unwrap()[8..16], 16u64.to_le_bytes());
    let (_, source) = agrees(&file);
    assert!(!source.meta().kernel.is_empty());
}

#[test]
fn with_call_chains_and_another_clock() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let Some(()) = record(&file, &format!("record -a -g -R -c 1 -k mono {}", events())) else { return };
    let (_, source) = agrees(&file);
    assert_eq!(source.meta().clock, "mono");
}

#[test]
fn with_counters_read_and_other_events_between() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let group = "record -a -R -c 1 -e cpu-clock/period=1000000/ -e {sched:sched_switch,context-switches}:S";
    let Some(()) = record(&file, group) else { return };
    let (_, source) = agrees(&file);
    assert_eq!(source.findings().malformed, 0);
}

#[test]
fn of_one_command_among_events_with_other_layouts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    // Without -a only the tracepoints record their CPU, so the records between the samples differ as well.
    let events = "record -R -c 1 -e sched:sched_switch -e sched:sched_waking -e cpu-clock/period=1000000/ \
                  -e task-clock/period=1000000/";
    let Some(()) = record(&file, events) else { return };
    let (trace, _) = agrees(&file);
    // A command is named when it is executed, which can be before its first event or after its last one.
    let second = 1_000_000_000;
    let ends = trace.events.first().unwrap().time - second..=trace.events.last().unwrap().time + second;
    let named: Vec<_> = trace.names.iter().filter(|n| n.comm == "sleep").collect();
    assert!(!named.is_empty() && named.iter().all(|n| ends.contains(&n.time)), "{named:?}");
}

#[test]
fn with_losses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let Some(()) = record(&file, &format!("record -a -g -R -c 1 -m 1 {}", events())) else { return };
    let (mut source, mut trace) = (PerfData::open(&file).unwrap(), Trace::default());
    source.run(&mut trace).unwrap();
    let marked: u64 = trace
        .events
        .iter()
        .map(|e| match e.what {
            Payload::Lost { count } => count,
            _ => 0,
        })
        .sum();
    assert_eq!(marked, source.findings().lost + source.findings().late);
    let dump = Command::new("perf").args(["report", "--stats", "-i"]).arg(&file).output().unwrap();
    let dump = String::from_utf8_lossy(&dump.stdout);
    if dump.lines().any(|l| l.trim_start().starts_with("LOST events")) {
        assert!(marked > 0, "perf reports losses:\n{dump}");
    }
}
