//! Outcomes that the source of a kernel dictates, each for one load in `source_outcomes/`. A test is named after what it
//! checks, and its comment names the file and the function of the kernel that decide.

use crate::support::ok;
use serde_json::Value;
use std::path::Path;

const LOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/source_outcomes");

/// The statistics of a load under a kernel; `args` has the machine and the settings.
fn stats(kernel: &str, load: &str, args: &str) -> Value {
    let load = format!("{load}.json");
    let mut all = vec!["sim", "--json", "-k", kernel, "-w", &load];
    all.extend(args.split(' '));
    serde_json::from_str(&ok(Path::new(LOADS), &all)).expect("one document")
}

/// A figure of the task with this name.
fn of(stats: &Value, task: &str, figure: &str) -> f64 {
    let all = stats["tasks"].as_array().expect("a list");
    let found = all.iter().find(|t| t["name"] == task).expect("the task");
    found.pointer(figure).and_then(Value::as_f64).expect("a number")
}

/// `set_protect_slice` and `protect_slice` in kernel/sched/fair.c of 6.6 and 6.12 keep the protected deadline in `vlag`,
/// and `reweight_entity` moves the deadline. So each new weight of the group that is running ends its protection, and in
/// 6.12 `did_preempt_short` reschedules once the group is not eligible. With protection that survives, the two hogs of
/// two groups switch 946 times in 3 s.
#[test]
fn a_new_weight_ends_the_protection_of_a_group() {
    let switches = |kernel| {
        let stats = stats(kernel, "parity", "-m 8 --set hz=1000");
        of(&stats, "a0", "/slices") + of(&stats, "b0", "/slices")
    };
    let found = switches("linux-6.12");
    assert!((found - 1752.0).abs() < 0.02 * 1752.0, "{found}");
    // 6.6 has no `did_preempt_short`: the protection matters only when something wakes on the CPU, and nothing does.
    assert!(switches("linux-6.6") < 800.0);
}
