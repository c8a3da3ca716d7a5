//! Recordings that are about some tasks, of the whole machine or of these tasks alone, through the command line.

use crate::support::{ok, schedlab};
use schedlab_base::{
    AffinityRecord, Coverage, CpuPlace, Event, Meta, NameRecord, Partial, Payload, Sink, Target, TaskState,
};
use serde_json::Value;
use std::path::Path;

const MS: u64 = 1_000_000;

/// Task 10 runs on CPU 0 until 30 ms, when 20 follows it; its child 11, which is bound to CPU 0, waits until 40 ms and
/// runs until 60 ms. CPU 1 is idle.
fn events() -> Vec<Event> {
    let switch = |ms: u64, prev, prev_state, next| Event {
        time: ms * MS,
        cpu: 0,
        what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 },
    };
    let at = |ms: u64, what| Event { time: ms * MS, cpu: 0, what };
    vec![
        switch(0, 0, TaskState::Runnable, 10),
        at(10, Payload::Fork { parent: 10, child: 11 }),
        at(10, Payload::WakeupNew { tid: 11, prio: 120, target: 0 }),
        at(20, Payload::Wakeup { tid: 20, prio: 120, target: 0 }),
        switch(30, 10, TaskState::Sleeping, 20),
        switch(40, 20, TaskState::Sleeping, 11),
        switch(60, 11, TaskState::Zombie, 0),
    ]
}

fn meta(covers: Option<Coverage>) -> Meta {
    let place = |cpu| CpuPlace { cpu, core: cpu, capacity: 1024, ..CpuPlace::default() };
    Meta {
        source: "record".into(),
        kernel: "6.1".into(),
        span: Some((0, 0)),
        cpus: vec![place(0), place(1)],
        running: vec![(1, 0)],
        target: Some(Target { processes: vec![10], threads: vec![10], command: None }),
        partial: covers.map(|covers| Partial { covers, only: "process 10 and its children".into() }),
        ..Meta::default()
    }
}

fn write(folder: &Path, name: &str, meta: &Meta, events: &[Event]) {
    let mut writer = schedlab_trace::Writer::create(folder.join(name), meta).unwrap();
    for (tid, comm) in [(10, "server"), (20, "stranger")] {
        writer.name(&NameRecord { time: 0, tid, tgid: Some(tid), comm: comm.into(), cgroup: None });
    }
    for (tid, cpus) in [(10, "0"), (20, "0-1")] {
        writer.affinity(&AffinityRecord { time: 0, tid, cpus: cpus.parse().unwrap() });
    }
    writer.events(events);
    writer.lasts(100 * MS);
    writer.finish().unwrap();
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "whole.arrows", &meta(None), &events());
    write(folder.path(), "alone.arrows", &meta(Some(Coverage::Tasks)), &events());
    write(folder.path(), "empty.arrows", &meta(None), &[]);
    folder
}

/// The table's row that begins with this name, in words.
fn row(text: &str, name: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {text}"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn delays_of_a_target_alone_are_of_its_own_tasks_or_unknown() {
    let folder = folder();
    let text = ok(folder.path(), &["delays", "alone.arrows", "--json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let wait = &document["waits"][0];
    assert_eq!((&wait["task"], &wait["tid"]), (&Value::from("server"), &Value::from(11)), "{wait}");
    assert_eq!((&wait["duration_us"], &wait["unknown_us"]), (&Value::from(30_000.0), &Value::from(10_000.0)), "{wait}");
    assert_eq!(
        (&wait["culprits"][0]["tid"], &wait["culprits"][0]["run_us"]),
        (&Value::from(10), &Value::from(20_000.0))
    );
    assert!(wait["idle_us"].is_null() && wait["idle_allowed_us"].is_null(), "{wait}");
    assert!(ok(folder.path(), &["delays", "alone.arrows"]).contains("partial: the recording has only the events of"));
    write(folder.path(), "inside.arrows", &meta(Some(Coverage::Inside)), &events());
    let refused = schedlab(folder.path(), &["delays", "inside.arrows"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("when tasks got a CPU is not known"), "{refused:?}");
}

#[test]
fn the_target_has_rows_and_the_others_share_one() {
    let folder = folder();
    let text = ok(folder.path(), &["stats", "whole.arrows"]);
    assert!(text.contains("2 CPUs for 100.000 ms"), "the end of the recording is known: {text}");
    assert!(text.contains("target: process 10 (2 tasks); 1 other task in one row"), "{text}");
    assert_eq!(row(&text, "server")[..5], ["server", "10", "0", "30.000", "ms"]);
    assert_eq!(row(&text, "others")[..5], ["others", "(1)", "10.000", "ms", "16.7%"]);
    assert!(!text.contains("stranger"), "{text}");
    let all = ok(folder.path(), &["stats", "whole.arrows", "--all"]);
    assert_eq!(row(&all, "stranger")[..3], ["stranger", "20", "all"]);
    let json: Value = serde_json::from_str(&ok(folder.path(), &["stats", "whole.arrows", "--json"])).unwrap();
    assert_eq!((&json["target"]["tasks"], &json["others"]["run_us"]), (&Value::from(2), &Value::from(10_000.0)));
    assert_eq!(json["trace"]["target"]["processes"], serde_json::json!([10]));
    assert_eq!(json["tasks"].as_array().unwrap().len(), 3);
    assert!(json.get("task_cpus").is_none());
}

#[test]
fn tasks_have_a_row_for_each_cpu() {
    let folder = folder();
    let text = ok(folder.path(), &["stats", "whole.arrows", "--by", "task-cpu"]);
    assert_eq!(row(&text, "server"), ["server", "10", "0", "30.000", "ms", "100.0%", "0", "1"]);
    let json = ok(folder.path(), &["stats", "whole.arrows", "--by", "task-cpu", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["task_cpus"].as_array().unwrap().iter();
    let rows: Vec<_> = rows.map(|row| (row["tid"].as_i64(), row["cpu"].as_i64(), row["wait_us"].as_f64())).collect();
    let expected = [(10, 0.0), (11, 30_000.0), (20, 10_000.0)].map(|(tid, wait)| (Some(tid), Some(0), Some(wait)));
    assert_eq!(rows, expected);
}

#[test]
fn a_partial_recording_is_asked_only_what_it_can_tell() {
    let folder = folder();
    let text = ok(folder.path(), &["stats", "alone.arrows"]);
    assert!(text.contains("partial: the recording has only the events of process 10 and its children"), "{text}");
    assert_eq!(row(&text, "server")[..5], ["server", "10", "0", "30.000", "ms"]);
    for never in ["share", "idle", "Jain", "migr", "stranger", "others"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
    let refused = [
        &["stats", "alone.arrows", "--by", "node"][..],
        &["stats", "alone.arrows", "--schedstat=15"],
        &["gantt", "alone.arrows", "--by", "cpu"],
        &["heatmap", "alone.arrows", "-o", "h.png"],
    ];
    for arguments in refused {
        let output = schedlab(folder.path(), arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains("alone.arrows") && message.contains("record without --only"), "{message}");
    }
    assert!(!folder.path().join("h.png").exists());
    let gantt = ok(folder.path(), &["gantt", "alone.arrows"]);
    assert!(gantt.contains("server 10") && !gantt.contains("stranger"), "{gantt}");
    let model = schedlab(folder.path(), &["model", "alone.arrows"]);
    let remarks = String::from_utf8(model.stderr).unwrap();
    assert!(remarks.contains("2 tasks modelled with 0.050 s") && remarks.contains("partial: "), "{remarks}");
}

#[test]
fn what_a_partial_recording_does_not_tell_is_not_compared() {
    let folder = folder();
    let folder = folder.path();
    let diff = |a: &str, b: &str, bound: &str| -> (Value, Option<i32>) {
        let out = schedlab(folder, &["diff", a, b, "--by", "name", "--json", "--fail-if", bound]);
        (serde_json::from_slice(&out.stdout).unwrap(), out.status.code())
    };
    let figures = |document: &Value, row: usize| -> Vec<String> {
        document["rows"][row]["figures"].as_object().unwrap().keys().cloned().collect()
    };
    let (mixed, status) = diff("whole.arrows", "alone.arrows", "wait > +10%");
    assert_eq!(status, Some(3), "other tasks are all tasks: {mixed}");
    assert_eq!(figures(&mixed, 0), ["duration_us"]);
    assert_eq!(mixed["rows"][1]["unknown"], serde_json::json!(["migrations"]));
    assert!(
        figures(&mixed, 1).contains(&"run_us".to_owned()) && !figures(&mixed, 1).contains(&"migrations".to_owned())
    );
    let remarks = mixed["remarks"].to_string();
    assert!(remarks.contains("B is partial: the recording has only the events of process 10"), "{remarks}");
    let (both, status) = diff("alone.arrows", "alone.arrows", "migrations > +10%");
    assert_eq!((status, &both["bounds"][0]["ruling"]), (Some(3), &Value::from("undecided")));
    assert_eq!(both["bounds"][0]["reason"], "all tasks: unknown, because a recording is partial");
    assert!(figures(&both, 0).contains(&"wait_us".to_owned()) && !figures(&both, 0).contains(&"migrations".to_owned()));
    assert_eq!(diff("whole.arrows", "whole.arrows", "migrations > +10%").1, Some(0));
    let text = ok(folder, &["diff", "alone.arrows", "whole.arrows"]);
    assert!(text.contains("- A is partial: ") && !text.contains("migrations  "), "{text}");
}

#[test]
fn from_inside_only_switches_away_are_known() {
    let folder = folder();
    let target = None;
    let meta = Meta { target, span: None, ..meta(Some(Coverage::Inside)) };
    let seen: Vec<Event> = events().into_iter().filter(|event| event.time != 0 && event.time != 40 * MS).collect();
    write(folder.path(), "inside.arrows", &meta, &seen);
    let text = ok(folder.path(), &["stats", "inside.arrows"]);
    assert!(text.contains("when tasks got a CPU is not known") && !text.contains("run"), "{text}");
    assert_eq!(row(&text, "server")[3..], ["1", "0"]);
    for arguments in [&["gantt", "inside.arrows"][..], &["model", "inside.arrows"]] {
        assert_eq!(schedlab(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_check_that_cannot_know_is_undecided() {
    let folder = folder();
    for (name, reason) in [("alone.arrows", "what else ran is not known"), ("empty.arrows", "the trace has no events")]
    {
        let output = schedlab(folder.path(), &["check", name]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(text.contains("verdict: undecided: ") && text.contains(reason), "{text}");
        let json = schedlab(folder.path(), &["check", name, "--json"]);
        let json: Value = serde_json::from_slice(&json.stdout).unwrap();
        assert!(json["reason"].as_str().unwrap().contains(reason), "{json}");
        assert_eq!(json["wasted_cpu_us"].is_null(), name == "alone.arrows");
    }
    let empty = ok(folder.path(), &["stats", "empty.arrows"]);
    assert!(empty.contains("no events were recorded in 100.000 ms"), "{empty}");
}

#[test]
fn a_check_says_how_long_tasks_waited_because_they_are_bound() {
    let folder = folder();
    let text = ok(folder.path(), &["check", "whole.arrows"]);
    let line = "30.000 ms of waiting was by tasks bound to CPU 0 while CPU 1 was idle:\n  server 11 30.000 ms\n";
    assert!(text.contains(line), "{text}");
    let json: Value = serde_json::from_str(&ok(folder.path(), &["check", "whole.arrows", "--json"])).unwrap();
    assert_eq!((&json["bound_wait_us"], &json["bound"][0]["allowed"]), (&Value::from(30_000.0), &Value::from("0")));
}

#[test]
fn moves_that_a_target_alone_does_not_show_are_unknown_and_not_none() {
    let folder = folder();
    let folder = folder.path();
    let json = |args: &[&str]| -> Value { serde_json::from_str(&ok(folder, &[args, &["--json"]].concat())).unwrap() };
    let recorded = |trace: &str| {
        let validation = &json(&["model", trace, "--validate", "-o", "/dev/null"])["validation"];
        let answer = json(&["whatif", trace, "--kernel", "linux-6.12", "--seeds", "1"]);
        let figures = &answer["whatif"]["variants"][0]["rows"][0]["figures"];
        [validation["recorded"]["migrations"].clone(), figures["migrations"]["recorded"].clone()]
    };
    assert_eq!(recorded("whole.arrows"), [Value::from(0.0), Value::from(0.0)]);
    assert_eq!(recorded("alone.arrows"), [Value::Null, Value::Null]);
    let text = ok(folder, &["model", "alone.arrows", "--validate", "-o", "/dev/null"]);
    assert_eq!(row(&text, "migrations")[1], "-", "{text}");
    assert_eq!(row(&text, "slices")[1], "2", "{text}");
}
