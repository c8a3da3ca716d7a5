//! The differences between the fair schedulers of neighbouring releases, in schedules small enough to follow by hand.
//! The tick is 1 ms, nothing has a cost, virtual runtimes (v) and deadlines (d) are in ms.

use crate::support::registry::releases;
use crate::support::{exactly, forever, hog, rt, simulate_at_1000_hz};
use schedlab_base::{Nanos, Payload, v, v2_6};
use schedlab_sim::program::{Load, Op, Policy, Setting, TaskSpec};

const US: Nanos = 1_000;
const MS: Nanos = 1_000 * US;

fn run(us: Nanos) -> Op {
    Op::Run(exactly(us * US))
}

fn once(name: &str, start_us: Nanos, program: Vec<Op>) -> TaskSpec {
    TaskSpec { name: name.into(), program, start: start_us * US, ..TaskSpec::default() }
}

fn load(tasks: Vec<TaskSpec>) -> Load {
    Load { tasks, ..Load::default() }
}

/// Returns the tasks that ran and from when on, in ms: `0 A, 7 B`.
fn schedule_with(kernel: &str, set: &[(&str, &str)], load: &Load, ms: Nanos) -> String {
    let accounts = simulate_at_1000_hz(kernel, "up", load, set, ms);
    let lines = accounts.events.iter().filter_map(|e| match e.what {
        Payload::Switch { next: 0, .. } => Some(format!("{} -", e.time as f64 / 1e6)),
        Payload::Switch { next, .. } => Some(format!("{} {}", e.time as f64 / 1e6, accounts.names[next as usize - 1])),
        _ => None,
    });
    lines.collect::<Vec<_>>().join(", ")
}

fn schedule(kernel: &str, load: &Load, ms: Nanos) -> String {
    schedule_with(kernel, &[], load, ms)
}

/// A parent that forks a child after 5 ms and goes on.
fn family(child_us: Nanos, parent_us: Nanos) -> Load {
    let mut load = load(vec![once("P", 0, vec![run(5_000), Op::Fork(0), run(parent_us)])]);
    load.templates = vec![once("C", 0, vec![run(child_us)])];
    load
}

#[test]
fn the_period_of_2_6_24_is_20_ms_and_stretches_past_5_tasks() {
    // 20 / 3 = 6.67 ms, noticed at the seventh tick.
    let hogs = |n: usize| load(["A", "B", "C", "D", "E", "F", "G", "H"][..n].iter().map(|name| hog(name, 0)).collect());
    assert_eq!(schedule("linux-2.6.24", &hogs(3), 22), "0 A, 7 B, 14 C, 21 A");
    // 8 tasks: 20 * 8 / 5 = 32 ms, 4 ms each; a task is preempted only after more than 4 ms.
    assert!(schedule("linux-2.6.24", &hogs(8), 42).ends_with("30 G, 35 H, 40 A"));
    // 6 / 3 = 2 ms in 3.10, and again it is preempted only after more than that.
    assert_eq!(schedule("linux-3.10", &hogs(3), 10), "0 A, 3 B, 6 C, 9 A");
}

#[test]
fn sleepers_were_credited_a_whole_latency_then_half() {
    // S wakes at 50 with A at v 50. 2.6.24 places it at 30: after a slice of 10 ms it is still the leftmost, and it
    // runs its 15 ms in one go. 3.10 places it at 47, and its slices are 3 ms.
    let load = load(vec![hog("A", 0), once("S", 50_000, vec![run(15_000)])]);
    assert_eq!(schedule("linux-2.6.24", &load, 80), "0 A, 50 S, 65 A");
    let shared = "0 A, 50 S, 54 A, 58 S, 62 A, 66 S, 70 A, 74 S, 77 A";
    assert_eq!(schedule("linux-3.10", &load, 80), shared);
}

#[test]
fn the_wake_up_granularity_was_scaled_by_who_runs_then_by_who_wakes() {
    // H (nice 5, weight 335) runs: 10 ms are 30.6 of its v, and S is placed only 20 behind it, so 2.6.24 lets H go on
    // until the tick. By S's own weight 1 ms is v 1, and 3 behind is enough.
    let load = load(vec![hog("H", 5), once("S", 50_500, vec![run(1_000)])]);
    assert_eq!(schedule("linux-2.6.24", &load, 55), "0 H, 51 S, 52 H");
    assert_eq!(schedule("linux-3.10", &load, 53), "0 H, 50.5 S, 51.5 H");
}

#[test]
fn a_child_ran_first_until_2_6_31() {
    // 2.6.24: the child is placed at v 5 + 20 / 2, swaps places with its parent, and every fork reschedules.
    assert_eq!(schedule("linux-2.6.24", &family(2_500, 10_000), 20), "0 P, 5 C-0, 7.5 P, 17.5 -");
    let swapped = schedule_with("linux-3.10", &[("sched_child_runs_first", "1")], &family(2_500, 10_000), 20);
    assert_eq!(swapped, "0 P, 5 C-0, 7.5 P, 17.5 -");
}

#[test]
fn who_is_picked_again_began_a_new_slice_until_3_14() {
    // The child is placed at v 8. P has used its slice at every tick; while its v is less it is picked again. 3.10 puts
    // it back first, so it has a new slice from 6 on, which ends at 10. From 3.15 on it simply continues, up to v 8.
    assert_eq!(schedule("linux-3.10", &family(2_500, 10_000), 20), "0 P, 10 C-0, 12.5 P, 17.5 -");
    for kernel in ["linux-3.18", "linux-4.1", "linux-6.1"] {
        assert_eq!(schedule(kernel, &family(2_500, 10_000), 20), "0 P, 8 C-0, 10.5 P, 17.5 -", "{kernel}");
    }
}

#[test]
fn the_halves_of_a_period_were_rounded_in_three_ways() {
    // With 20 ms for two tasks, 2.6.24 and 3.10 get exactly 10 ms, so 11 ticks pass. 2.6.32 divides as by 2049, which
    // gives 9.995 ms, and from 3.13 on the inverse of 2048 is one too small, giving 9.999995 ms: 10 ticks.
    let hogs = load(vec![hog("A", 0), hog("B", 0)]);
    let halves = |kernel, name| schedule_with(kernel, &[(name, "20000000")], &hogs, 25);
    for kernel in ["linux-2.6.24", "linux-3.10"] {
        assert_eq!(halves(kernel, "sched_latency_ns"), "0 A, 11 B, 22 A", "{kernel}");
    }
    for (kernel, name) in
        [("linux-2.6.32", "sched_latency_ns"), ("linux-4.1", "sched_latency_ns"), ("linux-6.1", "latency_ns")]
    {
        assert_eq!(halves(kernel, name), "0 A, 10 B, 20 A", "{kernel}");
    }
}

#[test]
fn a_longer_latency_holds_no_more_tasks_from_5_13_on() {
    // 32 slices of at least 0.75 ms fit into 24 ms, which ten tasks share. 6.1 still takes 8 for the most that fit, so
    // that each has a slice of 0.75 ms: a tick.
    let hogs = load(["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"].map(|name| hog(name, 0)).to_vec());
    for (kernel, name) in [("linux-4.1", "sched_latency_ns"), ("linux-5.10", "sched_latency_ns")] {
        assert_eq!(schedule_with(kernel, &[(name, "24000000")], &hogs, 10), "0 A, 3 B, 6 C, 9 D", "{kernel}");
    }
    for kernel in ["linux-5.15", "linux-6.1"] {
        assert_eq!(schedule_with(kernel, &[("latency_ns", "24000000")], &hogs, 4), "0 A, 1 B, 2 C, 3 D", "{kernel}");
    }
}

#[test]
fn who_yields_is_passed_over_once_if_that_is_not_too_unfair() {
    let load = load(vec![forever("A", 0, vec![run(1_000), Op::Yield]), hog("B", 0)]);
    // A yielding task is compared again: A goes on until its v is B's 11, and equals wait.
    assert_eq!(schedule("linux-2.6.24", &load, 23), "0 A, 1 B, 12 A, 22 B");
    // The same with slices of 2.5 ms: B's v is 3.
    assert_eq!(schedule("linux-2.6.32", &load, 7), "0 A, 1 B, 4 A, 6 B");
    // B is at 4 when A returns at 1. At 2 B is 2 ahead, more than the granularity, so A goes on; at 3 it is not.
    assert_eq!(schedule("linux-3.10", &load, 9), "0 A, 1 B, 5 A, 7 B");
    // From 3.13 on slices are slightly less than 3 ms: B is at 3, and 1 ahead of A at 2.
    for kernel in ["linux-3.18", "linux-4.1", "linux-6.1"] {
        assert_eq!(schedule(kernel, &load, 7), "0 A, 1 B, 4 A, 5 B", "{kernel}");
    }
}

#[test]
fn compat_yield_goes_behind_the_last() {
    // A's v is 1 ns more than B's before its last ms is counted, so B comes first every time. 2.6.32's slice is 2.5 ms.
    let load = load(vec![forever("A", 0, vec![run(1_000), Op::Yield]), hog("B", 0)]);
    let compat = |kernel| schedule_with(kernel, &[("sched_compat_yield", "on")], &load, 25);
    assert_eq!(compat("linux-2.6.24"), "0 A, 1 B, 12 A, 13 B, 24 A");
    assert!(compat("linux-2.6.32").starts_with("0 A, 1 B, 4 A, 5 B, 8 A, 9 B"));
}

#[test]
fn the_first_eevdf_gave_new_tasks_a_whole_slice() {
    // P renews its request at each tick: d is 5.75 at 5. The child's is also 5.75 in 6.6, and equals do not preempt; in
    // 6.12 it is 5.375, after half a slice.
    let forked = |kernel| schedule_with(kernel, &[("base_slice_ns", "750000")], &family(500, 10_000), 8);
    assert_eq!(forked("linux-6.6"), "0 P, 6 C-0, 6.5 P");
    assert_eq!(forked("linux-6.12"), "0 P, 5 C-0, 5.5 P");
}

#[test]
fn the_first_eevdf_moved_the_deadline_of_who_yields() {
    // A is at v 0.4 when it yields at 1.2, B at 0.8. 6.6 postpones A's deadline, but while B is not eligible A goes on,
    // until both are at 0.8. 6.12 moves A's v to its deadline, 0.7, and 0.2 later it is no longer eligible.
    let load = load(vec![forever("A", 0, vec![run(200), Op::Yield]), hog("B", 0)]);
    assert_eq!(schedule("linux-6.6", &load, 2), "0 A, 0.2 B, 1 A, 1.6 B");
    assert_eq!(schedule("linux-6.12", &load, 2), "0 A, 0.2 B, 1 A, 1.4 B");
}

#[test]
fn a_debt_lasted_over_sleep_until_sleepers_paid_it_in_the_queue() {
    // S goes to sleep 0.25 in debt. 6.6 keeps the debt: at 3.5 it places S at 3.5, 0.5 past H, and its d of 4.25 equals
    // H's own at the next tick; S runs at the one after. In 6.12 S stays queued until its debt is gone, and is placed
    // at 3.
    let load = load(vec![once("S", 0, vec![run(500), Op::Sleep(exactly(3 * MS)), run(500)]), hog("H", 0)]);
    let slept = |kernel| schedule_with(kernel, &[("base_slice_ns", "750000")], &load, 6);
    assert_eq!(slept("linux-6.6"), "0 S, 0.5 H, 5 S, 5.5 H");
    assert_eq!(slept("linux-6.12"), "0 S, 0.5 H, 4 S, 4.5 H");
}

#[test]
fn a_batch_task_preempts_an_idle_one_from_2_6_39_on() {
    // check_preempt_wakeup(): until then it looked first at who wakes, and what is not SCHED_OTHER preempted nobody.
    // The next tick finds that the slice of I, of weight 3, is over.
    let with = |mut task: TaskSpec, policy| {
        task.initial = Setting { policy: Some(policy), ..Setting::default() };
        task
    };
    let woken = |kernel, policy| {
        let idle = with(hog("I", 0), Policy::Idle);
        schedule(kernel, &load(vec![idle, with(once("W", 50_500, vec![run(200)]), policy)]), 52)
    };
    for kernel in ["linux-2.6.32", "linux-3.10", "linux-6.1", "linux-6.12"] {
        assert_eq!(woken(kernel, Policy::Other), "0 I, 50.5 W, 50.7 I", "{kernel}");
        let batch = if kernel == "linux-2.6.32" { "0 I, 51 W, 51.2 I" } else { "0 I, 50.5 W, 50.7 I" };
        assert_eq!(woken(kernel, Policy::Batch), batch, "{kernel}");
    }
}

#[test]
fn who_was_born_with_a_real_time_policy_joins_the_others_where_they_are() {
    // Its v is 0 until it is fair, and counts from the queue's least then (__sched_fork, enqueue_entity): it has half
    // of the 20 ms that follow. From 2.6.33 on; until then v would be 50 behind H's.
    let other = Setting { policy: Some(Policy::Other), rt_priority: Some(0), ..Setting::default() };
    let born = rt(once("R", 50_000, vec![run(1_000), Op::Set(0), run(500_000)]), Policy::Fifo, 10);
    let load = Load { settings: vec![other], ..load(vec![hog("H", 0), born]) };
    for kernel in releases(v2_6(33)..v(7, 0)) {
        let accounts = simulate_at_1000_hz(kernel, "up", &load, &[], 71);
        let ran = accounts.named("R").run - MS;
        assert!((7 * MS..=13 * MS).contains(&ran), "{kernel}: {ran} of 20 ms");
    }
}
