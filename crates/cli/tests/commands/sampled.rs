//! The checker that looks now and then, fed by traces: it finds each bug of "A Decade of Wasted Cores" and is silent
//! with its fix, and it costs little.

use crate::support::schedlab;
use serde_json::Value;
use std::path::Path;

fn run(folder: &Path, args: &str) -> (Option<i32>, String) {
    let out = schedlab(folder, &args.split(' ').collect::<Vec<_>>());
    (out.status.code(), String::from_utf8(out.stdout).expect("text") + &String::from_utf8_lossy(&out.stderr))
}

/// Simulates, and looks at the trace every `every` for `watch`. Returns the exit status and the document.
fn looked(sim: &str, looks: &str, files: &[(&str, &str)]) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let (status, text) = run(folder.path(), &format!("sim -o t.arrows {sim}"));
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = run(folder.path(), &format!("check t.arrows --json {looks}"));
    (status, serde_json::from_str(&text).expect("one document"))
}

fn number(document: &Value, key: &str) -> u64 {
    document["sampled"][key].as_u64().unwrap_or_else(|| panic!("no {key}"))
}

const IMBALANCE: &str = r#"{ "global": { "x-start": "threads" }, "tasks": {
    "alone": { "x-session": 1, "cpus": [0], "run": 1000000 },
    "many": { "instance": 12, "x-session": 2, "loop": 1, "phases": {
        "bound": { "cpus": [4, 5, 6, 7], "run": 5000 },
        "free": { "cpus": [0, 1, 2, 3, 4, 5, 6, 7], "loop": -1, "run": 1000000 } } } } }"#;

/// Each bug with the load that shows it, and how often to look for how long: that of wake-ups lasts 10 to 40 ms.
const BUGS: [(&str, &str, &str); 4] = [
    ("group_imbalance", "-m 2x4 -w w.json -d 2s", "--every 500ms"),
    ("group_construction", "-m bulldozer-64 -w nas:ep,cpus=8-23 -d 2s", "--every 500ms"),
    ("overload_on_wakeup", "-m bulldozer-64 -w tpch -d 2s", "--every 20ms --watch 10ms"),
    ("missing_domains", "-m z800 -w nas:ep,threads=12,replug=11 -d 2s", "--every 500ms"),
];

#[test]
fn each_of_the_four_bugs_is_found_and_none_with_its_fix() {
    for (bug, load, looks) in BUGS {
        let files = [("w.json", IMBALANCE)];
        let (status, found) = looked(&format!("-k linux-4.1 {load}"), looks, &files);
        assert_eq!((status, found["verdict"].as_str()), (Some(1), Some("fail")), "{bug}: {found}");
        let listed = found["sampled"]["found"].as_array().expect("a list");
        assert!(!listed.is_empty() && number(&found, "exact_found") > 0, "{bug}");
        // Each look is short of the exact check, never beyond it: those CPUs were idle for a time.
        for one in listed {
            assert_eq!(one["duration_us"].as_f64(), found["sampled"]["watch_us"].as_f64(), "{bug}: {one}");
        }
        let (status, found) = looked(&format!("-k linux-4.1 {load} --set fix.{bug}=on"), looks, &files);
        assert_eq!((status, found["verdict"].as_str()), (Some(0), Some("pass")), "{bug}: {}", found["sampled"]);
    }
}

#[test]
fn tasks_bound_to_a_cpu_are_no_violation() {
    let load = r#"{ "tasks": { "hog": { "instance": 4, "cpus": [0], "run": 1000000 } } }"#;
    let (status, found) = looked("-k linux-6.12 -m 2 -w w.json -d 5s", "--every 1s", &[("w.json", load)]);
    assert_eq!((status, number(&found, "watches")), (Some(0), 0), "{found}");
}

/// A violation that lasts for `L` is found if a look falls into its first `L - M`, where `M` is the watch.
#[test]
fn every_violation_is_found_that_a_look_falls_into_in_time() {
    const MS: f64 = 1e3;
    let (_, document) = looked("-k linux-4.1 -m bulldozer-64 -w tpch -d 2s", "--every 20ms --watch 10ms --all", &[]);
    let found = document["sampled"]["found"].as_array().expect("a list");
    let mut hit = 0;
    for violation in document["violations"].as_array().expect("a list") {
        let (from, length) = (violation["start_us"].as_f64().unwrap(), violation["duration_us"].as_f64().unwrap());
        let look = ((from / (20.0 * MS)).floor() + 1.0) * 20.0 * MS;
        if look + 10.0 * MS < from + length {
            hit += 1;
            let cpu = violation["idle_cpu"].as_u64().unwrap() as u32;
            let at = |one: &&Value| (one["start_us"].as_f64().unwrap() - look).abs() < 1e-3;
            let one = found.iter().find(at).unwrap_or_else(|| panic!("nothing is found of {violation}"));
            let idle: schedlab_base::CpuList = one["idle_cpus"].as_str().unwrap().parse().unwrap();
            assert!(idle.contains(cpu), "{violation}: {one}");
        }
    }
    assert!(hit > 0, "no look falls into any");
}

/// The work at 128 CPUs, where a violation lasts all the time: the worst case. Per second these are 17 readings of 128
/// CPUs and two of the waiting tasks, whatever the machine does. docs/check-live.md says what each costs.
#[test]
fn a_machine_of_128_cpus_takes_few_operations() {
    let machine = "sockets = 8\ncores = 16\nthreads = 1\nnodes_per_package = 1\n";
    let load = r#"{ "tasks": { "hog": { "instance": 200, "cpus": [0, 1, 2, 3], "run": 1000000 },
        "free": { "instance": 2, "run": 1000000 } } }"#;
    let files = [("m.toml", machine), ("w.json", load)];
    let (_, found) = looked("-k linux-4.1 -m m.toml -w w.json -d 2500ms", "--every 1s", &files);
    let (looks, lists) = (number(&found, "looks"), number(&found, "task_lists"));
    assert_eq!(number(&found, "cpus_read"), 128 * looks);
    assert!(looks <= 2 * 17 && lists <= 2 * 17 && looks >= 2, "{}", found["sampled"]);
}

#[test]
fn times_that_make_no_sense_and_mixed_up_questions_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, part) in [
        ("check t.arrows --every 0s", "--every"),
        ("check t.arrows --watch 2s", "--watch"),
        ("check", "TRACE"),
        ("check t.arrows --live", "--live"),
        ("check --live --from 1s", "--from"),
        ("check t.arrows --by proc", "TRACE"),
        ("check --live --metrics 0.0.0.0:9750 --for 1s", "loopback"),
    ] {
        let (status, text) = run(folder.path(), args);
        assert!(status == Some(2) && text.contains(part), "{args}: {status:?} {text}");
    }
}
