//! `schedlab diff` through the command line, on simulated traces whose difference is known.

use crate::support::{ok, schedlab};
use serde_json::Value;
use std::path::Path;

/// A task on a beat, two clients, and hogs whose number is the difference.
fn load(hogs: u32, jitter: u32) -> String {
    format!(
        r#"{{ "global": {{ "duration": 3 }}, "tasks": {{
            "beat": {{ "loop": -1, "run": {{ "mean": 2000, "sd": {jitter} }},
                       "timer": {{ "ref": "unique", "period": 16000 }} }},
            "client": {{ "instance": 2, "loop": -1, "run": {{ "mean": 700, "sd": {jitter} }}, "sleep": 3000 }},
            "hog": {{ "instance": {hogs}, "loop": -1, "run": 5000 }} }} }}"#
    )
}

fn simulate(folder: &Path, kernel: &str, hogs: u32, seed: &str, trace: &str) {
    std::fs::write(folder.join("load.json"), load(hogs, 200)).expect("written");
    ok(folder, &["sim", "-k", kernel, "-m", "2", "-w", "load.json", "--seed", seed, "-o", trace]);
}

/// The document, and the exit status.
fn diff(folder: &Path, args: &[&str]) -> (Value, i32) {
    let out = schedlab(folder, &[&["diff", "--json"], args].concat());
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    (serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {text}")), out.status.code().expect("ended"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {document}"))
}

/// Sets of three runs in the folders `few`, `same` and `more`.
fn sets() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (set, hogs, seeds) in [("few", 2, ["1", "2", "3"]), ("same", 2, ["4", "5", "6"]), ("more", 4, ["7", "8", "9"])]
    {
        std::fs::create_dir(folder.path().join(set)).expect("created");
        for seed in seeds {
            simulate(folder.path(), "linux-6.12", hogs, seed, &format!("{set}/{seed}.arrows"));
        }
    }
    folder
}

#[test]
fn sets_of_runs_differ_beyond_their_scatter_or_not() {
    let folder = sets();
    let folder = folder.path();
    let (same, status) = diff(folder, &["few", "same", "--fail-if", "wait > +25%"]);
    assert_eq!(
        (&same["intervals"], &same["changes"], status),
        (&"runs".into(), &Value::Array(Vec::new()), 0),
        "{same}"
    );
    let (worse, status) =
        diff(folder, &["few", "more", "--fail-if", "wait > +25%", "--fail-if", "beat: wait > +1000000%"]);
    assert_eq!(status, 1);
    assert_eq!((&worse["bounds"][0]["ruling"], &worse["bounds"][1]["ruling"]), (&"exceeded".into(), &"held".into()));
    // Two hogs more on two CPUs: what computed without end waits for twice as many.
    let wait = &row(&worse, "all tasks")["figures"]["wait_us"];
    let [low, high] = [0, 1].map(|end| number(&wait["interval"][end]));
    assert!(low < number(&wait["change"]) && number(&wait["change"]) < high && low > 0.5, "{wait}");
    assert!(number(&wait["effect_size"]) > 3.0 && wait["direction"] == "worse");
    // The worst comes first, and the number of hogs differs: they are one row.
    let changes = worse["changes"].as_array().expect("changes");
    let sizes: Vec<f64> = changes
        .iter()
        .take_while(|change| change["direction"] == "worse")
        .filter(|change| !change["interval"].is_null())
        .map(|change| number(&change["interval"][0]))
        .collect();
    assert!(sizes.len() > 2 && sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    let names = |key: &str| worse[key].as_array().expect("a list").len();
    assert_eq!((names("only_a"), names("only_b")), (0, 2), "hog-2 and hog-3: {worse}");
    let roles = diff(folder, &["few", "more", "--by", "role"]).0;
    let hogs = row(&roles, "hog");
    assert_eq!(hogs["tasks"], serde_json::json!([2.0, 4.0]));
    assert_eq!((&roles["only_a"], &roles["only_b"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[test]
fn a_direct_measurement_is_what_it_compares() {
    let folder = sets();
    let folder = folder.path();
    let named = ["--a", "few/1.arrows", "few/2.arrows", "--b", "more/7.arrows", "more/8.arrows"];
    let (document, status) = diff(folder, &named);
    assert_eq!(status, 0, "without bounds nothing fails");
    let wait = |trace: &str, name: &str| -> f64 {
        let stats: Value = serde_json::from_str(&ok(folder, &["stats", trace, "--json"])).expect("JSON");
        let tasks = stats["tasks"].as_array().expect("tasks").iter();
        tasks.filter(|task| task["name"] == name).map(|task| number(&task["wait_us"])).sum()
    };
    for name in ["beat", "client-0", "client-1"] {
        let figure = &row(&document, name)["figures"]["wait_us"];
        let (a, b) = (
            wait("few/1.arrows", name) + wait("few/2.arrows", name),
            wait("more/7.arrows", name) + wait("more/8.arrows", name),
        );
        assert!(
            (number(&figure["a"]) - a / 2.0).abs() < 0.01 && (number(&figure["b"]) - b / 2.0).abs() < 0.01,
            "{figure}"
        );
    }
}

#[test]
fn one_trace_each_is_judged_by_blocks_of_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    simulate(folder, "linux-6.12", 2, "1", "a.arrows");
    simulate(folder, "linux-6.12", 4, "2", "b.arrows");
    let (document, status) = diff(folder, &["a.arrows", "b.arrows", "--fail-if", "wait > +10%"]);
    assert_eq!((&document["intervals"], &document["blocks"], status), (&"blocks".into(), &10.into(), 1));
    let (same, status) = diff(folder, &["a.arrows", "a.arrows", "--fail-if", "wait > +10%", "--fail-if", "p99 > +1ms"]);
    assert_eq!((&same["changes"], status), (&Value::Array(Vec::new()), 0), "{same}");
    for row in same["rows"].as_array().expect("rows") {
        for figure in row["figures"].as_object().expect("figures").values() {
            assert_eq!((number(&figure["change"]), number(&figure["a"])), (0.0, number(&figure["b"])), "{row}");
        }
    }
    // A bound at what changed is undecided: the scatter does not allow a verdict.
    let change = number(&row(&document, "all tasks")["figures"]["wait_us"]["change"]) * 100.0;
    let bound = format!("wait > {change:+.3}%");
    assert_eq!(diff(folder, &["a.arrows", "b.arrows", "--fail-if", &bound]).1, 3);
    // Blocks are parts of a whole: a second of a run has a third of its sum.
    let second = diff(folder, &["a.arrows", "b.arrows", "--per", "second"]).0;
    let of = |document: &Value| number(&row(document, "all tasks")["figures"]["run_us"]["a"]);
    assert!((of(&second) * 3.0 - of(&document)).abs() < 1.0);
    let text = ok(folder, &["diff", "a.arrows", "b.arrows"]);
    assert!(
        text.contains("blocks of time of each trace, so they do not include what differs from run to run"),
        "{text}"
    );
    assert!(text.contains("worse: ") && text.contains("only in B: hog-2 and 1 more\n"), "{text}");
}

#[test]
fn a_simulated_model_is_aligned_with_its_recording() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    simulate(folder, "linux-6.1", 2, "1", "t.arrows");
    ok(folder, &["model", "t.arrows", "-o", "w.json"]);
    ok(folder, &["sim", "-k", "linux-6.1", "-m", "2", "-w", "w.json", "-o", "s.arrows"]);
    let document = diff(folder, &["t.arrows", "s.arrows"]).0;
    assert_eq!(
        (&document["only_a"], &document["only_b"]),
        (&serde_json::json!([]), &serde_json::json!([])),
        "{document}"
    );
    assert!(number(&row(&document, "client-1")["figures"]["run_us"]["change"]).abs() < 0.01);
}

#[test]
fn bad_comparisons_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    simulate(folder, "linux-6.12", 1, "1", "a.arrows");
    std::fs::create_dir(folder.join("empty")).expect("created");
    let message = |args: &[&str]| {
        let out = schedlab(folder, &[&["diff"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        String::from_utf8(out.stderr).expect("text")
    };
    assert!(message(&["a.arrows"]).contains("<B>"));
    assert!(message(&["a.arrows", "none.arrows"]).contains("none.arrows"));
    assert!(message(&["a.arrows", "empty"]).contains("no trace is in this folder"));
    assert!(message(&["--a", "a.arrows"]).contains("--b"));
    assert!(message(&["a.arrows", "a.arrows", "--fail-if", "waits > 5%"]).contains("did you mean \"wait\""));
    assert!(message(&["a.arrows", "a.arrows", "--fail-if", "wait"]).contains("neither"));
    let late = message(&["a.arrows", "a.arrows", "--from", "100s", "--fail-if", "wait > +10%"]);
    assert!(late.contains("a.arrows: --from: the trace ends before that"), "{late}");
}
