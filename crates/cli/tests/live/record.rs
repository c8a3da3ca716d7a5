//! Recording on this kernel through the command line. If the rights are missing, each test says so and passes.

mod file;
mod identity;
mod target;

use crate::one_at_a_time;
use schedlab_base::{Event, Payload};
use schedlab_trace::{Trace, read_all};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SCHEDLAB: &str = env!("CARGO_BIN_EXE_schedlab");

/// Returns a guard if recording is possible, or prints why the test is skipped.
fn may_record() -> Option<std::sync::MutexGuard<'static, ()>> {
    let guard = one_at_a_time();
    let output = Command::new(SCHEDLAB).args(["doctor", "--json"]).output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    match checks.iter().find(|c| c["id"] == "recording" && c["status"] == "ok") {
        Some(_) => Some(guard),
        None => {
            eprintln!("skipped: this machine does not let us record; schedlab doctor says why");
            None
        }
    }
}

fn record(file: &Path, arguments: &[&str]) -> Output {
    Command::new(SCHEDLAB).args(["record", "--json", "-o"]).arg(file).args(arguments).output().unwrap()
}

/// Starts a recording in which no signal is ignored. Tests that run in the background would otherwise hand ignored
/// signals on to the recorder and its command.
fn start(file: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(SCHEDLAB);
    command.args(["record", "--json", "-o"]).arg(file).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn json(output: &Output) -> Value {
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {problem}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {problem}"))
}

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Waits until the file is not empty, which means that recording has started.
fn wait_for_bytes(file: &Path) {
    let start = Instant::now();
    while !file.metadata().is_ok_and(|meta| meta.len() > 0) {
        assert!(start.elapsed() < Duration::from_secs(20), "nothing was written");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asserts that within a few seconds no instance of this recorder exists.
fn assert_nothing_left(recorder: u32) {
    let tracefs = schedlab_capture::Tracefs::open().unwrap();
    let ours = format!("schedlab-{recorder}-");
    let left = || {
        let entries = std::fs::read_dir(tracefs.root().join("instances")).unwrap().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).find(|name| name.starts_with(&ours))
    };
    let start = Instant::now();
    while let Some(name) = left() {
        assert!(start.elapsed() < Duration::from_secs(10), "{name} was left behind");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn count(trace: &Trace, kind: impl Fn(&Payload) -> bool) -> usize {
    trace.events.iter().filter(|e| kind(&e.what)).count()
}

/// Two threads that wake each other for this time.
fn ping_pong(time: Duration) {
    let (to, from_other) = mpsc::channel::<()>();
    let (back, from_first) = mpsc::channel::<()>();
    let echo = std::thread::spawn(move || while from_other.recv().is_ok() && back.send(()).is_ok() {});
    let start = Instant::now();
    while start.elapsed() < time {
        to.send(()).unwrap();
        from_first.recv().unwrap();
    }
    drop(to);
    echo.join().unwrap();
}

#[test]
fn a_command_is_recorded_from_its_fork_to_its_exit() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; /bin/sh -c 'exit 0'; done; exit 3";
    let summary = json(&record(&file, &["--", "/bin/sh", "-c", script]));
    let trace = read_all(&file).unwrap();
    assert_eq!(summary["command"]["code"], 3, "the command's own status is reported");
    assert_eq!(summary["ending"], "command");
    let lost = count(&trace, |what| matches!(what, Payload::Lost { .. }));
    assert_eq!(summary["events"].as_u64().unwrap() as usize, trace.events.len() - lost);
    assert_eq!(summary["bytes"].as_u64().unwrap(), file.metadata().unwrap().len());
    assert!(trace.report.cut.is_none());
    assert!(trace.events.windows(2).all(|pair| pair[0].time <= pair[1].time), "in the order of time");
    if lost == 0 {
        assert_whole(&trace);
    }
    assert_eq!((trace.meta.source.as_str(), trace.meta.clock.as_str()), ("record", "mono"));
    assert!(trace.meta.notes["command"].starts_with("/bin/sh -c"));
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(trace.meta.kernel, release.trim());
    let cpus: BTreeSet<u32> = trace.meta.cpus.iter().map(|place| place.cpu).collect();
    assert!(trace.events.iter().all(|e| cpus.contains(&e.cpu)));
}

/// Checks what every complete recording of the script must contain.
fn assert_whole(trace: &Trace) {
    let forks = count(trace, |w| matches!(w, Payload::Fork { .. }));
    let execs = count(trace, |w| matches!(w, Payload::Exec { .. }));
    let exits = count(trace, |w| matches!(w, Payload::Exit { .. }));
    assert!(forks >= 21 && execs >= 21 && exits >= 21, "{forks} forks, {execs} execs, {exits} exits");
    assert!(count(trace, |w| matches!(w, Payload::Waking { .. })) >= 10);
    assert!(count(trace, |w| matches!(w, Payload::Wakeup { .. })) >= 10);
    // On each CPU each switch leaves the task that the previous switch chose, and the first switch leaves the task that
    // ran at the start. Some hosts hide a few system tasks from tracing. Then idle -> hidden and hidden -> task are
    // both missing, and a task leaves a CPU that was idle according to the trace. On a quiet machine with few switches
    // these are a large part (perf sees the same), and not the recorder's fault. A chain that breaks between two tasks
    // would be.
    let mut current: BTreeMap<u32, i32> = trace.meta.running.iter().copied().collect();
    let (mut switches, mut broken) = (0, 0);
    for Event { cpu, what, .. } in &trace.events {
        if let Payload::Switch { prev, next, .. } = what {
            switches += 1;
            broken += usize::from(current.insert(*cpu, *next).is_some_and(|tid| tid != 0 && tid != *prev));
        }
    }
    assert!(switches > 20 && broken <= switches / 20, "{broken} of {switches} switches leave a task that did not run");
    let children: HashSet<i32> = trace
        .events
        .iter()
        .filter_map(|e| if let Payload::Fork { child, .. } = e.what { Some(child) } else { None })
        .collect();
    let named = |tid: &i32| trace.names.iter().any(|n| n.tid == *tid && n.tgid.is_some());
    assert!(children.iter().all(named), "every new task has a name and a process");
    assert!(trace.names.iter().any(|n| n.comm == "sleep"), "names follow exec");
}

#[test]
fn signals_end_a_recording_and_leave_a_whole_file() {
    let Some(_guard) = may_record() else { return };
    for signal in ["-INT", "-TERM", "-HUP"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.arrows");
        let child = start(&file, &["--", "sleep", "60"]);
        let recorder = child.id();
        wait_for_bytes(&file);
        ping_pong(Duration::from_millis(100));
        send(&child, signal);
        let summary = json(&child.wait_with_output().unwrap());
        assert_eq!(summary["ending"], "signal", "{signal}");
        assert!(summary["command"]["signal"].is_i64(), "{signal} reaches the command: {summary}");
        let trace = read_all(&file).unwrap();
        assert!(trace.report.cut.is_none() && trace.events.len() > 100, "{signal}: {:?}", trace.report);
        assert_nothing_left(recorder);
    }
}

#[test]
fn a_killed_recorder_leaves_a_readable_file_and_no_instance() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let mut child = start(&file, &[]);
    wait_for_bytes(&file);
    let head = file.metadata().unwrap().len();
    let start = Instant::now();
    while file.metadata().unwrap().len() == head && start.elapsed() < Duration::from_secs(20) {
        ping_pong(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let trace = read_all(&file).unwrap();
    assert!(trace.report.cut.is_some(), "the reader says that it was cut off");
    assert!(trace.events.len() > 100, "what was flushed is there");
    assert_nothing_left(child.id());
}

#[test]
fn a_killed_recorder_ends_its_command() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let told = dir.path().join("pid");
    let mut child = start(&file, &["--", "sh", "-c", &format!("echo $$ > {}; exec sleep 60", told.display())]);
    wait_for_bytes(&file);
    let pid = std::fs::read_to_string(&told).unwrap();
    // Whoever inherits it may be slow to look at how it ended.
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok();
    let goes_on = || state().is_some_and(|stat| !stat.contains(") Z "));
    assert!(goes_on());
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while goes_on() {
        assert!(start.elapsed() < Duration::from_secs(10), "the command goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_stopped_recorder_marks_what_it_lost() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let child = start(&file, &["--buffer", "64K"]);
    wait_for_bytes(&file);
    send(&child, "-STOP");
    ping_pong(Duration::from_secs(1));
    send(&child, "-CONT");
    ping_pong(Duration::from_millis(300));
    send(&child, "-INT");
    let summary = json(&child.wait_with_output().unwrap());
    let trace = read_all(&file).unwrap();
    let marked: u64 = trace.events.iter().map(|e| if let Payload::Lost { count } = e.what { count } else { 0 }).sum();
    assert!(summary["lost"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["lost"].as_u64().unwrap(), marked, "each loss is marked");
}

#[test]
fn only_the_chosen_process_and_its_children_are_recorded() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let mut load = Command::new("/bin/sh").args(["-c", "while :; do sleep 0.01; done"]).spawn().unwrap();
    let pid = load.id() as i32;
    let output = record(&file, &["-p", &pid.to_string(), "--only", "--duration", "1s"]);
    load.kill().unwrap();
    load.wait().unwrap();
    let summary = json(&output);
    assert_eq!(summary["ending"], "duration");
    let trace = read_all(&file).unwrap();
    let mut family = HashSet::from([pid]);
    let mut forks = 0;
    for event in &trace.events {
        match event.what {
            Payload::Fork { parent, child } => {
                assert!(family.contains(&parent), "{parent} is a stranger");
                family.insert(child);
                forks += 1;
            }
            // The child running when the recording began had been forked before. The load has one child at a time.
            Payload::Switch { prev, next, .. } if !family.contains(&prev) && !family.contains(&next) => {
                assert!(forks == 0, "{event:?} is a stranger's");
                family.insert(if prev == 0 { next } else { prev });
            }
            _ => {}
        }
    }
    assert!(forks >= 5, "children are followed: {forks}");
    let switched =
        count(&trace, |w| matches!(w, Payload::Switch { prev, .. } if *prev != pid && family.contains(prev)));
    assert!(switched >= 5, "and their switches recorded: {switched}");
}

#[test]
fn impossible_requests_are_refused_and_leave_nothing() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    for (arguments, message) in [
        (&["--", "/no/such/command"][..], "/no/such/command"),
        (&["-p", "4194304"], "there is no process 4194304"),
        (&["--buffer", "1K", "--duration", "1s"], "--buffer"),
        (&["--duration", "5"], "no unit"),
        (&["--only", "--duration", "1s"], "--pid"),
    ] {
        let output = record(&file, arguments);
        let problem = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {problem}");
        assert!(problem.contains(message), "{arguments:?}: {problem}");
        assert!(!file.exists(), "{arguments:?} left a file");
    }
    std::fs::write(&file, "precious").unwrap();
    assert_eq!(record(&file, &["--", "true"]).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert!(record(&file, &["--force", "--", "true"]).status.success());
    assert!(read_all(&file).is_ok());
}

#[test]
fn without_root_the_missing_right_is_named_and_the_status_is_four() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    // A folder where every user may read and run it.
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = dir.path().join("schedlab");
    std::fs::copy(SCHEDLAB, &copy).unwrap();
    let output = Command::new(&copy)
        .args(["record", "-o", "/dev/null", "--force", "--", "true"])
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{problem}");
    assert!(problem.contains("root") && problem.contains("sudo"), "{problem}");
}

#[test]
fn a_waking_says_what_asked_for_it() {
    let Some(_guard) = may_record() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contexts.arrows");
    // A shell that ends wakes the one that waits for it; a sleeper is woken by the timer's interrupt.
    json(&record(&file, &["--", "sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.02; done"]));
    let trace = read_all(&file).unwrap();
    let named = |comm: &str| -> HashSet<i32> {
        trace.names.iter().filter(|name| name.comm == comm).map(|name| name.tid).collect()
    };
    let (sleepers, shells) = (named("sleep"), named("sh"));
    let of = |tids: &HashSet<i32>| -> BTreeSet<&str> {
        let context = |event: &Event| match event.what {
            Payload::Waking { tid, context, .. } if tids.contains(&tid) => context.name(),
            _ => None,
        };
        trace.events.iter().filter_map(context).collect()
    };
    assert!(of(&sleepers).contains("hardirq"), "{:?}", of(&sleepers));
    assert!(of(&shells).contains("task"), "{:?}", of(&shells));
}

#[test]
fn interrupts_are_recorded_measured_and_modelled() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, load) = (dir.path().join("t.arrows"), dir.path().join("load.json"));
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.1";
    json(&record(&file, &["--irq", "--", "sh", "-c", busy]));
    let schedlab =
        |arguments: &[&str]| json(&Command::new(SCHEDLAB).arg("--json").args(arguments).arg(&file).output().unwrap());
    let stats = schedlab(&["stats"]);
    let Some(interrupts) = stats["interrupts"].as_array() else {
        eprintln!("skipped: this kernel shows no interrupt to tracepoints, and none in /proc/stat meanwhile");
        return;
    };
    let span = stats["total"]["span_us"].as_f64().unwrap();
    for one in interrupts {
        let (count, took) = (one["count"].as_u64().unwrap(), one["took_us"].as_f64().unwrap());
        let longest = one["longest_us"].as_f64().unwrap();
        assert!(count > 0 && longest <= took && took <= longest * count as f64 * 1.001 + 0.001, "{one}");
        assert!(one["kind"] == "steal" || took < span, "{one}");
    }
    let modelled = schedlab(&["model", "-o", load.to_str().unwrap()]);
    let taken = modelled["report"]["interrupts_ns"].as_f64().unwrap();
    let all: f64 = interrupts.iter().map(|one| one["took_us"].as_f64().unwrap()).sum();
    assert!(taken <= (all + 1.0) * 1e3, "{taken} ns of {all} us");
    let text = std::fs::read_to_string(&load).unwrap();
    assert!(taken == 0.0 || text.contains("x-irq"), "{taken} ns were taken from the CPUs");
}

#[test]
fn what_tasks_sleep_for_is_recorded_and_summed() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    // Some kernels leave out events of other CPUs' idle tasks, and with them ends of sleeps.
    let script = "(sleep 0.03; sleep 0.03; echo) | cat > /dev/null";
    let recorded = record(&file, &["--why", "--", "taskset", "-c", "0", "sh", "-c", script]);
    if recorded.status.code() == Some(4) {
        let message = String::from_utf8_lossy(&recorded.stderr).into_owned();
        assert!(message.contains("raw_syscalls:sys_enter"), "{message}");
        eprintln!("skipped: {message}");
        return;
    }
    let told = json(&recorded);
    let trace = read_all(&file).unwrap();
    let lost = |event: &&Event| matches!(event.what, Payload::Lost { .. });
    let events = trace.events.len() - trace.events.iter().filter(lost).count();
    assert_eq!(told["events"].as_u64(), Some(events as u64), "the reasons count as well");
    let of = |comm: &str| -> BTreeSet<&str> {
        let tids: HashSet<i32> = trace.names.iter().filter(|name| name.comm == comm).map(|name| name.tid).collect();
        let why = |event: &Event| match event.what {
            Payload::Sleeps { tid, why } if tids.contains(&tid) => Some(why.name()),
            _ => None,
        };
        trace.events.iter().filter_map(why).collect()
    };
    assert!(of("sleep").contains("timer"), "{:?}", of("sleep"));
    assert!(of("sh").contains("child"), "{:?}", of("sh"));
    assert!(of("cat").contains("pipe"), "{:?}", of("cat"));
    // Each reason stands before the switch that begins the sleep.
    for pair in trace.events.windows(2) {
        if let Payload::Sleeps { tid, .. } = pair[0].what {
            assert!(matches!(pair[1].what, Payload::Switch { prev, .. } if prev == tid), "{pair:?}");
        }
    }
    let stats = Command::new(SCHEDLAB).args(["stats", "--json"]).arg(&file).output().unwrap();
    let sleeps = json(&stats)["sleeps"].as_array().unwrap().clone();
    let timer = sleeps.iter().find(|sleep| sleep["why"] == "timer").expect("there were two");
    assert!(timer["count"].as_u64() >= Some(2) && timer["slept_us"].as_f64() >= Some(60_000.0), "{timer}");
}

#[test]
fn a_task_that_a_signal_ends_is_recorded_with_it() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let script = "sleep 9 & sleep 0.05; kill $!; (trap 'exit 0' TERM; while :; do :; done) & sleep 0.1; kill $!; wait; \
                  yes | head -n 1";
    json(&record(&file, &["--", "/bin/sh", "-c", script]));
    let trace = read_all(&file).unwrap();
    let named: BTreeMap<i32, String> = trace.names.iter().map(|name| (name.tid, name.comm.clone())).collect();
    let killed = trace.events.iter().filter_map(|event| match event.what {
        Payload::Killed { tid, signal } => Some((tid, signal)),
        _ => None,
    });
    // The shell that handles the signal ends by itself.
    let ours: Vec<_> = killed.filter(|(tid, _)| ["sh", "sleep", "yes"].contains(&named[tid].as_str())).collect();
    assert_eq!(ours.iter().map(|(_, signal)| *signal).collect::<Vec<_>>(), [9, 13], "{ours:?}");
    let exits = count(&trace, |what| matches!(what, Payload::Exit { tid, .. } if *tid == ours[0].0));
    assert_eq!(exits, 1);
}

#[test]
fn a_recorder_of_real_time_priority_hands_it_to_nobody() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let script = "grep -h '^policy\\|^prio' /proc/self/sched /proc/$PPID/sched >&2";
    let recorded = record(&file, &["--realtime", "7", "--", "/bin/sh", "-c", script]);
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    json(&recorded);
    let numbers: Vec<i32> = said.lines().filter_map(|line| line.split(':').nth(1)?.trim().parse().ok()).collect();
    // SCHED_OTHER with nice 0, then SCHED_FIFO with priority 7.
    assert_eq!(numbers, [0, 120, 1, 92], "{said}");
    let recorder = read_all(&file).unwrap().tasks.into_iter().find(|task| task.properties.rt_priority == Some(7));
    assert!(recorder.is_some_and(|task| task.properties.reset_on_fork), "the trace says so");
}

#[test]
fn a_recorder_that_gets_no_cpu_comes_first() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (quiet, busy) = (dir.path().join("quiet.arrows"), dir.path().join("busy.arrows"));
    let summary = json(&record(&quiet, &["--duration", "100ms"]));
    assert!(summary["promoted_us"].is_null(), "there was little to record: {summary}");
    // Each weighs nine times as much as the recorder, and they keep all CPUs busy with wake-ups.
    let pairs = 8 * std::thread::available_parallelism().unwrap().get();
    let script = format!("for i in $(seq {pairs}); do yes | cat > /dev/null & done; wait");
    let load = ["--", "timeout", "1.5", "nice", "-n", "-10", "/bin/sh", "-c", script.as_str()];
    let summary = json(&record(&busy, &load));
    assert!(summary["promoted_us"].as_f64().is_some(), "{summary}");
    let first = |file| {
        let tasks = read_all(file).unwrap().tasks.into_iter().filter(|task| task.properties.rt_priority == Some(1));
        tasks.map(|task| task.tid).collect::<BTreeSet<_>>().len()
    };
    assert_eq!((first(&quiet), first(&busy)), (0, 1), "the trace says who comes first");
    assert!(summary["highest_us"].is_null(), "that helped: {summary}");
}

#[test]
fn real_time_tasks_do_not_keep_the_recorder_from_a_cpu() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("t.arrows");
    // On each CPU, two that wake each other all the time.
    let last = std::thread::available_parallelism().unwrap().get() - 1;
    let pair = "dd if=/dev/zero bs=1 status=none | chrt -f 51 dd of=/dev/null bs=1 status=none";
    let script = format!("for cpu in $(seq 0 {last}); do taskset -c $cpu chrt -f 50 /bin/sh -c '{pair}' & done; wait");
    let load = ["--", "chrt", "-f", "60", "timeout", "1.5", "/bin/sh", "-c", script.as_str()];
    let summary = json(&record(&trace, &load));
    assert_eq!(summary["lost"], 0, "{summary}");
}
