//! Stride scheduling: schedules small enough to follow by hand. A quantum is 10 ms, the tick is 1 ms, and nothing has a
//! cost. Passes in the comments count ms of a task with 20 tickets (nice 0), which begins at 10.

use crate::support::{MS, bare, forever, hog, lane, once, run, simulate, sleep, threads};
use schedlab_base::Nanos;
use schedlab_sim::program::{Load, Op, Policy, Setting, TaskSpec};

fn schedule_set(load: &Load, set: &[(&str, String)], ms: Nanos) -> String {
    lane(&simulate("stride", &bare("up"), load, set, ms * MS), 0)
}

fn schedule(tasks: Vec<TaskSpec>, ms: Nanos) -> String {
    schedule_set(&threads(tasks), &[], ms)
}

#[test]
fn three_to_two_to_one_is_the_papers_example() {
    // 30, 20 and 10 tickets: strides of 2, 3 and 6 in the paper's unit, and passes that begin at one stride. A 2, B 3,
    // A 4; then all are at 6, and in order of age A (8), B (9), C (12), A 8, B 9, A 10; then all are at 12.
    let text = schedule(vec![hog("A", -10), hog("B", 0), hog("C", 10)], 121);
    assert_eq!(text, "0 A, 10 B, 20 A, 40 B, 50 C, 60 A, 70 B, 80 A, 100 B, 110 C, 120 A");
}

#[test]
fn sleep_earns_nothing() {
    // H is at 20 and S at 15 at time 15; the global pass is 7.5, so 7.5 of S remains. At 30 that pass is 22.5: S joins
    // at 30, H is at 35. H's quantum was used up long ago, which the tick at 31 notices.
    let text = schedule(vec![hog("H", 0), forever("S", 0, vec![run(5), sleep(15)])], 50);
    assert_eq!(text, "0 H, 10 S, 15 H, 31 S, 36 H");
}

#[test]
fn what_remains_is_scaled_when_tickets_change() {
    // At 40 both are at 30, and A changes its tickets, 10 ahead of the global pass. With 10 tickets instead of 20 that
    // becomes 20: A continues from 40, by 2 for each ms, to 60. B needs 30 ms to reach that, and 20 ms for each later
    // turn of A's.
    let mut a = hog("A", 0);
    a.program = vec![run(20), Op::Set(0), run(1000)];
    let setting = Setting { nice: Some(10), ..Setting::default() };
    let load = Load { settings: vec![setting], ..threads(vec![a, hog("B", 0)]) };
    let text = schedule_set(&load, &[], 120);
    assert_eq!(text, "0 A, 10 B, 20 A, 30 B, 40 A, 50 B, 80 A, 90 B, 110 A");
}

#[test]
fn the_quantum_is_a_tunable() {
    let load = threads(vec![hog("A", 0), hog("B", 0)]);
    assert_eq!(schedule_set(&load, &[("quantum", "5".to_owned())], 16), "0 A, 5 B, 10 A, 15 B");
}

#[test]
fn a_real_time_task_goes_first_and_its_time_counts_for_nobody() {
    // B has run 5 ms of its quantum at 15 and is still at 15 when F is done. A waits at 20.
    let mut fifo = once("F", vec![run(10)]);
    fifo.initial = Setting { policy: Some(Policy::Fifo), rt_priority: Some(1), ..Setting::default() };
    fifo.start = 15 * MS;
    assert_eq!(schedule(vec![hog("A", 0), hog("B", 0), fifo], 40), "0 A, 10 B, 15 F, 25 B, 35 A");
}

#[test]
fn a_hog_that_was_a_real_time_task_comes_back_with_its_debt() {
    // A is at 19, 14.5 ahead of the global pass, when it becomes a real-time task at 9. When it returns at 40, none of
    // that has changed, and B at 10 comes first.
    let mut a = hog("A", 0);
    a.program = vec![run(9), Op::Set(0), run(31), Op::Set(1), run(1000)];
    let fifo = Setting { policy: Some(Policy::Fifo), rt_priority: Some(1), ..Setting::default() };
    let other = Setting { policy: Some(Policy::Other), rt_priority: Some(0), ..Setting::default() };
    let load = Load { settings: vec![fifo, other], ..threads(vec![a, hog("B", 0)]) };
    assert_eq!(schedule_set(&load, &[], 61), "0 A, 40 B, 50 A, 60 B");
}

#[test]
fn several_cpus_share_the_tasks() {
    let tasks = (0..4).map(|i| hog(&format!("hog-{i}"), 0)).collect();
    let accounts = simulate("stride", &bare("2"), &threads(tasks), &[], 1000 * MS);
    assert!(accounts.tasks.iter().all(|task| task.run.abs_diff(500 * MS) <= 10 * MS), "{:?}", accounts.tasks);
}

/// The error grows at most with the number of tasks: no task is further from its share than a quantum for each task.
#[test]
fn shares_are_right_at_any_time() {
    for nices in [&[0, 19][..], &[-20, 0, 1, 2], &[-20, 19, 19, 19, 19], &[7, 3, -5, -11, 13, 0], &[4; 9]] {
        for ms in [50, 333, 1000, 5000] {
            let tasks = nices.iter().enumerate().map(|(i, nice)| hog(&format!("hog-{i}"), *nice)).collect();
            let accounts = simulate("stride", &bare("up"), &threads(tasks), &[], ms * MS);
            let tickets = |nice: i8| f64::from(20 - i16::from(nice));
            let all: f64 = nices.iter().map(|nice| tickets(*nice)).sum();
            for (task, nice) in accounts.tasks.iter().zip(nices) {
                let due = (ms * MS) as f64 * tickets(*nice) / all;
                let error = (task.run as f64 - due).abs() / (10 * MS) as f64;
                assert!(error <= nices.len() as f64, "{nices:?} after {ms} ms: nice {nice} is {error} quanta off");
            }
        }
    }
}
