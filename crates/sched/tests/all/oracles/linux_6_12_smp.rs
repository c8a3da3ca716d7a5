//! The `linux-6.12` profile against Debian's kernel in guests of 4 CPUs (2 nodes of 2) and 12 (2 of 6).
//!
//! There are two oracles. In one the guest's virtual CPUs advance evenly, and each has its tick every 4 ms as on a real
//! machine; its file explains how this was done. In the other they share one instruction clock and take long turns.
//! Traces of such guests show that at each multiple of 4 ms two or three virtual CPUs handle their ticks, one after
//! another. The last of them runs on for 4 ms; the others are stopped inside their tick handler until their next turn,
//! and possibly again. So a CPU counts a tick every 7 ms (4 CPUs) or 21 ms (12), but gets to switch tasks only once in
//! a round of 4.4 ms times the number of CPUs, which the model uses as its tick. Softirqs that are pending then go to
//! ksoftirqd, which preempts.
//!
//! [`crate::support::smp`] has the criterion. The kernel's own threads are part of the load, as they appeared in the
//! traces. Bursts and sleeps have the lengths that were measured.

use crate::support::MS;
use crate::support::smp::{Case, Figures, Guest, Run, Task};
use serde::Deserialize;
use std::collections::BTreeMap;

const EVEN: Guest = Guest {
    kernel: "linux-6.12",
    set: &[],
    duration: 20_000 * MS,
    tick: |_| 4_000_000,
    softirqd: None,
    worker_us: |_| 1_000,
    seeds: 15,
};

/// The worker's time includes the turns of other CPUs.
const IN_TURNS: Guest = Guest {
    tick: |cpus| 4_400_000 * cpus as u64,
    softirqd: Some(6),
    worker_us: |cpus| if cpus == 4 { 9_300 } else { 390_000 },
    ..EVEN
};

/// What is not met if CPUs take turns, and why.
const UNMET_IN_TURNS: &[(&str, &[&str])] = &[
    // NUMA balancing. The hogs' few pages (the kernel writes to them at every switch) are where they were forked, and
    // stay there; after about 6 s it swaps tasks across the nodes because of that. Without it the kernel agrees with
    // the model: `4cpu-nice--10` and `12cpu-nice--5-0-5` of the other oracle, the latter of which varies by 30% of the
    // wall time.
    // Its switches narrowly: 1.04 tolerances.
    ("linux-6.12-4cpu-s4", &["cpu time", "switches"]),
    ("linux-6.12-12cpu-s2", &["cpu time"]),
    // Bursts: a task that wakes, and one whose burst is over, waits for its CPU's turn. The model has no turns.
    ("linux-6.12-4cpu-s5", &["switches"]),
    ("linux-6.12-4cpu-s6", &["busy", "cpu time", "switches"]),
    ("linux-6.12-12cpu-s3", &["busy", "cpu time", "switches"]),
    // Narrowly, in a single run: 1161 instead of about 910.
    ("linux-6.12-4cpu-s7", &["switches"]),
];

/// What is not met if CPUs advance evenly, and why.
const UNMET_EVEN: &[(&str, &[&str])] = &[
    // The model migrates about 40% more. Its CPUs tick at one instant and balance before any of them switches. In the
    // guest a CPU that ticks after another finds that the other has switched already: the task that it would pull ran
    // just now, is left there because of its cache, and needs one failure more (43 of the 46 that CPU 3 pulled were
    // such tasks, but none of the 31 that CPU 2 pulled, which ticks before it).
    ("4cpu-5-hogs", &["migrations"]),
    ("4cpu-7-hogs", &["migrations"]),
    ("4cpu-hogs-sleepers", &["migrations"]),
    // Newidle balancing takes up to 2.7 ms in the guest (`max_newidle_lb_cost`), whose CPUs are slow and are stopped in
    // between; CPUs that are idle for less do not try. That is not all: with this cost (`newidle_domain_ns`) the model
    // does not meet it either.
    ("4cpu-8-busy-3-of-4", &["migrations"]),
    // A tick comes up to 1.3 ms late with 12 CPUs, so a slice of 2.8 ms is often not over at the next one: half of the
    // turns take two ticks here, but only 2% of those with 4 CPUs.
    ("12cpu-pinned", &["switches"]),
    ("12cpu-nice-0-10", &["switches", "migrations"]),
    // The initial placement: the guest's init wakes the tasks from one CPU, while in the model all find idle CPUs. In
    // the guest 36 hogs are then 19 and 17 on the nodes, which is even enough to stay, and one moves around. Six light
    // ones share two CPUs of one node and are passed back and forth, while the model has three on one CPU of each node.
    ("12cpu-36-hogs", &["migrations", "spread"]),
    ("12cpu-nice--5-0-5", &["migrations", "cpu time"]),
    // A task that wakes on an idle CPU waits up to 1.3 ms for the CPU's turn. The model migrates 25% more than the most
    // of the guest's runs (1985 in the median of the seeds; 1900 would do), for the reason given at 4cpu-5-hogs.
    // Without estimates of utilisation (UTIL_EST), which the kernel has, it is 1895.
    ("12cpu-hogs-sleepers", &["busy", "migrations"]),
];

#[test]
fn linux_6_12_on_cpus_that_take_turns() {
    #[derive(Deserialize)]
    struct Single {
        id: String,
        wall_us: f64,
        cpus: u32,
        nodes: u32,
        tasks: Vec<Both>,
    }
    #[derive(Deserialize)]
    struct Both {
        #[serde(flatten)]
        task: Task,
        #[serde(flatten)]
        figures: Figures,
    }
    let single: Vec<Single> = serde_json::from_str(include_str!("linux-6.12-smp.json")).unwrap();
    let case = |s: Single| {
        let (tasks, figures) = s.tasks.into_iter().map(|both| (both.task, both.figures)).unzip();
        let runs = vec![Run { wall_us: s.wall_us, tasks: figures }];
        let (groups, staggered) = (BTreeMap::new(), false);
        Case { id: s.id, cpus: s.cpus, nodes: s.nodes, groups, staggered, tasks, runs }
    };
    let cases: Vec<Case> = single.into_iter().map(case).collect();
    assert_eq!(cases.len(), 12);
    IN_TURNS.judge(&cases, UNMET_IN_TURNS);
}

#[test]
fn linux_6_12_on_cpus_that_go_on_evenly() {
    #[derive(Deserialize)]
    struct Oracle {
        cases: Vec<Case>,
    }
    let oracle: Oracle = serde_json::from_str(include_str!("linux-6.12-smp-even.json")).unwrap();
    assert_eq!(oracle.cases.len(), 18);
    EVEN.judge(&oracle.cases, UNMET_EVEN);
}
