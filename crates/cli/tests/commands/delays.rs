//! `schedlab delays`, and the selections that `stats`, `gantt`, `heatmap`, `check` and `model` share with it.

use crate::support::{json, ok, schedlab};
use schedlab_base::{Context, CpuPlace, Event, Meta, NameRecord, Payload, Sink, TaskState};
use schedlab_trace::Writer;
use serde_json::Value;
use std::path::Path;

const MS: u64 = 1_000_000;

/// One CPU of two is used. `web` (tid 11 and 12, process 11) and `db` (tid 21) take it from `batch` (tid 31); thread 12
/// waits from 20 to 50 ms behind batch, db and web 11. Task 41 only has a name; 51 only sleeps.
fn write(path: &Path) {
    let place = |cpu| CpuPlace { cpu, core: cpu, capacity: 1024, ..CpuPlace::default() };
    let meta = Meta {
        source: "test".into(),
        kernel: "6.1".into(),
        cpus: vec![place(0), place(1)],
        running: vec![(0, 31), (1, 0)],
        span: Some((0, 100 * MS)),
        ..Meta::default()
    };
    let mut writer = Writer::create(path, &meta).expect("written");
    let names = [(11, 11, "web", "/site/a"), (12, 11, "web", "/site/a"), (21, 21, "db", "/site/b")];
    let more = [(31, 31, "batch", "/jobs"), (41, 41, "named", "/"), (51, 51, "asleep", "/")];
    for (tid, tgid, comm, cgroup) in names.into_iter().chain(more) {
        let (tgid, comm, cgroup) = (Some(tgid), comm.to_owned(), Some(cgroup.to_owned()));
        writer.name(&NameRecord { time: 0, tid, tgid, comm, cgroup });
    }
    let wake = |ms: u64, tid| Event { time: ms * MS, cpu: 0, what: Payload::Wakeup { tid, prio: 120, target: 0 } };
    let switch = |ms: u64, prev, prev_state, next| {
        let what = Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 };
        Event { time: ms * MS, cpu: 0, what }
    };
    use TaskState::{Runnable as R, Sleeping as S};
    writer.events(&[
        Event {
            time: 5 * MS,
            cpu: 0,
            what: Payload::Waking { tid: 51, prio: 120, target: 0, waker: 31, context: Context::Unknown },
        },
        wake(20, 12),
        wake(25, 21),
        switch(30, 31, R, 21),
        wake(34, 11),
        switch(38, 21, S, 11),
        switch(50, 11, S, 12),
        switch(58, 12, S, 31),
    ]);
    writer.finish().expect("written");
}

fn trace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(&folder.path().join("t.arrows"));
    folder
}

fn message(folder: &Path, args: &[&str]) -> String {
    let out = schedlab(folder, args);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}");
    String::from_utf8(out.stderr).expect("text")
}

#[test]
fn the_longest_waits_have_their_culprits_and_their_picture() {
    let folder = trace();
    let all = json(folder.path(), &["delays", "t.arrows", "--worst", "2"]);
    let waits = all["waits"].as_array().expect("waits");
    let of = |wait: &Value| (wait["task"].as_str().map(str::to_owned), wait["tid"].as_i64(), wait["start_us"].as_f64());
    let (web, batch) = (("web", 12, 20e3), ("batch", 31, 30e3));
    let expected = [web, batch].map(|(task, tid, start)| (Some(task.to_owned()), Some(tid), Some(start)));
    assert_eq!(waits.iter().map(of).collect::<Vec<_>>(), expected);
    let culprits: Vec<_> =
        waits[0]["culprits"].as_array().unwrap().iter().map(|c| (c["tid"].as_i64(), c["run_us"].as_f64())).collect();
    assert_eq!(culprits, [(Some(11), Some(12e3)), (Some(31), Some(10e3)), (Some(21), Some(8e3))]);
    assert_eq!((waits[0]["cpu"].as_u64(), waits[0]["idle_allowed_us"].as_f64()), (Some(0), Some(30e3)));
    // web 11 kept 12 and batch waiting for 12 ms each; db kept 12 and batch for 8 ms each, and web 11 for 4.
    assert_eq!((all["culprits"][0]["tid"].as_i64(), all["culprits"][0]["caused_us"].as_f64()), (Some(11), Some(24e3)));
    assert_eq!((all["culprits"][1]["tid"].as_i64(), all["culprits"][1]["caused_us"].as_f64()), (Some(21), Some(20e3)));
    let by_process = &all["culprits_by_process"][0];
    assert_eq!((by_process["tgid"].as_i64(), by_process["name"].as_str()), (Some(11), Some("web")));
    // The picture: the command is right as it stands.
    let gantt = waits[0]["gantt"].as_str().expect("a command");
    assert_eq!(gantt, "schedlab gantt t.arrows --from 20000000ns --to 50000000ns --cpu 0");
    let words: Vec<&str> = gantt.split(' ').skip(1).collect();
    let picture = ok(folder.path(), &words);
    assert!(picture.contains("cpu0") && !picture.contains("cpu1"), "{picture}");

    let text = ok(folder.path(), &["delays", "t.arrows", "--by", "process"]);
    assert!(text.contains("1. web 12 waited 30.000 ms on cpu0, from 20.000 ms to 50.000 ms, after a wakeup"), "{text}");
    assert!(text.contains("web 11 12.000 ms (40.0%), batch 31 10.000 ms (33.3%), db 21 8.000 ms (26.7%)"), "{text}");
    assert!(text.contains(gantt) && text.contains("another allowed CPU was idle for 30.000 ms"), "{text}");
}

#[test]
fn victims_are_selected_and_the_window_cuts_their_waits() {
    let folder = trace();
    let some = json(folder.path(), &["delays", "t.arrows", "--task", "w*", "--from", "24ms", "--to", "40ms"]);
    assert_eq!(some["total"]["wait_us"], 16e3 + 4e3);
    let first = &some["waits"][0];
    assert_eq!((first["tid"].as_i64(), first["start_us"].as_f64()), (Some(12), Some(24e3)));
    assert_eq!((&first["began_before"], &first["finished"]), (&Value::Bool(true), &Value::Bool(false)));
    let culprits = first["culprits"].as_array().expect("culprits");
    assert_eq!(culprits.iter().map(|c| c["run_us"].as_f64().unwrap()).sum::<f64>(), 16e3);
    for (option, value, tasks) in [
        ("--pid", "11", 2),
        ("--pid", "12", 1),
        ("--group", "/site", 3),
        ("--group", "/site/b", 1),
        ("--task", "db", 1),
    ] {
        let found = json(folder.path(), &["stats", "t.arrows", option, value]);
        assert_eq!(found["tasks"].as_array().unwrap().len(), tasks, "{option} {value}");
    }
    assert!(message(folder.path(), &["delays", "t.arrows", "--task", "dbb"]).contains("did you mean \"db\"?"));
    assert!(message(folder.path(), &["stats", "t.arrows", "--pid", "99"]).contains("thread or process id 99"));
    assert!(message(folder.path(), &["stats", "t.arrows", "--group", "/sit"]).contains("no task is in the cgroup"));
    assert!(message(folder.path(), &["stats", "t.arrows", "--from", "1s"]).contains("the trace ends before that"));
    assert!(
        message(folder.path(), &["check", "t.arrows", "--from", "9ms", "--to", "9ms"]).contains("before it begins")
    );
}

#[test]
fn a_group_that_its_tasks_left_is_said_to_be_empty_at_the_end() {
    let folder = trace();
    let path = folder.path().join("moved.arrows");
    let mut writer = Writer::create(&path, &Meta { running: vec![(0, 31)], ..Meta::default() }).expect("written");
    for (time, cgroup) in [(0, "/x/y"), (2 * MS, "/z")] {
        let cgroup = Some(cgroup.to_owned());
        writer.name(&NameRecord { time, tid: 31, tgid: Some(31), comm: "mover".to_owned(), cgroup });
        let what = Payload::Wakeup { tid: 41, prio: 120, target: 0 };
        writer.events(&[Event { time: time + MS, cpu: 0, what }]);
    }
    writer.finish().expect("written");
    let said = message(folder.path(), &["stats", "moved.arrows", "--group", "/x"]);
    assert!(said.contains("no task is in the cgroup \"/x\" at the end; tasks were in it and left it"), "{said}");
    ok(folder.path(), &["stats", "moved.arrows", "--group", "/z"]);
}

#[test]
fn a_window_begins_with_what_runs_and_waits_then() {
    let folder = trace();
    let part = json(folder.path(), &["stats", "t.arrows", "--from", "24ms", "--to", "40ms"]);
    let task = |tid: i64| part["tasks"].as_array().unwrap().iter().find(|t| t["tid"] == tid).cloned().unwrap();
    let times = |tid| (task(tid)["run_us"].as_f64().unwrap() / 1e3, task(tid)["wait_us"].as_f64().unwrap() / 1e3);
    assert_eq!((times(31), times(12), times(21), times(11)), ((6.0, 10.0), (0.0, 16.0), (8.0, 5.0), (2.0, 4.0)));
    assert_eq!(task(31)["slices"], 0);
    assert_eq!(part["total"]["span_us"], 16e3);
    assert_eq!(part["total"]["events"], 4);
    assert_eq!(part["cpus"][0]["run_us"], 16e3);
    assert_eq!(part["cpus"][1]["idle_us"], 16e3, "no event of that CPU is in the window");
    assert_eq!(part["cpus"][0]["queue"]["max"], 4);
    // Windows side by side have together what the whole has.
    let sum = |key: &str| -> f64 {
        [("0ms", "24ms"), ("24ms", "40ms"), ("40ms", "1s")]
            .iter()
            .map(|(from, to)| {
                json(folder.path(), &["stats", "t.arrows", "--from", from, "--to", to])["total"][key].clone()
            })
            .map(|value| value.as_f64().unwrap())
            .sum()
    };
    let whole = json(folder.path(), &["stats", "t.arrows"]);
    for key in ["run_us", "wait_us", "idle_us", "events", "slices", "involuntary"] {
        assert_eq!(sum(key), whole["total"][key].as_f64().unwrap(), "{key}");
    }
    // A wait that ends in the window is a delay of the window, whole.
    let late = json(folder.path(), &["stats", "t.arrows", "--from", "45ms", "--task", "web"]);
    let delay = &late["total"]["delay_us"];
    assert_eq!((delay["count"].as_u64(), delay["max"].as_f64()), (Some(1), Some(30e3)));
    assert_eq!(late["total"]["delay_max_start_us"], 20e3);
}

#[test]
fn every_verb_counts_the_same_tasks() {
    let folder = trace();
    for window in [&[][..], &["--from", "24ms", "--to", "40ms"], &["--from", "70ms"]] {
        let with = |verb: &[&str]| json(folder.path(), &[verb, &["t.arrows"], window].concat());
        let stats = with(&["stats"])["total"]["tasks"].as_u64().unwrap();
        assert_eq!(with(&["check"])["tasks"], stats, "{window:?}");
        assert_eq!(with(&["gantt", "--by", "task"])["lanes"].as_array().unwrap().len() as u64, stats, "{window:?}");
        let model = with(&["model", "-o", "w.json", "--force"]);
        let report = &model["report"];
        assert_eq!(report["tasks"].as_u64().unwrap() + report["left_out"].as_u64().unwrap(), stats, "{window:?}");
    }
    assert_eq!(json(folder.path(), &["stats", "t.arrows"])["total"]["tasks"], 4);
}

#[test]
fn the_other_verbs_take_the_same_selections() {
    let folder = trace();
    let model = json(folder.path(), &["model", "t.arrows", "--from", "24ms", "--to", "40ms", "-o", "w.json"]);
    assert_eq!(
        (&model["report"]["span_ns"], &model["report"]["modelled_ns"]),
        (&16_000_000.into(), &16_000_000.into())
    );
    let model = json(folder.path(), &["model", "t.arrows", "--task", "web", "-o", "w.json", "--force"]);
    assert_eq!((&model["report"]["tasks"], &model["report"]["modelled_ns"]), (&2.into(), &20_000_000.into()));
    // Beside CPU 1, idle throughout, web waits for 20 to 50 ms, and 34 to 38 again.
    let check = json_status(folder.path(), &["check", "t.arrows", "--task", "web", "--threshold", "1ms"]);
    assert_eq!(
        (check["wasted_cpu_us"].as_f64(), check["violations"][0]["start_us"].as_f64()),
        (Some(30e3), Some(20e3))
    );
    let check =
        json_status(folder.path(), &["check", "t.arrows", "--from", "40ms", "--to", "45ms", "--threshold", "1ms"]);
    assert_eq!(
        (check["wasted_cpu_us"].as_f64(), check["violations"][0]["duration_us"].as_f64()),
        (Some(5e3), Some(5e3))
    );
    let heat = json(folder.path(), &["heatmap", "t.arrows", "--from", "24ms", "--to", "30ms", "--task", "web"]);
    assert_eq!((heat["cells"][0]["values"][0].as_f64(), heat["highest"].as_f64()), (Some(1.0), Some(1.0)));
    assert!(
        message(folder.path(), &["heatmap", "t.arrows", "--what", "load", "--task", "web", "--json"]).contains("queue")
    );
    let lanes = json(folder.path(), &["gantt", "t.arrows", "--group", "/jobs", "--by", "task"]);
    assert_eq!(lanes["lanes"].as_array().unwrap().len(), 1);
    let text = ok(folder.path(), &["gantt", "t.arrows", "--task", "web"]);
    assert!(text.contains("* where a task that is not selected ran longest"), "{text}");
}

/// The JSON of `check`, which may end with status 1.
fn json_status(folder: &Path, args: &[&str]) -> Value {
    let out = schedlab(folder, &[args, &["--json"]].concat());
    assert!(matches!(out.status.code(), Some(0 | 1)), "{out:?}");
    serde_json::from_slice(&out.stdout).expect("one JSON document")
}

#[test]
fn rows_are_sorted_and_summed_as_asked() {
    let folder = trace();
    let first = |args: &[&str]| {
        let text = ok(folder.path(), &[&["stats", "t.arrows"], args].concat());
        let row = text.lines().skip_while(|line| !line.contains("lat max")).nth(1).expect("a row");
        row.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(first(&["--sort", "wait"]), "web /site/a 12");
    assert_eq!(first(&["--sort", "name"]), "batch /jobs 31");
    assert_eq!(first(&["--sort", "delay-max"]), "web /site/a 12");
    assert_eq!(first(&["--sort", "tid"]), "web /site/a 11");
    assert_eq!(first(&["--by", "process", "--sort", "wait"]), "web 11 2");
    assert!(first(&["--by", "name", "--sort", "name"]).starts_with("batch 1"));
    let all = json(folder.path(), &["stats", "t.arrows", "--sort", "wait"]);
    assert_eq!(all["tasks"][0]["tid"], 12);
    let web = all["names"].as_array().unwrap().iter().find(|name| name["name"] == "web").unwrap();
    assert_eq!((&web["tasks"], &web["run_us"], &web["wait_us"]), (&2.into(), &20e3.into(), &34e3.into()));
    assert!(message(folder.path(), &["stats", "t.arrows", "--sort", "idle"]).contains("--sort"));
}
