//! `schedlab check --live` on the running kernel. What else runs on this machine decides whether a CPU is idle, so
//! these tests ask for what holds in any case. Violations made on purpose are tested in guests
//! (crates/watch/tests/guest.rs).

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SCHEDLAB: &str = env!("CARGO_BIN_EXE_schedlab");

fn check(args: &str) -> Command {
    let mut command = Command::new(SCHEDLAB);
    command.args(["check", "--live"]).args(args.split_whitespace()).stdin(Stdio::null());
    command
}

/// The ids of all eBPF programs of this name, as the kernel lists those that a process holds.
fn programs_of(process: &Child) -> usize {
    let dir = format!("/proc/{}/fdinfo", process.id());
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter(|file| fs::read_to_string(file.path()).is_ok_and(|text| text.contains("prog_id"))).count()
}

#[test]
fn it_ends_after_its_time_and_says_what_it_did() {
    let out = check("--for 1500ms --every 200ms --watch 20ms --by proc --json").output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect();
    let summary = &lines.last().expect("a summary")["summary"];
    let violations = summary["violations"].as_u64().unwrap();
    assert_eq!((lines.len() as u64, summary["by"].as_str()), (violations + 1, Some("proc")), "{text}");
    assert_eq!(out.status.code(), Some(i32::from(violations > 0)), "{text}");
    assert!(summary["looks"].as_u64().unwrap() >= 1, "{text}");
}

#[test]
fn the_first_look_is_at_the_start_and_a_run_without_one_finds_nothing_out() {
    for (length, looks, undecided) in [("500ms", 1, false), ("1ns", 0, true)] {
        let out = check(&format!("--for {length} --every 1s --watch 20ms --by proc --json")).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().expect("a summary")).expect("a JSON object");
        assert_eq!(last["summary"]["looks"].as_u64().unwrap() >= 1, looks >= 1, "{text}");
        assert_eq!(out.status.code() == Some(3), undecided, "{text}");
    }
}

#[test]
fn ctrl_c_ends_it_and_the_metrics_are_served_until_then() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut child = check(&format!("--every 100ms --watch 10ms --metrics {address}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("Ctrl-C ends it") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended");
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).unwrap();
    assert!(metrics.contains("schedlab_check_looks_total") && metrics.contains("schedlab_check_info{by="), "{metrics}");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    // The signal may come before the first look.
    assert!(matches!(status.code(), Some(0 | 1 | 3)), "{status:?}");
}

#[test]
fn a_killed_one_leaves_no_program() {
    let mut child = check("--by ebpf").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    lines.read_line(&mut said).unwrap();
    if !said.contains("by eBPF") {
        assert_eq!(child.wait().unwrap().code(), Some(4), "{said}");
        eprintln!("skipped: {said}");
        return;
    }
    // The programs are this process's alone: no attachment and no file in a BPF file system keeps them.
    assert!(programs_of(&child) > 0);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let deadline = Instant::now() + Duration::from_secs(10);
    while Path::new("/proc").join(child.id().to_string()).exists() {
        assert!(Instant::now() < deadline);
    }
    let pinned = fs::read_dir("/sys/fs/bpf").into_iter().flatten().flatten();
    assert!(pinned.into_iter().all(|file| !file.file_name().to_string_lossy().contains("schedlab")));
}
