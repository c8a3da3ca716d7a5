//! `schedlab stats` through the command line: its tables, its JSON, and how it reports damaged files.

use crate::support::{ok, schedlab};
use schedlab_base::{CpuPlace, Event, Meta, NameRecord, Payload, Sink, TaskState};
use schedlab_trace::Writer;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MS: u64 = 1_000_000;

fn stats(trace: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab")).arg("stats").arg(trace).args(args).output().expect("schedlab runs")
}

fn text(trace: &Path, args: &[&str]) -> String {
    let output = stats(trace, args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

fn json(trace: &Path) -> Value {
    serde_json::from_str(&text(trace, &["--json"])).expect("one JSON document")
}

/// Two CPUs on two nodes. 40 tasks in 4 cgroups take turns of 1 ms, and each is woken 250 us before its turn.
fn turns(cpu: u32, round: u64) -> [Event; 2] {
    let task = |round: u64| 1 + cpu as i32 + 2 * (round % 20) as i32;
    let prev = if round == 0 { 0 } else { task(round - 1) };
    let prev_state = if prev == 0 { TaskState::Runnable } else { TaskState::Sleeping };
    let what = Payload::Switch { prev, prev_prio: 120, prev_state, next: task(round), next_prio: 120 };
    let time = (round + 1) * MS + u64::from(cpu);
    [
        Event { time: time - MS / 4, cpu, what: Payload::Wakeup { tid: task(round), prio: 120, target: cpu } },
        Event { time, cpu, what },
    ]
}

/// 1000 rounds of turns, in the order of time.
fn rounds() -> Vec<Event> {
    let mut events: Vec<Event> = (0..1000).flat_map(|round| [turns(0, round), turns(1, round)].concat()).collect();
    events.sort_by_key(|event| event.time);
    events
}

/// Writes the turns after the events `first`.
fn sample(path: &Path, first: &[Event]) {
    let place = |cpu| CpuPlace { cpu, core: cpu, node: cpu, capacity: 1024, ..CpuPlace::default() };
    let meta = Meta {
        source: "test".into(),
        kernel: "6.1".into(),
        cpus: vec![place(0), place(1)],
        running: vec![(0, 0), (1, 0)],
        span: Some((0, 1001 * MS)),
        ..Meta::default()
    };
    let mut events = [first, &rounds()].concat();
    events.sort_by_key(|event| event.time);
    let mut writer = Writer::create(path, &meta).unwrap().batch_rows(500);
    for tid in 1..=40 {
        let cgroup = Some(format!("/slice/{}", tid % 4));
        writer.name(&NameRecord { time: 0, tid, tgid: Some(tid), comm: format!("task-{tid}"), cgroup });
    }
    writer.events(&events);
    writer.finish().unwrap();
}

/// A temporary folder with a trace in it.
fn trace(first: &[Event]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.arrows");
    sample(&path, first);
    (dir, path)
}

#[test]
fn the_json_has_the_promised_keys_and_the_right_figures() {
    let (_dir, path) = trace(&[]);
    let all = json(&path);
    assert_eq!(all["tasks"].as_array().unwrap().len(), 40);
    let task = all["tasks"].as_array().unwrap().iter().find(|task| task["tid"] == 7).unwrap();
    assert_eq!((task["name"].as_str(), task["group"].as_str()), (Some("task-7"), Some("/slice/3")));
    let us = |key: &str| task[key].as_f64().unwrap();
    assert_eq!((us("run_us"), us("wait_us"), us("wait_unfinished_us")), (50_000.0, 12_500.0, 0.0));
    assert_eq!((&task["slices"], &task["voluntary"], &task["involuntary"]), (&50.into(), &50.into(), &0.into()));
    for key in ["mean", "p50", "p90", "p99", "p999", "max"] {
        let latency = task["latency_us"][key].as_f64().unwrap();
        assert!((latency - 250.0).abs() < 2.5, "{key}: {latency}");
        assert!(task["waking_latency_us"][key].is_number());
    }
    assert_eq!((all["cpus"].as_array().unwrap().len(), all["nodes"].as_array().unwrap().len()), (2, 2));
    assert_eq!(all["groups"].as_array().unwrap().len(), 4);
    let total = &all["total"];
    assert_eq!((&total["tasks"], &total["events"], &total["lost_events"]), (&40.into(), &4000.into(), &0.into()));
    let time = |key: &str| total[key].as_f64().unwrap();
    assert!((time("run_us") + time("idle_us") + time("unknown_us") - 2.0 * time("span_us")).abs() < 1e-3);
    assert!((total["fairness"]["jain"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert!(all["trace"]["cut"].is_null());
}

#[test]
fn each_table_has_its_rows() {
    let (_dir, path) = trace(&[]);
    let tasks = text(&path, &[]);
    assert_eq!(tasks.lines().filter(|line| line.starts_with("task-")).count(), 30, "{tasks}");
    assert!(tasks.contains("... and 10 more (--all shows them)"), "{tasks}");
    assert!(tasks.contains("250.000 us") && tasks.contains("50.000 ms"), "{tasks}");
    assert!(tasks.contains("\nCPUs busy ") && !tasks.contains("with these tasks"), "{tasks}");
    assert!(text(&path, &["--task", "task-1*"]).contains("\nCPUs busy with these tasks "));
    assert_eq!(text(&path, &["--all"]).lines().filter(|line| line.starts_with("task-")).count(), 40);
    let groups = text(&path, &["--by", "group"]);
    assert_eq!(groups.lines().filter(|line| line.starts_with("/slice/")).count(), 4, "{groups}");
    for by in ["cpu", "node"] {
        let table = text(&path, &["--by", by]);
        let rows: Vec<_> = table.lines().skip_while(|line| !line.contains("busy")).take(4).collect();
        assert!(rows[0].trim_start().starts_with(by) && rows[3].starts_with("total"), "{table}");
    }
}

#[test]
fn losses_and_cuts_are_reported() {
    let (dir, path) = trace(&[Event { time: 500 * MS, cpu: 0, what: Payload::Lost { count: 12_345 } }]);
    let output = text(&path, &[]);
    assert!(output.contains("LOST: the recorder lost 12,345 events"), "{output}");
    assert!(output.contains("unknown: what ran during 250.000 us"), "{output}");

    let bytes = std::fs::read(&path).unwrap();
    let cut = dir.path().join("cut.arrows");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    assert!(text(&cut, &[]).contains("CUT at byte "));
    let all = json(&cut);
    assert!(all["trace"]["cut"]["offset"].as_u64().unwrap() <= bytes.len() as u64 / 2);
    assert!(all["total"]["events"].as_u64().unwrap() > 1000);
}

/// An answer of zeros would look as if nothing had happened.
#[test]
fn a_file_that_was_cut_before_its_first_event_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    ok(folder, &["sim", "li:tasks=2", "-k", "linux-6.12", "-d", "20ms", "-o", "whole.arrows"]);
    let whole = std::fs::read(folder.join("whole.arrows")).unwrap();
    std::fs::write(folder.join("cut.arrows"), &whole[..whole.len() - 100]).unwrap();
    let why = "schedlab: cut.arrows: nothing is left of the trace: the file ends in the middle of a batch: that batch \
               is lost; give one that is whole\n";
    let verbs = [&["stats"][..], &["stats", "--schedstat"], &["delays"], &["check"], &["gantt"], &["model"]];
    let diffs = [&["diff", "whole.arrows"][..], &["diff", "--blocks", "2", "whole.arrows"]];
    for verb in verbs.into_iter().chain(diffs) {
        let out = schedlab(folder, &[verb, &["cut.arrows"]].concat());
        assert_eq!((out.status.code(), String::from_utf8(out.stderr).unwrap().as_str()), (Some(2), why), "{verb:?}");
    }
    // A whole one may have no events.
    Writer::create(folder.join("empty.arrows"), &Meta::default()).unwrap().finish().unwrap();
    assert!(ok(folder, &["stats", "empty.arrows"]).contains("0 events"));
    ok(folder, &["diff", "empty.arrows", "whole.arrows"]);
}

#[test]
fn a_file_that_is_not_a_trace_is_one_error_and_status_2() {
    let dir = tempfile::tempdir().unwrap();
    let files: [(&str, Option<&[u8]>, &str); 4] = [
        ("missing", None, "No such file"),
        ("empty", Some(b""), "empty"),
        ("text", Some(b"hello, world"), "no trace"),
        ("short", Some(b"\xff\xff\xff\xff\x00"), "ends before its head"),
    ];
    for (name, content, reason) in files {
        let path = dir.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let output = stats(&path, &[]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains(name) && message.contains(reason) && output.stdout.is_empty(), "{message}");
    }
    assert_eq!(stats(dir.path(), &[]).status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (_dir, path) = trace(&[]);
    let script = format!("'{}' stats '{}' --all | head -n 1", env!("CARGO_BIN_EXE_schedlab"), path.display());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_window_without_events_shows_what_runs_through_it() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), &["sim", "-k", "linux-6.12", "-w", "li:tasks=1", "-d", "50ms", "-o", "t.arrows"]);
    let text = ok(folder.path(), &["stats", "t.arrows", "--from", "10ms", "--to", "11ms"]);
    assert!(text.contains("1 CPU for 1.000 ms: 1 task, 0 events\n"), "{text}");
    assert!(text.contains("100.0%") && !text.contains("no events were recorded"), "{text}");
}

#[test]
fn nothing_is_told_of_the_time_after_a_cut() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.arrows");
    sample(&whole, &[]);
    let bytes = std::fs::read(&whole).unwrap();
    let cut = folder.path().join("cut.arrows");
    std::fs::write(&cut, &bytes[..bytes.len() * 6 / 10]).unwrap();
    let total = json(&cut)["total"].clone();
    let read = total["events"].as_u64().unwrap() as usize;
    assert!((1000..3500).contains(&read), "{read} events are left");
    // The head announces 1001 ms.
    let last = rounds()[read - 1].time as f64 / 1e3;
    let known: f64 = ["run_us", "idle_us"].iter().map(|key| total[*key].as_f64().unwrap()).sum();
    assert_eq!(total["span_us"], last);
    assert!((known - 2.0 * last).abs() < 1.0, "{known} of {last}");
    spans(folder.path(), "cut.arrows", last);
    // A pipe cannot be looked at from behind.
    let cat = |name: &str| {
        let all = format!("cat {name} | {} stats - --json", env!("CARGO_BIN_EXE_schedlab"));
        let output = Command::new("sh").args(["-c", &all]).current_dir(folder.path()).output().expect("sh runs");
        serde_json::from_slice::<Value>(&output.stdout).expect("one JSON document")["total"]["span_us"].clone()
    };
    assert_eq!((cat("cut.arrows"), cat("whole.arrows")), (last.into(), 1_001_000.0.into()));
}

#[test]
fn a_recording_goes_on_after_its_last_event() {
    let folder = tempfile::tempdir().unwrap();
    let meta = Meta { source: "record".into(), span: Some((0, 0)), ..Meta::default() };
    let mut writer = Writer::create(folder.path().join("t.arrows"), &meta).unwrap();
    writer.events(&rounds()[..100]);
    writer.lasts(500 * MS);
    writer.finish().unwrap();
    spans(folder.path(), "t.arrows", 500_000.0);
}

/// Every verb takes the trace to end there.
fn spans(folder: &Path, trace: &str, end_us: f64) {
    for (verb, key) in
        [("stats", "/total/span_us"), ("check", "/span_us"), ("delays", "/total/span_us"), ("heatmap", "/end_us")]
    {
        let output = schedlab(folder, &[verb, trace, "--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        assert_eq!(told.pointer(key), Some(&end_us.into()), "{verb}");
    }
}

#[test]
fn what_is_wrong_with_a_pipe_is_said_as_of_a_file() {
    for (bytes, part) in [("ARROW1 and more", "an Arrow IPC file, not a stream"), ("text", "from its beginning")] {
        let piped = format!("printf '{bytes}' | {} stats -", env!("CARGO_BIN_EXE_schedlab"));
        let output = Command::new("sh").args(["-c", &piped]).output().expect("sh runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("standard input") && said.contains(part), "{said}");
    }
}
