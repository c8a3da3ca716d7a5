//! Lowering, held against what rt-app 55cb0c0 does.

use super::lower;
use schedlab_machine::Machine;
use schedlab_sim::program::{Amount, Load, MemorySpec, Op, Policy, ROOT_GROUP};
use schedlab_workload::{Workload, parse, presets, write};
use std::path::{Path, PathBuf};

fn workload(text: &str) -> Workload {
    parse(text.as_bytes(), Path::new("w.json")).unwrap()
}

fn machine(cpus: &str) -> Machine {
    schedlab_machine::load(cpus).unwrap()
}

fn lowered(text: &str) -> Load {
    lower(&workload(text), &machine("4")).unwrap().spread()
}

fn refused(text: &str) -> String {
    lower(&workload(text), &machine("4")).unwrap_err().to_string()
}

fn run(us: u64) -> Op {
    Op::Run(Amount { mean: us * 1000, sd: 0 })
}

#[test]
fn a_hog_is_three_operations() {
    let load = lowered(r#"{"tasks": {"h": {"instance": 2, "loop": -1, "run": 7, "priority": 5}}}"#);
    let names: Vec<&str> = load.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["h-0", "h-1"]);
    assert_eq!(load.tasks[0].program, [Op::LoopStart { times: None }, run(7), Op::LoopEnd { start: 0 }]);
    assert_eq!((load.tasks[0].initial.policy, load.tasks[0].initial.nice), (Some(Policy::Other), Some(5)));
    assert!(load.settings.is_empty());
}

#[test]
fn loops_nest_and_one_round_needs_no_loop() {
    let load = lowered(
        r#"{"tasks": {"t": {"loop": 3, "phases": {"a": {"loop": 2, "run": 1}, "b": {"run": 2, "sleep": 3}}}}}"#,
    );
    let expected = [
        Op::LoopStart { times: Some(3) },
        Op::LoopStart { times: Some(2) },
        run(1),
        Op::LoopEnd { start: 1 },
        run(2),
        Op::Sleep(Amount { mean: 3000, sd: 0 }),
        Op::LoopEnd { start: 0 },
    ];
    assert_eq!(load.tasks[0].program, expected);
    assert_eq!(load.tasks[0].name, "t");
    assert_eq!(lowered(r#"{"tasks": {"t": {"loop": 1, "run": 2}}}"#).tasks[0].program, [run(2)]);
}

#[test]
fn starts_are_the_delay_and_the_stagger() {
    let load = lowered(r#"{"tasks": {"t": {"instance": 3, "delay": 10, "x-stagger": 5, "run": 1}}}"#);
    assert_eq!(load.tasks.iter().map(|task| task.start).collect::<Vec<_>>(), [10_000, 15_000, 20_000]);
}

#[test]
fn barriers_count_mentions_times_instances() {
    let load = lowered(
        r#"{"tasks": {"a": {"instance": 3, "run": 1, "barrier": "b"},
                      "c": {"run": 1, "barrier1": "b", "barrier2": "b"}}}"#,
    );
    assert_eq!(load.barriers, [("b".to_owned(), 5)]);
}

#[test]
fn plain_timers_are_shared_and_unique_ones_are_not() {
    let load = lowered(
        r#"{"tasks": {
            "a": {"timer": {"ref": "x", "period": 9}, "timer2": {"ref": "unique", "period": 9}},
            "b": {"timer": {"ref": "x", "period": 9, "mode": "absolute"}, "timer2": {"ref": "unique", "period": 9}}}}"#,
    );
    let expected = [("x".to_owned(), false), ("unique".to_owned(), true), ("unique".to_owned(), true)];
    assert_eq!(load.timers, expected);
    // One mention makes a timer absolute, even for those before it.
    let absolute = |task: usize, op: usize| matches!(load.tasks[task].program[op], Op::Timer { absolute: true, .. });
    assert!(absolute(0, 1) && absolute(1, 1) && !absolute(0, 2) && !absolute(1, 2));
}

#[test]
fn properties_are_set_where_they_change() {
    let load = lowered(
        r#"{"tasks": {"t": {"cpus": [2], "taskgroup": "/g", "phases": {
            "a": {"run": 1}, "b": {"run": 1, "cpus": [0], "taskgroup": "/"}, "c": {"run": 1}}}}}"#,
    );
    let task = &load.tasks[0];
    assert_eq!((task.initial.cpus.clone(), task.initial.group), (Some(vec![2]), Some(0)));
    assert_eq!(task.program[2], Op::Set(0), "{:?}", task.program);
    // CPUs go back to the task's in the next phase; the group stays.
    assert_eq!((load.settings[0].cpus.clone(), load.settings[0].group), (Some(vec![0]), Some(ROOT_GROUP)));
    assert_eq!((load.settings[1].cpus.clone(), load.settings[1].group), (Some(vec![2]), None));
}

#[test]
fn groups_are_nested_and_weights_become_shares() {
    let load = lowered(
        r#"{"x-groups": {"/a/b": {"weight": 39}, "/c": {"shares": 19456, "quota_us": 50000}},
            "tasks": {"t": {"run": 1, "taskgroup": "/a/b/d"}}}"#,
    );
    let groups: Vec<_> = load.groups.iter().map(|g| (g.path.as_str(), g.parent, g.shares)).collect();
    assert_eq!(groups, [("/a", None, 1024), ("/a/b", Some(0), 399), ("/a/b/d", Some(1), 1024), ("/c", None, 19456)]);
    assert_eq!(load.groups[3].bandwidth, Some((50_000_000, 100_000_000)));
    assert_eq!(load.tasks[0].initial.group, Some(2));
}

#[test]
fn a_task_suspends_under_its_own_name_unless_only_the_given_one_is_resumed() {
    let own =
        lowered(r#"{"tasks": {"a": {"suspend": "x", "run": 1}, "b": {"resume": "a", "resume1": "x", "run": 1}}}"#);
    assert_eq!(own.suspensions, ["a", "x"]);
    assert_eq!(own.tasks[0].program[1], Op::Suspend(0));
    let given = lowered(r#"{"tasks": {"a": {"suspend": "x", "run": 1}, "b": {"resume": "x", "run": 1}}}"#);
    assert_eq!(given.suspensions, ["x"]);
}

#[test]
fn a_suspension_that_shares_its_name_with_a_condition_is_that_condition() {
    let load = lowered(r#"{"tasks": {"a": {"suspend": "", "run": 1}, "b": {"signal": "a", "resume": "a", "run": 1}}}"#);
    assert!(load.suspensions.is_empty());
    assert_eq!(load.tasks[0].program[1..4], [Op::Lock(0), Op::Wait { cond: 0, mutex: 0 }, Op::Unlock(0)]);
    assert_eq!(load.tasks[1].program[1..5], [Op::Signal(0), Op::Lock(0), Op::Broadcast(0), Op::Unlock(0)]);
}

#[test]
fn templates_are_made_for_what_is_forked() {
    let load =
        lowered(r#"{"tasks": {"t": {"instance": 0, "delay": 5, "loop": 2, "run": 1}, "p": {"run": 1, "fork": "t"}}}"#);
    assert_eq!(load.tasks.len(), 1);
    assert_eq!(load.templates[0].name, "t");
    let sleep = Op::Sleep(Amount { mean: 5000, sd: 0 });
    let expected = [sleep, Op::LoopStart { times: Some(2) }, run(1), Op::LoopEnd { start: 1 }];
    assert_eq!(load.templates[0].program, expected);
}

#[test]
fn writes_to_nowhere_do_not_sleep() {
    let load = lowered(r#"{"tasks": {"t": {"iorun": 5000000}}}"#);
    assert_eq!(load.tasks[0].program[1], Op::Runtime(Amount { mean: 400, sd: 0 }));
    let load = lowered(r#"{"global": {"io_device": "/dev/sda"}, "tasks": {"t": {"iorun": 5000}}}"#);
    assert_eq!(load.tasks[0].program[1], Op::Io(5000));
}

#[test]
fn what_the_machine_lacks_is_refused() {
    assert_eq!(
        refused(r#"{"tasks": {"t": {"run": 1, "cpus": [1, 4]}}}"#),
        "tasks.t.cpus: the machine \"4\" has no CPU 4; it has CPUs 0 to 3"
    );
    assert!(refused(r#"{"tasks": {"t": {"phases": {"p": {"run": 1, "nodes_membind": [1]}}}}}"#).contains("no node 1"));
    assert!(
        refused(r#"{"x-hotplug": [{"at_us": 1, "cpu": 9, "online": false}], "tasks": {"t": {"run": 1}}}"#)
            .contains("CPU 9")
    );
    assert!(
        refused(r#"{"x-irq": [{"cpus": [4], "period_us": 9, "duration_us": 1}], "tasks": {"t": {"run": 1}}}"#)
            .contains("x-irq: the machine \"4\" has no CPU 4")
    );
}

#[test]
fn interrupts_leave_every_cpu_some_time() {
    let text = r#"{"x-irq": [{"period_us": 10, "duration_us": 6}, {"cpus": [0], "period_us": 9, "duration_us": 6}],
                   "tasks": {"t": {"run": 1}}}"#;
    assert!(refused(text).contains("x-irq: the entries take 127% of CPU 0 together"), "{}", refused(text));
    let fine = text.replace("\"period_us\": 9", "\"period_us\": 90");
    assert_eq!(lowered(&fine).interrupts.iter().map(|one| one.cpu).collect::<Vec<_>>(), [0, 1, 2, 3, 0]);
}

#[test]
fn tasks_keep_to_the_common_cpus_unless_they_name_others() {
    let machine = Machine { isolated: vec![3], partitions: vec![vec![1, 2]], ..machine("6") };
    let lower = |text: &str| lower(&workload(text), &machine);
    let load = lower(r#"{"tasks": {"t": {"run": 1}, "u": {"run": 1, "cpus": [1, 2]}, "v": {"run": 1, "cpus": [3]}}}"#);
    let cpus: Vec<_> = load.unwrap().tasks.into_iter().map(|task| task.initial.cpus.unwrap()).collect();
    assert_eq!(cpus, [vec![0, 4, 5], vec![1, 2], vec![3]]);
    let refused = |text: &str| lower(text).unwrap_err().to_string();
    assert_eq!(
        refused(r#"{"tasks": {"t": {"run": 1, "cpus": [0, 1]}}}"#),
        "tasks.t.cpus: CPUs 0 and 1 are in different partitions, and no cpuset has both; name CPUs of one partition"
    );
}

#[test]
fn loops_in_which_no_time_passes_are_refused() {
    for body in [
        r#""loop": -1, "yield": """#,
        r#""sleep": 0"#,
        r#""loop": 1000000000000, "signal": "x""#,
        r#""lock": "m", "unlock": "m""#,
        r#""barrier": "alone""#,
        r#""timer": {"ref": "unique", "period": 0}"#,
        r#""sem_post": "s", "sem_wait": "s""#,
        r#""x-ask": "s", "sem_wait": "s", "x-answer": "s", "x-await": """#,
        r#""phases": {"a": {"loop": 2, "resume": "x"}, "b": {"signal": "x"}}"#,
        r#""loop": 1, "phases": {"a": {"run": 1}, "b": {"loop": -1, "signal": "x"}}"#,
    ] {
        let message = refused(&format!("{{\"tasks\": {{\"t\": {{{body}}}}}}}"));
        assert!(message.contains("without any time passing"), "{body}: {message}");
    }
    let message = refused(r#"{"tasks": {"a": {"fork": "b", "run": 1}, "b": {"instance": 0, "fork": "b", "run": 1}}}"#);
    assert!(message.contains("forks of \"b\" go on"), "{message}");
    let message =
        refused(r#"{"tasks": {"a": {"fork": "b", "run": 1}, "b": {"instance": 0, "barrier": "x", "run": 1}}}"#);
    assert!(message.contains("only forked tasks"), "{message}");
}

#[test]
fn a_task_that_may_be_killed_holds_nothing_that_others_need() {
    for event in [r#""lock": "m", "wait": {"ref": "c", "mutex": "m"}"#, r#""barrier": "b""#, r#""x-spin-lock": "m""#] {
        let message =
            refused(&format!("{{\"tasks\": {{\"t\": {{\"instance\": 2, \"x-lifetime\": 9, \"run\": 1, {event}}}}}}}"));
        assert!(message.contains("tasks.t.") && message.contains("in vain when it is killed"), "{event}: {message}");
    }
    let load =
        lowered(r#"{"tasks": {"t": {"x-lifetime": 9000, "lock": "m", "run": 1, "unlock": "m", "sem_post": "s"}}}"#);
    assert_eq!(load.tasks[0].lifetime, Some(9_000_000));
}

#[test]
fn a_task_may_fork_itself_after_a_while() {
    let load = lowered(r#"{"tasks": {"a": {"fork": "b", "run": 1}, "b": {"instance": 0, "run": 1, "fork": "b"}}}"#);
    assert_eq!(load.templates.len(), 1);
}

#[test]
fn a_load_beyond_memory_is_refused() {
    let events: String = (0..100).map(|n| format!("\"run{n}\": 1,")).collect();
    let message = refused(&format!("{{\"tasks\": {{\"t\": {{\"instance\": 1000000, {events}}}}}}}"));
    assert!(message.contains("operations"), "{message}");
}

#[test]
fn every_preset_lowers() {
    for preset in presets::PRESETS {
        let workload = presets::build(preset.name).unwrap();
        let load = lower(&workload, &machine("4")).unwrap();
        assert!(!load.tasks.is_empty(), "{}", preset.name);
        check(&load);
    }
    assert_eq!(lower(&presets::build("messaging").unwrap(), &machine("4")).unwrap().nr_tasks(), 400);
}

/// Every index is in its list, every loop's end has its start.
fn check(load: &Load) {
    for (n, group) in load.groups.iter().enumerate() {
        assert!(group.parent.is_none_or(|parent| (parent as usize) < n));
    }
    for task in load.tasks.iter().chain(&load.templates) {
        let mut starts = Vec::new();
        for (at, op) in task.program.iter().enumerate() {
            let inside = |index: u32, len: usize| assert!((index as usize) < len, "{op:?} in {}", task.name);
            let op = if let Op::Synced(op) = op { op } else { op };
            match *op {
                Op::LoopStart { times } => {
                    assert_ne!(times, Some(0));
                    starts.push(at as u32);
                }
                Op::LoopEnd { start } => assert_eq!(starts.pop(), Some(start)),
                Op::Timer { timer, .. } => inside(timer, load.timers.len()),
                Op::Lock(m) | Op::Unlock(m) | Op::SpinLock(m) | Op::SpinUnlock(m) => inside(m, load.mutexes.len()),
                Op::Wait { cond, mutex } => {
                    inside(cond, load.conds.len());
                    inside(mutex, load.mutexes.len());
                }
                Op::Signal(c) | Op::Broadcast(c) => inside(c, load.conds.len()),
                Op::Barrier(b) | Op::SpinBarrier(b) | Op::HybridBarrier { barrier: b, .. } => {
                    inside(b, load.barriers.len())
                }
                Op::Suspend(s) | Op::Resume(s) => inside(s, load.suspensions.len()),
                Op::SemPost(s) | Op::SemWait(s) | Op::Ask(s) | Op::Answer(s) => inside(s, load.sems.len()),
                Op::Fork(t) => inside(t, load.templates.len()),
                Op::Set(s) => inside(s, load.settings.len()),
                _ => {}
            }
        }
        assert!(starts.is_empty());
    }
}

fn json_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(json_files(&path));
        } else if path.extension().is_some_and(|ext| ext == "json") {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn memory_is_shared_by_those_of_one_key_who_say_so() {
    let text = r#"{"tasks": {
        "own": {"instance": 2, "run": 1, "x-memory": {"bytes": 4096}},
        "same": {"phases": {
            "a": {"run": 1, "x-memory": {"bytes": 4096, "node": "first-touch", "bound": 30}, "nodes_membind": [0]},
            "b": {"run": 1, "x-memory": {"bytes": 8192, "node": 0}}}},
        "pool": {"instance": 3, "run": 1, "x-memory": {"bytes": 4096, "shared": true, "bound": 60}},
        "other": {"instance": 3, "run": 1, "x-memory": {"bytes": 4096, "shared": true, "bound": 60}},
        "spread": {"run": 1, "x-memory": {"bytes": 9000, "node": {"1": 70, "0": 30}, "pinned": true}}}}"#;
    let load = lower(&workload(text), &machine("z800")).unwrap().spread();
    let spec = |bytes, nodes: &[(u32, u32)], shared, parts, bound_percent| MemorySpec {
        bytes,
        nodes: nodes.to_vec(),
        pinned: nodes.len() > 1,
        shared,
        parts,
        bound_percent,
    };
    let pool = spec(4096, &[], true, 3, 60);
    let spread = spec(9000, &[(0, 30), (1, 70)], false, 1, 30);
    assert_eq!(
        load.memories,
        [spec(4096, &[], false, 1, 30), spec(8192, &[(0, 1)], false, 1, 30), pool.clone(), pool, spread]
    );
    let of = |name: &str| load.tasks.iter().find(|task| task.name == name).unwrap().initial.memory;
    assert_eq!((of("own-0"), of("own-1")), (Some(0), Some(0)), "each has its own of one kind");
    assert_eq!((of("pool-0"), of("pool-2"), of("other-0")), (Some(2), Some(2), Some(3)));
    let sets: Vec<_> = load.settings.iter().map(|s| (s.memory, s.membind.clone())).collect();
    assert_eq!(sets, [(Some(0), Some(vec![0])), (Some(1), None)]);
}

#[test]
fn every_preset_reads_again_and_lowers_on_a_large_machine() {
    use schedlab_workload::presets::{self, PRESETS};
    let nas = presets::NAS.iter().map(|program| format!("nas:{},threads=16,percent=1", program.name));
    let others = PRESETS.iter().filter(|preset| preset.name != "nas").map(|preset| preset.name.to_owned());
    for spec in nas.chain(others) {
        let made = presets::build(&spec).unwrap_or_else(|e| panic!("{spec}: {e}"));
        let text = schedlab_workload::write(&made);
        let mut read =
            schedlab_workload::parse(text.as_bytes(), Path::new("w.json")).unwrap_or_else(|e| panic!("{spec}: {e}"));
        read.name.clone_from(&made.name);
        assert_eq!((read.warnings.as_slice(), &read.tasks), (&[][..], &made.tasks), "{spec}");
        let load = lower(&made, &machine("bulldozer-64")).unwrap_or_else(|e| panic!("{spec}: {e}"));
        assert!(!load.tasks.is_empty(), "{spec}");
    }
}

#[test]
fn our_own_examples_lower_without_a_remark() {
    let files = json_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads"));
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let workload = schedlab_workload::load(file.to_str().unwrap()).unwrap();
        assert!(workload.warnings.is_empty(), "{:?}", workload.warnings);
        check(&lower(&workload, &machine("4")).unwrap());
    }
}

/// rt-app's own examples, where `SCHEDLAB_RTAPP_EXAMPLES` names their folder (doc/examples of its sources).
#[test]
fn rt_apps_examples_lower_but_the_broken_ones() {
    let Ok(dir) = std::env::var("SCHEDLAB_RTAPP_EXAMPLES") else { return };
    let files = json_files(Path::new(&dir));
    assert_eq!(files.len(), 28, "{files:?}");
    let mut broken = 0;
    for file in files {
        let loaded = schedlab_workload::load(file.to_str().unwrap());
        let part = file.strip_prefix(&dir).unwrap();
        if part.starts_with("merge") || file.file_name().unwrap().to_str().unwrap().starts_with("video-") {
            let message = loaded.unwrap_err().to_string();
            assert!(message.starts_with(&format!("{}:", file.display())), "{message}");
            println!("{message}");
            broken += 1;
            continue;
        }
        let workload = loaded.unwrap_or_else(|e| panic!("{e}"));
        check(&lower(&workload, &machine("4")).unwrap_or_else(|e| panic!("{}: {e}", file.display())));
        let again = parse(write(&workload).as_bytes(), &file).unwrap();
        assert_eq!(Workload { warnings: Vec::new(), ..again }, Workload { warnings: Vec::new(), ..workload });
    }
    assert_eq!(broken, 8);
}
