//! Groups of a workload are cgroups.

use super::*;

#[test]
fn groups_divide_time_as_their_weights_say_and_are_removed() {
    let Some(_guard) = may_group() else { return };
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
    let Some(_guard) = may_group() else { return };
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

/// The simulator says the same (`-p schedlab-sched --test all a_child`).
#[test]
fn a_child_has_its_parents_group_and_cpus_unless_it_says_otherwise() {
    let Some(_guard) = may_group() else { return };
    let dir = tempfile::tempdir().unwrap();
    let cpus: Vec<u32> = schedlab_capture::online().iter().collect();
    let text = format!(
        r#"{{"x-groups": {{"/a": {{}}}}, "tasks": {{
            "p": {{"loop": 1, "cpus": [{first}], "taskgroup": "/a", "run": 5000,
                   "forkc": "c", "forkr": "r", "run2": 50000}},
            "c": {{"instance": 0, "loop": 1, "run": 20000}},
            "r": {{"instance": 0, "loop": 1, "cpus": {cpus:?}, "taskgroup": "/", "run": 20000}}}}}}"#,
        first = cpus[0]
    );
    let document = json(&exec(&workload(dir.path(), &text), &[]));
    let tasks = recorded(&document);
    let of = |key: &str| ["p", "c-0", "r-0"].map(|name| tasks[name][key].as_str().unwrap_or("all").to_owned());
    assert_eq!(of("group"), ["/a", "/a", "/"]);
    if cpus.len() > 1 {
        let [parent, child, other] = of("allowed");
        assert_eq!([&parent, &child].map(String::as_str), [&*cpus[0].to_string(); 2]);
        assert_ne!(other, parent);
    }
}
