//! A faulty workload is refused with the line, the key and the fix. What rt-app accepts is accepted.

use schedlab_workload::{Workload, parse};
use std::path::Path;

fn read(text: &str) -> schedlab_base::Result<Workload> {
    parse(text.as_bytes(), Path::new("w.json"))
}

/// A workload with one task. Its members are on lines of their own, from line 2 on.
fn task(members: &str) -> String {
    format!("{{\"tasks\": {{\"t\": {{\n{members}}}}}}}")
}

/// Each text is refused with an error that contains the message: it names the line, the key and the fix.
fn refused(cases: &[(String, &str)]) {
    for (text, message) in cases {
        let error = read(text).map(|w| format!("{w:?}")).expect_err(text).to_string();
        assert!(error.contains(message), "{text}\n  gave {error}\n  not  {message}");
    }
}

#[test]
fn errors_in_the_document_name_line_key_and_fix() {
    refused(&[
        ("{}".to_owned(), "w.json:1: no \"tasks\" here; a workload is"),
        ("[]".to_owned(), "w.json:1: is a list, but should be an object"),
        ("{\"tasks\": {}}".to_owned(), "w.json:1: tasks: no task starts; give one task at least"),
        (task("\"instance\": 0, \"run\": 1"), "w.json:1: tasks: no task starts"),
        (
            task("\"run\": 1,\n\"x-averages\": {\"runnable\": 5, \"running\": 6}"),
            "w.json:3: tasks.t.x-averages.running: 6 is not in 0..5",
        ),
        (
            task("\"run\": 1,\n\"x-averages\": {\"runnable\": 5}"),
            "w.json:3: tasks.t.x-averages: \"running\" is missing",
        ),
        (task("\"loop\": 1"), "w.json:1: tasks.t: has no events; give at least one of runtime, run, sleep"),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}},\n\"global\": {\"duration\": -2}}".to_owned(),
            "w.json:2: global.duration: -2 is negative",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}},\n\"global\": {\"duration\": \"2s\"}}".to_owned(),
            "w.json:2: global.duration: is a string, but should be a number of seconds",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}},\n\"global\": {\"duration\": -1.5}}".to_owned(),
            "w.json:2: global.duration: -1.5 s is no time that can be run",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}},\n\"global\": {\"duraton\": 2}}".to_owned(),
            "w.json:2: global.duraton: no such key here; did you mean \"duration\"?",
        ),
        (
            "{\"tasks\": {\"shell\": {\"run\": 1}},\n\"global\": {\"x-until\": \"shel\"}}".to_owned(),
            "w.json:2: global.x-until: there is no task \"shel\"; did you mean \"shell\"?",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}, \"c\": {\"instance\": 0, \"run\": 1}},\n\
             \"global\": {\"x-until\": \"c\"}}"
                .to_owned(),
            "w.json:2: global.x-until: \"c\" has no instance and no task forks it, so that it never ends",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}},\n\"x-groups\": {\"/a\": {\"weight\": 1,\n\"shares\": 2}}}".to_owned(),
            "w.json:2: x-groups./a: has both",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}},\n\"x-hotplug\": [{\"at_us\": 1, \"cpu\": 0}]}".to_owned(),
            "w.json:2: x-hotplug: \"online\" is missing",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}},\n\"x-irq\": [{\"period_us\": 10, \"duration_us\": 10}]}".to_owned(),
            "w.json:2: x-irq.period_us: leaves the CPU no time: each takes as long as there is from one to the next; \
             take a longer period_us or a shorter duration_us",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1}},\n\"x-irq\": [{\"kind\": \"stolen\", \"period_us\": 9, \
             \"duration_us\": 1}]}"
                .to_owned(),
            "w.json:2: x-irq.kind: there is no kind \"stolen\"",
        ),
    ]);
}

#[test]
fn errors_in_tasks_and_times_name_line_key_and_fix() {
    refused(&[
        (task("\"run\": -5"), "w.json:2: tasks.t.run: -5 is negative; a time in us is 0 or more"),
        (
            task("\"run\": {\"mean\": 0.001}"),
            "w.json:2: tasks.t.run.mean: 0.001 us is shorter than anything a task does",
        ),
        (task("\"sleep\": 1.5"), "w.json:2: tasks.t.sleep: is a fractional number, but should be a whole number"),
        (task("\"run\": 9223372036854775807"), "w.json:2: tasks.t.run: 9223372036854775807 us is too long a time"),
        (task("\"run\": 99999999999999999999"), "w.json:2: tasks.t.run: is a number beyond 64 bits"),
        (
            task("\"run\": \"5\""),
            "w.json:2: tasks.t.run: is a string, but should be a whole number; the key makes it the event \"run\"",
        ),
        (task("\"run\": 1,\n\"delay\": -1"), "w.json:3: tasks.t.delay: -1 is negative"),
        (task("\"run\": 1,\n\"instance\": -1"), "w.json:3: tasks.t.instance: -1 is not in 0..1000000"),
        (task("\"run\": 1,\n\"instance\": 1000001"), "w.json:3: tasks.t.instance: 1000001 is not in"),
        (task("\"run\": 1,\n\"loop\": 0"), "w.json:1: tasks.t: \"loop\": 0 is no number of loops"),
        (task("\"run\": 1,\n\"lop\": 2"), "w.json:3: tasks.t.lop: no such key here; did you mean \"loop\"?"),
        (task("\"run\": 1,\n\"x-what\": 2"), "w.json:3: tasks.t.x-what: no such x- key here; known here are x-user"),
    ]);
}

#[test]
fn errors_in_events_name_line_key_and_fix() {
    refused(&[
        (
            task("\"wait\": {\"ref\": \"c\", \"mutex\": \"m\", \"x-sync\": true}"),
            "w.json:2: tasks.t.wait.x-sync: no such key here; known are ref, mutex",
        ),
        (task("\"sem_post\": {\"ref\": \"s\", \"x-sync\": 1}"), "w.json:2: tasks.t.sem_post.x-sync: is a whole number"),
        (task("\"sem_post\": {\"x-sync\": true}"), "w.json:2: tasks.t.sem_post: \"ref\" is missing"),
        (task("\"x-spin-barrier\": {\"ref\": \"b\"}"), "w.json:2: tasks.t.x-spin-barrier: \"for\" is missing"),
        (
            task("\"fork\": \"tt\", \"run\": 1"),
            "w.json:2: tasks.t.fork: there is no task \"tt\" to fork; did you mean \"t\"?",
        ),
        (
            task("\"timer\": {\"ref\": \"u\",\n\"perod\": 5}"),
            "w.json:3: tasks.t.timer.perod: no such key here; did you mean \"period\"?",
        ),
        (task("\"run\": {\"mean\": 5,\n\"sd\": -1}"), "w.json:3: tasks.t.run.sd: -1 is negative"),
        (task("\"memrun\": {\"type\": \"read\", \"count\": 4}"), "w.json:2: tasks.t.memrun: \"size\" is missing"),
        (task("\"memrun\": {\"type\": \"chase\", \"size\": 100, \"count\": 4}"), "is less than two strides"),
        (
            task("\"lock\": \"a\",\n\"x-spin-lock\": \"a\""),
            "w.json:3: tasks.t.x-spin-lock: \"a\" is a spinning lock in one place",
        ),
    ]);
}

#[test]
fn errors_in_properties_name_line_key_and_fix() {
    refused(&[
        (
            task("\"run\": 1,\n\"x-memory\": {\"bytes\": 1, \"bound\": 101}"),
            "w.json:3: tasks.t.x-memory.bound: 101 is not in 0..100",
        ),
        (
            task("\"run\": 1,\n\"x-memory\": {\"bytes\": 1, \"share\": true}"),
            "w.json:3: tasks.t.x-memory.share: no such key here; did you mean \"shared\"?",
        ),
        (
            task("\"run\": 1,\n\"policy\": \"SCHED_FIF\""),
            "w.json:3: tasks.t.policy: \"SCHED_FIF\" is not known here; did you mean \"SCHED_FIFO\"?",
        ),
        (task("\"run\": 1,\n\"priority\": 20"), "w.json:3: tasks.t.priority: 20 is no nice value"),
        (
            task("\"run\": 1,\"policy\": \"SCHED_RR\",\n\"priority\": 0"),
            "w.json:3: tasks.t.priority: 0 is no real-time priority",
        ),
        (
            task("\"run\": 1,\n\"policy\": \"SCHED_DEADLINE\""),
            "w.json:3: tasks.t.policy: SCHED_DEADLINE without a runtime",
        ),
        (
            task(
                "\"phases\": {\n\"p\": {\"run\": 1,\n\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 9,\n\
                 \"dl-deadline\": 8}}",
            ),
            "w.json:4: tasks.t.phases.p.dl-runtime: is more than the deadline",
        ),
        (
            task("\"phases\": {\n\"p\": {\"run\": 1,\n\"instance\": 2}}"),
            "w.json:4: tasks.t.phases.p.instance: belongs to the task",
        ),
        (
            task("\"run\": 1, \"policy\": \"SCHED_FIFO\",\n\"taskgroup\": \"/g\""),
            "w.json:3: tasks.t.taskgroup: a task in the group \"/g\" cannot be SCHED_FIFO",
        ),
        (
            task("\"run\": 1,\n\"taskgroup\": \"g\""),
            "w.json:3: tasks.t.taskgroup: the group \"g\" does not start with '/'",
        ),
        (task("\"run\": 1,\n\"cpus\": []"), "w.json:3: tasks.t.cpus: is empty"),
        (task("\"run\": 1,\n\"cpus\": [0,\n-1]"), "w.json:4: tasks.t.cpus: -1 is not in"),
        (task("\"run\": 1,\n\"util_min\": 1025"), "w.json:3: tasks.t.util_min: 1025 is not in -1..1024"),
    ]);
}

#[test]
fn what_rt_app_accepts_is_accepted_with_a_remark() {
    for (text, remark) in [
        (task("\"run\": 1, \"run\": 2"), "w.json:2: tasks.t.run: given on line 2 too"),
        (task("\"run\": 1, \"comment\": \"why\""), "tasks.t.comment: not known, so ignored"),
        (
            task("\"phases\": {\"p\": {\"run\": 1}}, \"sleep\": 2"),
            "tasks.t.sleep: an event beside \"phases\" is ignored",
        ),
        (task("\"wait\": {\"ref\": \"c\", \"mutex\": \"m\"}"), "never locks the mutex \"m\""),
        (task("\"barrier\": \"b\", \"barrier1\": \"b\", \"run\": 1"), "counts as two users"),
        (task("\"x-ask\": \"s\", \"run\": 1, \"x-answer\": \"t\""), "no task asks anything at \"t\""),
        (task("\"run\": 1, \"x-await\": \"\""), "awaits an answer, but asks nothing"),
        (task("\"run\": 1, \"period\": 5"), "a deadline key on a task that is not SCHED_DEADLINE"),
        ("{\"tasks\": {\"t\": {\"run\": 1}, \"u\": {\"instance\": 0, \"run\": 1}}}".to_owned(), "no task forks"),
        ("{\"tasks\": {\"t\": {\"run\": 1}}, \"global\": {\"duration\": 0}}".to_owned(), "sets no limit"),
        ("{\"tasks\": {\"t\": {\"run\": 1}}} and more".to_owned(), "after the end of the document"),
    ] {
        let workload = read(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(workload.warnings.iter().any(|w| w.contains(remark)), "{text}: {:?}", workload.warnings);
    }
}

#[test]
fn null_counts_as_a_missing_key() {
    let plain = read(&task("\"run\": 1")).unwrap();
    let nulls =
        task("\"run\": 1, \"priority\": null, \"cpus\": null, \"instance\": null, \"policy\": null, \"loop\": null");
    assert_eq!(read(&nulls).unwrap(), plain);
}

#[test]
fn legacy_deadline_keys_hold_in_tasks() {
    let workload =
        read(&task("\"policy\": \"SCHED_DEADLINE\", \"runtime\": 3, \"deadline\": 8, \"period\": 9")).unwrap();
    let props = &workload.tasks[0].props;
    assert_eq!((props.dl_runtime, props.dl_deadline, props.dl_period), (Some(3000), Some(8000), Some(9000)));
    assert_eq!(workload.tasks[0].phases[0].events.len(), 1, "\"runtime\" is an event, too");
    let fair = read(&task("\"runtime\": 3")).unwrap();
    assert_eq!(fair.tasks[0].props.dl_runtime, None);
}

#[test]
fn loop_belongs_to_the_phase_if_events_are_in_the_task() {
    let loops = |members: &str| {
        let task = read(&task(members)).unwrap().tasks.remove(0);
        (task.loops, task.phases[0].loops)
    };
    assert_eq!(loops("\"run\": 1"), (None, Some(1)));
    assert_eq!(loops("\"run\": 1, \"loop\": -1"), (Some(1), None));
    assert_eq!(loops("\"run\": 1, \"loop\": 5"), (Some(1), Some(5)));
    assert_eq!(loops("\"phases\": {\"p\": {\"run\": 1}}"), (None, Some(1)));
    assert_eq!(loops("\"phases\": {\"p\": {\"run\": 1, \"loop\": 3}}, \"loop\": 5"), (Some(5), Some(3)));
}

#[test]
fn jobs_are_what_anybody_can_do() {
    let jobs = |list: &str, worker: &str| {
        format!("{{\"tasks\": {{\"jobs\": {{{list}}},\n\"w\": {{\"loop\": 1, \"x-jobs\": \"jobs\"{worker}}}}}}}")
    };
    let plain = "\"instance\": 0, \"loop\": 5, \"run\": 1";
    assert_eq!(read(&jobs(plain, "")).unwrap().warnings, [""; 0]);
    let only = "tasks.jobs: its phases are jobs (x-jobs), which whoever takes them does as the task that it is";
    refused(&[
        (
            jobs("\"loop\": 5, \"run\": 1", ""),
            "w.json:2: tasks.w.x-jobs: the phases of \"jobs\" are jobs, but it starts",
        ),
        (
            jobs(plain, "").replace("x-jobs\": \"jobs", "x-jobs\": \"job"),
            "no task \"job\" whose phases would be jobs; did",
        ),
        (jobs(plain, ", \"fork\": \"jobs\""), "w.json:2: tasks.w.fork: the phases of \"jobs\" are jobs"),
        (jobs(&format!("{plain}, \"x-jobs\": \"jobs\""), ""), "tasks.jobs.x-jobs: a job cannot share out other jobs"),
        (jobs(&format!("{plain}, \"barrier\": \"b\""), ""), "tasks.jobs.barrier: a job cannot wait at a barrier"),
        (jobs(&format!("{plain}, \"priority\": 5"), ""), only),
        (jobs("\"instance\": 0, \"phases\": {\"a\": {\"run\": 1, \"cpus\": [0]}}", ""), only),
    ]);
}

#[test]
fn names_are_not_too_long() {
    let named = |length| format!("{{\"tasks\": {{\"{}\": {{\"run\": 1}}}}}}", "n".repeat(length));
    read(&named(255)).unwrap();
    refused(&[(named(256), "w.json:1: tasks: the name of a task has 256 bytes, more than 255; choose a shorter name")]);
}

#[test]
fn groups_are_not_too_deep() {
    let deep = |levels| task(&format!("\"taskgroup\": \"{}\", \"run\": 1", "/g".repeat(levels)));
    read(&deep(64)).unwrap();
    refused(&[
        (deep(65), "w.json:2: tasks.t.taskgroup: the group is 65 levels deep; nest groups at most 64 deep"),
        (deep(50_000), "w.json:2: tasks.t.taskgroup: the group's path has 100000 bytes, more than 4095"),
    ]);
}

#[test]
fn a_document_has_a_bound_on_its_values() {
    let values = "1,".repeat(5 << 20);
    refused(&[(format!("{{\"tasks\": [{values}]}}"), "tasks.4194302: more than 4194304 values; split the workload")]);
}

#[test]
fn remarks_about_duplicate_keys_are_counted_rather_than_kept() {
    let twice = "\"a\":1,".repeat(1 << 20);
    let (_, remarks) = schedlab_workload::json::read(format!("{{{twice}}}").as_bytes()).unwrap();
    assert_eq!(remarks.len(), 1001);
    assert_eq!(remarks[1000].what, format!("{} more keys are given twice", (1 << 20) - 1001));
}

#[test]
fn every_documented_key_is_known() {
    let workload = read(&task(
        "\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 1000, \"dl-period\": 10000,
        \"dl-deadline\": 10000, \"x-reclaim\": true, \"run\": 1",
    ))
    .unwrap();
    assert_eq!(workload.tasks[0].props.reclaim, Some(true));
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads.md")).unwrap();
    let keys: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `x-")?.split('`').next()).collect();
    assert!(keys.contains(&"reclaim"), "{keys:?}");
    for key in keys.into_iter().filter(|key| !["start", "placement", "until"].contains(key)) {
        // A key that is known is refused for its value, or accepted.
        let error = read(&task(&format!("\"x-{key}\": [], \"run\": 1"))).err().map(|e| e.to_string());
        assert!(!error.as_ref().is_some_and(|e| e.contains("no such")), "x-{key}: {error:?}");
    }
}
