//! Schedules of the multi-level feedback queue, small enough to follow by hand. The tick is 1 ms, and nothing has a
//! cost; slices are 10 ms at the top, 20 ms on the second level, and so on.

use crate::support::{MS, bare, exactly, forever, hog, lane, once, run, simulate, sleep, threads};
use schedlab_base::Nanos;
use schedlab_sim::program::{Op, Policy, Setting, TaskSpec};

fn schedule_set(tasks: Vec<TaskSpec>, set: &[(&str, String)], ms: Nanos) -> String {
    lane(&simulate("mlfq", &bare("up"), &threads(tasks), set, ms * MS), 0)
}

fn schedule(tasks: Vec<TaskSpec>, ms: Nanos) -> String {
    schedule_set(tasks, &[], ms)
}

#[test]
fn each_whole_slice_leads_a_level_down_where_slices_are_longer() {
    let text = schedule(vec![hog("A", 0), hog("B", 0)], 201);
    assert_eq!(text, "0 A, 10 B, 20 A, 40 B, 60 A, 90 B, 120 A, 160 B, 200 A");
}

#[test]
fn nice_levels_do_not_count() {
    assert_eq!(schedule(vec![hog("A", 19), hog("B", -20)], 41), "0 A, 10 B, 20 A, 40 B");
}

#[test]
fn who_blocks_early_stays_above_a_hog() {
    // H is on the second level from 10 on; S, which never uses a whole slice, preempts it each time it wakes.
    let text = schedule(vec![hog("H", 0), forever("S", 0, vec![run(2), sleep(6)])], 29);
    assert_eq!(text, "0 H, 10 S, 12 H, 18 S, 20 H, 26 S, 28 H");
}

#[test]
fn a_sleep_leads_one_level_up() {
    // S uses 35 ms at first: 10 and 20 as whole slices, and 5 of 30 on the third level. So it returns on the second
    // level, where H, which is on the fourth at 75, gives way to it. S has 20 ms there before it is back on the third.
    let s = once("S", vec![run(35), sleep(10), run(25), sleep(1000)]);
    let text = schedule(vec![s, hog("H", 0)], 126);
    assert_eq!(text, "0 S, 10 H, 20 S, 40 H, 60 S, 65 H, 75 S, 95 H, 115 S, 120 H");
}

#[test]
fn who_is_preempted_keeps_its_place_and_the_rest_of_its_slice() {
    // Two hogs are on the second level from 20 on. A is preempted at 30 with 10 ms left, and uses them before B's turn.
    let s = once("S", vec![sleep(30), run(5), sleep(1000)]);
    assert_eq!(schedule(vec![s, hog("A", 0), hog("B", 0)], 46), "0 S, 0 A, 10 B, 20 A, 30 S, 35 A, 45 B");
}

#[test]
fn who_yields_goes_behind_its_equals_on_its_level() {
    let text = schedule(vec![forever("Y", 0, vec![run(4), Op::Yield]), hog("H", 0)], 31);
    // Y's slice of 10 ms is used up at its third turn, 2 ms in.
    assert_eq!(text, "0 Y, 4 H, 14 Y, 20 H");
}

#[test]
fn a_boost_saves_who_starves() {
    // Two tasks that never use a whole slice leave H nothing once it has used its first. After each 100 ms all tasks
    // are at the top, and H gets its turn.
    let busy = |name: &str| forever(name, 0, vec![run(5), Op::Sleep(exactly(4 * MS))]);
    let tasks = || vec![hog("H", 0), busy("A"), busy("B")];
    let run_of = |boost: u64| {
        let load = threads(tasks());
        let set = [("boost", boost.to_string())];
        simulate("mlfq", &bare("up"), &load, &set, 1_001 * MS).named("H").run
    };
    assert_eq!(run_of(0), 10 * MS);
    assert_eq!(run_of(100), 100 * MS);
}

#[test]
fn levels_and_slices_are_tunable() {
    let set = [("levels", "2".to_owned()), ("base_slice", "5".to_owned()), ("start_level", "1".to_owned())];
    let text = schedule_set(vec![hog("A", 0), hog("B", 0)], &set, 31);
    assert_eq!(text, "0 A, 10 B, 20 A, 30 B");
}

#[test]
fn real_time_tasks_stand_above_all_levels() {
    let real_time = |name: &str, policy| {
        let mut spec = once(name, vec![run(150), sleep(1000)]);
        spec.initial = Setting { policy: Some(policy), rt_priority: Some(10), ..Setting::default() };
        spec
    };
    let rr = |name: &str| real_time(name, Policy::Rr);
    assert_eq!(schedule(vec![hog("H", 0), rr("A"), rr("B")], 301), "0 A, 100 B, 200 A, 250 B, 300 H");
    let fifo = |name: &str| real_time(name, Policy::Fifo);
    assert_eq!(schedule(vec![hog("H", 0), fifo("A"), fifo("B")], 301), "0 A, 150 B, 300 H");
}
