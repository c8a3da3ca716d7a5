//! Bugs of "A Decade of Wasted Cores" end to end: the check finds each, and is silent with its repair.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn schedlab(folder: &Path, args: &[&str]) -> (Option<i32>, Vec<u8>) {
    let out = Command::new(env!("CARGO_BIN_EXE_schedlab")).current_dir(folder).args(args).output();
    let out = out.expect("the binary runs");
    (out.status.code(), if out.stdout.is_empty() { out.stderr } else { out.stdout })
}

/// Simulates a load under 4.1 with some tunables; what the check then says, and its exit status.
fn check(args: &str, set: &[&str]) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sim: Vec<_> = "sim -k linux-4.1 -o t.arrows".split(' ').chain(args.split(' ')).collect();
    sim.extend(set.iter().flat_map(|set| ["--set", *set]));
    let (status, text) = schedlab(folder.path(), &sim);
    assert_eq!(status, Some(0), "{}", String::from_utf8_lossy(&text));
    let (status, text) = schedlab(folder.path(), &["check", "t.arrows", "--json"]);
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

/// wc-02. Sixteen threads that may run on nodes 1 and 2, two hops apart, stay on the CPUs of node 1.
#[test]
fn group_construction() {
    let run = |set: &[&str]| check("-m bulldozer-64 -w nas:ep,cpus=8-23 -d 2s", set);
    let (status, found) = run(&[]);
    assert_eq!((status, idle(&found)), (Some(1), (16..24).collect()));
    is_silent(&run(&["fix.group_construction=on"]));
}

/// wc-04. A CPU goes and comes back; threads that begin later stay on the node of the one that made them. On two nodes:
/// where there are more, the bug of wc-02 keeps single CPUs idle for a while all the same.
#[test]
fn missing_domains() {
    let run = |set: &[&str]| check("-m z800 -w nas:ep,threads=12,replug=11 -d 2s", set);
    let (status, found) = run(&[]);
    assert_eq!((status, idle(&found)), (Some(1), (6..12).collect()));
    is_silent(&run(&["fix.missing_domains=on"]));
}
