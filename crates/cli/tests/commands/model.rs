//! `schedlab model` through the command line. A model of a simulated workload demands the same CPU time when it is
//! simulated again.

use crate::support::{ok, schedlab};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn json(folder: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&ok(folder, args)).expect("one JSON document")
}

/// The CPU time of each task in us, under the task's name in the model: its name and tid.
fn runs(statistics: &Value, with_tid: bool) -> BTreeMap<String, f64> {
    let name = |t: &Value| {
        let name = t["name"].as_str().expect("a name");
        // A task forked from a template already has the number of an instance in its name.
        if with_tid { format!("{name}-{}", t["tid"]) } else { name.to_owned() }
    };
    let tasks = statistics["tasks"].as_array().expect("tasks");
    tasks.iter().map(|t| (name(t), t["run_us"].as_f64().expect("a time"))).collect()
}

const SERVER: &str = r#"{
    "global": { "duration": 1 },
    "tasks": {
        "client": { "instance": 3, "loop": -1, "run": { "mean": 700, "sd": 200 }, "sem_post": "ask", "sleep": 1500 },
        "server": { "instance": 2, "loop": -1, "sem_wait": "ask", "run": { "mean": 400, "sd": 150 } },
        "beat":   { "loop": -1, "run": 2300, "timer": { "ref": "unique", "period": 16000 } },
        "make":   { "loop": 20, "run": 1000, "fork": "job", "sleep": 20000 },
        "job":    { "instance": 0, "loop": 3, "priority": 5, "run": 1700, "sleep": 900 },
        "batch":  { "loop": -1, "priority": 10, "run": 1000 }
    }
}"#;

#[test]
fn a_model_demands_the_recorded_cpu_time_under_any_kernel() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    std::fs::write(folder.join("server.json"), SERVER).expect("written");
    let load = ["--machine", "4", "--workload", "server.json", "--json", "-o", "t.arrows"];
    let recorded = runs(&json(folder, &[&["sim", "--kernel", "linux-6.1"], &load[..]].concat()), true);
    let report = json(folder, &["model", "t.arrows", "-o", "model.json", "--json"]);
    assert_eq!(report["report"]["left_out"], 0);
    assert!(report["report"]["waits"].as_u64().expect("a number") > 100);
    for (kernel, machine) in [("linux-6.12", "4"), ("linux-2.6.32", "2x4"), ("linux-2.6.11", "up")] {
        let again = ["sim", "--kernel", kernel, "--machine", machine, "--workload", "model.json", "--json"];
        let simulated = runs(&json(folder, &again), false);
        assert_eq!(recorded.len(), simulated.len());
        for (task, recorded) in &recorded {
            let forked = format!("{task}-0");
            let simulated = simulated.get(task).or_else(|| simulated.get(&forked)).copied();
            let simulated = simulated.unwrap_or_else(|| panic!("{task} is not simulated"));
            let off = (simulated - recorded).abs();
            assert!(
                off <= (recorded * 0.01).max(1.0),
                "{task} under {kernel}: {recorded} us, simulated {simulated} us"
            );
        }
    }
}

#[test]
fn a_model_of_a_model_is_the_same_load() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    let sim = ["sim", "--kernel", "linux-6.12", "--machine", "2", "--costs", "none"];
    let first = ["--workload", "messaging:groups=1,fds=4,loops=20", "-o", "a.arrows"];
    ok(folder, &[&sim[..], &first].concat());
    ok(folder, &["model", "a.arrows", "-o", "a.json"]);
    ok(folder, &[&sim[..], &["--workload", "a.json", "-o", "b.arrows"]].concat());
    ok(folder, &["model", "b.arrows", "-o", "b.json"]);
    let demand = |file: &str| {
        let report = json(folder, &["model", file, "-o", "x.json", "--force", "--json"]);
        report["report"]["demand_ns"].as_f64().expect("a time")
    };
    let (a, b) = (demand("a.arrows"), demand("b.arrows"));
    assert!((a - b).abs() <= a * 0.01, "{a} {b}");
}

#[test]
fn existing_outputs_and_bad_inputs_are_refused() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    std::fs::write(folder.join("w.json"), "mine").expect("written");
    std::fs::write(folder.join("bad.arrows"), "no trace at all").expect("written");
    let message = |args: &[&str]| {
        let out = schedlab(folder, args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        String::from_utf8(out.stderr).expect("text")
    };
    assert!(message(&["model", "bad.arrows", "-o", "w.json"]).contains("--force"));
    assert!(message(&["model", "bad.arrows", "-o", "x.json"]).contains("bad.arrows"));
    assert!(message(&["model", "none.arrows"]).contains("none.arrows"));
    assert!(message(&["model", "bad.arrows", "--min-run", "5"]).contains("no unit"));
    assert!(message(&["model", "bad.arrows", "--tasks", "0"]).contains("--tasks"));
    assert_eq!(std::fs::read_to_string(folder.join("w.json")).expect("still there"), "mine");
    let sim = ["sim", "--kernel", "linux-6.12", "--workload", "li:tasks=2", "--duration", "50ms", "-o", "t.arrows"];
    ok(folder, &sim);
    assert!(message(&["model", "t.arrows", "--min-run", "1h"]).contains("no task ran long enough"));
    for unlucky in [&["--to", "1us"][..], &["--task", "li-1", "--to", "2ms"]] {
        let said = message(&[&["model", "t.arrows"], unlucky].concat());
        assert!(said.contains("no task that was selected ran"), "{said}");
    }
    // Without -o the workload itself is printed.
    assert!(json(folder, &["model", "t.arrows", "--tasks", "1"])["tasks"].as_object().expect("tasks").len() == 1);
}

#[test]
fn a_model_of_messages_blocks_as_often_as_was_recorded() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    let load = "messaging:groups=1,loops=5";
    ok(folder, &["sim", "-k", "linux-6.12", "-m", "dual", "-w", load, "-o", "t.arrows", "--costs", "none"]);
    let validation = &json(folder, &["model", "t.arrows", "--validate", "--json"])["validation"];
    // Without the messages that no wake-up shows it would be a tenth.
    let slices = |side: &str| validation[side]["slices"].as_f64().expect("a number");
    let (recorded, simulated) = (slices("recorded"), slices("simulated"));
    assert!((0.5..1.5).contains(&(simulated / recorded)), "{recorded} {simulated}");
}

#[test]
fn a_model_validated_as_recorded_says_how_far_to_trust_it() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    std::fs::write(folder.join("server.json"), SERVER).expect("written");
    ok(folder, &["sim", "-k", "linux-6.1", "-m", "2", "-w", "server.json", "-o", "t.arrows"]);
    let validated = |more: &[&str]| {
        let args = ["model", "t.arrows", "-o", "x.json", "--force", "--validate", "--json"];
        json(folder, &[&args[..], more].concat())["validation"].clone()
    };
    let same = validated(&[]);
    assert_eq!((&same["kernel"], &same["machine"], &same["seeds"]), (&"linux-6.1".into(), &"2".into(), &3.into()));
    let (run, again) = (same["recorded"]["run_us"].as_f64(), same["simulated"]["run_us"].as_f64());
    let (run, again) = (run.expect("a time"), again.expect("a time"));
    assert!((run - again).abs() < run * 0.01, "{run} {again}");
    // The scheduler that was recorded repeats the waits; another one does not.
    let error = |validation: &Value| validation["errors"]["task_wait_median"].as_f64().expect("a part");
    let other = validated(&["--kernel", "linux-2.6.11", "--seeds", "2"]);
    assert_eq!((&other["kernel"], &other["seeds"]), (&"linux-2.6.11".into(), &2.into()));
    assert!(error(&same) < 0.2 && error(&other) > 3.0 * error(&same), "{} {}", error(&same), error(&other));
    let text = ok(folder, &["model", "t.arrows", "--validate", "--seeds", "1"]);
    assert!(text.contains("as recorded: linux-6.1 on 2, 1 seed\n") && text.contains("how far to trust it: "), "{text}");
    // The trace is read once, so that it may come through a pipe.
    let trace = std::fs::File::open(folder.join("t.arrows")).expect("the trace");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let copying = std::thread::spawn(move || std::io::copy(&mut &trace, &mut writer).expect("copied"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_schedlab"));
    let piped = command.args(["model", "/dev/stdin", "--validate", "--seeds", "1"]).stdin(reader).output();
    let piped = piped.expect("schedlab runs");
    drop(command);
    copying.join().expect("no panic");
    assert_eq!(String::from_utf8(piped.stdout).expect("text"), text);
    let refused = schedlab(folder, &["model", "t.arrows", "--seeds", "2"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
