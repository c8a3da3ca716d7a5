//! `schedlab run --keep`: an expectation that does not hold leads to the place in a trace that explains it.

use crate::support::{ok, schedlab};

/// Three hogs share a CPU: they wait for each other, and the CPU is busy.
const WAITING: &str = r#"
id = "wait"
title = "Three hogs on a CPU"
machine = "up"
duration = "200ms"

[workload]
preset = "li:tasks=3"

[[kernels]]
name = "eevdf"
kernel = "linux-6.12"

[metrics.wait_s]
value = "sum(wait_s['li-*'])"

[metrics.run_s]
value = "sum(run_s)"

[[expectations]]
figure = "nobody waits"
metric = "wait_s"
relation = "<="
bound = 0.01

[[expectations]]
figure = "the CPU is busy"
metric = "run_s"
relation = ">="
bound = 0.1
"#;

#[test]
fn a_failed_expectation_leads_to_the_place_that_explains_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("e.toml"), WAITING).unwrap();
    let out = schedlab(path, &["run", "e.toml", "--json", "--keep", "traces", "-o", "report.html"]);
    assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stderr));
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = &document["experiments"][0]["expectations"];
    assert!(rows[1].get("look").is_none(), "what holds needs no explanation");
    let look = &rows[0]["look"];
    let trace = look["trace"].as_str().unwrap();
    assert_eq!(look["traces"], serde_json::json!([trace]));
    assert!(path.join(trace).is_file() && trace.starts_with("traces/wait-eevdf"), "{look}");
    // The place is the longest wait that `delays` finds in the trace.
    let delays: serde_json::Value =
        serde_json::from_str(&ok(path, &["delays", trace, "--worst", "1", "--json"])).unwrap();
    let wait = &delays["waits"][0];
    let (start, duration) = (wait["start_us"].as_f64().unwrap(), wait["duration_us"].as_f64().unwrap());
    let (tid, at) = look["pick"].as_str().unwrap().split_once('@').unwrap();
    let at: f64 = at.strip_suffix("us").unwrap().parse().unwrap();
    assert_eq!(tid, format!("task:{}", wait["tid"]));
    assert!(start <= at && at <= start + duration, "{at} is not within {start} and {duration} more");
    let (from, to) = (look["from_ns"].as_f64().unwrap() / 1e3, look["to_ns"].as_f64().unwrap() / 1e3);
    assert!(from <= start.max(1.0) && start + duration <= to + 1.0, "{look}");
    // The command is one that runs, and the page has the same place.
    let words = shlex::split(look["command"].as_str().unwrap()).unwrap();
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let written = schedlab(path, &[&words[..], &["-o", "own.html"]].concat());
    let report = std::fs::read_to_string(path.join("report.html")).unwrap();
    assert!(report.contains(look["command"].as_str().unwrap()), "the report shows the command");
    if written.status.code() == Some(4) {
        return assert!(look["page"].is_null(), "built without the page");
    }
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let link = look["page"].as_str().unwrap();
    assert!(report.contains(&format!("href=\"{link}\"")) && !link.starts_with('/'), "{link}");
    let page = std::fs::read_to_string(path.join(link)).unwrap();
    assert!(page.contains("\"pick\":{\"by\":\"task\""), "the page opens there");
    // Nothing is overwritten, and what holds keeps nothing.
    let again = schedlab(path, &["run", "e.toml", "--keep", "traces"]);
    assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
    std::fs::write(path.join("e.toml"), WAITING.replace("0.01", "9")).unwrap();
    let out = schedlab(path, &["run", "e.toml", "--keep", "none"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(std::fs::read_dir(path.join("none")).unwrap().count(), 0);
}
