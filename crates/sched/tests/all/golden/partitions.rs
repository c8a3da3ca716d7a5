//! Isolated CPUs and cpuset partitions, which split the scheduling domains.

use crate::support::registry::releases;
use crate::support::{Accounts, MS, bare, dl, hog, on, rt, simulate, threads};
use schedlab_base::{CpuId, Nanos, Payload, v, v2_6};
use schedlab_machine::Machine;
use schedlab_sched::balance::domains::Fixes;
use schedlab_sched::kernels::{How, KERNELS, find};
use schedlab_sim::program::{Load, Policy, TaskSpec};

fn split(cpus: &str, isolated: &[u32], partitions: &[&[u32]]) -> Machine {
    let partitions = partitions.iter().map(|part| part.to_vec()).collect();
    Machine { isolated: isolated.to_vec(), partitions, ..bare(cpus) }
}

/// A hog that may use these CPUs.
fn bound(name: &str, cpus: &[CpuId]) -> TaskSpec {
    on(hog(name, 0), cpus.iter().copied())
}

/// Three hogs that may use these CPUs, and two that may use CPUs 0 and 1.
fn hogs(cpus: &[CpuId]) -> Load {
    let theirs = ["a", "b", "c"].map(|name| bound(name, cpus));
    let others = ["x", "y"].map(|name| bound(name, &[0, 1]));
    threads(theirs.into_iter().chain(others).collect())
}

#[test]
fn domains_end_at_the_partition_and_an_isolated_cpu_has_none() {
    let machine = split("2x4x2", &[15], &[&[4, 5, 6, 7], &[8, 9, 12, 13, 14]]);
    for kernel in KERNELS.iter().filter(|k| k.release.is_some_and(|release| release >= v2_6(0))) {
        let domains = kernel.domains(&machine, Fixes::default()).unwrap().build();
        let widest = |cpu| domains.of(cpu).last().map(|domain| domains.span(domain.span).cpus.to_vec());
        assert_eq!(widest(0), Some(vec![0, 1, 2, 3, 10, 11]), "{}", kernel.name);
        assert_eq!(widest(6), Some(vec![4, 5, 6, 7]), "{}", kernel.name);
        assert_eq!(widest(14), Some(vec![8, 9, 12, 13, 14]), "{}", kernel.name);
        assert_eq!(widest(15), None, "{}", kernel.name);
        // CPU 14's sibling is isolated: the level of siblings has nothing to balance, and is removed.
        if kernel.release.is_some_and(|release| release >= v2_6(32)) {
            assert!(domains.of(14).iter().all(|domain| domains.span(domain.span).cpus.len() > 1), "{}", kernel.name);
        }
    }
}

#[test]
fn tasks_on_isolated_cpus_stay_where_they_begin() {
    // They are forked on the first CPU that they may use, which has no domain to look for a better one, and nothing
    // balances it.
    for kernel in ["linux-3.10", "linux-4.1", "linux-6.1", "linux-6.12", "linux-6.18"] {
        let accounts = simulate(kernel, &split("4", &[2, 3], &[]), &hogs(&[2, 3]), &[], 1_000 * MS);
        let runs_on = |cpu| {
            let runs = |what| matches!(what, Payload::Switch { next, .. } if next > 0);
            accounts.events.iter().any(|e| e.cpu == cpu && runs(e.what))
        };
        assert!([0, 1].iter().all(|cpu| runs_on(*cpu)), "{kernel}");
        assert!(runs_on(2) != runs_on(3), "{kernel}");
    }
}

#[test]
fn a_partition_is_balanced_by_itself() {
    for kernel in KERNELS.iter().filter(|k| k.release.is_some_and(|release| release >= v(3, 10))) {
        let machine = split("4", &[], &[&[2, 3]]);
        let accounts = simulate(kernel.name, &machine, &hogs(&[2, 3]), &[], 4_000 * MS);
        let ran = |name| accounts.named(name).run / MS;
        assert!(ran("a") + ran("b") + ran("c") >= 7_990, "{}", kernel.name);
        assert!(["x", "y"].iter().all(|name| ran(name) >= 3_990), "{}", kernel.name);
    }
}

fn fifo(name: &str, cpus: &[CpuId]) -> TaskSpec {
    rt(bound(name, cpus), Policy::Fifo, 1)
}

/// A hog with this runtime in every 10 ms.
fn deadline(name: &str, runtime: Nanos, cpus: &[CpuId]) -> TaskSpec {
    dl(bound(name, cpus), runtime, 10 * MS, 10 * MS)
}

#[test]
fn real_time_tasks_are_pushed_within_their_root_domain() {
    // The isolated CPUs 2 and 3 are one (`def_root_domain`), and CPUs 0 and 1 are another.
    for kernel in releases(v(3, 10)..) {
        let load = threads(vec![fifo("a", &[2, 3]), fifo("b", &[2, 3]), fifo("c", &[1, 2]), fifo("d", &[1, 2])]);
        let unlimited = [("sched_rt_runtime_us", "-1".to_owned())];
        let accounts = simulate(kernel, &split("4", &[2, 3], &[]), &load, &unlimited, 1_000 * MS);
        let ran = |name| accounts.named(name).run / MS;
        assert!(ran("a") >= 999 && ran("b") >= 999, "{kernel}: a {}, b {}", ran("a"), ran("b"));
        assert_eq!((ran("c") + ran("d")).div_ceil(10), 100, "{kernel}: c {}, d {}", ran("c"), ran("d"));
    }
}

#[test]
fn run_time_is_borrowed_within_a_root_domain() {
    // The task on CPU 1 of the partition has CPU 2 to borrow from, and runs all the time. Nobody borrows from CPU 0, on
    // which a task begins when that one needs more: it has its 950 ms of each second.
    for kernel in releases(v(3, 10)..v(5, 10)) {
        let mut late = fifo("late", &[0]);
        late.start = 900 * MS;
        let load = threads(vec![late, bound("beside", &[0]), fifo("borrows", &[1])]);
        let accounts = simulate(kernel, &split("3", &[], &[&[1, 2]]), &load, &[], 10_900 * MS);
        let ran = |name| accounts.named(name).run / MS;
        assert!(ran("borrows") >= 10_890, "{kernel}: {}", ran("borrows"));
        assert!(ran("late").abs_diff(9_500) <= 60, "{kernel}: {}", ran("late"));
    }
}

#[test]
fn deadline_tasks_are_admitted_by_the_cpus_of_their_root_domain() {
    let machine = split("6", &[5], &[&[2, 3, 4]]);
    let run = |kernel: &str, tasks: Vec<TaskSpec>| {
        let kernel = find(kernel).expect("it is there");
        let values = kernel.values(&machine, &[]).expect("they are the defaults");
        let how = How { duration: Some(200 * MS), seed: 1, skip_ticks: true };
        let mut accounts = Accounts::default();
        let ran = kernel.simulate(&machine, &threads(tasks), &values, &how, &mut accounts);
        accounts.finish(200 * MS);
        ran.map(|_| accounts).map_err(|e| e.to_string())
    };
    // 1.8 CPUs in the common part, and 2.7 in the partition: 6.12 gives 90%.
    let common = ["a", "b", "c"].map(|name| deadline(name, 6 * MS, &[0, 1]));
    let apart = ["x", "y", "z"].map(|name| deadline(name, 9 * MS, &[2, 3, 4]));
    let alone = deadline("i", 9 * MS, &[5]);
    let all: Vec<_> = common.iter().chain(&apart).chain([&alone]).cloned().collect();
    for kernel in releases(v(3, 18)..) {
        let accounts = run(kernel, all.clone()).expect("there is room for all");
        for (names, part) in [(["a", "b", "c"], 60), (["x", "y", "z"], 90), (["i"; 3], 90)] {
            for name in names {
                let ran = accounts.named(name).run / MS;
                assert!(ran.abs_diff(2 * part) <= 10, "{kernel}: {name} ran for {ran} ms");
            }
        }
        // Another tenth fits into the machine, but not into the partition; a CPU of the partition is too few.
        let more = all.iter().cloned().chain([deadline("m", 2 * MS, &[2, 3, 4])]).collect();
        assert!(run(kernel, more).err().expect("too much").contains("EBUSY"), "{kernel}");
        let fewer = vec![deadline("f", 2 * MS, &[2, 3])];
        assert!(run(kernel, fewer).err().expect("too few CPUs").contains("EPERM"), "{kernel}");
    }
}
