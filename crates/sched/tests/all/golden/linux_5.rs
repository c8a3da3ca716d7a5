//! What 5.10 and 5.15 share with 4.1, what with 6.1, and what with neither.

use crate::support::registry::releases;
use crate::support::{MS, bare, exactly, forever, hog, once, pinned, run, simulate};
use schedlab_base::v;
use schedlab_machine::{Machine, MachineFile};
use schedlab_sched::kernels::{Kernel, find};
use schedlab_sim::program::{Load, Op, Setting, Start, TaskSpec};

fn has(kernel: &Kernel, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| kernel.tunable(name).is_some()).collect()
}

/// "sched: Move SCHED_DEBUG sysctl to debugfs" came with 5.13, and renamed what it moved.
#[test]
fn the_tunables_moved_to_debugfs_between_5_10_and_5_15() {
    let old = ["sched_latency_ns", "sched_migration_cost_ns", "numa_balancing_scan_size_mb"];
    let new = ["latency_ns", "migration_cost_ns", "numa_balancing/scan_size_mb"];
    for kernel in releases(v(3, 13)..v(6, 2)) {
        let (name, kernel) = (kernel, find(kernel).unwrap());
        let moved = kernel.release >= Some(v(5, 13));
        assert_eq!((has(kernel, &old), has(kernel, &new)), (vec![!moved; 3], vec![moved; 3]), "{name}");
    }
    // One that stayed a sysctl, one that 5.13 added (5.10 in its stable updates), and one of 5.16.
    let others = ["sched_child_runs_first", "ALT_PERIOD", "idle_min_granularity_ns"];
    assert_eq!(has(find("linux-4.1").unwrap(), &others), [true, false, false]);
    for kernel in ["linux-5.10", "linux-5.15"] {
        assert_eq!(has(find(kernel).unwrap(), &others), [true, true, false], "{kernel}");
    }
    assert_eq!(has(find("linux-6.1").unwrap(), &others), [true; 3]);
}

fn sleeper(i: u64) -> TaskSpec {
    let us = |n| exactly(n * 1_000);
    forever(&format!("sleeper-{i}"), 0, vec![Op::Run(us(300 + 170 * i)), Op::Sleep(us(500 + 90 * i))])
}

fn numa_machine() -> Machine {
    let distances = vec![vec![10, 20], vec![20, 10]];
    MachineFile { sockets: 2, distances, ..MachineFile::flat("two", 0, 8, 1) }.build().unwrap()
}

/// Each of these kernels places and balances by its own rules: for each two of them the events differ, under a light, a
/// full or a heavy load, on one node or on two.
#[test]
fn no_two_releases_from_4_1_to_6_1_are_the_same() {
    let load = |hogs: u64| {
        let tasks = (0..hogs).map(|i| hog(&format!("hog-{i}"), 0)).chain((0..9).map(sleeper)).collect();
        Load { tasks, ..Load::default() }
    };
    let events = |kernel: &str| {
        let runs = [bare("2x4"), numa_machine()].into_iter().flat_map(|machine| {
            [5, 11, 20].map(|n| simulate(kernel, &machine, &load(n), &[("hz", "250".into())], 1_000 * MS).events)
        });
        runs.collect::<Vec<_>>()
    };
    let runs: Vec<_> = releases(v(4, 1)..v(6, 2)).map(|kernel| (kernel, events(kernel))).collect();
    for (i, (kernel, events)) in runs.iter().enumerate() {
        for (other, others) in &runs[..i] {
            assert!(events != others, "{kernel} and {other} are the same");
        }
    }
}

/// Six tasks bind themselves to CPUs 2 and 3 for 5 ms of work each and may run anywhere then, beside one that stays on
/// CPU 0. CPU 1, the only idle one, updates its load each 32 ms, which must not put off its next balancing:
/// `nohz.next_balance` changes only if some other idle CPU says when it is due (`update_next_balance`).
#[test]
fn the_only_idle_cpu_is_balanced_again() {
    let settings = [vec![2, 3], vec![0, 1, 2, 3]].map(|cpus| Setting { cpus: Some(cpus), ..Setting::default() });
    let program = vec![Op::Set(0), run(5), Op::Set(1), run(10_000)];
    let many = (0..6).map(|n| once(&format!("many-{n}"), program.clone()));
    let tasks = std::iter::once(pinned(hog("alone", 0), 0)).chain(many).collect();
    let load = Load { tasks, settings: settings.into(), start: Start::Threads, ..Load::default() };
    for kernel in ["linux-5.10", "linux-5.15", "linux-6.1"] {
        let accounts = simulate(kernel, &bare("4"), &load, &[("hz", "250".into())], 1_000 * MS);
        let busy: u64 = accounts.names.iter().map(|name| accounts.named(name).run).sum();
        assert!(busy > 3_900 * MS, "{kernel}: {busy}");
    }
}
