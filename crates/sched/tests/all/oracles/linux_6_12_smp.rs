//! The `linux-6.12` profile against Debian's kernel in guests of 4 CPUs (2 nodes of 2) and 12 (2 of 6).
//!
//! Two oracles. In one the guest's virtual CPUs go on evenly, and each has its tick every 4 ms as on a real machine:
//! how that was done is told in its file. In the other they share one instruction clock and take long turns. From
//! traces of such guests: at each multiple of 4 ms two or three virtual CPUs handle their ticks, one after another; the
//! last of them goes on for 4 ms, the others are stopped inside their tick's handler until their next turn, and may be
//! so again. So a CPU counts a tick every 7 ms (4 CPUs) or 21 ms (12), but comes to switch tasks only once a round of
//! 4.4 ms times CPUs, which the model has as its tick. What then is pending of softirqs goes to ksoftirqd, which
//! preempts.
//!
//! Several CPUs are chaotic: the model runs with several seeds. Of each quantity the distance outside the range of the
//! kernel's runs (of which the second oracle has but one each) is taken, in units of the tolerance, for each kind of
//! quantity the worst; its median over the seeds must be at most 1. Judged are the busy time of all (2%); the spread of
//! equal hogs, greatest less least by the mean (5 points); each task's CPU time (6% of the wall time), equal tasks in
//! the order of theirs, for which of them is favoured is chance; the switches of all (20%); and, where the oracle
//! tells, their migrations (20%, or 10 where that is more).
//!
//! The kernel's own threads are part of the load, as they were seen in the traces: [`Guest::threads`]. Bursts and
//! sleeps are as long as they came to.

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

/// A guest, as the model has it.
struct Guest {
    /// The time between two ticks, in ns.
    tick: fn(u32) -> u64,
    /// Every so many ticks ksoftirqd comes.
    softirqd: Option<u64>,
    /// What the worker that belongs to no CPU takes every 2016 ms, in us.
    worker_us: fn(u32) -> u64,
}

const EVEN: Guest = Guest { tick: |_| 4_000_000, softirqd: None, worker_us: |_| 1_000 };

/// The worker's time holds the turns of others.
const IN_TURNS: Guest = Guest {
    tick: |cpus| 4_400_000 * u64::from(cpus),
    softirqd: Some(6),
    worker_us: |cpus| if cpus == 4 { 9_300 } else { 390_000 },
};

impl Guest {
    /// The threads of the kernel, woken at ticks: on each CPU the statistics of memory every 992 ms and the watchdog's
    /// stopper every 4 s, on a CPU of each node the compaction of memory every 512 ms, a worker that belongs to no CPU,
    /// and ksoftirqd.
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
        // They scatter by some per cent, without which sleepers would never get out of step.
        let about = |us: f64| Amount { mean: (us * 1e3) as u64, sd: (us * 20.0) as u64 };
        let (burst, sleep) = took(case, t);
        let mut spec = forever(&name, t.nice, vec![Op::Run(about(burst)), Op::Sleep(about(sleep))]);
        spec.initial.clock_poll = Some(10 * US);
        spec
    };
    spec.initial.cpus.clone_from(&t.cpus);
    spec
}

/// What the bursts and the sleeps of a task, and of its like, came to on average, in us.
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

/// A quantity of a run, and how far outside the kernel's range it may be: a part of that, or so much.
struct Quantity {
    what: &'static str,
    value: f64,
    tolerance: (f64, f64),
}

/// All quantities of a run, always in the same order.
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

/// How far a run of the model is off, in tolerances: the worst of each kind of quantity.
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

/// The median over the seeds of what a case is off by.
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

/// Holds a guest to its oracle, but for what is not met: that must not be met, or the list is out of date.
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

/// What is not met where CPUs take turns, and why.
const UNMET_IN_TURNS: &[(&str, &[&str])] = &[
    // NUMA balancing. The hogs' few pages (the kernel writes to them at every switch) are where they were forked, and
    // stay there; after some 6 s it swaps tasks across the nodes for that. The kernel without it does what the model
    // does: `4cpu-nice--10` and `12cpu-nice--5-0-5` of the other oracle, the latter of which scatters by 30% of the
    // wall time.
    ("linux-6.12-4cpu-s4", &["cpu time"]),
    ("linux-6.12-12cpu-s2", &["cpu time"]),
    // Bursts: a task that wakes, and one whose burst is over, waits for its CPU's turn. The model has no turns.
    ("linux-6.12-4cpu-s5", &["cpu time", "switches"]),
    ("linux-6.12-4cpu-s6", &["busy", "cpu time", "switches"]),
    ("linux-6.12-12cpu-s3", &["busy", "cpu time", "switches"]),
    // By a hair, of single runs: 10.2 points for less than 5, and 1161 for 910 or so.
    ("linux-6.12-4cpu-s1", &["spread"]),
    ("linux-6.12-4cpu-s7", &["switches"]),
];

/// What is not met where CPUs go on evenly, and why.
const UNMET_EVEN: &[(&str, &[&str])] = &[
    // The model moves some 40% more. Its CPUs tick at one instant and balance before any of them switches. In the guest
    // a CPU that ticks after another finds that it has switched already: whom it would take ran just now, is left for
    // its cache, and needs one failure more (of what CPU 3 took 43 of 46 were such, CPU 2 which ticks before it none of
    // 31).
    ("4cpu-5-hogs", &["migrations"]),
    ("4cpu-7-hogs", &["migrations"]),
    ("4cpu-hogs-sleepers", &["migrations"]),
    // A balancing as the CPU becomes idle takes up to 2.7 ms in the guest (`max_newidle_lb_cost`), whose CPUs are slow
    // and are away meanwhile; CPUs that are idle for less then do not try.
    ("4cpu-8-busy-3-of-4", &["migrations"]),
    // A tick comes up to 1.3 ms late with 12 CPUs, so that a slice of 2.8 ms is often not over at the next one: half of
    // the turns are of two ticks here, of those with 4 CPUs 2%.
    ("12cpu-pinned", &["switches"]),
    ("12cpu-nice-0-10", &["switches", "migrations"]),
    // Where tasks are at first: the guest's init wakes them from one CPU, the model's all find idle ones. 36 hogs are
    // then 19 and 17 on the nodes, which is even enough to stay, and one goes round; six light ones share two CPUs of
    // one node and are passed back and forth, where the model has three on a CPU of each.
    ("12cpu-36-hogs", &["migrations", "spread"]),
    ("12cpu-nice--5-0-5", &["migrations", "cpu time"]),
    // Less than 7 points off, the model's being the greater.
    ("12cpu-14-hogs", &["spread"]),
    // Who wakes on an idle CPU waits up to 1.3 ms for its turn.
    ("12cpu-hogs-sleepers", &["busy"]),
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
