//! `schedlab check` through the command line: its findings, exit status and JSON.

use crate::support::schedlab;
use schedlab_base::{AffinityRecord, CpuPlace, Event, Meta, NameRecord, Payload, Sink, TaskState};
use serde_json::Value;
use std::path::Path;

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let out = schedlab(folder, args);
    (out.status.code(), String::from_utf8(out.stdout).expect("text") + &String::from_utf8_lossy(&out.stderr))
}

const MS: u64 = 1_000_000;

/// CPU 0 runs task 1. Task 2 waits there from 50 ms until 200 ms, when CPU 1, which has been idle, runs it.
fn trace(folder: &Path, name: &str, affinity: Option<&str>) {
    let place = |cpu| CpuPlace { cpu, core: cpu, capacity: 1024, ..CpuPlace::default() };
    let meta = Meta {
        source: "sim".into(),
        kernel: "by hand".into(),
        span: Some((0, 300 * MS)),
        cpus: (0..2).map(place).collect(),
        ..Meta::default()
    };
    let mut writer = schedlab_trace::Writer::create(folder.join(name), &meta).expect("created");
    for (tid, comm) in [(1, "runner"), (2, "waiter")] {
        writer.name(&NameRecord { time: 0, tid, tgid: Some(tid), comm: comm.into(), cgroup: None });
        if let Some(cpus) = affinity {
            writer.affinity(&AffinityRecord { time: 0, tid, cpus: cpus.parse().expect("a list") });
        }
    }
    let wake = |ms, tid| Event { time: ms * MS, cpu: 0, what: Payload::Wakeup { tid, prio: 120, target: 0 } };
    let switch = |ms, cpu, next| {
        let prev_state = TaskState::Runnable;
        let what = Payload::Switch { prev: 0, prev_prio: 120, prev_state, next, next_prio: 120 };
        Event { time: ms * MS, cpu, what }
    };
    let migrate = Event { time: 200 * MS, cpu: 1, what: Payload::Migrate { tid: 2, prio: 120, from: 0, to: 1 } };
    writer.events(&[wake(0, 1), switch(0, 0, 1), wake(50, 2), migrate, switch(200, 1, 2)]);
    writer.finish().expect("written");
}

#[test]
fn an_idle_cpu_beside_a_waiting_task_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    trace(folder.path(), "t.arrows", None);
    let (status, text) = run(folder.path(), &["check", "t.arrows"]);
    assert_eq!(status, Some(1), "{text}");
    for part in ["150.000 ms", "cpu1", "cpu0", "waiter 2", "mc", "affinity unknown for 2 of 2 tasks", "verdict: fail"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (status, text) = run(folder.path(), &["check", "t.arrows", "--json"]);
    let value: Value = serde_json::from_str(&text).expect("one document");
    let v = &value["violations"][0];
    assert_eq!(
        (status, value["verdict"].as_str(), value["wasted_cpu_us"].as_f64()),
        (Some(1), Some("fail"), Some(150_000.0))
    );
    assert_eq!((v["start_us"].as_f64(), v["duration_us"].as_f64()), (Some(50_000.0), Some(150_000.0)));
    assert_eq!((v["idle_cpu"].as_u64(), v["busy_cpu"].as_u64(), v["level"].as_str()), (Some(1), Some(0), Some("mc")));
    assert_eq!((v["waiting"][0]["tid"].as_i64(), v["waiting"][0]["name"].as_str()), (Some(2), Some("waiter")));
}

#[test]
fn thresholds_bounds_and_affinity_decide() {
    let folder = tempfile::tempdir().expect("a folder");
    trace(folder.path(), "t.arrows", Some("0-1"));
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--threshold", "150ms"], 0, "verdict: pass"),
        (&["--threshold", "149ms"], 1, "verdict: fail"),
        (&["--max-wasted", "150ms"], 0, "no more than 150.000 ms"),
        (&["--max-wasted", "149ms"], 1, "more than 149.000 ms"),
        (&["--threshold", "5"], 2, "unit"),
    ];
    for (args, expected, part) in cases {
        let (status, text) = run(folder.path(), &[&["check", "t.arrows"], args].concat());
        assert_eq!(status, Some(expected), "{args:?}: {text}");
        assert!(text.contains(part) && !text.contains("unknown"), "{args:?}: {text}");
    }
    trace(folder.path(), "pinned.arrows", Some("0"));
    let (status, text) = run(folder.path(), &["check", "pinned.arrows"]);
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(run(folder.path(), &["check", "missing.arrows"]).0, Some(2));
}

#[test]
fn simulations_record_affinities_and_on_request_examined_cpus() {
    let folder = tempfile::tempdir().expect("a folder");
    // Five hogs are bound to two of four CPUs, so no scheduler could do better.
    let load = r#"{ "tasks": { "hog": { "instance": 5, "cpus": [0, 1], "run": 1000 } } }"#;
    std::fs::write(folder.path().join("w.json"), load).expect("written");
    let sim = ["sim", "-k", "linux-6.12", "-m", "4", "-w", "w.json", "-d", "1s", "--trace-queues", "-o", "t.arrows"];
    let (status, text) = run(folder.path(), &sim);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = run(folder.path(), &["check", "t.arrows"]);
    assert!(status == Some(0) && !text.contains("unknown"), "{text}");
    let trace = schedlab_trace::read_all(folder.path().join("t.arrows")).expect("it reads");
    assert!(trace.events.iter().any(|e| matches!(e.what, Payload::Queue { length: 3, .. })));
    assert!(trace.events.iter().any(|e| matches!(e.what, Payload::Considered { .. })));
}
