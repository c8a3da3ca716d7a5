//! A database that answers the queries of TPC-H with a pool of workers, beside short-lived threads of the system.
//!
//! A query is a row of steps. In each every worker scans, joins or sorts its part: a few ms of computing, now and then a
//! short wait for the disk; then it waits for the slowest, asleep, for the next step needs all of this one. The
//! short-lived threads stand for what the kernel and the database's own housekeeping do beside: they wake at any time
//! on any CPU, compute for a few ms, and are gone. It is they who push two workers onto one CPU.

use super::{Given, Preset, param, step};
use crate::{Action, Amount, Phase, TaskDef, Workload};
use schedlab_base::{Nanos, Result};

pub(super) const PRESET: Preset = Preset {
    name: "tpch",
    meaning: "like a database under TPC-H: workers that compute in steps and wait for each other, and short-lived threads",
    params: &[
        param("workers", "64", "the pool"),
        param("steps", "2000", "steps of the queries, at each of which all workers meet"),
        param("run", "5ms", "a worker's computing in a step, the mean; a fifth of it is the standard deviation"),
        param("transients", "16", "short-lived threads"),
    ],
    build,
};

/// A wait for the disk: most of what is asked for is in memory.
const DISK: Amount = Amount { mean: 100_000, sd: 50_000 };
/// What a short-lived thread computes, and how long until the next of its kind comes.
const TRANSIENT: Amount = Amount { mean: 2_000_000, sd: 1_000_000 };
const PAUSE: Amount = Amount { mean: 40_000_000, sd: 20_000_000 };

fn build(given: &Given) -> Result<Workload> {
    let workers = given.number("workers", 1, 100_000)? as u32;
    let steps = given.number("steps", 1, 1_000_000_000)?.unsigned_abs();
    let run = given.time("run")?.max(2000);
    let half = Action::Run(Amount { mean: run / 2, sd: run / 10 });
    let events = vec![
        step("run_scan", half.clone()),
        step("sleep_disk", Action::Sleep(DISK)),
        step("run_join", half),
        step("barrier", Action::Barrier("step".to_owned())),
    ];
    let mut pool = TaskDef {
        name: "worker".to_owned(),
        instances: workers,
        loops: Some(1),
        phases: vec![Phase { name: "query".to_owned(), loops: Some(steps), events, ..Phase::default() }],
        ..TaskDef::default()
    };
    pool.props.working_set = Some(2 << 20);
    let transients = given.number("transients", 0, 100_000)? as u32;
    let mut tasks = vec![pool];
    if transients > 0 {
        let events = vec![step("sleep", Action::Sleep(PAUSE)), step("run", Action::Run(TRANSIENT))];
        // As long as the queries take when nothing is in their way: each by itself comes and goes so often.
        let rounds = (steps * (run as Nanos + DISK.mean)).div_ceil(PAUSE.mean + TRANSIENT.mean);
        tasks.push(TaskDef {
            name: "transient".to_owned(),
            instances: transients,
            loops: Some(1),
            phases: vec![Phase { name: "live".to_owned(), loops: Some(rounds), events, ..Phase::default() }],
            ..TaskDef::default()
        });
    }
    Ok(Workload { tasks, ..Workload::default() })
}
