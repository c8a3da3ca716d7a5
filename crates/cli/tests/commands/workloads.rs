//! `schedlab workloads` through the command line.

use std::process::{Command, Output};

fn workloads(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab")).arg("workloads").args(args).output().expect("the binary runs")
}

fn text(args: &[&str]) -> String {
    let out = workloads(args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

#[test]
fn the_list_names_presets_with_their_parameters() {
    let list = text(&[]);
    for word in ["li", "cf", "messaging", "periodic", "tasks=1", "groups=10", "period=10ms"] {
        assert!(list.contains(word), "{word}: {list}");
    }
    let value: serde_json::Value = serde_json::from_str(&text(&["--json"])).expect("one JSON document");
    assert_eq!(value["workloads"][0]["name"], "li");
    assert_eq!(value["workloads"][0]["parameters"][0]["default"], "1");
}

#[test]
fn a_preset_written_as_a_file_is_the_same_workload() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("periodic.json");
    let file = path.to_str().expect("the path is text");
    let spec = "periodic:tasks=3,run=1ms,period=4ms,nice=-5";
    assert_eq!(text(&[spec, "-o", file]), "");
    assert_eq!(text(&[file]), text(&[spec]));
    assert_eq!(text(&[file, "--json"]), text(&[spec, "--json"]));
    let out = workloads(&[spec, "-o", file]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--force"));
    let written = text(&[spec, "-o", file, "--force", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&written).expect("one JSON document");
    assert_eq!((&value["file"], &value["tasks"][0]["instances"]), (&file.into(), &3.into()));
}

#[test]
fn bad_workloads_are_refused_with_status_2_and_one_message() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("w.json");
    std::fs::write(&path, "{\"tasks\": {\"a\": {\n\"rum\": 5}}}").expect("the file is written");
    let file = path.to_str().expect("the path is text");
    for (spec, message) in [
        ("lii", "did you mean the preset \"li\"?"),
        ("li:task=3", "did you mean \"tasks\"?"),
        ("li:tasks=0", "no whole number in 1.."),
        ("periodic:run=5", "has no unit"),
        ("nowhere.json", "no workload file or preset"),
        ("/", "cannot read"),
        (file, "w.json:2: tasks.a.rum: no such key here; did you mean \"run\"?"),
    ] {
        let out = workloads(&[spec]);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{spec}");
        assert!(stderr.contains(message) && stderr.lines().count() == 1, "{spec}: {stderr}");
    }
}
