//! Running workloads with real threads on this kernel through the command line. Where rights are missing, a test says
//! so and passes.
//!
//! The machine may be busy with anything else: what is checked holds whatever competes with the tasks, by bounds that
//! come from what a task does (its bursts, periods, order) and not from how soon it gets a CPU.

mod backend;
mod ends;
mod groups;
mod rt_app;

use crate::one_at_a_time;
use schedlab_base::Payload;
use schedlab_trace::{Trace, read_all};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCHEDLAB: &str = env!("CARGO_BIN_EXE_schedlab");

/// Returns a guard if workloads can be recorded here, or prints why the test is skipped.
fn may_record() -> Option<std::sync::MutexGuard<'static, ()>> {
    let guard = one_at_a_time();
    let output = Command::new(SCHEDLAB).args(["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    if checks.iter().any(|c| c["id"] == "recording" && c["status"] == "ok") {
        return Some(guard);
    }
    eprintln!("skipped: this machine does not let us record; schedlab doctor says why");
    None
}

/// The same for workloads with groups.
fn may_group() -> Option<std::sync::MutexGuard<'static, ()>> {
    let guard = may_record()?;
    if may_be_root() && cgroups().is_some() {
        return Some(guard);
    }
    eprintln!("skipped: the test needs root and cgroups with the cpu controller");
    None
}

fn may_be_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    if !root {
        eprintln!("skipped: the test needs root");
    }
    root
}

fn workload(dir: &Path, text: &str) -> PathBuf {
    let file = dir.join("w.json");
    fs::write(&file, text).unwrap();
    file
}

fn exec(file: &Path, arguments: &[&str]) -> Output {
    Command::new(SCHEDLAB).args(["exec", "--json"]).arg(file).args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {problem}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {problem}"))
}

/// The figures of a list by the name of their task.
fn by_name(list: &Value) -> BTreeMap<String, Value> {
    let tasks = list.as_array().unwrap().iter();
    tasks.map(|task| (task["name"].as_str().unwrap().to_owned(), task.clone())).collect()
}

/// What the recording has of the run's tasks, by name. Other tasks of the machine may have the same names.
fn recorded(document: &Value) -> BTreeMap<String, Value> {
    let own = by_name(&document["execution"]["tasks"]);
    let tids: BTreeSet<i64> = own.values().filter_map(|task| task["tid"].as_i64()).collect();
    let tasks = document["tasks"].as_array().unwrap().iter();
    let tasks: Vec<&Value> = tasks.filter(|task| task["tid"].as_i64().is_some_and(|tid| tids.contains(&tid))).collect();
    by_name(&serde_json::json!(tasks))
}

/// A run in the background, in which no signal is ignored.
fn start(file: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new("env");
    command.args(["--default-signal", SCHEDLAB, "exec", "--json"]).arg(file).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until something is there.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes whose parent this is.
fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
    ids.filter(|pid| field(*pid, "PPid").as_deref() == Some(&*parent.to_string())).collect()
}

/// A field of /proc/PID/status.
fn field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
}

/// The threads of the run's tasks, by name.
fn threads(command: &Child) -> BTreeMap<String, u32> {
    let supervisors = children(command.id()).into_iter();
    let supervisors = supervisors.filter(|pid| field(*pid, "Name").as_deref() == Some("schedlab-super"));
    let mut found = BTreeMap::new();
    for launcher in supervisors.flat_map(children) {
        for process in children(launcher).into_iter().chain([launcher]) {
            for entry in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
                let tid = entry.file_name().to_str().unwrap().parse().unwrap();
                found.extend(field(tid, "Name").map(|name| (name, tid)));
            }
        }
    }
    found
}

/// Where the cpu controller's groups are.
fn cgroups() -> Option<PathBuf> {
    schedlab_live::Controller::find().map(|controller| controller.root)
}

/// Asserts that within a few seconds nothing of this run exists: no group, instance or process.
fn assert_nothing_left(command: u32, processes: &[u32]) {
    let start = Instant::now();
    let tracefs = schedlab_capture::Tracefs::open().map(|tracefs| tracefs.root().join("instances"));
    let named = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(&format!("schedlab-{command}-"))).collect::<Vec<_>>()
    };
    let dirs: Vec<PathBuf> = cgroups().into_iter().chain(tracefs).collect();
    loop {
        let mut left: Vec<String> = dirs.iter().flat_map(|dir| named(dir)).collect();
        // A process that nobody reaps, because the test's own init does not, is none.
        let lives = |pid: &&u32| field(**pid, "State").is_some_and(|state| !state.starts_with('Z'));
        left.extend(processes.iter().filter(lives).map(|pid| format!("process {pid}")));
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "left behind: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The median time, in us, from when a task got a CPU until it left it.
fn median_slice(trace: &Trace, tid: i64) -> f64 {
    let (mut since, mut slices) = (None, Vec::new());
    for event in &trace.events {
        let Payload::Switch { prev, next, .. } = event.what else { continue };
        if i64::from(next) == tid {
            since = Some(event.time);
        } else if i64::from(prev) == tid {
            slices.extend(since.take().map(|since| event.time - since));
        }
    }
    slices.sort_unstable();
    slices[slices.len() / 2] as f64 / 1000.0
}

/// A simulation with the same seed is of the same bursts: what differs is what the kernels did.
#[test]
fn tasks_draw_what_they_draw_in_the_simulation() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{
        "global": { "duration": 3 },
        "tasks": {
            "worker": { "instance": 2, "loop": 25, "run": { "mean": 4000, "sd": 2000 }, "sleep": 3000 },
            "parent": { "loop": 1, "run": 1000, "fork": "child" },
            "child": { "instance": 0, "loop": 20, "run": { "mean": 4000, "sd": 2000 }, "sleep": 3000 }
        }
    }"#;
    let file = workload(dir.path(), text);
    let real = by_name(&json(&exec(&file, &["--seed", "7"]))["execution"]["tasks"]);
    let simulated = |seed: &str| {
        let file = file.to_str().unwrap();
        let command = ["sim", file, "--kernel", "linux-6.12", "--machine", "2", "--json", "--seed", seed];
        by_name(&json(&Command::new(SCHEDLAB).args(command).output().unwrap())["tasks"])
    };
    let (same, other) = (simulated("7"), simulated("8"));
    for name in ["worker-0", "worker-1", "child-0"] {
        let wanted = &real[name]["bursts"]["wanted_us"];
        assert_eq!(wanted, &same[name]["run_us"], "{name}");
        assert_ne!(wanted, &other[name]["run_us"], "{name}");
    }
}

#[test]
fn periodic_tasks_do_their_periods_and_their_work() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    // The priority lets them run whatever else the machine does. Some machines do not record every switch from the idle
    // task of their other CPUs.
    let text = r#"{"tasks": {"beat": {"instance": 2, "policy": "SCHED_FIFO", "cpus": [0], "run": 2000,
                                      "timer": {"ref": "unique", "period": 20000, "mode": "absolute"}},
                             "a-name-of-more-than-15-bytes": {"instance": 2, "run": 500, "sleep": 50000}}}"#;
    let trace = dir.path().join("t.arrows");
    let file = workload(dir.path(), text);
    let document = json(&exec(&file, &["-d", "1s", "-o", trace.to_str().unwrap()]));
    let (tasks, own) = (recorded(&document), by_name(&document["execution"]["tasks"]));
    let trace = read_all(&trace).unwrap();
    for name in ["beat-0", "beat-1"] {
        let (task, own) = (&tasks[name], &own[name]);
        let (bursts, took) = (own["bursts"]["count"].as_u64().unwrap(), own["cpu_us"].as_f64().unwrap());
        assert!((45..=51).contains(&bursts), "{own}");
        let wanted = own["bursts"]["wanted_us"].as_f64().unwrap();
        assert_eq!(wanted, bursts as f64 * 2000.0);
        // A virtual machine's CPU can be taken away at any moment, and the trace's clock goes on: a few bursts and
        // slices may be of any length. Each such moment may cost what was left of a burst.
        assert!(took >= wanted * 0.9, "{own}");
        assert!((6..=8).contains(&own["bursts"]["timed"].as_u64().unwrap()), "the first four and each 16th: {own}");
        assert!(task["run_us"].as_f64().unwrap() >= took * 0.98, "{task}, {took} us by its own clock");
        let slice = median_slice(&trace, own["tid"].as_i64().unwrap());
        assert!((1960.0..2300.0).contains(&slice), "{slice} us in the median between two switches");
        assert!(task["voluntary"].as_u64().unwrap() >= bursts - 2, "{task}");
        assert_eq!(task["tid"], own["tid"]);
    }
    assert!(own.contains_key("a-name-of-more-than-15-bytes-1"));
    assert!(tasks.contains_key("a-name-of-more-than-15-bytes-1"), "the kernel cuts names, the trace does not");
    assert_eq!(trace.meta.notes["workload"], "w");
    assert_eq!(trace.meta.target.as_ref().unwrap().command.as_deref(), Some("w"));
    let span = document["total"]["span_us"].as_f64().unwrap();
    assert!((999_000.0..1_000_001.0).contains(&span), "the trace is as long as the run: {span}");
}

#[test]
fn real_servers_answer_whom_they_have_taken_a_question_from() {
    let _guard = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    // Each client has one question at a time, the last one two. Servers answer all of them, whoever takes them.
    let text = r#"{"tasks": {
        "client": {"instance": 3, "loop": 200, "run": 50, "x-ask": {"ref": "q", "x-sync": true}, "x-await": ""},
        "server": {"instance": 2, "loop": 500, "sem_wait": "q", "run": 70, "x-answer": "q"},
        "both": {"loop": 200, "x-ask": "q", "x-ask1": "q", "x-await": "", "run": 30, "x-await1": ""},
        "parent": {"loop": 1, "run": 100, "fork": "child"},
        "child": {"instance": 0, "loop": 3, "x-ask": "alone", "x-await": "", "run": 100},
        "alone": {"loop": 3, "sem_wait": "alone", "run": 100, "x-answer": "alone"}}}"#;
    let document = json(&exec(&workload(dir.path(), text), &["-d", "20s", "--no-record"]));
    let tasks = by_name(&document["execution"]["tasks"]);
    let bursts = |name: &str| tasks[name]["bursts"]["count"].as_u64().unwrap();
    assert_eq!(
        ["client-0", "client-1", "client-2", "both", "child-0", "alone"].map(bursts),
        [200, 200, 200, 200, 3, 3]
    );
    assert_eq!(bursts("server-0") + bursts("server-1"), 1000);
    assert!(document["execution"]["tasks"].as_array().unwrap().iter().all(|task| task["ended"] == true), "{document}");
    // So many questions that nobody takes are too many.
    let text = r#"{"tasks": {"client": {"loop": 5000, "x-ask": "q", "run": 1}}}"#;
    let output = exec(&workload(dir.path(), text), &["-d", "20s", "--no-record"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("tasks.client") && message.contains("4096 questions at \"q\" wait already"), "{message}");
}

#[test]
fn real_workers_share_out_jobs() {
    let _guard = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    // One worker has a long job, and the other does the rest meanwhile; each job is done once.
    let text = r#"{"tasks": {
        "job": {"instance": 0, "loop": 1, "phases": {
            "long": {"loop": 1, "run": 50000, "sem_post": "done"},
            "short": {"loop": 20, "mem": 64, "run": 500, "sem_post": "done"}}},
        "worker": {"instance": 2, "loop": 1, "run": 100, "x-jobs": "job", "run1": 200},
        "collector": {"loop": 21, "sem_wait": "done", "run": 10}}}"#;
    let document = json(&exec(&workload(dir.path(), text), &["-d", "20s", "--no-record"]));
    let tasks = by_name(&document["execution"]["tasks"]);
    let bursts = |name: &str| tasks[name]["bursts"]["count"].as_u64().unwrap();
    let mut each = ["worker-0", "worker-1"].map(bursts);
    each.sort_unstable();
    assert_eq!((each[0] + each[1], bursts("collector")), (21 + 4, 21));
    assert!(each[0] < 10, "{each:?}");
    assert!(document["execution"]["tasks"].as_array().unwrap().iter().all(|task| task["ended"] == true), "{document}");
}

#[test]
fn a_killed_task_keeps_no_mutex() {
    let _guard = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"tasks": {
        "holder": {"loop": 1, "x-lifetime": 200000, "lock": "m", "run": 9000000, "unlock": "m", "run1": 9000000},
        "waiter": {"instance": 2, "loop": 1, "sleep": 20000, "lock": "m", "run": 2000, "unlock": "m"}}}"#;
    let document = json(&exec(&workload(dir.path(), text), &["-d", "30s", "--no-record"]));
    let tasks = by_name(&document["execution"]["tasks"]);
    for name in ["holder", "waiter-0", "waiter-1"] {
        let cpu = tasks[name]["cpu_us"].as_f64().unwrap();
        assert!(tasks[name]["ended"] == true && cpu < 3e6, "{name}: {}", tasks[name]);
    }
    assert_eq!(["waiter-0", "waiter-1"].map(|name| tasks[name]["bursts"]["count"].as_u64()), [Some(1), Some(1)]);
}

#[test]
fn resources_impose_the_order_that_they_should() {
    let _guard = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"tasks": {
        "meet": {"instance": 3, "run": {"mean": 300, "sd": 50}, "barrier": "b"},
        "spin": {"instance": 2, "run": 100, "x-spin-barrier": {"ref": "s", "for": 200}, "sleep": 1000},
        "make": {"run": 200, "sem_post": "s", "sleep": 1000},
        "take": {"sem_wait": "s", "run": 100},
        "hold": {"instance": 2, "lock": "m", "run": 100, "unlock": "m", "sleep": 500},
        "wait": {"lock": "n", "wait": {"ref": "c", "mutex": "n"}, "unlock": "n", "run": 100},
        "call": {"sleep": 2000, "run": 50, "lock": "n", "signal": "c", "unlock": "n"},
        "rest": {"suspend": "", "run": 100},
        "rouse": {"run": 50, "resume": "rest", "sleep": 3000},
        "parent": {"loop": 3, "run": 100, "fork": "child", "sleep": 1000},
        "child": {"instance": 0, "loop": 2, "run": 100, "yield": ""},
        "touch": {"x-working-set": 100000, "run": 100, "mem": 10000, "sleep": 3000},
        "once": {"loop": 4, "run": 100}}}"#;
    for start in ["wake", "fork", "threads"] {
        let text = format!("{{\"global\": {{\"x-start\": \"{start}\"}}, {}", &text[1..]);
        let file = workload(dir.path(), &text);
        let document = json(&exec(&file, &["-d", "700ms", "--no-record"]));
        let tasks = by_name(&document["execution"]["tasks"]);
        let bursts = |name: &str| tasks[name]["bursts"]["count"].as_u64().unwrap();
        let rounds = ["meet-0", "meet-1", "meet-2"].map(bursts);
        assert!(rounds[0] > 5 && rounds.iter().all(|n| n.abs_diff(rounds[0]) <= 1), "{start}: {rounds:?}");
        assert!(bursts("spin-0") > 2 && bursts("spin-0").abs_diff(bursts("spin-1")) <= 1, "{start}");
        assert!(bursts("take") > 5 && bursts("take") <= bursts("make"), "{start}: a post for each");
        let (waits, calls) = (bursts("wait"), bursts("call"));
        assert!(waits > 0 && waits <= calls, "{start}: a signal for each: {waits} waits, {calls} calls");
        assert!(bursts("rest") > 0 && bursts("rest") <= bursts("rouse"), "{start}");
        assert!(bursts("hold-0") > 5 && bursts("hold-1") > 5 && bursts("touch") > 5, "{start}");
        assert_eq!((bursts("once"), tasks["once"]["ended"].as_bool()), (4, Some(true)), "{start}");
        for child in ["child-0", "child-1", "child-2"] {
            assert_eq!((bursts(child), tasks[child]["ended"].as_bool()), (2, Some(true)), "{start}: {child}");
        }
        let forked: BTreeSet<&String> = tasks.keys().filter(|name| name.starts_with("child")).collect();
        assert_eq!(forked.len(), 3, "{start}");
    }
}

#[test]
fn a_run_ends_when_its_tasks_have_ended() {
    let _guard = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    for start in ["wake", "fork", "threads"] {
        let text = format!(
            r#"{{"global": {{"x-start": "{start}"}}, "tasks": {{"t": {{"instance": 3, "x-stagger": 20000, "loop": 5,
               "x-session": 1, "run": 1000}}, "u": {{"loop": 1, "run": 500}}}}}}"#
        );
        let file = workload(dir.path(), &text);
        let began = Instant::now();
        let document = json(&exec(&file, &["--no-record"]));
        assert!(began.elapsed() < Duration::from_secs(20));
        let duration = document["execution"]["duration_us"].as_f64().unwrap();
        assert!(duration > 45_000.0, "{start}: the third starts after 40 ms: {duration}");
        assert!(by_name(&document["execution"]["tasks"]).values().all(|task| task["ended"] == true), "{start}");
    }
}

/// One that computes for ever and one that sleeps for long live for 0.3 s. Both say their last words.
#[test]
fn a_task_is_over_when_it_has_lived_for_as_long_as_it_may() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"tasks": {
        "hog": {"loop": 1, "x-lifetime": 300000, "phases": {"a": {"loop": -1, "run": 1000000}, "b": {"sem_post": "s"}}},
        "sleeper": {"loop": 1, "x-lifetime": 300000, "sleep": 60000000, "run": 1000000, "sem_post": "s"},
        "last": {"loop": 1, "phases": {"a": {"sem_wait": "s"}, "b": {"sem_wait": "s"}, "c": {"run": 1000}}}
    }}"#;
    let document = json(&exec(&workload(dir.path(), text), &["--no-record", "--duration", "30s"]));
    let execution = &document["execution"];
    assert!(execution["duration_us"].as_f64().unwrap() < 20e6, "{execution}");
    let tasks = by_name(&execution["tasks"]);
    let cpu = |name: &str| tasks[name]["cpu_us"].as_f64().unwrap();
    assert!(cpu("hog") < 400_000.0 && cpu("sleeper") < 100_000.0 && cpu("last") >= 900.0, "{tasks:?}");
}

#[test]
fn real_computations_are_checked_and_rated() {
    let _guard = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"tasks": {
        "linpack": {"x-work": "linpack", "x-working-set": 80000, "loop": 20, "run": 2000, "sleep": 1000},
        "stream": {"x-work": "stream", "x-memory": {"bytes": 240000}, "loop": 20, "run": 2000},
        "matrix": {"x-work": "linpack", "loop": 1, "run": 3000},
        "loops": {"loop": 1, "run": 1000}}}"#;
    let file = workload(dir.path(), text);
    let tasks = by_name(&json(&exec(&file, &["--no-record"]))["execution"]["tasks"]);
    for (name, unit) in [("linpack", "kflops"), ("stream", "MB/s")] {
        let computed = &tasks[name]["computed"];
        assert_eq!((computed["unit"].as_str(), computed["passed"].as_bool()), (Some(unit), Some(true)), "{computed}");
        assert!(computed["checked"].as_u64() > Some(1) && computed["rate"].as_f64() > Some(0.0), "{computed}");
        assert!(tasks[name]["cpu_us"].as_f64() >= Some(36_000.0), "the bursts are of CPU time: {}", tasks[name]);
    }
    let computed = &tasks["matrix"]["computed"];
    assert!(computed["checked"] == 0 && computed["passed"].is_null(), "a matrix of 1000 takes longer: {computed}");
    assert!(tasks["loops"].get("computed").is_none());
    let text = r#"{"tasks": {"t": {"x-work": "stream", "x-memory": {"bytes": 4096, "shared": true}, "run": 1}}}"#;
    let refused = exec(&workload(dir.path(), text), &["--no-record"]);
    let problem = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(problem.contains("x-work") && problem.contains("shared"), "{problem}");
}

#[test]
fn the_same_seed_draws_the_same_work() {
    let _guard = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"tasks": {"t": {"instance": 2, "loop": 20, "run": {"mean": 500, "sd": 200}}}}"#;
    let file = workload(dir.path(), text);
    let wanted = |seed: &str| {
        let document = json(&exec(&file, &["--no-record", "--seed", seed]));
        let tasks = by_name(&document["execution"]["tasks"]);
        ["t-0", "t-1"].map(|name| tasks[name]["bursts"]["wanted_us"].as_f64().unwrap())
    };
    let first = wanted("1");
    assert_eq!(first, wanted("1"));
    assert_ne!(first, wanted("2"));
    assert_ne!(first[0], first[1]);
}

#[test]
fn attributes_are_those_that_the_kernel_shows_meanwhile() {
    let _guard = one_at_a_time();
    if !may_be_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"tasks": {
        "fifo": {"policy": "SCHED_FIFO", "priority": 40, "run": 100, "sleep": 10000},
        "rr": {"policy": "SCHED_RR", "priority": 7, "run": 100, "sleep": 10000},
        "batch": {"policy": "SCHED_BATCH", "priority": 5, "run": 100, "sleep": 10000},
        "idle": {"policy": "SCHED_IDLE", "run": 100, "sleep": 10000},
        "nice": {"priority": -10, "cpus": [0], "run": 100, "sleep": 10000},
        "user": {"x-user": 12345, "x-session": 4, "phases": {"a": {"loop": 2, "run": 100, "sleep": 1000},
                 "b": {"loop": -1, "priority": 3, "cpus": [0], "run": 100, "sleep": 10000}}}}}"#;
    let file = workload(dir.path(), text);
    let mut run = start(&file, &["-d", "20s", "--no-record"]);
    let find = || Some(threads(&run)).filter(|threads| threads.contains_key("user") && threads.contains_key("fifo"));
    let threads = wait_for("the tasks exist", find);
    std::thread::sleep(Duration::from_millis(400));
    // Policy, real-time priority and nice: fields 41, 40 and 19 of the whole line, which begins "PID (NAME) STATE".
    let stat = |name: &str| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", threads[name])).unwrap();
        let words = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(1);
        let fields: Vec<i128> = words.map(|word| word.parse().unwrap()).collect();
        (fields[41 - 4], fields[40 - 4], fields[19 - 4])
    };
    assert_eq!(stat("fifo"), (1, 40, 0));
    assert_eq!(stat("rr"), (2, 7, 0));
    assert_eq!(stat("batch"), (3, 0, 5));
    assert_eq!(stat("idle"), (5, 0, 0));
    assert_eq!(stat("nice"), (0, 0, -10));
    assert_eq!(stat("user"), (0, 0, 3), "the second phase");
    assert_eq!(field(threads["nice"], "Cpus_allowed_list").unwrap(), "0");
    assert_eq!(field(threads["user"], "Cpus_allowed_list").unwrap(), "0");
    assert!(field(threads["user"], "Uid").unwrap().starts_with("12345\t12345"));
    let session = |name: &str| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", threads[name])).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned()
    };
    assert_eq!(session("fifo"), session("nice"));
    assert_ne!(session("fifo"), session("user"));
    let processes: Vec<u32> = threads.values().copied().collect();
    assert!(Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    assert!(run.wait().unwrap().success(), "a signal ends the run, and what it did is reported");
    assert_nothing_left(run.id(), &processes);
}
