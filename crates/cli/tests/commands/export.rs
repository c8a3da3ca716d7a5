//! `schedlab export`.

use crate::support::{ok, schedlab};
use std::collections::BTreeMap;
use std::path::Path;

/// A trace with queues and examined CPUs, and its rows by kind.
fn exported(folder: &Path) -> (String, BTreeMap<String, usize>) {
    let load = r#"{"tasks": {"a, \"b\"": {"cpus": [0, 1], "x-memory": {"bytes": 1000000}, "run": 500, "sleep": 300},
        "hog": {"instance": 14, "run": 9000}}}"#;
    std::fs::write(folder.join("w.json"), load).unwrap();
    let sim = "sim -k linux-6.12 -m z800 -w w.json -d 20ms --trace-queues -o t.arrows --json";
    ok(folder, &sim.split(' ').collect::<Vec<_>>());
    let csv = ok(folder, &["export", "t.arrows"]);
    let mut kinds = BTreeMap::new();
    for line in csv.lines().skip(1) {
        *kinds.entry(line.split(',').nth(2).unwrap().to_owned()).or_insert(0) += 1;
    }
    (csv, kinds)
}

#[test]
fn every_row_of_a_trace_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, kinds) = exported(folder.path());
    let columns = "time_ns,cpu,event,tid,prio,state,next_tid,next_prio,other_tid,orig_cpu,target_cpu,count,tgid,comm,\
                   cgroup,cpus,why,length,load,orig_node,target_node,pages,context,properties,number,took_ns";
    assert_eq!(csv.lines().next(), Some(columns));
    let trace = schedlab_trace::read_all(folder.path().join("t.arrows")).unwrap();
    let rows = trace.events.len() + trace.names.len() + trace.affinities.len() + trace.tasks.len() + trace.groups.len();
    assert_eq!(kinds.values().sum::<usize>(), rows);
    for kind in ["switch", "wakeup", "name", "affinity", "queue", "considered", "pages", "task"] {
        assert!(kinds.contains_key(kind), "{kind}: {kinds:?}");
    }
    assert!(csv.contains("0,0,name,1,,,,,,,,,1,\"a, \"\"b\"\"\",,,,,,,,,,,,\n"), "{csv}");
    assert!(csv.contains("0,0,affinity,1,,,,,,,,,,,,0-1,,,,,,,,,,\n"), "{csv}");
    let switch = csv.lines().find(|line| line.contains(",switch,")).unwrap();
    assert!(switch.ends_with(",switch,0,120,R,1,120,,,,,,,,,,,,,,,,,,"), "{switch}");
}

#[test]
fn a_file_is_written_whole_and_a_cut_trace_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, _) = exported(folder.path());
    ok(folder.path(), &["export", "t.arrows", "-o", "t.csv"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("t.csv")).unwrap(), csv);
    assert_eq!(schedlab(folder.path(), &["export", "t.arrows", "-o", "t.csv"]).status.code(), Some(2));
    let bytes = std::fs::read(folder.path().join("t.arrows")).unwrap();
    std::fs::write(folder.path().join("cut.arrows"), &bytes[..bytes.len() - 20]).unwrap();
    let out = schedlab(folder.path(), &["export", "cut.arrows", "-o", "cut.csv"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("cut.arrows: is cut at byte"), "{out:?}");
    assert!(!folder.path().join("cut.csv").exists());
}
