//! `schedlab sim` through the command line: its output file, and what a failure leaves of it.

use crate::support::{ok, schedlab};
use std::path::Path;
use std::process::{Command, Output};

fn sim(output: &Path, kernel: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args([
            "sim",
            "--kernel",
            kernel,
            "--machine",
            "2",
            "--workload",
            "li:tasks=3",
            "--duration",
            "1s",
            "--force",
            "-o",
        ])
        .arg(output)
        .output()
        .unwrap()
}

#[test]
fn a_failed_simulation_leaves_the_file_that_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    assert!(sim(&file, "linux-6.12").status.success());
    let before = std::fs::read(&file).unwrap();
    let failed = sim(&file, "linux-6.13");
    assert_eq!(failed.status.code(), Some(2));
    assert!(String::from_utf8(failed.stderr).unwrap().contains("the nearest are linux-6.12 and linux-6.18"));
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    assert!(sim(&file, "linux-6.12").status.success());
    assert_eq!(std::fs::read(&file).unwrap(), before, "the same seed gives the same bytes");
}

#[test]
fn a_trace_of_a_large_workload_is_made_again_without_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let phases: Vec<String> = (0..40_000)
        .map(|p| format!("\"p{p}\": {{\"run\": {}, \"sleep\": {}}}", 1 + p * 7 % 301, 1 + p * 11 % 97))
        .collect();
    let text = format!("{{\"tasks\": {{\"a\": {{\"loop\": 1, \"phases\": {{{}}}}}}}}}", phases.join(","));
    assert!(text.len() > 1 << 20, "it does not fit into the trace as it is");
    std::fs::write(dir.path().join("w.json"), text).unwrap();
    let first = ["sim", "-k", "linux-6.12", "-w", "w.json", "-d", "500ms", "-o", "t.arrows", "--json"];
    let first = super::support::ok(dir.path(), &first);
    std::fs::remove_file(dir.path().join("w.json")).unwrap();
    let again = super::support::ok(dir.path(), &["sim", "--again", "t.arrows", "--json"]);
    let [first, again]: [serde_json::Value; 2] = [first, again].map(|text| serde_json::from_str(&text).unwrap());
    assert_eq!((&first["tasks"], &first["simulation"]), (&again["tasks"], &again["simulation"]));
}

#[test]
fn the_workload_is_named_as_an_argument_or_as_an_option() {
    let dir = tempfile::tempdir().unwrap();
    let rest = ["-k", "linux-6.12", "-d", "100ms", "--json"];
    let argument = super::support::ok(dir.path(), &[&["sim", "li:tasks=3"][..], &rest].concat());
    let option = super::support::ok(dir.path(), &[&["sim", "--workload", "li:tasks=3"][..], &rest].concat());
    assert_eq!(argument, option);
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_schedlab")).arg("sim").args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for wrong in [&["li", "--workload", "li"][..], &["li", "--again", "t.arrows"]] {
        let (code, message) = run(wrong);
        assert!(code == Some(2) && message.contains("cannot be used with"), "{message}");
    }
    let (code, message) = run(&["-k", "linux-6.12"]);
    assert!(code == Some(2) && message.contains("WORKLOAD"), "{message}");
}

#[test]
fn a_task_without_a_group_is_in_the_root_group_if_there_are_others() {
    let dir = tempfile::tempdir().unwrap();
    let named = |load: &str| {
        std::fs::write(dir.path().join("w.json"), load).unwrap();
        let line = ["sim", "w.json", "-k", "linux-6.12", "-m", "1", "-d", "50ms", "--force", "-o", "t.arrows"];
        ok(dir.path(), &line);
        ok(dir.path(), &["stats", "t.arrows", "--by", "group", "--json"])
    };
    let groups = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["groups"].as_array().unwrap().iter().map(|group| group["group"].clone()).collect::<Vec<_>>()
    };
    let in_group = r#"{"tasks": {"a": {"taskgroup": "/web", "run": 1000}, "b": {"run": 1000}}}"#;
    assert_eq!(groups(&named(in_group)), ["/", "/web"]);
    let alone = groups(&named(r#"{"tasks": {"a": {"run": 1000}, "b": {"run": 1000}}}"#));
    assert!(alone.iter().all(serde_json::Value::is_null), "{alone:?}");
}

#[test]
fn a_long_document_comes_in_pieces_that_break_no_name() {
    let dir = tempfile::tempdir().unwrap();
    let task = r#""größer": { "instance": 3000, "loop": 1, "phases": { "p": { "run": 100 } } }"#;
    std::fs::write(dir.path().join("w.json"), format!(r#"{{ "tasks": {{ {task} }} }}"#)).unwrap();
    let json = ok(dir.path(), &["sim", "--json", "-k", "linux-6.12", "-m", "2", "-w", "w.json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let tasks = document["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 3000);
    assert!(tasks.iter().all(|task| task["name"].as_str().unwrap().starts_with("größer-")));
}

#[test]
fn queues_after_the_end_are_said_to_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let run = ["sim", "li:tasks=1", "-k", "linux-6.12", "-m", "1", "-d", "100ms", "--queues-at", "20ms"];
    let late = ["--queues-at", "5s", "--queues-at", "6s"];
    let said = |args: &[&str]| String::from_utf8(schedlab(dir.path(), args).stderr).unwrap();
    assert!(!said(&run).contains("no queues"), "{}", said(&run));
    let message = "no queues are shown at 5.000 s, 6.000 s: the simulation had ended";
    assert!(said(&[&run[..], &late].concat()).contains(message), "{}", said(&[&run[..], &late].concat()));
    let queues = |args: &[&str]| {
        let document: serde_json::Value = serde_json::from_str(&ok(dir.path(), args)).unwrap();
        document["queues"].as_array().map(Vec::len)
    };
    assert_eq!(queues(&[&run[..], &late, &["--json"]].concat()), Some(1));
    assert_eq!(queues(&[&run[..8], &late, &["--json"]].concat()), Some(0));
    assert_eq!(queues(&[&run[..8], &["--json"]].concat()), None);
    let debug = said(&[&run[..], &["--sched-debug", "5s"]].concat());
    assert!(debug.contains("no queues are shown at 5.000 s") && !debug.contains("/proc/sched_debug"), "{debug}");
}
