//! Schedules of the O(1) scheduler, small enough to follow by hand. The tick is 1 ms, and nothing has a cost.

use crate::support::{Accounts, MS, bare, forever, hog, lane, once, pinned, run, simulate, sleep, threads};
use schedlab_base::Nanos;
use schedlab_sim::program::{Load, Op, Policy, Setting, Start, TaskSpec};

fn simulated(load: &Load, ms: Nanos) -> Accounts {
    simulate("linux-2.6.11", &bare("up"), load, &[], ms * MS)
}

fn schedule(load: &Load, ms: Nanos) -> String {
    lane(&simulated(load, ms), 0)
}

#[test]
fn slices_follow_nice_and_the_arrays_change_places() {
    // Nice 0 has 100 ms and nice 10 has 50 ms, once between two swaps of the arrays.
    let load = threads(vec![hog("A", 0), hog("B", 10)]);
    assert_eq!(schedule(&load, 451), "0 A, 100 B, 150 A, 250 B, 300 A, 400 B, 450 A");
}

#[test]
fn a_sleeper_earns_its_way_past_a_hog() {
    // Both begin without a bonus, at 125. S sleeps from 102 to 110, which counts tenfold: 80 ms, not enough for a bonus
    // (100 ms each), so it waits for A's slice to end at 202. But the wait counts as sleep too, 92 ms tenfold: it now
    // has all ten levels of the bonus, and preempts whenever it wakes.
    let load = threads(vec![hog("A", 0), forever("S", 0, vec![run(2), sleep(8)])]);
    assert_eq!(schedule(&load, 225), "0 A, 100 S, 102 A, 202 S, 204 A, 212 S, 214 A, 222 S, 224 A");
}

#[test]
fn waiting_counts_less_for_who_was_woken_by_a_task() {
    // S (nice 9, at 134 without a bonus) sleeps for 21 ms and waits for 180 ms until W and H have had their slices.
    // Woken by a timer it then has the whole bonus, and at 222 it preempts W at 125. Woken by W, 30% of the wait count,
    // its bonus is 7 at 222, and it waits again.
    let late = |mut spec: TaskSpec| {
        spec.start = MS;
        spec
    };
    let by_timer = forever("S", 9, vec![sleep(21), run(1), sleep(20), run(1), sleep(1000)]);
    let load = threads(vec![by_timer, late(hog("W", 0)), late(hog("H", 0))]);
    assert_eq!(schedule(&load, 224), "0 S, 0 -, 1 W, 101 H, 201 S, 202 W, 222 S, 223 W");

    let by_task = forever("S", 9, vec![Op::SemWait(0), run(1)]);
    let waker = forever("W", 0, vec![run(20), Op::SemPost(0), run(80)]);
    let mut load = threads(vec![by_task, late(waker), late(hog("H", 0))]);
    load.sems = vec!["work".into()];
    assert_eq!(schedule(&load, 404), "0 S, 0 -, 1 W, 101 H, 201 S, 202 W, 302 H, 402 S, 403 W");
}

#[test]
fn interactive_tasks_of_one_priority_take_turns_within_their_slices() {
    // Two sleepers with the whole bonus work for 50 ms after a sleep: each goes behind the other every 10 ms.
    let shell = |name: &str| forever(name, 0, vec![sleep(700), run(50)]);
    let text = schedule(&threads(vec![shell("A"), shell("B")]), 790);
    assert_eq!(text, "0 A, 0 B, 0 -, 700 A, 710 B, 720 A, 730 B, 740 A, 750 B, 760 A, 770 B, 780 A");
}

#[test]
fn who_waits_for_a_device_rises_no_further_than_to_interactive() {
    // Against a hog of nice -8 (at 117): S is at 115 after ordinary sleeps, at 118 after waiting for a device.
    let preempts = |wait: Op| {
        let load = threads(vec![hog("H", -8), forever("S", 0, vec![run(1), wait])]);
        let accounts = simulated(&load, 20_000);
        let latencies = &accounts.named("S").latencies;
        latencies.iter().rev().take(10).all(|l| *l == 0)
    };
    assert!(preempts(sleep(99)));
    assert!(!preempts(Op::Io(99 * MS)));
}

/// P forks C after 30 ms of work; H, at nice 19, never gets a bonus that matters.
fn family(child: Vec<Op>, other: TaskSpec, start: Start) -> Load {
    let parent = once("P", vec![run(30), Op::Fork(0), run(100)]);
    Load { tasks: vec![parent, other], templates: vec![once("C", child)], start, ..Load::default() }
}

#[test]
fn a_child_runs_first_on_half_of_its_parents_slice() {
    // P has 70 ms of its slice left at 30: 35 for each. H runs for its 5 ms when both have expired.
    let load = family(vec![run(100)], hog("H", 19), Start::Wake);
    assert_eq!(schedule(&load, 236), "0 P, 30 C-0, 65 P, 100 H, 105 C-0, 170 P, 235 H");
}

#[test]
fn what_a_child_leaves_of_its_slice_goes_back_to_its_parent() {
    // C returns 25 of its 35 ms: P has 60 from 40 on.
    let load = family(vec![run(10)], hog("H", 19), Start::Wake);
    assert_eq!(schedule(&load, 101), "0 P, 30 C-0, 40 P, 100 H");
}

#[test]
fn a_slice_that_a_child_was_given_later_is_its_own() {
    // C's first slice ends at 65. When C exits, at 152, most of its second slice is left, and P, which had 45 of its
    // 100 ms, gets no more than the other 55.
    let mut load = family(vec![run(36), sleep(45), run(1)], hog("H", 19), Start::Wake);
    load.tasks[0].program[2] = run(300);
    assert_eq!(schedule(&load, 208), "0 P, 30 C-0, 65 P, 100 H, 105 C-0, 106 P, 151 C-0, 152 P, 207 H");
}

#[test]
fn a_new_thread_runs_last() {
    let load = family(vec![run(100)], hog("H", 0), Start::Threads);
    assert_eq!(schedule(&load, 166), "0 P, 65 H, 165 C-0");
}

#[test]
fn forking_in_the_last_tick_of_a_slice_ends_it() {
    // At 99 one tick is left, and C gets it. P, which has none left, expires, and C before it.
    let parent = once("P", vec![run(99), Op::Fork(0), run(200)]);
    let load = Load {
        tasks: vec![parent, hog("H", 19)],
        templates: vec![once("C", vec![run(5)])],
        start: Start::Wake,
        ..Load::default()
    };
    assert_eq!(schedule(&load, 300), "0 P, 99 H, 104 C-0, 105 P, 205 H, 210 C-0, 214 P");
}

#[test]
fn who_yields_waits_until_the_arrays_change_places() {
    let load = threads(vec![forever("Y", 0, vec![run(1), Op::Yield]), hog("H", 0)]);
    assert_eq!(schedule(&load, 203), "0 Y, 1 H, 101 Y, 102 H, 202 Y");
}

#[test]
fn a_running_task_that_gets_nicer_gives_way() {
    let nicer = Setting { nice: Some(10), ..Setting::default() };
    let mut load = threads(vec![once("N", vec![run(10), Op::Set(0), run(1000)]), hog("H", 0)]);
    load.settings = vec![nicer];
    // The slice of 100 ms that it began with is not shortened: 90 are left of it.
    assert_eq!(schedule(&load, 301), "0 N, 10 H, 110 N, 200 H, 300 N");
}

#[test]
fn real_time_tasks_go_before_all_others_and_round_robin_ones_take_turns() {
    let real_time = |name: &str, policy, priority| {
        let mut spec = once(name, vec![run(150), sleep(1000)]);
        spec.initial = Setting { policy: Some(policy), rt_priority: Some(priority), ..Setting::default() };
        spec
    };
    let rr = |name: &str| real_time(name, Policy::Rr, 10);
    let load = threads(vec![hog("H", -20), rr("A"), rr("B")]);
    assert_eq!(schedule(&load, 301), "0 A, 100 B, 200 A, 250 B, 300 H");
    let fifo = |name: &str, priority| real_time(name, Policy::Fifo, priority);
    let load = threads(vec![hog("H", -20), fifo("A", 10), fifo("B", 10), fifo("C", 11)]);
    assert_eq!(schedule(&load, 451), "0 C, 150 A, 300 B, 450 H");
}

#[test]
fn an_idle_cpu_pulls_tasks_from_a_busy_one() {
    let load = threads((0..4).map(|i| hog(&format!("hog-{i}"), 0)).collect());
    let accounts = simulate("linux-2.6.11", &bare("1x2x1"), &load, &[], 10_000 * MS);
    let busy: Nanos = accounts.tasks.iter().map(|t| t.run).sum();
    // The second CPU is idle until its first tick, when it sees the average of 0 and 4 tasks.
    assert_eq!(busy, 2 * 10_000 * MS - MS);
    assert!(accounts.tasks.iter().all(|t| t.run.abs_diff(5_000 * MS) < 150 * MS), "{:?}", accounts.tasks);
}

#[test]
fn a_better_task_that_is_pulled_preempts() {
    // The second CPU is busy and looks at 64 ms: it finds three tasks against its one, the average is two, and one
    // moves.
    let load = threads(vec![pinned(hog("A", -20), 0), pinned(hog("B", 0), 0), hog("C", -10), pinned(hog("H", 0), 1)]);
    let accounts = simulate("linux-2.6.11", &bare("1x2x1"), &load, &[], 70 * MS);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 A".into(), "0 H, 64 C".into()));
}

#[test]
fn expired_tasks_are_pulled_first_and_stay_expired() {
    // Slices are 5 ms, and 3 ms for H. At 64 A (at 55) and B (at 60) have expired, C is running, D and E have not run.
    // Of five tasks against one, two move: B and A. They wait until the arrays are swapped, at 66, though their
    // priority is better than H's.
    let mut tasks: Vec<_> = ["A", "B", "C", "D", "E"].map(|name| hog(name, 0)).into();
    tasks.push(pinned(hog("H", 5), 1));
    let set = [("min_timeslice", "1".to_owned()), ("def_timeslice", "5".to_owned())];
    let accounts = simulate("linux-2.6.11", &bare("1x2x1"), &threads(tasks), &set, 82 * MS);
    let lane_0 = lane(&accounts, 0);
    assert!(lane_0.ends_with(", 50 A, 55 B, 60 C, 65 D, 70 E, 75 C, 80 D"), "{lane_0}");
    assert_eq!(lane(&accounts, 1), "0 H, 66 B, 71 A, 76 H, 79 B");
}
