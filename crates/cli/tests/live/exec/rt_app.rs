//! rt-app itself and `schedlab exec` do the same with the same file: each task as many periods, and as much work.

use super::{by_name, exec, json, may_record, recorded, workload};
use serde_json::Value;
use std::process::Command;

/// Tasks of their own on CPU 0. They are real-time tasks, so that others on the machine do not decide what they get.
const TEXT: &str = r#"{
    "global": {"duration": 2, "calibration": "CPU0", "lock_pages": false, "logdir": "./", "log_size": "disable"},
    "tasks": {
        "fast": {"policy": "SCHED_FIFO", "priority": 20, "cpus": [0], "run": 1000,
                 "timer": {"ref": "unique1", "period": 10000}},
        "slow": {"policy": "SCHED_FIFO", "priority": 10, "cpus": [0], "run": 8000,
                 "timer": {"ref": "unique2", "period": 50000}},
        "rest": {"policy": "SCHED_FIFO", "priority": 15, "cpus": [0], "loop": 1,
                 "phases": {"all": {"loop": 20, "run": 500, "sleep": 5000}}}
    }
}"#;

/// The figures that `record` has of a task of rt-app, whose names end with the number of the thread.
fn of_rt_app(stats: &Value, name: &str) -> (f64, f64) {
    let tasks = by_name(&stats["tasks"]);
    let found = tasks.iter().find(|(task, _)| task.starts_with(name));
    let (_, task) = found.unwrap_or_else(|| panic!("no {name} among {:?}", tasks.keys()));
    (task["run_us"].as_f64().unwrap(), task["voluntary"].as_f64().unwrap())
}

#[test]
fn rt_app_does_the_same_with_the_same_file() {
    let Some(_guard) = may_record() else { return };
    if Command::new("rt-app").arg("--version").output().is_err() {
        return eprintln!("skipped: rt-app is missing (Debian: apt install rt-app)");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = workload(dir.path(), TEXT);
    let trace = dir.path().join("theirs.arrows");
    let theirs = Command::new(super::SCHEDLAB)
        .args(["record", "--json", "-o"])
        .arg(&trace)
        .args(["--", "rt-app"])
        .arg(&file)
        .current_dir(dir.path())
        .output()
        .unwrap();
    if json(&theirs)["command"]["code"] != 0 {
        return eprintln!("skipped: rt-app does not run here: {}", String::from_utf8_lossy(&theirs.stderr));
    }
    let stats = Command::new(super::SCHEDLAB).args(["stats", "--json"]).arg(&trace).output().unwrap();
    let (theirs, document) = (json(&stats), json(&exec(&file, &[])));
    let (ours, own) = (recorded(&document), by_name(&document["execution"]["tasks"]));
    let seconds = theirs["total"]["span_us"].as_f64().unwrap() / 1e6;
    // The rounds of a run of 2 s, the most that rt-app can have, and the work of each.
    let all =
        [("fast", 200.0, seconds * 100.0, 1000.0), ("slow", 40.0, seconds * 20.0, 8000.0), ("rest", 20.0, 20.0, 500.0)];
    for (name, rounds, most, work) in all {
        let (their_run, their_rounds) = of_rt_app(&theirs, name);
        let (run, own_rounds) = (ours[name]["run_us"].as_f64().unwrap(), ours[name]["voluntary"].as_f64().unwrap());
        let took = own[name]["cpu_us"].as_f64().unwrap();
        let context = format!(
            "{name}: ours {run} us ({took} by its clock), {own_rounds} sleeps; \
             theirs {their_run} us, {their_rounds} sleeps"
        );
        // A period that was late, since a host had taken the CPU, begins the next without a sleep. rt-app sleeps a few
        // times more while it starts and ends, and ends when its first thread, which is no real-time task, gets a CPU.
        assert!((rounds * 0.9..=rounds + 2.0).contains(&own_rounds), "{context}");
        assert!((rounds * 0.9..=most + 6.0).contains(&their_rounds), "{context}, of {most} at most");
        // What a recording has also contains the time in which a virtual machine's CPU was taken away.
        assert!(run / (rounds * work) > 0.85 && (took / (rounds * work) - 1.0).abs() < 0.15, "{context}");
        // rt-app measures its loops once, by the wall clock: where others run at that moment, all its work is short.
        assert!((0.1..2.0).contains(&(their_run / their_rounds / (run / own_rounds))), "{context}");
    }
}
