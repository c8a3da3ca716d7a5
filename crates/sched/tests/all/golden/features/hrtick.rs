//! HRTICK, HRTICK_DL and DOUBLE_TICK: slices and budgets that end exactly where they end.

use super::{at, batch, load, schedule, us};
use crate::support::registry::releases;
use crate::support::{MS, hog, once, simulate_at_1000_hz};
use schedlab_base::{Payload, v};
use schedlab_sched::kernels::find;
use schedlab_sim::program::{GroupSpec, Load, Policy};

const HRTICK: (&str, &str) = ("HRTICK", "1");
const SLOW: (&str, &str) = ("hz", "100");

fn two() -> Load {
    load(vec![hog("A", 0), hog("B", 0)])
}

#[test]
fn a_timer_ends_slices_where_they_end() {
    // The latency of two tasks is 6 ms and each has 3 (2.6.32: 5 and 2.5). With a tick of 10 ms they have 10.
    for kernel in releases(v(3, 10)..v(6, 2)) {
        assert_eq!(schedule(kernel, &two(), &[SLOW], 25), "0 A, 10 B, 20 A", "{kernel}");
        assert_eq!(schedule(kernel, &two(), &[SLOW, HRTICK], 10), "0 A, 3 B, 6 A, 9 B", "{kernel}");
    }
    assert_eq!(schedule("linux-2.6.32", &two(), &[SLOW, HRTICK], 8), "0 A, 2.5 B, 5 A, 7.5 B");
    // EEVDF: the base slice. In 6.6 B is picked again at 1.5, with the same deadline as A, and pick_next_task_fair()
    // sets the timer for the least time, 10 us. From 6.12 on who goes on has no timer.
    assert_eq!(schedule("linux-6.6", &two(), &[SLOW, HRTICK], 2), "0 A, 0.75 B, 1.51 A");
    for kernel in releases(v(6, 12)..v(7, 0)) {
        assert_eq!(schedule(kernel, &two(), &[SLOW], 25), "0 A, 10 B, 20 A", "{kernel}");
        assert_eq!(schedule(kernel, &two(), &[SLOW, HRTICK], 2), "0 A, 0.7 B, 1.4 A", "{kernel}");
    }
}

#[test]
fn the_timer_follows_who_joins_and_leaves() {
    // hrtick_update(): at 1 ms C joins, which as a batch task does not preempt, so that A has 2 ms instead of 3, and B
    // too. As C leaves after 0.5 ms they have 3 again.
    let load = self::load(vec![hog("A", 0), hog("B", 0), at(batch(once("C", vec![us(500)])), 1_000)]);
    for kernel in releases(v(3, 10)..v(6, 2)) {
        assert_eq!(schedule(kernel, &load, &[SLOW, HRTICK], 10), "0 A, 2 B, 4 C, 4.5 A, 7.5 B", "{kernel}");
    }
}

#[test]
fn who_has_had_its_slice_already_gives_way_as_another_joins() {
    // hrtick_start_fair(): delta is 3 - 50.5 < 0, and the running task is rescheduled at once. Without the timer the
    // tick at 51 does that.
    let load = self::load(vec![hog("A", 0), at(batch(once("S", vec![us(200)])), 50_500)]);
    for kernel in releases(v(3, 10)..v(6, 2)) {
        let first = |set: &[(&str, &str)]| schedule(kernel, &load, set, 52);
        assert!(first(&[]).starts_with("0 A, 51 S"), "{kernel}: {}", first(&[]));
        assert!(first(&[HRTICK]).starts_with("0 A, 50.5 S"), "{kernel}: {}", first(&[HRTICK]));
    }
}

#[test]
fn until_4_8_the_timer_ran_only_for_who_had_others_in_its_group() {
    // R at the root, G in a group of its own, each with 3 ms. 4.1 asks for cfs_rq->nr_running > 1, which G's queue is
    // not; since 4.9 it is rq->cfs.h_nr_running. G's slice is rounded down at two levels, so that it is a nanosecond
    // short of R, goes on, and is ended by the least time for which the timer is set, 10 us. In 4.1 R is still behind G
    // when its timer expires at 13, and goes on without one.
    let mut g = hog("G", 0);
    g.initial.group = Some(0);
    let groups = vec![GroupSpec { path: "/g".into(), shares: 1024, ..GroupSpec::default() }];
    let load = Load { groups, ..load(vec![hog("R", 0), g]) };
    let set = [SLOW, HRTICK, ("sched_autogroup_enabled", "0")];
    assert_eq!(schedule("linux-6.1", &load, &set, 10), "0 R, 3 G, 6.01 R, 9.01 G");
    assert_eq!(schedule("linux-4.1", &load, &set, 24), "0 R, 3 G, 10 R, 20 G");
}

#[test]
fn ticks_leave_slices_to_the_timer_unless_double_tick_is_on() {
    // As the eighth task joins, the timer is no longer moved (nr_running < sched_nr_latency): A's has been set to 6 / 7
    // ms as the seventh did. By then A's slice is 0.75 ms, which the tick at 0.8 finds used up. 2.6.32: the last of 5
    // tasks whose joining moves it is the fourth, 5 / 4 ms (calc_delta_mine() makes that 1.249695); 1 ms is over at the
    // tick at 1.1.
    let many = |n: u64| {
        let others = (0..n).map(|i| at(batch(hog(&format!("B{i}"), 0)), 100));
        load([hog("A", 0)].into_iter().chain(others).collect())
    };
    let ends = |kernel: &str, n, tick: &str, double| {
        let accounts =
            simulate_at_1000_hz(kernel, "up", &many(n), &[("tick_ns", tick), HRTICK, ("DOUBLE_TICK", double)], 3);
        let first = accounts.events.iter().find(|e| matches!(e.what, Payload::Switch { prev: 1, .. }));
        first.expect("A's turn ends").time
    };
    for kernel in releases(v(3, 10)..v(6, 2)) {
        assert_eq!(["0", "1"].map(|double| ends(kernel, 9, "800000", double)), [857_142, 800_000], "{kernel}");
    }
    assert_eq!(["0", "1"].map(|double| ends("linux-2.6.32", 6, "1100000", double)), [1_249_695, 1_100_000]);
}

#[test]
fn a_timer_ends_budgets_where_they_end() {
    // 3 ms in each 20: the tick at 4 finds the budget used up, and 1 ms is missing in the next period. HRTICK stands
    // for both until 5.11.
    let mut d = hog("D", 0);
    (d.initial.policy, d.initial.dl) = (Some(Policy::Deadline), Some((3 * MS, 20 * MS, 20 * MS)));
    let load = self::load(vec![d, hog("A", 0)]);
    for kernel in releases(v(3, 18)..v(7, 0)) {
        let of_dl = if find(kernel).unwrap().release < Some(v(5, 12)) { "HRTICK" } else { "HRTICK_DL" };
        assert!(schedule(kernel, &load, &[("hz", "250")], 30).starts_with("0 D, 4 A, 20 D"), "{kernel}");
        let exact = schedule(kernel, &load, &[("hz", "250"), (of_dl, "1")], 30);
        assert_eq!(exact, "0 D, 3 A, 20 D, 23 A", "{kernel}");
    }
}
