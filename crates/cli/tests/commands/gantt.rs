//! `schedlab gantt` through the command line: the picture, piped and as JSON.

use crate::support::{ok, schedlab};
use serde_json::Value;

const LOAD: &str = r#"{ "global": { "duration": 1 }, "tasks": {
    "hog": { "cpus": [0], "run": 1000 },
    "nap": { "cpus": [1], "run": 4000, "sleep": 6000 } } }"#;

/// A hog on CPU 0, and on CPU 1 a task that runs for 4 ms of every 10 ms.
fn trace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("w.json"), LOAD).expect("written");
    let sim = ["sim", "--kernel", "linux-6.12", "--machine", "2", "--workload", "w.json", "--costs", "none"];
    ok(folder.path(), &[&sim[..], &["--duration", "100ms", "-o", "t.arrows"]].concat());
    folder
}

/// The cells of the lane with this label.
fn lane(picture: &str, label: &str) -> String {
    let line = picture.lines().find(|line| line.starts_with(label)).expect("the lane is there");
    line.split('│').nth(1).expect("a lane has cells").to_owned()
}

#[test]
fn a_cpu_shows_the_tasks_that_run_on_it() {
    let folder = trace();
    let text = ok(folder.path(), &["gantt", "t.arrows", "--to", "60ms", "--width", "75"]);
    assert!(!text.contains('\x1b'), "a pipe gets no colours");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(lane(&text, "cpu0"), "A".repeat(60));
    let nap = lane(&text, "cpu1");
    assert_eq!(nap.chars().filter(|c| *c == 'B').count(), 24, "{nap}");
    assert_eq!(nap.chars().filter(|c| *c == ' ').count(), 36, "{nap}");
    assert!(text.contains("A hog-0") || text.contains("A hog 1"), "{text}");
    assert!(text.contains("100%") && text.contains("40%"), "{text}");
    assert!(text.contains("0 ms") && text.contains("10 ms") && text.contains("50 ms"), "{text}");
}

#[test]
fn a_cpu_that_stays_idle_has_its_lane() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("w.json"), r#"{ "tasks": { "hog": { "cpus": [2], "run": 1000 } } }"#).unwrap();
    let sim = ["sim", "--kernel", "linux-6.12", "--machine", "4", "--workload", "w.json", "--duration", "10ms"];
    ok(folder.path(), &[&sim[..], &["-o", "t.arrows"]].concat());
    let gantt = |args: &[&str]| ok(folder.path(), &[&["gantt", "t.arrows"], args].concat());
    let text = gantt(&[]);
    for cpu in ["cpu0", "cpu1", "cpu3"] {
        assert!(lane(&text, cpu).chars().all(|c| c == ' '), "{text}");
    }
    assert!(text.contains("0%") && !text.contains("more tasks"), "{text}");
    let two = gantt(&["--lanes", "2"]);
    assert!(two.contains("cpu0") && two.contains("cpu2") && two.contains("and 2 more CPUs"), "{two}");
    let idle = gantt(&["--cpu", "3"]);
    assert!(idle.contains("cpu3") && !idle.contains('*'), "{idle}");
    let value: Value = serde_json::from_str(&gantt(&["--json"])).expect("JSON");
    assert_eq!(value["lanes"][3], serde_json::json!({ "cpu": 3, "spans": [] }));
    let none = schedlab(folder.path(), &["gantt", "t.arrows", "--cpu", "7"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("no CPU 7"));
}

#[test]
fn tasks_show_what_they_do() {
    let folder = trace();
    let text = ok(folder.path(), &["gantt", "t.arrows", "--from", "10ms", "--to", "50ms", "--by", "task"]);
    assert!(lane(&text, "hog").chars().all(|c| c == '█'), "{text}");
    let nap = lane(&text, "nap");
    assert!(nap.contains("███") && nap.contains("····"), "{text}");
    let one = ok(folder.path(), &["gantt", "t.arrows", "--by", "task", "--lanes", "1"]);
    assert!(one.contains("and 1 more task (--lanes)"), "{one}");
    let colours = ok(folder.path(), &["gantt", "t.arrows", "--by", "task", "--color", "always"]);
    assert!(colours.contains("\x1b[38;5;34m█"), "{colours}");
}

#[test]
fn json_has_the_spans() {
    let folder = trace();
    let text = ok(folder.path(), &["gantt", "t.arrows", "--to", "20ms", "--by", "task", "--json"]);
    let value: Value = serde_json::from_str(&text).expect("one JSON document");
    assert_eq!((value["end_us"].as_f64(), value["spans_left_out"].as_u64()), (Some(20_000.0), Some(0)));
    let lanes = value["lanes"].as_array().expect("lanes");
    let nap = lanes.iter().find(|l| l["name"].as_str().is_some_and(|n| n.starts_with("nap"))).expect("nap is there");
    let running: f64 = nap["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .filter(|s| s["state"] == "running")
        .map(|s| s["end_us"].as_f64().expect("a time") - s["start_us"].as_f64().expect("a time"))
        .sum();
    assert_eq!((running, nap["run_us"].as_f64()), (8_000.0, Some(8_000.0)));
    let value: Value = serde_json::from_str(&ok(folder.path(), &["gantt", "t.arrows", "--json"])).expect("JSON");
    assert_eq!(value["lanes"][0]["spans"][0]["end_us"], 100_000.0);
}

#[test]
fn windows_outside_the_trace_are_refused() {
    let folder = trace();
    let message = |args: &[&str]| {
        let out = schedlab(folder.path(), &[&["gantt", "t.arrows"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        String::from_utf8(out.stderr).expect("text")
    };
    assert!(message(&["--from", "5s"]).contains("100 ms after its start"));
    assert!(message(&["--from", "5ms", "--to", "5ms"]).contains("ends before it begins"));
    assert!(message(&["--width", "3"]).contains("40..=2000"));
}
