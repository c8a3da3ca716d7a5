//! `schedlab model` of tasks that do next to nothing but wake others.

use crate::support::{json, ok};

/// In a simulation, a task may wake others without any CPU time.
#[test]
fn a_waker_that_costs_nothing_wakes_in_the_model_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let load = r#"{ "tasks": {
        "waker": { "loop": 50, "timer": { "ref": "tick", "period": 10000 }, "resume": "worker" },
        "worker": { "loop": 50, "suspend": "worker", "run": 3000 } } }"#;
    std::fs::write(folder.join("load.json"), load).expect("written");
    ok(folder, &["sim", "-k", "linux-6.12", "-m", "2", "-w", "load.json", "-o", "t.arrows"]);
    let report = &json(folder, &["model", "t.arrows", "-o", "model.json"])["report"];
    assert_eq!((&report["tasks"], &report["left_out"]), (&2.into(), &0.into()), "{report}");
    assert!(report["waits"].as_u64().expect("a number") >= 48, "{report}");
    let simulated = json(folder, &["sim", "-w", "model.json"]);
    let tasks = simulated["tasks"].as_array().expect("tasks").iter();
    let slices: Vec<u64> = tasks.map(|task| task["slices"].as_u64().expect("a number")).collect();
    assert!(slices.len() == 2 && slices.iter().all(|slices| *slices >= 49), "{slices:?}");
}
