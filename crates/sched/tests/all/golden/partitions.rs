//! Isolated CPUs and cpuset partitions, which split the scheduling domains.

use crate::support::{MS, bare, hog, simulate, threads};
use schedlab_base::{CpuId, Payload, v, v2_6};
use schedlab_machine::Machine;
use schedlab_sched::balance::domains::Fixes;
use schedlab_sched::kernels::KERNELS;
use schedlab_sim::program::{Load, TaskSpec};

fn split(cpus: &str, isolated: &[u32], partitions: &[&[u32]]) -> Machine {
    let partitions = partitions.iter().map(|part| part.to_vec()).collect();
    Machine { isolated: isolated.to_vec(), partitions, ..bare(cpus) }
}

/// Three hogs that may use these CPUs, and two that may use CPUs 0 and 1.
fn hogs(cpus: &[CpuId]) -> Load {
    let on = |cpus: &[CpuId], mut task: TaskSpec| {
        task.initial.cpus = Some(cpus.to_vec());
        task
    };
    let theirs = ["a", "b", "c"].map(|name| on(cpus, hog(name, 0)));
    let others = ["x", "y"].map(|name| on(&[0, 1], hog(name, 0)));
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
