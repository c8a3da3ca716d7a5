//! The differences of 2.6.0 and 2.6.18 from 2.6.11, in schedules worked out by hand. The tick is 1 ms everywhere, and
//! nothing has a cost.

use crate::support::{Accounts, MS, bare, forever, hog, lane, once, run, simulate, sleep, threads};
use schedlab_sim::program::{Load, Op, Policy, Setting, TaskSpec};

fn on(machine: &str, release: &str, load: &Load, ms: u64) -> Accounts {
    let set = [("hz", "1000".to_owned())];
    simulate(&format!("linux-2.6.{release}"), &bare(machine), load, &set, ms * MS)
}

fn schedule(release: &str, load: &Load, ms: u64) -> String {
    lane(&on("up", release, load, ms), 0)
}

#[test]
fn slices_of_2_6_0_are_linear_in_the_nice_level() {
    // 10 + 190 * 19 / 39 = 102 ms at nice 0, 10 + 190 * 9 / 39 = 53 ms at nice 10.
    let load = threads(vec![hog("A", 0), hog("B", 10)]);
    assert_eq!(schedule("0", &load, 311), "0 A, 102 B, 155 A, 257 B, 310 A");
}

#[test]
fn in_2_6_0_an_interactive_task_stays_active_though_a_better_one_has_expired() {
    // S (nice 5) is idle until 920, and so at 121 against 125. At the end of its slice A has expired.
    // 2.6.11: S, which is nicer, expires too, after its 75 ms.
    // 2.6.0: S goes on, and without credit it is charged all that it runs. From 918 ms of sleep it is at 878 after
    // turns at 10, 20 and 40 ms, at 840 after its first slice of 78 ms, and at 800 after the turns at 20 and 40 ms of
    // the second: at the end of that its bonus is 7, and 8 is needed.
    let mut s = once("S", vec![sleep(920), run(1000)]);
    s.initial.nice = Some(5);
    let late = |name| TaskSpec { start: MS, ..hog(name, 0) };
    let load = threads(vec![s, late("A"), late("B")]);
    let from = |text: &str, at: &str| text[text.find(at).unwrap()..].to_owned();
    assert_eq!(from(&schedule("0", &load, 1178), "817 A"), "817 A, 919 B, 920 S, 1076 B, 1177 S");
    assert_eq!(from(&schedule("11", &load, 1077), "801 A"), "801 A, 901 B, 920 S, 995 B, 1076 S");
}

#[test]
fn in_2_6_0_a_new_thread_runs_first() {
    // P has 72 ms of its slice left at 30: 36 for each.
    let load = Load {
        templates: vec![once("C", vec![run(100)])],
        ..threads(vec![once("P", vec![run(30), Op::Fork(0), run(100)]), hog("H", 0)])
    };
    assert_eq!(schedule("0", &load, 205), "0 P, 30 C-0, 66 P, 102 H, 204 C-0");
}

#[test]
fn in_2_6_0_a_real_time_task_goes_behind_its_equals_when_it_is_first_picked() {
    // A and B wake while C runs. At 12 A is picked, and put behind B; after C has preempted it, B is first.
    let fifo = |name: &str, priority, program| TaskSpec {
        initial: Setting { policy: Some(Policy::Fifo), rt_priority: Some(priority), ..Setting::default() },
        ..once(name, program)
    };
    let load = threads(vec![
        fifo("C", 20, vec![sleep(5), run(7), sleep(3), run(1)]),
        fifo("A", 10, vec![sleep(8), run(20)]),
        fifo("B", 10, vec![sleep(9), run(20)]),
    ]);
    assert_eq!(schedule("0", &load, 60), "0 C, 0 A, 0 B, 0 -, 5 C, 12 A, 15 C, 16 B, 36 A, 53 -");
    assert_eq!(schedule("11", &load, 60), "0 C, 0 A, 0 B, 0 -, 5 C, 12 A, 15 C, 16 A, 33 B, 53 -");
}

#[test]
fn in_2_6_18_sleep_counts_once() {
    // A (nice -4, 480 ms) is at 121. S sleeps for 8 ms and waits for 472. In 2.6.11 that counts tenfold and gives the
    // whole bonus, 115. In 2.6.18 it is 480 ms and 121, not better than A, and only one more wait makes it 116.
    let load = threads(vec![hog("A", -4), forever("S", 0, vec![run(2), sleep(8)])]);
    assert_eq!(schedule("11", &load, 975), "0 A, 480 S, 482 A, 962 S, 964 A, 972 S, 974 A");
    assert_eq!(schedule("18", &load, 1455), "0 A, 480 S, 482 A, 962 S, 964 A, 1444 S, 1446 A, 1454 S");
}

#[test]
fn in_2_6_18_a_batch_task_waits_until_the_arrays_change_places() {
    // B would be at 105, against 125. It sleeps from 100 to 110, and then from 205 to 215.
    let policy = |policy| {
        let mut spec = forever("B", -20, vec![sleep(10), run(5)]);
        spec.initial.policy = Some(policy);
        threads(vec![spec, hog("H", 0)])
    };
    assert_eq!(schedule("18", &policy(Policy::Batch), 306), "0 H, 100 B, 100 H, 200 B, 205 H, 305 B");
    let text = "0 B, 0 H, 10 B, 15 H, 25 B";
    assert_eq!(schedule("18", &policy(Policy::Other), 26), text);
    assert_eq!(schedule("11", &policy(Policy::Batch), 26), text);
}

#[test]
fn in_2_6_18_a_new_nice_level_keeps_the_bonus() {
    // H is at 120. S has a bonus of 7, for 790 ms, and is at 119 at its new level. In 2.6.11, where its bonus was 10,
    // it is at the plain 121 until its slice ends or it sleeps.
    let nicer = Setting { nice: Some(1), ..Setting::default() };
    let late = TaskSpec { start: MS, ..hog("H", -5) };
    let mut load = threads(vec![once("S", vec![sleep(790), run(10), Op::Set(0), run(10)]), late]);
    load.settings = vec![nicer];
    assert_eq!(schedule("18", &load, 811), "0 S, 0 -, 1 H, 790 S, 810 H");
    assert_eq!(schedule("11", &load, 801), "0 S, 0 -, 1 H, 790 S, 800 H");
}
