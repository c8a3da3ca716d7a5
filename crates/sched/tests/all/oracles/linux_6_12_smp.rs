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
//! Several CPUs are chaotic, so the model runs with several seeds. For each quantity, the distance outside the range of
//! the kernel's runs (the second oracle has only one run each) is measured in units of the tolerance. For each kind of
//! quantity the worst distance counts, and its median over the seeds must be at most 1. The quantities are: the busy
//! time of all CPUs (2%); the spread of equal hogs, as the difference between greatest and least divided by the mean (5
//! points); each task's CPU time (6% of the wall time), with equal tasks sorted by theirs, because chance decides which
//! of them is favoured; the switches of all tasks (20%); and, if the oracle has them, their migrations (20%, or 10 if
//! that is more).
//!
//! The kernel's own threads are part of the load, as they appeared in the traces: [`Guest::threads`]. Bursts and sleeps
//! have the lengths that were measured.

use crate::support::{MS, exactly, forever, hog, simulate_how};
use schedlab_machine::{Machine, MachineFile};
use schedlab_sched::kernels::How;
use schedlab_sim::program::{Amount, Load, Op, Policy, Start, TaskSpec};
use serde::Deserialize;

const US: u64 = 1_000;
const SEEDS: u64 = 7;

#[derive(Deserialize)]
struct Case {
    id: String,
    cpus: u32,
    nodes: u32,
    tasks: Vec<Task>,
    runs: Vec<Run>,
}

#[derive(Deserialize, PartialEq)]
struct Task {
    nice: i8,
    cpus: Option<Vec<u32>>,
    #[serde(default)]
    burst_us: u64,
    #[serde(default)]
    sleep_us: u64,
}

#[derive(Deserialize)]
struct Run {
    wall_us: f64,
    tasks: Vec<Figures>,
}

#[derive(Deserialize)]
struct Figures {
    run_us: f64,
    wait_us: f64,
    slices: f64,
    voluntary: f64,
    migrations: Option<f64>,
}

/// A guest, as the model represents it.
struct Guest {
    /// The time between two ticks, in ns.
    tick: fn(u32) -> u64,
    /// The number of ticks after which ksoftirqd comes each time.
    softirqd: Option<u64>,
    /// How long the unbound worker runs every 2016 ms, in us.
    worker_us: fn(u32) -> u64,
}

const EVEN: Guest = Guest { tick: |_| 4_000_000, softirqd: None, worker_us: |_| 1_000 };

/// The worker's time includes the turns of other CPUs.
const IN_TURNS: Guest = Guest {
    tick: |cpus| 4_400_000 * u64::from(cpus),
    softirqd: Some(6),
    worker_us: |cpus| if cpus == 4 { 9_300 } else { 390_000 },
};

impl Guest {
    /// The kernel threads, woken at ticks: on each CPU the memory statistics every 992 ms and the watchdog's stopper
    /// every 4 s, on a CPU of each node memory compaction every 512 ms, an unbound worker, and ksoftirqd.
    fn threads(&self, case: &Case) -> Vec<TaskSpec> {
        let tick = (self.tick)(case.cpus);
        let ticks = |ms: u64| (ms * MS).div_ceil(tick);
        let every = |name: String, run_us: u64, period: u64, start: u64, cpu: Option<u32>| {
            let wait = Op::Timer { timer: 0, period: exactly(period * tick), absolute: true };
            let mut spec = forever(&name, 0, vec![Op::Run(exactly(run_us * US)), wait]);
            spec.start = start * tick;
            spec.initial.cpus = cpu.map(|cpu| vec![cpu]);
            spec
        };
        let mut all = vec![every("kworker/u".into(), (self.worker_us)(case.cpus), ticks(2016), ticks(1000), None)];
        for cpu in 0..case.cpus {
            let at = u64::from(cpu);
            all.push(every(format!("kworker/{cpu}"), 70, ticks(992), ticks(4 * (83 * at % 248)), Some(cpu)));
            let mut stopper = every(format!("migration/{cpu}"), 30, ticks(4000), ticks(2000 + 16 * at), Some(cpu));
            (stopper.initial.policy, stopper.initial.rt_priority) = (Some(Policy::Fifo), Some(99));
            all.push(stopper);
            all.extend(self.softirqd.map(|period| every(format!("ksoftirqd/{cpu}"), 36, period, at, Some(cpu))));
        }
        for node in 0..case.nodes {
            let cpu = node * (case.cpus / case.nodes) + 1;
            let start = ticks(100 + 152 * u64::from(node));
            all.push(every(format!("kcompactd{node}"), 38, ticks(512), start, Some(cpu)));
        }
        all
    }

    fn simulated(&self, case: &Case, seed: u64) -> Run {
        let mut tasks: Vec<_> = (0..case.tasks.len()).map(|i| program(case, i)).collect();
        tasks.extend(self.threads(case));
        let load = Load { tasks, timers: vec![("own".into(), true)], start: Start::Wake, ..Load::default() };
        let how = How { duration: Some(20_000 * MS), seed, skip_ticks: true };
        let set = [("tick_ns", (self.tick)(case.cpus).to_string())];
        let accounts = simulate_how("linux-6.12", &machine(case), &load, &set, &how);
        let figures = accounts.tasks.iter().take(case.tasks.len()).map(|t| Figures {
            run_us: t.run as f64 / 1e3,
            wait_us: t.wait as f64 / 1e3,
            slices: t.slices as f64,
            voluntary: t.voluntary as f64,
            migrations: Some(t.migrations as f64),
        });
        Run { wall_us: 20e6, tasks: figures.collect() }
    }
}

fn machine(case: &Case) -> Machine {
    let file = MachineFile::flat("guest", case.nodes, case.cpus / case.nodes, 1);
    MachineFile { distances: vec![vec![10, 21], vec![21, 10]], ..file }.build().unwrap()
}

fn program(case: &Case, i: usize) -> TaskSpec {
    let (name, t) = (format!("t{i}"), &case.tasks[i]);
    let mut spec = if t.burst_us == 0 {
        hog(&name, t.nice)
    } else {
        // They vary by a few per cent; otherwise sleepers would never get out of step.
        let about = |us: f64| Amount { mean: (us * 1e3) as u64, sd: (us * 20.0) as u64 };
        let (burst, sleep) = took(case, t);
        let mut spec = forever(&name, t.nice, vec![Op::Run(about(burst)), Op::Sleep(about(sleep))]);
        spec.initial.clock_poll = Some(10 * US);
        spec
    };
    spec.initial.cpus.clone_from(&t.cpus);
    spec
}

/// Returns the mean length of the bursts and sleeps of a task and of tasks like it, in us.
fn took(case: &Case, like: &Task) -> (f64, f64) {
    let (mut bursts, mut run, mut slept) = (0.0, 0.0, 0.0);
    for kernel in &case.runs {
        for (_, t) in case.tasks.iter().zip(&kernel.tasks).filter(|(t, _)| *t == like) {
            bursts += t.voluntary;
            run += t.run_us;
            slept += kernel.wall_us - t.run_us - t.wait_us;
        }
    }
    (run / bursts, slept / bursts)
}

/// A quantity of a run, and how far outside the kernel's range it may be: relative to the range, or absolute.
struct Quantity {
    what: &'static str,
    value: f64,
    tolerance: (f64, f64),
}

/// Returns all quantities of a run, always in the same order.
fn quantities(case: &Case, run: &Run) -> Vec<Quantity> {
    let sum = |of: fn(&Figures) -> f64| run.tasks.iter().map(of).sum::<f64>();
    let mut all = vec![
        Quantity { what: "busy", value: sum(|t| t.run_us) / run.wall_us, tolerance: (0.02, 0.0) },
        Quantity { what: "switches", value: sum(|t| t.slices), tolerance: (0.2, 0.0) },
    ];
    if case.runs.iter().all(|run| run.tasks.iter().all(|t| t.migrations.is_some())) {
        let value = sum(|t| t.migrations.unwrap_or(0.0));
        all.push(Quantity { what: "migrations", value, tolerance: (0.2, 10.0) });
    }
    for (i, first) in case.tasks.iter().enumerate() {
        if case.tasks[..i].contains(first) {
            continue;
        }
        let equal = case.tasks.iter().zip(&run.tasks).filter(|(t, _)| *t == first);
        let mut runs: Vec<f64> = equal.map(|(_, t)| t.run_us / run.wall_us).collect();
        runs.sort_by(f64::total_cmp);
        if first.burst_us == 0 && runs.len() == case.tasks.len() {
            let mean = runs.iter().sum::<f64>() / runs.len() as f64;
            let value = 100.0 * (runs[runs.len() - 1] - runs[0]) / mean;
            all.push(Quantity { what: "spread", value, tolerance: (0.0, 5.0) });
        }
        all.extend(runs.into_iter().map(|value| Quantity { what: "cpu time", value, tolerance: (0.0, 0.06) }));
    }
    all
}

/// Returns how far a run of the model is off, in tolerances: the worst distance of each kind of quantity.
fn distances(case: &Case, ours: &Run, kernel: &[Vec<Quantity>]) -> Vec<(&'static str, f64)> {
    let mut worst: Vec<(&str, f64)> = Vec::new();
    for (i, quantity) in quantities(case, ours).iter().enumerate() {
        let theirs = || kernel.iter().map(|run| run[i].value);
        let (least, most) = (theirs().fold(f64::MAX, f64::min), theirs().fold(f64::MIN, f64::max));
        let (part, much) = quantity.tolerance;
        let distance = (least - quantity.value).max(quantity.value - most).max(0.0) / (part * most).max(much);
        match worst.iter_mut().find(|(what, _)| *what == quantity.what) {
            Some((_, most)) => *most = most.max(distance),
            None => worst.push((quantity.what, distance)),
        }
    }
    worst
}

/// Returns the median distance over the seeds for a case.
fn compare(guest: &Guest, case: &Case) -> Vec<(&'static str, f64)> {
    let kernel: Vec<_> = case.runs.iter().map(|run| quantities(case, run)).collect();
    let seeds: Vec<_> = (1..=SEEDS).map(|seed| distances(case, &guest.simulated(case, seed), &kernel)).collect();
    let median = |i: usize| {
        let mut of: Vec<f64> = seeds.iter().map(|worst| worst[i].1).collect();
        of.sort_by(f64::total_cmp);
        (seeds[0][i].0, of[of.len() / 2])
    };
    (0..seeds[0].len()).map(median).collect()
}

/// Compares a guest with its oracle. What is listed as unmet must not be met, or the list is out of date.
fn judge(guest: &Guest, cases: &[Case], unmet: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for case in cases {
        let known = unmet.iter().find(|(id, _)| *id == case.id).map_or(&[][..], |(_, unmet)| unmet);
        let found = compare(guest, case);
        for (what, off) in found {
            if (off > 1.0) != known.contains(&what) {
                wrong.push(format!("{}: {what} is off by {off:.2} tolerances", case.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is not met if CPUs take turns, and why.
const UNMET_IN_TURNS: &[(&str, &[&str])] = &[
    // NUMA balancing. The hogs' few pages (the kernel writes to them at every switch) are where they were forked, and
    // stay there; after about 6 s it swaps tasks across the nodes because of that. Without it the kernel agrees with
    // the model: `4cpu-nice--10` and `12cpu-nice--5-0-5` of the other oracle, the latter of which varies by 30% of the
    // wall time.
    ("linux-6.12-4cpu-s4", &["cpu time"]),
    ("linux-6.12-12cpu-s2", &["cpu time"]),
    // Bursts: a task that wakes, and one whose burst is over, waits for its CPU's turn. The model has no turns.
    ("linux-6.12-4cpu-s5", &["cpu time", "switches"]),
    ("linux-6.12-4cpu-s6", &["busy", "cpu time", "switches"]),
    ("linux-6.12-12cpu-s3", &["busy", "cpu time", "switches"]),
    // Narrowly, in single runs: 10.2 points instead of less than 5, and 1161 instead of about 910.
    ("linux-6.12-4cpu-s1", &["spread"]),
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
    // between; CPUs that are idle for less do not try.
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
    // Less than 7 points off; the model's is greater.
    ("12cpu-14-hogs", &["spread"]),
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
        Case { id: s.id, cpus: s.cpus, nodes: s.nodes, tasks, runs }
    };
    let cases: Vec<Case> = single.into_iter().map(case).collect();
    assert_eq!(cases.len(), 12);
    judge(&IN_TURNS, &cases, UNMET_IN_TURNS);
}

#[test]
fn linux_6_12_on_cpus_that_go_on_evenly() {
    #[derive(Deserialize)]
    struct Oracle {
        cases: Vec<Case>,
    }
    let oracle: Oracle = serde_json::from_str(include_str!("linux-6.12-smp-even.json")).unwrap();
    assert_eq!(oracle.cases.len(), 18);
    judge(&EVEN, &oracle.cases, UNMET_EVEN);
}
