//! Recordings that are about some tasks: of the whole machine (`-p`, a command), and of these tasks alone (`--only`).

use super::*;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};

/// A server that has a child from the start. Both sleep until somebody writes to their FIFO; then the server forks
/// other children, and ends.
const SERVER: &str = "
    work() { i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; }
    ( read line < child; work; work ) &
    read line < server
    for turn in 1 2 3 4 5 6 7 8; do work & work; sleep 0.01; done
    wait";

fn schedlab(arguments: &[&str], trace: &Path) -> Output {
    Command::new(SCHEDLAB).args(arguments).arg(trace).output().unwrap()
}

fn stats(trace: &Path) -> Value {
    json(&schedlab(&["stats", "--json"], trace))
}

/// The figures of the target's tasks by thread id.
fn of_target(stats: &Value) -> BTreeMap<i64, &Value> {
    let tasks = stats["tasks"].as_array().unwrap().iter().filter(|task| task["target"] == true);
    tasks.map(|task| (task["tid"].as_i64().unwrap(), task)).collect()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Two recordings of one server at the same time, of the machine and of the server alone.
fn both_ways(dir: &Path) -> (PathBuf, PathBuf, i64) {
    assert!(Command::new("mkfifo").args(["child", "server"]).current_dir(dir).status().unwrap().success());
    let server = Command::new("/bin/sh").args(["-c", SERVER]).current_dir(dir).spawn();
    let mut server = server.unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (whole, alone) = (dir.join("whole.arrows"), dir.join("alone.arrows"));
    let pid = server.id().to_string();
    let recorders = [start(&whole, &["-p", &pid]), start(&alone, &["-p", &pid, "--only"])];
    wait_for_bytes(&whole);
    wait_for_bytes(&alone);
    for fifo in ["child", "server"] {
        std::fs::write(dir.join(fifo), "go\n").unwrap();
    }
    server.wait().unwrap();
    for recorder in recorders {
        assert_eq!(json(&recorder.wait_with_output().unwrap())["ending"], "processes");
    }
    (whole, alone, pid.parse().unwrap())
}

#[test]
fn a_recording_of_some_processes_alone_agrees_with_one_of_the_machine() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (whole, alone, pid) = both_ways(dir.path());
    let (full, partial) = (stats(&whole), stats(&alone));
    let (full_tasks, tasks) = (of_target(&full), of_target(&partial));
    assert!(tasks.len() >= 10 && tasks.contains_key(&pid), "the server, its first child, and those it forked");
    assert_eq!(tasks.len(), partial["tasks"].as_array().unwrap().len(), "nothing else is in the partial recording");
    let lost = |stats: &Value| stats["total"]["lost_events"].as_u64().unwrap();
    if lost(&full) + lost(&partial) > 0 {
        return;
    }
    let us = |task: &Value, key: &str| task[key].as_f64().unwrap();
    // Some hosts hide some tasks, and so switches: then the one guesses when a task got its CPU, the other does not.
    let guessed = us(&full["total"], "contradicted_us") + us(&partial["total"], "contradicted_us");
    let mut compared = 0.0;
    assert_eq!(tasks.len(), full_tasks.len());
    for (tid, task) in &tasks {
        let other = full_tasks.get(tid).unwrap_or_else(|| panic!("{task} is in one recording only"));
        for key in ["run_us", "wait_us"] {
            let (is, should) = (us(task, key), us(other, key));
            assert!(
                (is - should).abs() <= 500.0 + should * 0.01 + guessed,
                "{tid} {}: {key} {is} {should}",
                task["name"]
            );
        }
        compared += us(task, "run_us");
    }
    let whole_run = full["target"]["run_us"].as_f64().unwrap();
    assert!((compared - whole_run).abs() <= 0.02 * whole_run + guessed, "{compared} of {whole_run}, {guessed} guessed");
    assert!(full["others"]["tasks"].as_u64().unwrap() > 0 && !full["cpus"].as_array().unwrap().is_empty());
}

#[test]
fn a_partial_recording_says_only_what_it_can() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (whole, alone, pid) = both_ways(dir.path());
    let partial = stats(&alone);
    assert_eq!(partial["cpus"], serde_json::json!([]));
    assert_eq!(partial["trace"]["partial"]["covers"], "tasks");
    for key in ["idle_us", "queue", "share", "fairness", "migrations"] {
        assert!(partial["total"][key].is_null() && partial["tasks"][0][key].is_null(), "{key}");
    }
    let shown = text(&schedlab(&["stats"], &alone));
    assert!(shown.contains(&format!("only the events of process {pid} and its children")), "{shown}");
    assert!(!shown.contains("idle") && !shown.contains("share"), "{shown}");
    for (arguments, status) in [
        (&["check"][..], 3),
        (&["heatmap", "--json"], 2),
        (&["stats", "--by", "cpu"], 2),
        (&["stats", "--schedstat=15"], 2),
        (&["gantt", "--by", "cpu"], 2),
        (&["gantt"], 0),
        (&["model"], 0),
    ] {
        let output = schedlab(arguments, &alone);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains("what else ran is not known"), "{arguments:?}: {}", text(&output));
    }
    let model = json(&schedlab(&["model", "--json", "-o", "/dev/null", "--force"], &alone));
    let run = us_of_target(&partial);
    let modelled = model["report"]["modelled_ns"].as_f64().unwrap() / 1e3;
    assert!((modelled - run).abs() <= 0.02 * run, "the model has the server alone: {modelled} {run}");

    // The other one shows the rest of the machine on request.
    let shown = text(&schedlab(&["stats"], &whole));
    assert!(shown.contains(&format!("target: process {pid}")) && shown.contains("others ("), "{shown}");
    let all = text(&schedlab(&["stats", "--all"], &whole));
    assert!(all.lines().count() > shown.lines().count() && !all.contains("others ("), "{all}");
}

fn us_of_target(stats: &Value) -> f64 {
    of_target(stats).values().map(|task| task["run_us"].as_f64().unwrap()).sum()
}

#[test]
fn a_commands_own_tasks_come_first_and_their_affinities_are_known() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; (sleep 0.05)";
    let output = record(&file, &["--", "taskset", "-c", "0", "/bin/sh", "-c", script]);
    json(&output);
    let report = stats(&file);
    let tasks = of_target(&report);
    assert!((1..=3).contains(&tasks.len()), "{tasks:?}");
    for task in tasks.values() {
        assert_eq!(task["allowed"], "0", "{task}");
    }
    let shown = text(&schedlab(&["stats"], &file));
    assert!(shown.contains("target: taskset -c 0 /bin/sh -c") && shown.contains("others ("), "{shown}");
}

#[test]
fn a_recording_of_many_threads_alone_begins_soon() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let end = Arc::new(Barrier::new(401));
    let start = || {
        let end = Arc::clone(&end);
        std::thread::spawn(move || end.wait())
    };
    let threads: Vec<_> = (0..400).map(|_| start()).collect();
    let began = Instant::now();
    let output = record(&file, &["-p", &std::process::id().to_string(), "--only", "--duration", "100ms"]);
    let took = began.elapsed();
    end.wait();
    threads.into_iter().for_each(|thread| drop(thread.join()));
    assert!(output.status.success(), "{}", text(&output));
    let target = schedlab_trace::open(&file).unwrap().meta().target.clone().unwrap();
    assert!(target.threads.len() > 400, "{}", target.threads.len());
    // Asked for one by one, each would take the kernel some 40 ms.
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[test]
fn an_empty_recording_says_so_and_keeps_its_span() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let mut sleeper = Command::new("sleep").arg("30").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let output = record(&file, &["-p", &sleeper.id().to_string(), "--only", "--duration", "300ms"]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(json(&output)["events"], 0);
    assert!(text(&output).contains("nothing was recorded. The likely cause: the processes slept"), "{}", text(&output));
    let span = stats(&file)["total"]["span_us"].as_f64().unwrap();
    assert!((290_000.0..2_000_000.0).contains(&span), "{span}");
    let shown = text(&schedlab(&["stats"], &file));
    assert!(shown.contains("no events were recorded in"), "{shown}");
    assert_eq!(schedlab(&["check"], &file).status.code(), Some(3));
}

#[test]
fn a_perf_data_of_one_command_is_partial() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let perf = |scope: &[&str]| {
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-e", "sched:sched_switch"]).args(scope).arg("-o").arg(&file);
        perf.args(["--", "sleep", "0.2"]).output().is_ok_and(|output| output.status.success())
    };
    if !perf(&[]) {
        eprintln!("skipped: perf does not record here");
        return;
    }
    let report = stats(&file);
    assert_eq!(report["trace"]["partial"]["covers"], "inside");
    let task = &report["tasks"][0];
    assert!(task["run_us"].is_null() && task["slices"].is_null() && task["voluntary"].is_u64(), "{task}");
    assert_eq!(schedlab(&["check"], &file).status.code(), Some(3));
    assert!(text(&schedlab(&["gantt"], &file)).contains("record all CPUs: perf sched record"));
    assert!(perf(&["-a"]));
    assert!(stats(&file)["trace"]["partial"].is_null());
}
