//! Debian's kernels 6.1 and 6.12 in guests of several CPUs, as measured for the oracles: the load including the
//! kernel's own threads, and the criterion for the model.
//!
//! Several CPUs are chaotic, so the model runs with many seeds (with seven, what is near its bound is met or not by
//! chance). For each quantity, the distance outside the range of the kernel's runs is measured in units of the
//! tolerance. For each kind of quantity the worst distance counts, and its median over the seeds must be at most 1. The
//! quantities are: the busy time of all CPUs (2%); the spread of equal hogs, as the difference between greatest and
//! least divided by the mean (5 points); each task's CPU time (6% of the wall time), with equal tasks sorted by theirs,
//! because chance decides which of them is favoured; the switches of all tasks (20%, or 15% where the tasks begin one
//! after another); and, if the oracle has them, their migrations (20%, or 10 if that is more). Where the tasks begin
//! one after another, also the CPU time and the wait of all tasks of a kind together (2% and 3% of the time of all
//! CPUs).

use super::{MS, exactly, forever, hog, simulate_how};
use schedlab_machine::{Machine, MachineFile};
use schedlab_sched::kernels::How;
use schedlab_sim::program::{Amount, GroupSpec, Load, Op, Policy, Start, TaskSpec};
use serde::Deserialize;
use std::collections::BTreeMap;

const US: u64 = 1_000;

#[derive(Deserialize)]
pub struct Case {
    pub id: String,
    pub cpus: u32,
    pub nodes: u32,
    /// Empty where the oracle is about tasks without groups.
    #[serde(default)]
    pub groups: BTreeMap<String, Group>,
    /// Whether each task begins after 20 ms, on average.
    #[serde(default)]
    pub staggered: bool,
    pub tasks: Vec<Task>,
    pub runs: Vec<Run>,
}

/// A cgroup of version 2.
#[derive(Deserialize)]
pub struct Group {
    weight: Option<u64>,
    quota_us: Option<u64>,
    period_us: Option<u64>,
    idle: Option<u32>,
}

#[derive(Deserialize, PartialEq)]
pub struct Task {
    #[serde(default)]
    nice: i8,
    cpus: Option<Vec<u32>>,
    policy: Option<String>,
    priority: Option<u8>,
    group: Option<String>,
    #[serde(default)]
    burst_us: u64,
    #[serde(default)]
    sleep_us: u64,
    /// How often a task that sleeps reads its CPU clock; 10 if absent.
    poll_us: Option<u64>,
    /// How much its bursts and sleeps vary, in percent; 2 if absent.
    varies: Option<u64>,
}

#[derive(Deserialize)]
pub struct Run {
    pub wall_us: f64,
    pub tasks: Vec<Figures>,
}

#[derive(Deserialize)]
pub struct Figures {
    run_us: f64,
    wait_us: f64,
    slices: f64,
    voluntary: f64,
    migrations: Option<f64>,
    start: Option<Begun>,
}

/// When a task first woke up by itself, and the CPU where it slept until then.
#[derive(Clone, Copy, Deserialize)]
struct Begun {
    at_us: u64,
    cpu: u32,
}

/// A guest, as the model represents it.
pub struct Guest {
    pub kernel: &'static str,
    /// What is set differently from the profile's defaults.
    pub set: &'static [(&'static str, &'static str)],
    /// How long its runs are.
    pub duration: u64,
    /// The time between two ticks, in ns.
    pub tick: fn(u32) -> u64,
    /// The number of ticks after which ksoftirqd comes each time.
    pub softirqd: Option<u64>,
    /// How long the unbound worker runs every 2016 ms, in us.
    pub worker_us: fn(u32) -> u64,
    /// With how many seeds it is simulated.
    pub seeds: u64,
}

/// What is not met: case, and kinds of quantities.
pub type Unmet<'a> = &'a [(&'a str, &'a [&'a str])];

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
            spec.session = Some(schedlab_sim::program::NO_SESSION);
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
            let cpu = (node * (case.cpus / case.nodes) + 1).min(case.cpus - 1);
            let start = ticks(100 + 152 * u64::from(node));
            all.push(every(format!("kcompactd{node}"), 38, ticks(512), start, Some(cpu)));
        }
        all
    }

    fn simulated(&self, case: &Case, seed: u64) -> Run {
        // Where the oracle knows how a run began, it is simulated with that start: one run after the other.
        let like = &case.runs[(seed as usize - 1) % case.runs.len()];
        let mut tasks: Vec<_> = (0..case.tasks.len()).map(|i| program(case, i, like.tasks[i].start)).collect();
        tasks.extend(self.threads(case));
        let timers = vec![("own".into(), true)];
        let load = Load { tasks, timers, groups: groups(case), start: Start::Wake, ..Load::default() };
        let how = How { duration: Some(self.duration), seed, skip_ticks: true };
        let mut set = vec![("tick_ns", (self.tick)(case.cpus).to_string())];
        set.extend(self.set.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let accounts = simulate_how(self.kernel, &machine(case), &load, &set, &how);
        let figures = accounts.tasks.iter().take(case.tasks.len()).map(|t| Figures {
            run_us: t.run as f64 / 1e3,
            wait_us: t.wait as f64 / 1e3,
            slices: t.slices as f64,
            voluntary: t.voluntary as f64,
            migrations: Some(t.migrations as f64),
            start: None,
        });
        Run { wall_us: self.duration as f64 / 1e3, tasks: figures.collect() }
    }

    /// Compares the model with an oracle. What is listed as unmet must not be met, or the list is out of date.
    pub fn judge(&self, cases: &[Case], unmet: Unmet<'_>) {
        let mut wrong = Vec::new();
        for case in cases {
            let known = unmet.iter().find(|(id, _)| *id == case.id).map_or(&[][..], |(_, unmet)| unmet);
            for (what, off) in self.compare(case) {
                if (off > 1.0) != known.contains(&what) {
                    wrong.push(format!("{}: {what} is off by {off:.2} tolerances", case.id));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Returns the median distance over the seeds for a case.
    fn compare(&self, case: &Case) -> Vec<(&'static str, f64)> {
        let kernel: Vec<_> = case.runs.iter().map(|run| quantities(case, run)).collect();
        let seeds: Vec<_> =
            (1..=self.seeds).map(|seed| distances(case, &self.simulated(case, seed), &kernel)).collect();
        let median = |i: usize| {
            let mut of: Vec<f64> = seeds.iter().map(|worst| worst[i].1).collect();
            of.sort_by(f64::total_cmp);
            (seeds[0][i].0, of[of.len() / 2])
        };
        (0..seeds[0].len()).map(median).collect()
    }
}

fn machine(case: &Case) -> Machine {
    let file = MachineFile::flat("guest", case.nodes, case.cpus / case.nodes, 1);
    let two = || vec![vec![10, 21], vec![21, 10]];
    MachineFile { distances: if case.nodes == 2 { two() } else { Vec::new() }, ..file }.build().unwrap()
}

/// Returns the groups, each after its parent (a path comes after each of its prefixes).
fn groups(case: &Case) -> Vec<GroupSpec> {
    let index = |path: &str| case.groups.keys().position(|p| p == path).map(|i| i as u32);
    let spec = |(path, group): (&String, &Group)| GroupSpec {
        path: format!("/{path}"),
        parent: path.rfind('/').and_then(|at| index(&path[..at])),
        shares: group.weight.map_or(1024, |weight| (weight * 1024 + 50) / 100),
        bandwidth: group.quota_us.map(|quota| (quota * US, group.period_us.unwrap_or(100_000) * US)),
        idle: group.idle.unwrap_or(0) != 0,
        ..GroupSpec::default()
    };
    case.groups.iter().map(spec).collect()
}

fn program(case: &Case, i: usize, start: Option<Begun>) -> TaskSpec {
    let (name, t) = (format!("t{i}"), &case.tasks[i]);
    let mut spec = if t.burst_us == 0 {
        hog(&name, t.nice)
    } else {
        // They vary by a few per cent; otherwise sleepers would never get out of step.
        let about = |us: f64| Amount { mean: (us * 1e3) as u64, sd: (us * 10.0 * t.varies.unwrap_or(2) as f64) as u64 };
        let (burst, sleep) = took(case, t);
        let mut spec = forever(&name, t.nice, vec![Op::Run(about(burst)), Op::Sleep(about(sleep))]);
        spec.initial.clock_poll = Some(t.poll_us.unwrap_or(10) * US);
        spec
    };
    if case.staggered {
        let begin = start.map_or(Amount { mean: 20 * MS, sd: 8 * MS }, |start| exactly(start.at_us * US));
        spec.program.insert(0, Op::Sleep(begin));
        spec.cpu = start.map(|start| start.cpu);
        for op in &mut spec.program {
            if let Op::LoopEnd { start } = op {
                *start += 1;
            }
        }
    }
    spec.initial.cpus.clone_from(&t.cpus);
    spec.initial.policy = t.policy.as_deref().map(|policy| match policy {
        "batch" => Policy::Batch,
        "idle" => Policy::Idle,
        "fifo" => Policy::Fifo,
        other => panic!("{}: policy {other}", case.id),
    });
    spec.initial.rt_priority = t.priority;
    let group = |group: &String| case.groups.keys().position(|p| p == group).expect("a group of the case") as u32;
    spec.initial.group = t.group.as_ref().map(group);
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
        Quantity {
            what: "switches",
            value: sum(|t| t.slices),
            tolerance: (if case.staggered { 0.15 } else { 0.2 }, 0.0),
        },
    ];
    if case.runs.iter().all(|run| run.tasks.iter().all(|t| t.migrations.is_some())) {
        let value = sum(|t| t.migrations.unwrap_or(0.0));
        all.push(Quantity { what: "migrations", value, tolerance: (0.2, 10.0) });
    }
    for (i, first) in case.tasks.iter().enumerate() {
        if case.tasks[..i].contains(first) {
            continue;
        }
        let equal = || case.tasks.iter().zip(&run.tasks).filter(|(t, _)| *t == first).map(|(_, figures)| figures);
        let mut runs: Vec<f64> = equal().map(|t| t.run_us / run.wall_us).collect();
        runs.sort_by(f64::total_cmp);
        if first.burst_us == 0 && runs.len() == case.tasks.len() {
            let mean = runs.iter().sum::<f64>() / runs.len() as f64;
            let value = 100.0 * (runs[runs.len() - 1] - runs[0]) / mean;
            all.push(Quantity { what: "spread", value, tolerance: (0.0, 5.0) });
        }
        if case.staggered {
            let machine = run.wall_us * f64::from(case.cpus);
            let value = runs.iter().sum::<f64>() / f64::from(case.cpus);
            all.push(Quantity { what: "cpu time of a kind", value, tolerance: (0.0, 0.02) });
            let value = equal().map(|t| t.wait_us).sum::<f64>() / machine;
            all.push(Quantity { what: "wait of a kind", value, tolerance: (0.0, 0.03) });
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
