//! `schedlab run` through the command line: the table, the JSON, the report and the exit statuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An experiment that passes: two hogs share a CPU.
pub const FILE: &str = r#"id = "hogs"
title = "two hogs"
machine = "up"
duration = "2s"
[workload]
inline = '{"tasks": {"hog": {"instance": 2, "loop": -1, "run": 1000}}}'
[[kernels]]
name = "cfs"
kernel = "linux-6.1"
[metrics.spread]
value = "spread(run_s)"
[[expectations]]
figure = "T1"
kind = "number"
metric = "spread"
relation = "<="
bound = 0.01
published = "equal"
"#;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab")).arg("run").args(args).output().expect("the binary runs")
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the file can be written");
    path
}

/// Runs the experiment with one change. Returns its exit status, standard output and standard error.
fn status(from: &str, to: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "hogs.toml", &FILE.replacen(from, to, 1));
    let out = run(&[path.to_str().unwrap()]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn the_table_shows_published_beside_measured_figures() {
    let (code, table, _) = status("", "");
    assert_eq!(code, Some(0), "{table}");
    let row = table.lines().find(|l| l.starts_with("hogs") && l.contains("T1")).expect("a row");
    assert!(row.contains("equal") && row.trim_end().ends_with("pass"), "{table}");
}

#[test]
fn exit_statuses_follow_the_design() {
    let known = "bound = -1\nknown_difference = \"hogs are not that fair\"";
    assert_eq!(status("bound = 0.01", "bound = -1").0, Some(1));
    assert_eq!(status("bound = 0.01", known).0, Some(0));
    assert_eq!(status("spread(run_s)", "mean(finish_s)").0, Some(3));
    let (code, _, stderr) = status("metric =", "metrik =");
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("hogs.toml:15: expectations[0].metrik: \"metrik\" is no key; did you mean \"metric\"?"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn json_is_one_document_with_the_keys_of_the_design() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "hogs.toml", FILE);
    let out = run(&["--json", path.to_str().unwrap()]);
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).expect("one JSON document");
    let experiment = &value["experiments"][0];
    assert_eq!((&experiment["id"], &experiment["verdict"]), (&"hogs".into(), &"pass".into()));
    let expectation = &experiment["expectations"][0];
    assert_eq!((&expectation["figure"], &expectation["published"]), (&"T1".into(), &"equal".into()));
    assert!(expectation["measured"].is_number() && expectation["verdict"] == "pass", "{expectation}");
    assert_eq!(out.stdout, run(&["--json", "-j", "1", path.to_str().unwrap()]).stdout, "the same on one thread");
}

#[test]
fn a_folder_is_run_and_its_report_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.toml", FILE);
    write(folder.path(), "b.toml", &FILE.replace("\"hogs\"", "\"more-hogs\""));
    let page = folder.path().join("report.html");
    let args = [folder.path().to_str().unwrap(), "-o", page.to_str().unwrap()];
    assert_eq!(run(&args).status.code(), Some(0));
    let html = std::fs::read_to_string(&page).expect("the report is there");
    assert!(html.contains("more-hogs") && html.contains("<svg") && !html.contains("http"), "the report stands alone");
    assert_eq!(run(&args).status.code(), Some(2), "it exists");
    assert_eq!(run(&[&args[..], &["--force"]].concat()).status.code(), Some(0));
    write(folder.path(), "c.toml", FILE);
    let message = String::from_utf8_lossy(&run(&args[..1]).stderr).into_owned();
    assert!(message.contains("two experiments have the id \"hogs\""), "{message}");
}

#[test]
fn missing_files_are_reported() {
    for (args, message) in [
        (vec!["gone.toml"], "gone.toml: cannot open"),
        (vec!["gone.toml", "--on", "live"], "--on live: not in this version"),
        (vec!["gone.toml", "--on", "moon"], "no such backend"),
    ] {
        let out = run(&args);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
    let empty = tempfile::tempdir().unwrap();
    let out = run(&[empty.path().to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("no experiment is in this folder"));
}
