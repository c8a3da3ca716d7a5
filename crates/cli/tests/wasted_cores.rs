//! The four bugs of "A Decade of Wasted Cores" end to end: the check finds each, and is silent with its repair.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn schedlab(folder: &Path, args: &[&str]) -> (Option<i32>, Vec<u8>) {
    let out = Command::new(env!("CARGO_BIN_EXE_schedlab")).current_dir(folder).args(args).output();
    let out = out.expect("the binary runs");
    (out.status.code(), if out.stdout.is_empty() { out.stderr } else { out.stdout })
}

/// Simulates a load under 4.1 with some tunables; what the check then says, and its exit status.
fn check(args: &str, set: &[&str], threshold: &str, files: &[(&str, &str)]) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let mut sim: Vec<_> = "sim -k linux-4.1 -o t.arrows".split(' ').chain(args.split(' ')).collect();
    sim.extend(set.iter().flat_map(|set| ["--set", *set]));
    let (status, text) = schedlab(folder.path(), &sim);
    assert_eq!(status, Some(0), "{}", String::from_utf8_lossy(&text));
    let (status, text) = schedlab(folder.path(), &["check", "t.arrows", "--json", "--threshold", threshold]);
    (status, serde_json::from_slice(&text).expect("one document"))
}

/// The CPUs that were idle too long.
fn idle(found: &Value) -> Vec<u64> {
    let all = found["violations"].as_array().expect("a list");
    let mut cpus: Vec<_> = all.iter().map(|v| v["idle_cpu"].as_u64().expect("a CPU")).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn is_silent((status, found): &(Option<i32>, Value)) {
    assert_eq!((*status, found["verdict"].as_str(), idle(found).len()), (Some(0), Some("pass"), 0), "{found}");
}

/// wc-01. A hog alone in its session weighs as much as the twelve of another together: beside it three CPUs stay idle.
#[test]
fn group_imbalance() {
    let load = r#"{ "global": { "x-start": "threads" }, "tasks": {
        "alone": { "x-session": 1, "cpus": [0], "run": 1000000 },
        "many": { "instance": 12, "x-session": 2, "loop": 1, "phases": {
            "bound": { "cpus": [4, 5, 6, 7], "run": 5000 },
            "free": { "cpus": [0, 1, 2, 3, 4, 5, 6, 7], "loop": -1, "run": 1000000 } } } } }"#;
    let run = |set: &[&str]| check("-m 2x4 -w w.json -d 2s", set, "100ms", &[("w.json", load)]);
    let (status, found) = run(&[]);
    assert_eq!((status, idle(&found)), (Some(1), vec![1, 2, 3]));
    is_silent(&run(&["fix.group_imbalance=on"]));
}

/// wc-02. Sixteen threads that may run on nodes 1 and 2, two hops apart, stay on the CPUs of node 1.
#[test]
fn group_construction() {
    let run = |set: &[&str]| check("-m bulldozer-64 -w nas:ep,cpus=8-23 -d 2s", set, "100ms", &[]);
    let (status, found) = run(&[]);
    assert_eq!((status, idle(&found)), (Some(1), (16..24).collect()));
    is_silent(&run(&["fix.group_construction=on"]));
}

/// wc-03. Short-lived threads push workers aside, who wake on their node, busy or not, and wait beside idle nodes until
/// balancing comes by: for 10 to 20 ms each time, so that a finer threshold than the usual one is what shows it. For six
/// seconds: how often it happens in two depends much on the seed.
#[test]
fn overload_on_wakeup() {
    let load = r#"{ "tasks": {
        "worker": { "instance": 64, "run": { "mean": 5000, "sd": 1000 }, "sleep": { "mean": 100, "sd": 50 } },
        "short": { "instance": 16, "sleep": { "mean": 40000, "sd": 20000 }, "run": { "mean": 2000, "sd": 1000 } } } }"#;
    let run = |set: &[&str]| {
        let set = [&["sched_autogroup_enabled=off"], set].concat();
        check("-m bulldozer-64 -w w.json -d 6s", &set, "10ms", &[("w.json", load)])
    };
    let (status, found) = run(&[]);
    assert_eq!(status, Some(1));
    assert!(idle(&found).len() >= 10, "{found}");
    let fixed = run(&["fix.overload_on_wakeup=on"]);
    is_silent(&fixed);
    let wasted = |found: &Value| found["wasted_cpu_us"].as_f64().expect("a time");
    assert!(wasted(&fixed.1) < 0.8 * wasted(&found), "{} {}", wasted(&fixed.1), wasted(&found));
}

/// wc-04. A CPU goes and comes back; threads that begin later stay on the node of the one that made them. On two nodes:
/// where some are two hops apart, the bug of wc-02 keeps single CPUs idle for up to 0.4 s all the same (see the notes of
/// wc-04).
#[test]
fn missing_domains() {
    let run = |set: &[&str]| check("-m z800 -w nas:ep,threads=12,replug=11 -d 2s", set, "100ms", &[]);
    let (status, found) = run(&[]);
    assert_eq!((status, idle(&found)), (Some(1), (6..12).collect()));
    is_silent(&run(&["fix.missing_domains=on"]));
}

/// The same on a ring of four nodes, but not where each node is known to be a package of its own.
#[test]
fn missing_domains_take_a_package_of_several_nodes() {
    let ring = "sockets = 4\ncores = 4\nthreads = 1\n\
        distances = [[10, 20, 30, 20], [20, 10, 20, 30], [30, 20, 10, 20], [20, 30, 20, 10]]\n";
    let apart = format!("{ring}nodes_per_package = 1\n");
    let run = |machine: &str, set: &[&str]| {
        check("-m m.toml -w nas:ep,threads=16,replug=15 -d 2s", set, "100ms", &[("m.toml", machine)])
    };
    let (status, found) = run(ring, &[]);
    assert_eq!((status, idle(&found)), (Some(1), (4..16).collect()));
    is_silent(&run(ring, &["fix.missing_domains=on"]));
    is_silent(&run(&apart, &[]));
}
