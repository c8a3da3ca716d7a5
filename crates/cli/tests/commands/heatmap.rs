//! `schedlab heatmap` through the command line: pictures written, refused and not overwritten.

use crate::support::schedlab;
use serde_json::Value;
use std::path::Path;

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let out = schedlab(folder, args);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// Five hogs bound to two of four CPUs, traced with and without the scheduler's queues.
fn traces() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let load = r#"{ "tasks": { "hog": { "instance": 5, "cpus": [0, 1], "run": 1000 } } }"#;
    std::fs::write(folder.path().join("w.json"), load).expect("written");
    let sim = ["sim", "-k", "linux-6.12", "-m", "2x2", "-w", "w.json", "-d", "1s", "--costs", "none"];
    for more in [&["-o", "t.arrows", "--trace-queues"][..], &["-o", "plain.arrows"]] {
        let (status, _, message) = run(folder.path(), &[&sim[..], more].concat());
        assert_eq!(status, Some(0), "{message}");
    }
    folder
}

#[test]
fn pictures_are_written_and_not_overwritten() {
    let folder = traces();
    for (file, magic) in [("q.png", &b"\x89PNG\r\n\x1a\n"[..]), ("q.svg", b"<svg xmlns=")] {
        let (status, _, message) = run(folder.path(), &["heatmap", "t.arrows", "-o", file]);
        assert_eq!(status, Some(0), "{message}");
        let picture = std::fs::read(folder.path().join(file)).expect("it is there");
        assert!(picture.starts_with(magic), "{file}");
        let (status, _, message) = run(folder.path(), &["heatmap", "t.arrows", "-o", file]);
        assert!(status == Some(2) && message.contains("--force"), "{message}");
        let (status, _, _) = run(folder.path(), &["heatmap", "t.arrows", "-o", file, "--force", "--to", "100ms"]);
        assert_eq!(status, Some(0));
        assert_ne!(std::fs::read(folder.path().join(file)).expect("it is there"), picture);
    }
}

#[test]
fn recorded_and_derived_queues_agree() {
    let folder = traces();
    let seen = |trace: &str, more: &[&str]| -> Value {
        let args = [&["heatmap", trace, "-o", "q.svg", "--force", "--json"], more].concat();
        let (status, text, message) = run(folder.path(), &args);
        assert_eq!(status, Some(0), "{message}");
        serde_json::from_str(&text).expect("one document")
    };
    let (recorded, worked_out) = (seen("t.arrows", &[]), seen("plain.arrows", &[]));
    assert_eq!((recorded["told"].as_bool(), worked_out["told"].as_bool()), (Some(true), Some(false)));
    for heat in [&recorded, &worked_out] {
        assert!(heat["highest"].as_f64() >= Some(3.0), "{heat}");
        assert_eq!((&heat["highest"], heat["end_us"].as_f64()), (&recorded["highest"], Some(1e6)));
        assert_eq!((heat["rows"].as_u64(), heat["columns"].as_u64()), (Some(4), Some(900)));
    }
    let looks = seen("t.arrows", &["--what", "considered"]);
    let all =
        |heat: &Value| heat["looks"].as_object().expect("by reason").values().filter_map(Value::as_u64).sum::<u64>();
    assert!(all(&looks) > 0, "{looks}");
    let of_one = seen("t.arrows", &["--what", "considered", "--cpu", "0", "--why", "newidle,periodic,nohz"]);
    assert!(all(&of_one) <= all(&looks), "{of_one}");
    assert!(seen("t.arrows", &["--what", "load"])["highest"].as_f64() > Some(0.0));
}

#[test]
fn the_numbers_are_those_of_the_picture() {
    let folder = traces();
    let (status, text, message) = run(folder.path(), &["heatmap", "t.arrows", "--json"]);
    assert_eq!(status, Some(0), "{message}");
    let heat: Value = serde_json::from_str(&text).expect("one document");
    let rows = heat["cells"].as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    for (cpu, row) in rows.iter().enumerate() {
        assert_eq!((&row["cpus"], row["node"].as_u64()), (&serde_json::json!([cpu]), Some(0)), "CPU {cpu}");
        let values: Vec<f64> = row["values"].as_array().expect("values").iter().filter_map(Value::as_f64).collect();
        assert_eq!(values.len(), 900);
        // Five hogs share CPUs 0 and 1; the others are idle.
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!(if cpu < 2 { (1.9..3.1).contains(&mean) } else { mean == 0.0 }, "CPU {cpu}: {mean}");
    }
    let (status, _, message) = run(folder.path(), &["heatmap", "t.arrows"]);
    assert!(status == Some(2) && message.contains("--output"), "{message}");
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let folder = traces();
    let cases: [(&[&str], &str); 9] = [
        (&["t.arrows", "-o", "q.jpg"], "end it in .png or .svg"),
        (&["t.arrows", "-o", "q"], "end it in .png or .svg"),
        (&["plain.arrows", "-o", "q.png", "--what", "load"], "--trace-queues"),
        (&["plain.arrows", "-o", "q.png", "--what", "considered"], "--trace-queues"),
        (&["t.arrows", "-o", "q.png", "--cpu", "0"], "--what considered"),
        (&["t.arrows", "-o", "q.png", "--what", "considered", "--cpu", "9"], "no CPU 9"),
        (&["t.arrows", "-o", "q.png", "--what", "considered", "--why", "wakes"], "did you mean \"wake\"?"),
        (&["t.arrows", "-o", "q.png", "--from", "5ms", "--to", "5ms"], "ends before it begins"),
        (&["t.arrows", "-o", "q.png", "--from", "5s"], "nothing happens in this part"),
    ];
    for (args, part) in cases {
        let (status, _, message) = run(folder.path(), &[&["heatmap"], args].concat());
        assert_eq!(status, Some(2), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
        assert!(!folder.path().join("q.png").exists(), "{args:?}");
    }
}

#[test]
fn memory_that_moves_is_in_the_trace_the_statistics_and_the_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    let load =
        r#"{ "tasks": { "far": { "cpus": [0], "run": 1000, "x-memory": { "bytes": 1073741824, "node": 1 } } } }"#;
    std::fs::write(folder.path().join("w.json"), load).expect("written");
    let sim = ["sim", "-k", "linux-6.12", "-m", "z800", "-w", "w.json", "-d", "10s", "-o", "t.arrows"];
    let (status, _, message) = run(folder.path(), &sim);
    assert_eq!(status, Some(0), "{message}");
    let json = |args: &[&str]| -> Value {
        let (status, text, message) = run(folder.path(), args);
        assert_eq!(status, Some(0), "{message}");
        serde_json::from_str(&text).expect("one document")
    };
    let stats = json(&["stats", "t.arrows", "--json"]);
    let far = &stats["tasks"][0];
    assert_eq!(far["memory"]["bytes_by_node"], serde_json::json!([1u64 << 30, 0]), "{far}");
    assert_eq!((far["memory"]["moved_bytes"].as_u64(), far["node_migrations"].as_u64()), (Some(1 << 30), Some(0)));
    assert!((1e6..5e6).contains(&far["settled_us"].as_f64().expect("it moved")), "{far}");
    let heat = json(&["heatmap", "t.arrows", "-o", "m.png", "--what", "memory", "--json"]);
    assert_eq!((heat["highest"].as_f64(), heat["told"].as_bool()), (Some(1024.0), Some(true)));
    let (status, _, message) = run(traces().path(), &["heatmap", "t.arrows", "-o", "m.png", "--what", "memory"]);
    assert!(status == Some(2) && message.contains("x-memory"), "{message}");
}
