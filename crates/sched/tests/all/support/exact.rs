//! Oracles that are met exactly: loads of hogs and sleepers, with every task's figures to the microsecond and to the
//! switch.

use super::{Account, bare, exactly, forever, hog, simulate};
use schedlab_base::Nanos;
use schedlab_sim::program::{Load, Op, Start, TaskSpec};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    id: String,
    hz: u64,
    seconds: f64,
    cpus: Option<u32>,
    /// Constants that differ from the released ones; `null` if the release does not have the constant.
    #[serde(default)]
    constants: BTreeMap<String, Option<u64>>,
    tasks: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    nice: i8,
    burst_us: Option<u64>,
    sleep_us: Option<u64>,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Figures {
    run_us: u64,
    wait_us: u64,
    slices: u64,
    voluntary: u64,
    involuntary: u64,
    latency_n: Option<usize>,
    latency_max_us: Option<u64>,
    latency_mean_us: Option<f64>,
    last_cpu: Option<u32>,
    migrations: Option<u64>,
}

fn task(i: usize, t: &Expected) -> TaskSpec {
    let us = |n: u64| exactly(n * 1000);
    match (t.burst_us, t.sleep_us) {
        (Some(burst), Some(sleep)) => {
            forever(&format!("sleeper-{i}"), t.nice, vec![Op::Run(us(burst)), Op::Sleep(us(sleep))])
        }
        _ => hog(&format!("hog-{i}"), t.nice),
    }
}

/// Converts to whole microseconds; a remainder would be a difference.
fn us(time: Nanos) -> u64 {
    assert_eq!(time % 1000, 0, "{time} ns are no whole microseconds");
    time / 1000
}

fn figures(a: &Account, sleeps: bool, several_cpus: bool) -> Figures {
    let n = a.latencies.len();
    let mean = a.latencies.iter().sum::<Nanos>() as f64 / 1e3 / n.max(1) as f64;
    Figures {
        run_us: us(a.run),
        wait_us: us(a.wait),
        slices: a.slices,
        voluntary: a.voluntary,
        involuntary: a.involuntary,
        latency_n: sleeps.then_some(n),
        latency_max_us: sleeps.then(|| us(a.latencies.iter().copied().max().unwrap_or(0))),
        // The file has three decimal places.
        latency_mean_us: sleeps.then_some((mean * 1000.0).round() / 1000.0),
        last_cpu: several_cpus.then_some(a.cpu),
        migrations: several_cpus.then_some(a.migrations),
    }
}

/// Simulates the `cases` cases of an oracle under `kernel`, and compares every task with its figures.
pub fn every_task_gets_what_the_real_kernel_gave_it(kernel: &str, oracle: &str, cases: usize) {
    let all: Vec<Case> = serde_json::from_str(oracle).unwrap();
    assert_eq!(all.len(), cases);
    let mut wrong = Vec::new();
    for case in &all {
        let tasks = case.tasks.iter().enumerate().map(|(i, t)| task(i, t)).collect();
        let load = Load { tasks, start: Start::Threads, ..Load::default() };
        let machine = case.cpus.map_or_else(|| "up".to_owned(), |cpus| format!("{cpus}x1x1"));
        let machine = &machine;
        let mut set = vec![("hz", case.hz.to_string())];
        set.extend(case.constants.iter().filter_map(|(name, v)| Some((name.as_str(), v.as_ref()?.to_string()))));
        let accounts = simulate(kernel, &bare(machine), &load, &set, (case.seconds * 1e9) as Nanos);
        for (i, (task, account)) in case.tasks.iter().zip(&accounts.tasks).enumerate() {
            let ours = figures(account, task.burst_us.is_some(), case.cpus.is_some());
            if ours != task.figures {
                wrong.push(format!("{} task {i} (nice {}): {ours:?}, not {:?}", case.id, task.nice, task.figures));
            }
        }
    }
    assert!(wrong.is_empty(), "{} tasks off:\n{}", wrong.len(), wrong.join("\n"));
}
