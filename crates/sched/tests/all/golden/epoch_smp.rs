//! Schedules of the kernels before O(1) on several CPUs, which share one queue. A tick is 10 ms, and nothing has a
//! cost.

use crate::support::{Accounts, MS, bare, exactly, forever, hog, lane, once, pinned, run, simulate, sleep, threads};
use schedlab_base::CpuId;
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::{Load, Op};

fn simulated(kernel: &str, cpus: &str, load: &Load, ms: u64) -> Accounts {
    simulate(kernel, &bare(cpus), load, &[], ms * MS)
}

#[test]
fn three_hogs_share_two_cpus() {
    let load = threads(["A", "B", "C"].map(|name| hog(name, 0)).into());
    let accounts = simulated("linux-2.4", "2", &load, 215);
    // At 60 C takes CPU 0, and CPU 1 finds no task with ticks: an epoch begins, in which C gets 6 / 2 + 6. B stays
    // until 120, because CPU 1 is worth 15 to it; A takes its place. At 150 C's 9 ticks are over, and B has none:
    // another epoch begins, and C stays for one more slice.
    assert_eq!(lane(&accounts, 0), "0 A, 60 C, 210 B");
    assert_eq!(lane(&accounts, 1), "0 B, 120 A");
}

#[test]
fn no_cpu_is_idle_and_nobody_is_left_behind_without_a_balancer() {
    // An epoch ends when one CPU finds no task with ticks, while others have just begun: the tasks that are running
    // keep half of their slice in addition to the new one. As all ticks come at one instant, these are always the same
    // tasks.
    let load = threads((0..10).map(|i| hog(&format!("hog-{i}"), 0)).collect());
    for kernel in ["linux-2.0", "linux-2.2", "linux-2.4"] {
        let accounts = simulated(kernel, "4", &load, 40_000);
        let runs: Vec<u64> = accounts.tasks.iter().map(|t| t.run / MS).collect();
        assert_eq!(runs.iter().sum::<u64>(), 4 * 40_000, "{kernel}");
        assert!(runs.iter().all(|run| run.abs_diff(16_000) < 2_400), "{kernel}: {runs:?}");
    }
}

/// D takes the CPU on which S last ran, before S wakes at 20 ms; A's and B's CPUs are idle by then.
fn two_idle(a: u64, b: u64) -> Load {
    let once_for = |name, ms| once(name, vec![run(ms), sleep(1000)]);
    let s = once("S", vec![run(1), sleep(19), run(5), sleep(1000)]);
    let mut d = pinned(hog("D", 0), 2);
    d.start = 15 * MS;
    threads(vec![once_for("A", a), once_for("B", b), s, d])
}

#[test]
fn who_wakes_goes_to_the_cpu_that_was_idle_for_longest_in_2_4() {
    let accounts = simulated("linux-2.4", "3", &two_idle(5, 10), 30);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 A, 5 -, 20 S, 25 -".into(), "0 B, 10 -".into()));
    let accounts = simulated("linux-2.4", "3", &two_idle(10, 5), 30);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 A, 10 -".into(), "0 B, 5 -, 20 S, 25 -".into()));
    // 2.2 takes the first. (It begins with the last of the queue.)
    let mut load = two_idle(10, 5);
    load.tasks[..3].reverse();
    let accounts = simulated("linux-2.2", "3", &load, 30);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 A, 10 -, 20 S, 25 -".into(), "0 B, 5 -".into()));
}

#[test]
fn an_idle_core_goes_before_an_idle_thread_in_2_4() {
    let machine = bare("1x2x2");
    let load = threads(vec![hog("A", 0), hog("B", 0)]);
    let accounts = simulate("linux-2.4", &machine, &load, &[], 10 * MS);
    let core_of = |name: &str| {
        let on = |cpu: &CpuId| lane(&accounts, *cpu) == format!("0 {name}");
        let cpu = (0..4).find(on).expect("it runs somewhere");
        machine.cpus[cpu as usize].place.core
    };
    assert_ne!(core_of("A"), core_of("B"));
}

#[test]
fn interrupts_come_to_cpu_0_in_2_0() {
    // S last ran on CPU 1, where B is running now. Woken by the timer, it takes A's CPU in 2.0. In 2.4 it is better on
    // its own.
    let s = once("S", vec![sleep(500), run(5), sleep(1000)]);
    let load = threads(vec![hog("A", 0), s, hog("B", 0)]);
    let accounts = simulated("linux-2.0", "2", &load, 510);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 A, 500 S, 505 A".into(), "0 S, 0 B".into()));
    let accounts = simulated("linux-2.4", "2", &load, 510);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 A".into(), "0 S, 0 B, 500 S, 505 B".into()));
}

#[test]
fn tasks_that_work_hand_in_hand_stay_together_in_2_2() {
    // X holds CPU 1 at first, so both tasks last ran on CPU 0. After that CPU 1 is idle, and "pong" continues for 10 us
    // after it has woken "ping".
    let us = |n: u64| Op::Run(exactly(n * 1000));
    let ping = forever("ping", 0, vec![us(30), Op::SemPost(0), Op::SemWait(1)]);
    let pong = forever("pong", 0, vec![Op::SemWait(0), us(30), Op::SemPost(1), us(10)]);
    let load =
        Load { sems: vec!["ping".into(), "pong".into()], ..threads(vec![ping, once("X", vec![us(1005)]), pong]) };
    let together = |kernel, set: &[(&str, String)]| {
        let accounts = simulate(kernel, &bare("2"), &load, set, 5 * MS);
        lane(&accounts, 1) == "0 X, 1.005 -"
    };
    assert!(together("linux-2.2", &[]));
    assert!(!together("linux-2.2", &[("cacheflush_time", "0".to_owned())]));
    assert!(!together("linux-2.4", &[]));
}

#[test]
fn who_yields_to_a_lesser_task_is_pushed_back_at_once_in_2_2() {
    // Y yields to H, which has half as many ticks, and looks for a CPU: its advantage is greatest on its own.
    let y = forever("Y", 0, vec![run(1), Op::Yield]);
    let load = threads(vec![pinned(hog("H", 10), 0), pinned(hog("X", 0), 1), y]);
    assert_eq!(lane(&simulated("linux-2.2", "2", &load, 15), 0), "0 Y");
    assert_eq!(lane(&simulated("linux-2.4", "2", &load, 15), 0), "0 Y, 1 H");
}

#[test]
fn affinity_is_kept_to() {
    let load = threads(vec![pinned(hog("A", 0), 1), pinned(hog("B", 0), 1), hog("C", 0)]);
    for kernel in ["linux-2.0", "linux-2.2", "linux-2.4"] {
        let accounts = simulated(kernel, "2", &load, 10_000);
        assert_eq!(lane(&accounts, 0), "0 C", "{kernel}");
        let [a, b, c] = ["A", "B", "C"].map(|name| accounts.named(name).run / MS);
        assert!(c == 10_000 && a + b == 10_000 && a.abs_diff(b) < 500, "{kernel}: {a} {b} {c}");
    }
}

#[test]
fn linux_1_2_uses_cpu_0() {
    let load = threads(vec![hog("A", 0), hog("B", 0)]);
    let accounts = simulated("linux-1.2", "4", &load, 400);
    assert_eq!(lane(&accounts, 0), "0 A, 160 B, 320 A");
    assert!((1..4).all(|cpu| lane(&accounts, cpu).is_empty()));
    assert!(accounts.events.iter().all(|e| e.cpu == 0), "nobody is ever anywhere else");

    let refused = |load: &Load| {
        let (kernel, machine) = (find("linux-1.2").unwrap(), bare("4"));
        let values = kernel.values(&machine, &[]).unwrap();
        let how = How { duration: Some(MS), seed: 1, skip_ticks: true };
        kernel.simulate(&machine, load, &values, &how, &mut Accounts::default()).unwrap_err().to_string()
    };
    let text = refused(&threads(vec![pinned(hog("A", 0), 3)]));
    assert!(text.contains("A may not use CPU 0, and linux-1.2 uses no other"), "{text}");
}
