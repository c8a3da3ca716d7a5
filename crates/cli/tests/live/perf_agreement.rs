//! Compares `schedlab stats` with `perf sched timehist` and `perf sched latency` on the same recordings.
//!
//! Every difference that is allowed has a reason in docs/import.md and is computed here from the events. Without perf
//! the tests say so and pass. If perf may not record, the recording in the tests' data is compared.

use crate::perf_sched::rules::{Delays, Facts, facts};
use crate::perf_sched::{
    Latency, TimeHist, delays_before_runs, last_switches, latency, latency_starts_at_waking, preemptions, time_hist,
};
use schedlab_base::{Event, Payload, Tid};
use schedlab_trace::read_all;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// perf prints milliseconds with three decimals, truncated instead of rounded.
const DIGIT_US: f64 = 1.001;

fn perf_is_here() -> bool {
    let here = Command::new("perf").arg("--version").output().is_ok_and(|o| o.status.success());
    if !here {
        eprintln!("skipped: perf is missing (Debian: apt install linux-perf)");
    }
    here
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data/pipes.perf.data")
}

/// Records a mixed load with perf. Returns `None`, and prints a reason, if that is impossible without losses.
fn record(file: &Path, perf: &str) -> Option<()> {
    let _recording = crate::one_at_a_time();
    let load = "for i in 1 2 3; do (yes | head -c 3000000 | tee /dev/null | wc -c >/dev/null) & done; \
                for i in 1 2 3 4 5; do sleep 0.005; done; wait";
    // The script has its own mount namespace, so that a tracefs mounted for the test leaves nothing behind.
    let script = format!(
        "[ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing; \
         exec perf {perf} -o {} -- sh -c '{load}'",
        file.display()
    );
    for _ in 0..3 {
        let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).stdin(Stdio::null()).output().ok()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            eprintln!("skipped: perf cannot record here: {}", why.trim().lines().next().unwrap_or("no reason given"));
            return None;
        }
        let lost = |e: &Event| matches!(e.what, Payload::Lost { .. });
        if !read_all(file).unwrap().events.iter().any(lost) {
            return Some(());
        }
    }
    eprintln!("skipped: perf lost events three times over, and each reader makes of a gap what it can");
    None
}

/// One task according to `schedlab stats --json`. If a thread id was reused, the figures of both tasks are summed, as
/// perf does.
#[derive(Default)]
struct Ours {
    run_us: f64,
    switched_out: u64,
    migrations: u64,
    waking: Delays,
    delay: Delays,
}

fn add(delays: &mut Delays, latency: &Value) {
    let count = latency["count"].as_u64().unwrap();
    delays.count += count;
    delays.sum_us += latency["mean"].as_f64().unwrap() * count as f64;
    delays.max_us = delays.max_us.max(latency["max"].as_f64().unwrap());
}

fn stats(file: &Path) -> (Value, HashMap<Tid, Ours>) {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab")).arg("stats").arg(file).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut tasks: HashMap<Tid, Ours> = HashMap::new();
    for task in document["tasks"].as_array().unwrap() {
        let ours = tasks.entry(task["tid"].as_i64().unwrap() as Tid).or_default();
        ours.run_us += task["run_us"].as_f64().unwrap();
        ours.switched_out += task["voluntary"].as_u64().unwrap() + task["involuntary"].as_u64().unwrap();
        ours.migrations += task["migrations"].as_u64().unwrap();
        add(&mut ours.waking, &task["waking_latency_us"]);
        add(&mut ours.delay, &task["delay_us"]);
    }
    (document["total"].clone(), tasks)
}

/// Compares one recording. Returns how many tasks were compared with timehist, and how many with latency if its figures
/// can be compared.
fn compare(file: &Path) -> (usize, Option<usize>) {
    let (total, ours) = stats(file);
    let trace = read_all(file).unwrap();
    let facts = facts(&trace);
    // If tasks are hidden from tracing, switches are missing, and each reader guesses.
    let guessed_us = total["contradicted_us"].as_f64().unwrap();
    // Where an idle task is hidden, a switch from it is missing, and nothing is in doubt but the instant.
    let contradictions = total["contradictions"].as_u64().unwrap();
    let guesses = contradictions.max(missing_switches(&trace.events));
    if guesses > 0 {
        eprintln!("{guesses} switches are missing from the recording: {guessed_us} us rest on guesses");
    }
    let mut listed = time_hist(file);
    let last = last_switches(file);
    give_back(&mut listed, &last);
    let tasks = listed.len();
    // perf can count an exiting task as two and lose one of them. It then reports fewer switches than there are.
    listed.retain(|tid, theirs| theirs.switched_out == facts[tid].switched_out);
    assert!(listed.len() * 10 >= tasks * 8, "perf lost track of {} of {tasks} tasks", tasks - listed.len());
    let mut differ = Vec::new();
    for (tid, theirs) in &listed {
        let context = format!("task {tid} in {}: {theirs:?}", file.display());
        let (our, fact) = (ours.get(tid).unwrap_or_else(|| panic!("{context} is missing")), &facts[tid]);
        let slack = DIGIT_US * f64::from(theirs.figures) + guessed_us;
        if !check_run(our, theirs, fact, (guesses, slack), &context) {
            differ.push(format!("{context}: we say it ran {} us", our.run_us - fact.open_us));
        }
        if guesses == 0 && !fact.reused {
            let reaped = last.iter().any(|(reaped, _)| reaped == tid);
            check_delay(our, theirs, fact, reaped, &context);
        }
    }
    // About a missing switch, perf's guess may differ from ours for the task that left and for the one that came.
    assert!(differ.len() as u64 <= 2 * guesses, "{guesses} guesses, but {differ:#?}");
    // perf sched record does not record wakeups, and the latency of perf 6.1 uses nothing else.
    if guesses > 0 || !trace.events.iter().any(|e| matches!(e.what, Payload::Wakeup { .. })) {
        return (listed.len(), None);
    }
    let mut delays = latency(file);
    delays.retain(|tid, _| listed.contains_key(tid) && !facts[tid].reused);
    let (preempted, from_waking) = (preemptions(file), latency_starts_at_waking());
    for (tid, theirs) in &delays {
        let context = format!("task {tid} in {}: {theirs:?}", file.display());
        let preempted = preempted.get(tid).copied().unwrap_or(0);
        check_latency(&ours[tid], theirs, &facts[tid], (preempted, from_waking), &context);
    }
    (listed.len(), Some(delays.len()))
}

/// How often the task that leaves a CPU is not the one that came last.
fn missing_switches(events: &[Event]) -> u64 {
    let mut on = HashMap::new();
    let missing = |event: &&Event| match event.what {
        Payload::Switch { prev, next, .. } => on.insert(event.cpu, next).is_some_and(|last| last != prev),
        _ => false,
    };
    events.iter().filter(missing).count() as u64
}

/// A task that was reaped before its last switch has no id of its own in that sample, so perf attributes the switch to
/// a task -1. This gives the figures of task -1 back to the tasks that the events name.
fn give_back(listed: &mut BTreeMap<Tid, TimeHist>, last: &[(Tid, f64)]) {
    let Some(nobody) = listed.remove(&-1) else {
        assert!(last.is_empty(), "perf knew whom these switches are of: {last:?}");
        return;
    };
    let run: f64 = last.iter().map(|(_, run_us)| run_us).sum();
    assert_eq!(nobody.switched_out, last.len() as u64, "{nobody:?}");
    assert!((nobody.run_us - run).abs() <= DIGIT_US * last.len() as f64, "{nobody:?}, but {run} us by its switches");
    for (tid, run_us) in last {
        let task = listed.entry(*tid).or_default();
        task.run_us += run_us;
        task.figures += 1;
        task.switched_out += 1;
    }
}

/// Checks switches and migrations. Returns whether the run times agree.
fn check_run(our: &Ours, theirs: &TimeHist, fact: &Facts, (guesses, slack): (u64, f64), context: &str) -> bool {
    let run = our.run_us - fact.open_us;
    // A task that runs at the end may have left its CPU in a missing switch, so its last run is a guess, too.
    let open = if guesses > 0 { fact.open_us } else { 0.0 };
    assert_eq!(our.switched_out, fact.switched_out, "{context}: switches");
    assert_eq!(theirs.migrations.unwrap_or(our.migrations), our.migrations, "{context}: migrations");
    (run - theirs.run_us).abs() <= slack + open
}

/// Checks the delays from waking, each by the reader's own rule.
fn check_delay(our: &Ours, theirs: &TimeHist, fact: &Facts, reaped: bool, context: &str) {
    let (delay, rule) = (our.waking, fact.ours);
    assert_eq!(delay.count, rule.count, "{context}: we say {delay:?}, not {rule:?}");
    assert!((delay.sum_us - rule.sum_us).abs() < 1.0, "{context}: we say {delay:?}, not {rule:?}");
    assert!((delay.max_us - rule.max_us).abs() < 0.01, "{context}: we say {delay:?}, not {rule:?}");
    if reaped {
        return; // perf attributes the delay before that switch to no task
    }
    let rule = fact.perf;
    // Each of perf's delays is truncated to 1 us.
    let cut = DIGIT_US * rule.count.max(1) as f64;
    assert!((theirs.delay_us - rule.sum_us).abs() <= cut, "{context}: by perf's rule {rule:?}");
    assert!((theirs.delay_max_us - rule.max_us).abs() <= DIGIT_US, "{context}: by perf's rule {rule:?}");
}

fn check_latency(our: &Ours, theirs: &Latency, fact: &Facts, (preempted, from_waking): (u64, bool), context: &str) {
    let delay = our.delay;
    let appearing = u64::from(fact.appears_running);
    let count = delay.count + appearing;
    if preempted > 0 {
        // perf 6.1 may or may not count a wait after a preemption.
        let range = count.saturating_sub(preempted)..=count;
        assert!(range.contains(&theirs.count), "{context}: we say {delay:?}, {preempted} preemptions");
        return;
    }
    assert_eq!(theirs.count, count, "{context}: we say {delay:?}");
    if from_waking {
        // Newer versions of perf start at the waking, which is no later than the wakeup at which we start.
        assert!(theirs.max_us + DIGIT_US >= delay.max_us, "{context}: we say {delay:?}");
        return;
    }
    let average = delay.sum_us / count.max(1) as f64;
    assert!((average - theirs.average_us).abs() <= DIGIT_US, "{context}: we say {delay:?}, {average} us on average");
    assert!((delay.max_us - theirs.max_us).abs() <= DIGIT_US, "{context}: we say {delay:?}");
}

/// Every wait of `schedlab delays` that a wake-up began and that ended: the thread, and when and how long it waited.
fn woken_waits(file: &Path) -> Vec<(Tid, f64, f64)> {
    let arguments = ["delays", "--worst", "10000", "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab")).args(arguments).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let waits = document["waits"].as_array().unwrap().iter();
    let woken = waits.filter(|wait| wait["after"] == "wakeup" && wait["finished"] == true && wait["doubtful"] == false);
    let number = |wait: &Value, key: &str| wait[key].as_f64().unwrap();
    woken.map(|wait| (number(wait, "tid") as Tid, number(wait, "end_us"), number(wait, "duration_us"))).collect()
}

/// perf prints a run when it ends, with the delay before it: so its wait ended where the run began. perf counts from
/// the waking, `delays` from the wakeup: its waits are no longer, and shorter by no more than the time in between.
#[test]
fn the_waits_of_woken_tasks_are_those_of_timehist() {
    if !perf_is_here() {
        return;
    }
    let trace = read_all(fixture()).unwrap();
    let start = trace.meta.span.map_or(trace.events[0].time, |(start, _)| start) as f64 / 1e3;
    let theirs = delays_before_runs(&fixture());
    let ours = woken_waits(&fixture());
    let (mut compared, mut alone) = (0, 0);
    for (tid, end, duration) in &ours {
        let run = theirs.iter().find(|run| run.0 == *tid && (run.1 - (start + end)).abs() <= 3.0 * DIGIT_US);
        match run {
            Some((_, _, delay)) => {
                assert!(*delay + DIGIT_US >= *duration, "{tid} until {end}: {duration}, perf says {delay}");
                assert!(*delay - *duration <= 100.0, "{tid} until {end}: {duration}, perf says {delay}");
                compared += 1;
            }
            // Its run had not ended when the recording did, or perf takes it for task -1.
            None => alone += 1,
        }
    }
    assert!(compared > 100 && alone * 10 <= compared, "{compared} waits compared, {alone} perf does not have");
}

#[test]
fn the_recording_in_the_tests_data() {
    if perf_is_here() {
        let (tasks, delays) = compare(&fixture());
        assert!(tasks >= 35 && delays.is_some_and(|n| n >= 35), "perf listed {tasks} and {delays:?} tasks");
    }
}

#[test]
fn a_recording_of_perf_sched_made_here() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    if perf_is_here() && record(&file, "sched record").is_some() {
        let (tasks, _) = compare(&file);
        assert!(tasks >= 15, "perf listed {tasks} tasks");
    }
}

#[test]
fn a_recording_with_wakeups_made_here() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let events = ["switch", "waking", "wakeup", "wakeup_new", "migrate_task", "process_fork", "process_exit"];
    let events = events.map(|e| format!("-e sched:sched_{e}")).join(" ");
    if perf_is_here() && record(&file, &format!("record -a -R -c 1 -m 1024 {events}")).is_some() {
        let (tasks, delays) = compare(&file);
        assert!(tasks >= 15 && delays.is_none_or(|n| n >= 15), "perf listed {tasks} and {delays:?} tasks");
    }
}
