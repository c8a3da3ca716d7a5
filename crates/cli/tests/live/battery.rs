//! `schedlab test` on this kernel and in a guest. What the tests of the battery find here depends on what else runs, so
//! what is checked is that noise decides: a disturbed run gives no verdict, and names what disturbed it.

use crate::one_at_a_time;
use serde_json::Value;
use std::process::{Child, Command};

const SCHEDLAB: &str = env!("CARGO_BIN_EXE_schedlab");

/// A process that computes on CPU 0 until it is dropped.
struct Noise(Child);

impl Noise {
    /// Starts it, or prints why the test is skipped.
    fn new() -> Option<Self> {
        let child = Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn();
        child.map(Self).map_err(|e| eprintln!("skipped: taskset cannot be run: {e}")).ok()
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Exit status, document, and what was said meanwhile.
fn battery(args: &str) -> Option<(i32, Value, String)> {
    let output = Command::new(SCHEDLAB).args(["test", "--json"]).args(args.split(' ')).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(4) {
        eprintln!("skipped: {said}");
        return None;
    }
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    Some((output.status.code().expect("it ended"), document, said))
}

#[test]
fn foreign_tasks_make_a_live_run_undecided_and_are_named() {
    let _guard = one_at_a_time();
    let Some(noise) = Noise::new() else { return };
    let done = battery("--on live --machine 1 --only fair-equal --repeats 2");
    drop(noise);
    let Some((status, document, said)) = done else { return };
    assert!(said.contains("% of the CPU time now (") && said.contains("sh "), "before it begins: {said}");
    let test = &document["tests"][0];
    assert_eq!((status, &test["verdict"]), (3, &"undecided".into()), "{test}");
    let reason = test["reason"].as_str().unwrap();
    // What a hypervisor took comes before that.
    assert!(reason.contains("foreign tasks took more than 1.0% of the CPU time in 2 of 2 runs"), "{reason}");
    assert!(reason.contains("sh "), "{reason}");
    let share = |run: &Value| run["share"].as_f64().unwrap();
    let runs = test["noise"].as_array().unwrap();
    assert!(runs.len() == 2 && runs.iter().all(|run| share(run) > 0.1), "a third is its due: {runs:?}");
}

/// The figures follow from the weight of SCHED_IDLE, whatever else runs, if noise is let pass.
#[test]
fn a_test_of_the_battery_runs_on_this_kernel() {
    let _guard = one_at_a_time();
    let args = "--on live --machine 1 --only isolation-idle --only stability-hotplug --repeats 3 --noise 100";
    let Some((status, document, _)) = battery(args) else { return };
    let verdict = |id: &str| {
        let all = document["tests"].as_array().unwrap();
        all.iter().find(|test| test["id"] == id).map(|test| test["verdict"].as_str().unwrap().to_owned()).unwrap()
    };
    assert_eq!((status, verdict("isolation-idle").as_str()), (0, "pass"), "{document}");
    assert_eq!(verdict("stability-hotplug"), "skipped");
}
