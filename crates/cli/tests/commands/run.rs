//! `schedlab run` through the command line: the table, the JSON, the report and the exit statuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An experiment that passes: two hogs share a CPU.
pub const FILE: &str = r#"id = "hogs"
title = "two hogs"
machine = "up"
duration = "2s"
seeds = [1]
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
        stderr.contains("hogs.toml:16: expectations[0].metrik: \"metrik\" is no key; did you mean \"metric\"?"),
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
        (vec!["gone.toml", "--on", "live"], "gone.toml: cannot open"),
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

#[test]
fn a_part_is_run_and_what_ci_reads_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        FILE.replace("[workload]", "[sweep]\nn = [2, 3]\n[workload]").replace("\"instance\": 2", "\"instance\": {n}");
    let path = write(folder.path(), "hogs.toml", &file.replace("bound = 0.01", "bound = -1"));
    let (path, xml) = (path.to_str().unwrap(), folder.path().join("results.xml"));
    let out = run(&[path, "--only", "n=3", "--kernel", "cfs", "--junit", xml.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("; required at most -1 (linux-6.1, n=3)") && text.contains("\n1 run;"), "{text}");
    let xml = std::fs::read_to_string(xml).expect("the JUnit file is there");
    assert!(xml.contains("<testcase name=\"T1 (linux-6.1, n=3)\" classname=\"hogs\">"), "{xml}");
    assert!(xml.contains("<failure message=\"measured 0") && xml.contains("required at most -1"), "{xml}");
    let out = run(&[path, "--only", "n=4"]);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("\"4\" is no value of the sweep"), "{stderr}");
}

#[test]
fn a_part_that_judges_nothing_is_undecided() {
    let folder = tempfile::tempdir().unwrap();
    let two = "[[kernels]]\nname = \"o1\"\nkernel = \"linux-2.6.11\"\n[metrics.spread]";
    let file = FILE.replace("[metrics.spread]", two).replace("metric = \"spread\"", "metric = \"spread@cfs\"");
    let path = write(folder.path(), "hogs.toml", &file);
    let out = run(&[path.to_str().unwrap(), "--kernel", "o1"]);
    assert_eq!(out.status.code(), Some(3));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("skipped: it needs the kernel \"cfs\", which is not selected"), "{text}");
}

#[test]
fn a_baseline_decides_the_exit_status() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "hogs.toml", FILE);
    let path = path.to_str().unwrap();
    let old = write(folder.path(), "old.json", "");
    std::fs::write(&old, run(&[path, "--json"]).stdout).unwrap();
    let old = old.to_str().unwrap();
    let same = run(&[path, "--baseline", old]);
    assert_eq!(same.status.code(), Some(0));
    let text = String::from_utf8_lossy(&same.stdout).into_owned();
    assert!(text.contains("of 1 metrics none has changed"), "{text}");
    write(
        folder.path(),
        "hogs.toml",
        &FILE.replace("\"run\": 1000", "\"run\": 1000, \"priority\": 5").replace("2s", "1900ms"),
    );
    let changed = run(&[path, "--baseline", old, "--json"]);
    assert_eq!(changed.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_slice(&changed.stdout).expect("one JSON document");
    let change = &value["baseline"]["changes"][0];
    assert_eq!((&change["metric"], &change["kernel"]), (&"spread".into(), &"cfs".into()), "{value}");
    assert_eq!(run(&[path, "--baseline", path]).status.code(), Some(2), "no baseline");
}

#[test]
fn remarks_are_printed_and_the_report_names_the_command_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let remarked = FILE.replace("{\"hog\":", "{\"hog\": {\"run\": 1}, \"hog\":");
    let path = write(folder.path(), "two hogs.toml", &remarked);
    let page = folder.path().join("a report.html");
    let out = run(&[path.to_str().unwrap(), "--jobs", "1", "-o", page.to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(stderr.contains("schedlab: hogs: inline:1: tasks.hog:"), "{stderr}");
    let html = std::fs::read_to_string(&page).unwrap();
    let command = format!("schedlab run &#39;{}&#39; --jobs 1 -o &#39;{}&#39;", path.display(), page.display());
    assert!(html.contains(&command), "{command}");
    assert!(html.contains("inline:1: tasks.hog:") && html.contains("<nav"), "remarks and navigation");
    assert!(!html.contains("square root"), "heights are linear");
}

/// Three hogs on two CPUs take turns, unless each is bound to a CPU.
#[test]
fn tasks_that_are_free_are_placed_where_the_command_or_the_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let load = FILE.replace("\"up\"", "\"2\"").replace("\"instance\": 2", "\"instance\": 3");
    let load = load.replace("spread(run_s)", "max(run_s) / min(run_s)");
    let path = write(folder.path(), "hogs.toml", &load);
    let spread = |args: &[&str]| {
        let out = run(&[&[path.to_str().unwrap(), "--json"], args].concat());
        let value: serde_json::Value = serde_json::from_slice(&out.stdout).expect("one JSON document");
        value["experiments"][0]["results"][0]["values"][0].as_f64().expect("a number")
    };
    let free = spread(&[]);
    let bound = spread(&["--placement", "cpu"]);
    assert!(free < 1.5 && (1.95..2.05).contains(&bound), "{free} {bound}");
    write(folder.path(), "hogs.toml", &load.replace("[workload]", "[workload]\nplacement = \"cpu\""));
    assert_eq!(spread(&[]).to_bits(), bound.to_bits());
    assert_eq!(spread(&["--placement", "scheduler"]).to_bits(), free.to_bits());
    write(folder.path(), "hogs.toml", &load.replace("[workload]", "[workload]\nplacement = \"best\""));
    let out = run(&[path.to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(stderr.contains("hogs.toml:") && stderr.contains("there is no placement \"best\""), "{stderr}");
}
