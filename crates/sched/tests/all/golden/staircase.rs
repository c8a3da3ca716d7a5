//! RSDL and SD: schedules worked out by hand, and their latency bounds on random loads. The tick is 1 ms unless stated
//! otherwise, and nothing has a cost.

use crate::support::ledger::Ledger;
use crate::support::{MS, bare, exactly, forever, hog, lane, once, run, simulate, sleep, threads};
use schedlab_base::{Nanos, Rng};
use schedlab_sim::program::{Load, Op, Policy, Setting, Start, TaskSpec};

fn schedule_with(kernel: &str, set: &[(&str, &str)], load: &Load, ms: Nanos) -> String {
    let set: Vec<_> = set.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    lane(&simulate(kernel, &bare("up"), load, &set, ms * MS), 0)
}

fn schedule(kernel: &str, load: &Load, ms: Nanos) -> String {
    schedule_with(kernel, &[], load, ms)
}

#[test]
fn equals_take_turns_at_each_level() {
    let load = threads(vec![hog("A", 0), hog("B", 0)]);
    assert_eq!(schedule("rsdl", &load, 25), "0 A, 6 B, 12 A, 18 B, 24 A");
    assert_eq!(schedule("sd", &load, 41), "0 A, 10 B, 20 A, 30 B, 40 A");
}

#[test]
fn in_rsdl_a_better_task_comes_down_to_a_nicer_one() {
    // A has ten levels for itself, and ten together with B. At 180 both have used theirs, and a new rotation begins: A
    // needs until 240 to come down to B.
    let text = schedule("rsdl", &threads(vec![hog("A", 0), hog("B", 10)]), 241);
    assert!(text.starts_with("0 A, 60 B, 66 A, 72 B, 78 A, "), "{text}");
    assert!(text.ends_with("162 A, 168 B, 174 A, 240 B"), "{text}");
}

#[test]
fn in_rsdl_the_worst_wait_beside_one_equal_is_nineteen_levels() {
    // A is 5 ms into its lowest level when B, which has run nothing, wakes. B comes down to that level at 233, behind
    // A.
    let load = threads(vec![once("B", vec![sleep(119), run(1000)]), hog("A", 0)]);
    assert_eq!(schedule("rsdl", &load, 241), "0 B, 0 A, 119 B, 233 A, 234 B, 240 A");
}

#[test]
fn in_rsdl_whoever_is_left_is_pushed_down_with_a_used_up_level() {
    // A tick comes every 10 ms, and quotas are 15 ms: A and B run for 20 each of the best level's 45. C has run for 10
    // of its 15 when the level's quota is used up, and goes behind A and B. There A runs for 20 of 30, and B is pushed
    // after 10, C with it. B's 5 ms end at 110, C's at 120, and both have a new quota on that same level.
    let load = threads(vec![hog("A", 0), hog("B", 0), hog("C", 0)]);
    let text = schedule_with("rsdl", &[("hz", "100"), ("rr_interval", "15")], &load, 121);
    assert_eq!(text, "0 A, 20 B, 40 C, 50 A, 70 B, 80 A, 100 B, 110 C, 120 B");
}

#[test]
fn in_sd_a_nicer_task_has_fewer_slots_all_over_the_rotation() {
    // A has every second slot, the first at 1, and B every fourth, the first at 3, with half the quota.
    let load = threads(vec![hog("A", 0), hog("B", 10)]);
    assert_eq!(schedule("sd", &load, 66), "0 A, 10 B, 15 A, 35 B, 40 A, 60 B, 65 A");
}

#[test]
fn in_sd_a_late_comer_takes_no_slot_above_the_mark() {
    // S took slot 1 at the start, and continues there at 35, when A is half through slot 7. Then slot 7 is its next,
    // not 3.
    let load = threads(vec![once("S", vec![sleep(35), run(100)]), hog("A", 0)]);
    assert_eq!(schedule("sd", &load, 71), "0 S, 0 A, 35 S, 45 A, 50 S, 60 A, 70 S");
}

#[test]
fn in_sd_what_is_left_is_brought_into_a_later_rotation_if_interactive() {
    // The first rotation ends when A has had its 20 slots, at 204. S wakes at 250 and joins slot 9, with 6 ms left
    // over.
    let load = threads(vec![once("S", vec![run(4), sleep(246), run(100)]), hog("A", 0)]);
    let with = |interactive| schedule_with("sd", &[("interactive", interactive)], &load, 281);
    assert_eq!(with("on"), "0 S, 4 A, 254 S, 270 A, 280 S");
    assert_eq!(with("off"), "0 S, 4 A, 254 S, 264 A, 274 S");
}

#[test]
fn a_child_has_half_of_what_its_parent_had_left() {
    let load = |ms| Load {
        tasks: vec![once("P", vec![run(ms), Op::Fork(0), run(20)])],
        templates: vec![once("C", vec![run(20)])],
        start: Start::Wake,
        ..Load::default()
    };
    // 4 of 6 ms, and 6 of 10.
    assert_eq!(schedule("rsdl", &load(2), 19), "0 P, 4 C-0, 6 P, 12 C-0, 18 P");
    assert_eq!(schedule("sd", &load(4), 31), "0 P, 7 C-0, 10 P, 20 C-0, 30 P");
}

#[test]
fn who_yields_goes_behind_its_equals() {
    let load = threads(vec![forever("Y", 0, vec![run(1), Op::Yield]), hog("H", 0)]);
    assert_eq!(schedule("rsdl", &load, 18), "0 Y, 1 H, 7 Y, 12 H");
}

#[test]
fn real_time_tasks_go_before_all_others() {
    let real_time = |name: &str, policy, program| TaskSpec {
        initial: Setting { policy: Some(policy), rt_priority: Some(10), ..Setting::default() },
        ..once(name, program)
    };
    let load = threads(vec![real_time("F", Policy::Fifo, vec![sleep(5), run(20)]), hog("H", -20)]);
    let rr = |name: &str| real_time(name, Policy::Rr, vec![run(15)]);
    let turns = threads(vec![hog("H", -20), rr("A"), rr("B")]);
    for kernel in ["rsdl", "sd"] {
        assert_eq!(schedule(kernel, &load, 30), "0 F, 0 H, 5 F, 25 H");
    }
    assert_eq!(schedule("rsdl", &turns, 31), "0 A, 6 B, 12 A, 18 B, 24 A, 27 B, 30 H");
}

#[test]
fn shares_follow_levels_and_quotas() {
    // RSDL: 30 * 15 ms, 20 * 6 and 10 * 6. SD: 30 * 25, 20 * 10 and 10 * 5.
    for (kernel, shares) in [("rsdl", [450.0, 120.0, 60.0]), ("sd", [750.0, 200.0, 50.0])] {
        let load = threads([-10, 0, 10].map(|nice| hog(&format!("nice {nice}"), nice)).into());
        let accounts = simulate(kernel, &bare("up"), &load, &[], 200_000 * MS);
        let sum: f64 = shares.iter().sum();
        for (task, share) in accounts.tasks.iter().zip(shares) {
            let (ours, due) = (task.run as f64, 200_000.0 * MS as f64 * share / sum);
            assert!((ours / due - 1.0).abs() < 0.02, "{kernel}: {ours} for {due}");
        }
    }
}

#[test]
fn cpus_share_the_work_and_the_interval_grows_with_them() {
    let load = threads((0..4).map(|i| hog(&format!("hog-{i}"), 0)).collect());
    for kernel in ["rsdl", "sd"] {
        let accounts = simulate(kernel, &bare("1x2x1"), &load, &[], 10_000 * MS);
        assert!(accounts.tasks.iter().all(|t| t.run.abs_diff(5_000 * MS) < 150 * MS), "{:?}", accounts.tasks);
    }
    let default = |kernel: &str, cpus: &str| {
        let kernel = schedlab_sched::kernels::find(kernel).unwrap();
        kernel.tunable("rr_interval").unwrap().default_for(bare(cpus).cpus.len() as u32)
    };
    assert_eq!(["up", "2", "4"].map(|cpus| default("sd", cpus)), [10, 20, 30]);
    assert_eq!(["up", "4"].map(|cpus| default("rsdl", cpus)), [6, 6]);
}

/// The interval, lengthened for nice levels below -6.
fn quota_us(interval: u64, nice: i64) -> u64 {
    if nice < -6 { interval * (nice * nice) as u64 / 40 } else { interval }
}

/// Returns what a task adds to the longest wait of a task at nice 0, as derived in the modules' documentation.
fn added_us(kernel: &str, interactive: bool, nice: i64) -> u64 {
    let (levels, tick) = ((20 - nice) as u64, 1_000);
    if kernel == "rsdl" {
        return 2 * levels * (quota_us(6_000, nice) + tick);
    }
    let has = |slot: u64| (slot + 1) * levels / 40 > slot * levels / 40;
    let most = (0..40).map(|mark| (mark..mark + 3).filter(|slot| has(slot % 40)).count() as u64).max().unwrap_or(0);
    let quota = if nice > 0 { 5_000 } else { quota_us(10_000, nice) };
    (most + 1) * (quota + tick) + if interactive { quota } else { 0 }
}

/// Hogs, all kinds of sleepers, and tasks that yield.
fn random_load(rng: &mut Rng) -> Load {
    let long = rng.below(4) == 0;
    let nice = |rng: &mut Rng| if rng.below(3) == 0 { rng.below(40) as i8 - 20 } else { 0 };
    let tasks = (0..2 + rng.below(7)).map(|i| {
        let us = |rng: &mut Rng, most: u64| exactly((1 + rng.below(most)) * 1_000);
        let body = match rng.below(8) {
            0..3 => vec![Op::Run(exactly(1_000 * MS))],
            3 => vec![Op::Run(us(rng, 3_000)), Op::Yield],
            4 => vec![Op::Run(us(rng, 900)), Op::Sleep(us(rng, 1_000))],
            _ if long => vec![Op::Run(us(rng, 900_000)), Op::Sleep(us(rng, 2_000_000))],
            _ => vec![
                Op::Run(us(rng, 20_000)),
                Op::Sleep(us(rng, 200_000)),
                Op::Run(us(rng, 400_000)),
                Op::Sleep(us(rng, 9_000)),
            ],
        };
        TaskSpec { start: rng.below(300) * MS / 2, ..forever(&format!("task-{i}"), nice(rng), body) }
    });
    threads(tasks.collect())
}

/// Returns the longest wait of a task at nice 0 under `kernel` as a fraction of the bound of `promise`, over random
/// loads.
fn worst(kernel: &str, promise: &str, interactive: bool) -> f64 {
    let mut worst: f64 = 0.0;
    for seed in 0..120 {
        let load = random_load(&mut Rng::new(seed));
        let nice = |i: usize| i64::from(load.tasks[i].initial.nice.unwrap_or(0));
        let set = match (kernel, interactive) {
            ("sd", false) => vec![("interactive", "off".to_owned())],
            _ => vec![],
        };
        let end = 10_000 * MS;
        let accounts = simulate(kernel, &bare("up"), &load, &set, end);
        let waits = Ledger::of(&accounts.events, accounts.tasks.len(), 1, end, |_, _| true).longest_wait;
        let added: Vec<_> = (0..waits.len()).map(|i| added_us(promise, interactive, nice(i))).collect();
        for i in (0..waits.len()).filter(|i| nice(*i) == 0) {
            let bound = (added.iter().sum::<u64>() - added[i]) * 1_000;
            worst = worst.max(waits[i] as f64 / bound as f64);
        }
    }
    worst
}

#[test]
fn no_task_of_nice_0_waits_longer_than_the_documentation_promises() {
    for (kernel, interactive) in [("rsdl", false), ("sd", true), ("sd", false)] {
        let worst = worst(kernel, kernel, interactive);
        assert!(worst <= 1.0, "{kernel} (interactive {interactive}): {worst} of the bound");
        assert!(worst > 0.3, "the loads try {kernel} too little: {worst} of the bound");
    }
    // The same loads under a scheduler without such a bound.
    assert!(worst("linux-2.6.11", "sd", true) > 1.0);
}
