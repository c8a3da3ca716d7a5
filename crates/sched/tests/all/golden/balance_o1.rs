//! Load balancing of 2.6.0, 2.6.11 and 2.6.18, in schedules worked out by hand. The tick is 1 ms everywhere, nothing
//! has a cost, and at one instant the lower CPU goes first.

use crate::support::{MS, bare, hog, lane, once, pinned, run, simulate, threads};
use schedlab_machine::{Costs, Machine, MachineFile};
use schedlab_sim::program::{Hotplug, Load, Op, Setting, Start, TaskSpec};

/// The lanes of all CPUs.
fn lanes(release: &str, machine: &Machine, load: &Load, ms: u64) -> Vec<String> {
    let set = [("hz", "1000".to_owned())];
    let accounts = simulate(&format!("linux-2.6.{release}"), machine, load, &set, ms * MS);
    (0..machine.cpus.len() as u32).map(|cpu| lane(&accounts, cpu)).collect()
}

fn hogs(names: &str) -> Load {
    threads(names.chars().map(|name| hog(&name.to_string(), 0)).collect())
}

/// Nodes of one CPU each.
fn nodes(n: u32) -> Machine {
    let distance = |i, j| if i == j { 10 } else { 21 };
    let distances = (0..n).map(|i| (0..n).map(|j| distance(i, j)).collect()).collect();
    let file = MachineFile { distances, ..MachineFile::flat("nodes", n, 1, 1) };
    Machine { costs: Costs::none(), ..file.build().expect("a machine") }
}

#[test]
fn in_2_6_11_four_cpus_spread_six_hogs_and_even_out_what_is_left_when_they_are_busy() {
    // At the first tick CPU 0's load is (0 + 1 + 768) / 2 = 384: the others are idle, and each pulls one task, the last
    // of the list. CPU 0 keeps three. At 65 (1 + 64) CPU 1 sees 384 against its own 128: they are two tasks apart, so
    // one moves, C, which never ran. CPU 2 then sees 256 against 128, and moving one task would gain nothing.
    let text = ["0 A, 100 B, 200 A", "1 F, 101 C, 201 F", "1 E", "1 D"];
    assert_eq!(lanes("11", &bare("1x4x1"), &hogs("ABCDEF"), 210), text);
}

#[test]
fn in_2_6_0_the_odd_task_goes_back_and_forth() {
    // At its first tick the idle CPU pulls one of three tasks. At 200 it saw 3 at its last look and sees 2 now, against
    // its own 1. Half of the difference is 0, and the kernel counts down past 0, so it pulls everything that is not
    // warm: A, expired since 102. At 400 CPU 0 has too few, but CPU 1 had one task at 200, so nothing moves before 600;
    // A has then waited since 511.
    let text = ["0 A, 102 B, 612 A, 714 B", "1 C, 205 A, 307 C, 409 A, 511 C"];
    assert_eq!(lanes("0", &bare("1x2x1"), &hogs("ABC"), 800), text);
    // 2.6.11 keeps two tasks against one.
    let text = ["0 A, 100 B, 200 A, 300 B, 400 A, 500 B, 600 A, 700 B", "1 C"];
    assert_eq!(lanes("11", &bare("1x2x1"), &hogs("ABC"), 800), text);
}

#[test]
fn in_2_6_0_a_task_that_waits_for_less_than_the_cache_keeps_warm_stays() {
    // As before, but A runs from 98 ms on: it expires at 200, in the tick at which CPU 1 looks. CPU 0 could also give
    // B, which never ran but was queued at 199.
    let late = |name: &str, at: u64| TaskSpec { start: at * MS, ..hog(name, 0) };
    let load = threads(vec![late("A", 98), pinned(hog("C", 0), 1), late("B", 199)]);
    assert_eq!(lanes("0", &bare("1x2x1"), &load, 310), ["98 A, 200 B, 302 A", "0 C"]);
}

#[test]
fn in_2_6_0_a_node_is_helped_each_fifth_tick() {
    // The CPU is alone on its node: at 5 it sees 10 * 2 / 1 = 20 on the other node, and 0 on its own.
    assert_eq!(lanes("0", &nodes(2), &hogs("AB"), 50), ["0 A", "5 B"]);
    assert_eq!(lanes("0", &bare("1x2x1"), &hogs("AB"), 50), ["0 A", "1 B"]);
}

#[test]
fn in_2_6_18_what_is_evened_out_is_weight() {
    // H has a load of 1024 and the others 128 each. At the first tick 704 should move, and the other three tasks do,
    // the last of the list first. In 2.6.11 four tasks with an average of 256 are one too many at that time, and at 65
    // three against one are.
    let mut load = hogs("ABC");
    load.tasks.insert(0, hog("H", -20));
    let machine = bare("2x1x1");
    assert_eq!(lanes("18", &machine, &load, 350), ["0 H", "1 C, 101 B, 201 A, 301 C"]);
    assert_eq!(lanes("11", &machine, &load, 350), ["0 H", "1 C, 101 B, 201 C, 301 B"]);
}

#[test]
fn in_2_6_18_a_lighter_queue_takes_what_an_equally_long_one_would_not() {
    // From 1 ms on C (64) may run on both CPUs, from 2 ms on it waits for A (128). At 64 the second CPU, whose H has a
    // load of 6, sees 192. The average is 93 away, less than the 96 of a task, but the tasks here are lighter.
    let mut c = pinned(once("C", vec![run(1), Op::Set(0), run(1000)]), 0);
    c.initial.nice = Some(10);
    let late = TaskSpec { start: 2 * MS, ..pinned(hog("A", 0), 0) };
    let mut load = threads(vec![late, pinned(hog("H", 19), 1), c]);
    load.settings = vec![Setting { cpus: Some(vec![0, 1]), ..Setting::default() }];
    let lane_1 = |release| lanes(release, &bare("1x2x1"), &load, 70).remove(1);
    assert_eq!((lane_1("18"), lane_1("11")), ("0 H, 64 C".into(), "0 H".into()));
}

#[test]
fn the_stopper_moves_a_running_task_off_a_core_that_two_share() {
    // A sibling pulls B first. Then one core has two tasks and the other none, but each task runs: CPU 2 fails four
    // times, and the stopper of CPU 0 pushes A. 2.6.11: at 3 CPU 1 sees 224 and pulls B. CPU 2 looks at 1, 3 and 7,
    // when 248 * 128 / 140 = 226 counts as two tasks, and again at 11, 15 and 19.
    let machine = bare("1x2x2");
    assert_eq!(lanes("11", &machine, &hogs("AB"), 100), ["0 A, 19 -", "3 B", "19 A", ""]);
    // 2.6.18: at 1 CPU 1 sees the current load. CPU 2 looks at 3, 4, 5 and 6.
    assert_eq!(lanes("18", &machine, &hogs("AB"), 100), ["0 A, 6 -", "1 B", "6 A", ""]);
}

/// W runs on CPU 0 and wakes T at `at` ms; T has slept on CPU 1 since the start, where the others run.
fn wake_up(at: u64, others: &str) -> Load {
    let t = pinned(once("T", vec![Op::Set(0), Op::SemWait(0), run(1)]), 1);
    let w = pinned(once("W", vec![run(at), Op::SemPost(0), run(1000)]), 0);
    let x = others.chars().map(|name| pinned(hog(&name.to_string(), 0), 1));
    Load {
        settings: vec![Setting { cpus: Some(vec![0, 1]), ..Setting::default() }],
        sems: vec!["sem".into()],
        ..threads([t, w].into_iter().chain(x).collect())
    }
}

#[test]
fn in_2_6_11_a_waker_gets_a_task_whose_cache_is_cold() {
    // 10 ms of sleep give a bonus of one; 2 ms, within which a cache is warm, give none.
    let on_two = |at| lanes("11", &bare("1x2x1"), &wake_up(at, "X"), 110);
    assert_eq!(on_two(10), ["0 W, 10 T, 11 W", "0 T, 0 X"]);
    assert_eq!(on_two(2), ["0 W", "0 T, 0 X, 100 T, 101 X"]);
    // Nor does the task leave an idle CPU.
    assert_eq!(lanes("11", &bare("1x2x1"), &wake_up(10, ""), 110), ["0 W", "0 T, 0 -, 10 T, 11 -"]);
}

#[test]
fn in_2_6_0_nobody_comes_to_its_waker() {
    assert_eq!(lanes("0", &bare("1x2x1"), &wake_up(10, "X"), 110), ["0 W", "0 T, 0 X, 102 T, 103 X"]);
}

#[test]
fn in_2_6_18_a_waker_gets_a_task_from_where_there_is_more_load() {
    // 128 plus T's own 128 are too much against 128. Against 384 they are not: 256 * 100 against 384 * 112.
    let on_two = |others| lanes("18", &bare("1x2x1"), &wake_up(10, others), 110);
    assert_eq!(on_two("X"), ["0 W", "0 T, 0 X, 100 T, 101 X"]);
    assert_eq!(on_two("XYZ"), ["0 W, 100 T, 101 W", "0 T, 0 X, 100 Y"]);
}

#[test]
fn a_sibling_that_idles_takes_who_wakes() {
    // T wakes by itself where X runs, on CPU 0. Both releases look for an idle sibling, 2.6.11 for any idle CPU of the
    // node.
    let t = pinned(once("T", vec![Op::Set(0), Op::Sleep(crate::support::exactly(10 * MS)), run(1)]), 0);
    let settings = |cpus| vec![Setting { cpus: Some(cpus), ..Setting::default() }];
    let load = |cpus| Load { settings: settings(cpus), ..threads(vec![t.clone(), pinned(hog("X", 0), 0)]) };
    let machine = bare("1x2x2");
    for release in ["11", "18"] {
        assert_eq!(lanes(release, &machine, &load(vec![0, 1, 2]), 20), ["0 T, 0 X", "10 T, 11 -", "", ""]);
    }
    assert_eq!(lanes("11", &machine, &load(vec![0, 2]), 20), ["0 T, 0 X", "", "10 T, 11 -", ""]);
    // Without an idle sibling 2.6.18 leaves T on CPU 0, from which CPU 2 pulls it at its next look, after 1, 3 and 7 at
    // 11.
    assert_eq!(lanes("18", &machine, &load(vec![0, 2]), 20)[1..], ["", "11 T, 12 -", ""]);
    // Without any siblings there is no search.
    assert_eq!(lanes("11", &bare("1x2x1"), &load(vec![0, 1]), 12), ["0 T, 0 X, 10 T, 11 X", ""]);
}

#[test]
fn a_child_begins_where_its_parent_is_unless_2_6_18_has_a_node_for_it() {
    let load = Load {
        tasks: vec![once("P", vec![run(5), Op::Fork(0), run(10)])],
        templates: vec![once("C", vec![run(10)])],
        start: Start::Wake,
        ..Load::default()
    };
    // The child runs first. The idle CPU looks at 1, 3 and 7.
    let pulled = ["0 P, 5 C-0, 15 -", "7 P, 17 -"];
    for release in ["11", "18"] {
        assert_eq!(lanes(release, &bare("1x2x1"), &load, 30), pulled, "{release}");
    }
    assert_eq!(lanes("11", &nodes(2), &load, 30), pulled);
    assert_eq!(lanes("18", &nodes(2), &load, 30), ["0 P, 15 -", "5 C-0, 15 -"]);
    // In 2.6.0 the idle CPU looks every ms, and the child runs first as well.
    assert_eq!(lanes("0", &bare("1x2x1"), &load, 30), ["0 P, 5 C-0, 15 -", "6 P, 16 -"]);
}

#[test]
fn a_cpu_that_comes_back_looks_at_once() {
    // CPU 1 goes offline at 10 with B, which then waits. It is back at 20, and its domain's first interval is 1 ms.
    let change = |at: u64, online| Hotplug { at: at * MS, cpu: 1, online };
    let load = Load { hotplug: vec![change(10, false), change(20, true)], ..hogs("AB") };
    assert_eq!(lanes("11", &bare("1x2x1"), &load, 60), ["0 A", "3 B, 10 -, 21 B"]);
}
