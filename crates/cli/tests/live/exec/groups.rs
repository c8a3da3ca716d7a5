//! Groups of a workload are cgroups.

use super::*;

#[test]
fn groups_divide_time_as_their_weights_say_and_are_removed() {
    let Some(_guard) = may_record() else { return };
    if !may_be_root() || cgroups().is_none() {
        return eprintln!("skipped: the test needs root and cgroups with the cpu controller");
    }
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{
        "x-groups": {"/big": {"weight": 400}, "/small": {"weight": 100}, "/small/capped": {"quota_us": 5000}},
        "tasks": {"b": {"cpus": [0], "taskgroup": "/big", "run": 1000},
                  "s": {"cpus": [0], "taskgroup": "/small", "run": 1000},
                  "c": {"cpus": [0], "taskgroup": "/small/capped", "run": 1000}}}"#;
    let file = workload(dir.path(), text);
    let output = exec(&file, &["-d", "3s"]);
    let document = json(&output);
    let tasks = recorded(&document);
    let run = |name: &str| tasks[name]["run_us"].as_f64().unwrap();
    // Whatever else runs on the CPU, these two groups divide what is left.
    let ratio = run("b") / (run("s") + run("c"));
    assert!((3.2..4.8).contains(&ratio), "{ratio}: b {}, s {}, c {}", run("b"), run("s"), run("c"));
    assert!(run("c") <= 3e6 * 0.05 * 1.25, "a quota of 5 ms in 100 ms: {}", run("c"));
    let groups = ["b", "s", "c"].map(|name| tasks[name]["group"].as_str().unwrap().to_owned());
    assert_eq!(groups, ["/big", "/small", "/small/capped"]);
    let own: Vec<u32> =
        by_name(&document["execution"]["tasks"]).values().map(|t| t["tid"].as_u64().unwrap() as u32).collect();
    let left = fs::read_dir(cgroups().unwrap()).unwrap().flatten();
    let ours = left.filter(|e| {
        fs::read_to_string(e.path().join("tasks"))
            .is_ok_and(|text| text.lines().any(|line| line.parse().is_ok_and(|tid: u32| own.contains(&tid))))
    });
    assert_eq!(ours.count(), 0);
}

/// A hog whose group is throttled leaves its CPU idle, and gets it back from the idle task without a wake-up. Some
/// virtual machines hide the switch from the idle task of every CPU but the first.
#[test]
fn a_throttled_task_has_the_cpu_time_that_its_clock_says() {
    let Some(_guard) = may_record() else { return };
    if !may_be_root() || cgroups().is_none() {
        return eprintln!("skipped: the test needs root and cgroups with the cpu controller");
    }
    let dir = tempfile::tempdir().unwrap();
    let last = schedlab_capture::online().iter().last().unwrap();
    let text = format!(
        r#"{{"x-groups": {{"/capped": {{"quota_us": 50000}}}},
             "tasks": {{"hog": {{"cpus": [{last}], "taskgroup": "/capped", "run": 1000}}}}}}"#
    );
    let document = json(&exec(&workload(dir.path(), &text), &["-d", "2s"]));
    let run = recorded(&document)["hog"]["run_us"].as_f64().unwrap();
    let clock = by_name(&document["execution"]["tasks"])["hog"]["cpu_us"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&(run / clock)), "recorded {run}, of its clock {clock}");
}
