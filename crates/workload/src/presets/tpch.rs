//! A database that answers the queries of TPC-H with pools of workers, besides short-lived threads of the system.
//!
//! A query is a pipeline: scan, join, join, sort. Each stage is divided among a quarter of the workers by a hash of the
//! key. A worker that has finished a batch of rows therefore passes its parts to all workers of the next stage in turn.
//! Batches wait for a worker in a bounded queue: a worker that finds a full queue sleeps until there is room, and a
//! worker without a batch sleeps until one arrives. Both waits are short and frequent, and one worker that shares its
//! CPU eventually delays all others.
//!
//! The workers belong to a few container processes. Each has workers of every stage, but the numbers differ, so if a
//! kernel groups tasks by session, a worker of a big container has a smaller weight. The short-lived threads stand for
//! work such as the kernel's logging: they wake at any time, compute for less than 1 ms and end. They are what pushes
//! two workers onto one CPU.

use super::{Given, Preset, param, step};
use crate::{Action, Amount, Phase, TaskDef, Workload};
use schedlab_base::{Nanos, Result};

pub(super) const PRESET: Preset = Preset {
    name: "tpch",
    meaning: "like a database under TPC-H: workers in a pipeline that wait for each other, and short-lived threads",
    params: &[
        param("workers", "64", "the pools, in four containers of 7, 5, 3 and 1 sixteenths"),
        param("steps", "1600", "batches that each worker goes through"),
        param("run", "1ms", "computing for a batch, the mean; 3 tenths of it are the standard deviation"),
        param("queue", "4", "batches that may wait for a worker"),
        param("transients", "16", "short-lived threads"),
    ],
    build,
};

/// What a short-lived thread computes, and the time until the next one of its kind starts.
const TRANSIENT: Amount = Amount { mean: 500_000, sd: 250_000 };
const PAUSE: Amount = Amount { mean: 40_000_000, sd: 20_000_000 };

fn build(given: &Given) -> Result<Workload> {
    let workers = given.number("workers", 1, 512)? as u32;
    let steps = given.number("steps", 1, 1_000_000_000)?.unsigned_abs();
    let run = given.time("run")?.max(2000);
    let stages = (1..=4).rev().find(|stages| workers.is_multiple_of(*stages)).expect("1 divides all");
    let query =
        Query { stages, parts: workers / stages, steps, run, queue: given.number("queue", 1, 1_000_000)? as u64 };
    let places = (0..query.parts).flat_map(|part| (0..stages).map(move |stage| (stage, part)));
    let mut tasks: Vec<TaskDef> =
        (0..).zip(places).map(|(n, (stage, part))| query.worker(stage, part, container(n, workers))).collect();
    let transients = given.number("transients", 0, 100_000)? as u32;
    if transients > 0 {
        let events = vec![step("sleep", Action::Sleep(PAUSE)), step("run", Action::Run(TRANSIENT))];
        // Each short-lived thread repeats for as long as the query takes without disturbances.
        let rounds = (steps * run).div_ceil(PAUSE.mean + TRANSIENT.mean);
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

/// The container of a worker, counted from 1.
fn container(worker: u32, workers: u32) -> u32 {
    1 + [7, 12, 15].into_iter().filter(|bound| worker * 16 >= workers * bound).count() as u32
}

struct Query {
    stages: u32,
    /// The number of workers per stage.
    parts: u32,
    steps: u64,
    run: Nanos,
    queue: u64,
}

impl Query {
    fn worker(&self, stage: u32, part: u32, session: u32) -> TaskDef {
        let room = |stage, part| format!("room-{stage}-{part}");
        let batch = |stage, part| format!("batch-{stage}-{part}");
        let mut phases = Vec::new();
        if stage > 0 {
            let events = vec![step("sem_post", Action::SemPost(room(stage, part)))];
            phases.push(Phase { name: "open".to_owned(), loops: Some(self.queue), events, ..Phase::default() });
        }
        let mut events = Vec::new();
        for n in 0..self.parts {
            let mut add = |key: &str, what| events.push(step(&format!("{key}_{n}"), what));
            if stage > 0 {
                add("sem_wait_batch", Action::SemWait(batch(stage, part)));
                add("sem_post_room", Action::SemPost(room(stage, part)));
            }
            add("run", Action::Run(Amount { mean: self.run, sd: self.run * 3 / 10 }));
            if stage + 1 < self.stages {
                let (next, to) = (stage + 1, (part + n) % self.parts);
                add("sem_wait_room", Action::SemWait(room(next, to)));
                add("sem_post_batch", Action::SemPost(batch(next, to)));
            }
        }
        let rounds = self.steps.div_ceil(u64::from(self.parts));
        phases.push(Phase { name: "query".to_owned(), loops: Some(rounds), events, ..Phase::default() });
        let name = format!("worker-{stage}-{part}");
        let mut worker = TaskDef { name, loops: Some(1), session: Some(session), phases, ..TaskDef::default() };
        worker.props.working_set = Some(2 << 20);
        worker
    }
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use std::collections::BTreeMap;

    /// No task waits for a batch or for room that never comes, whatever the shape of the query.
    #[test]
    fn every_wait_has_a_post() {
        for (spec, stages) in [("tpch", 4), ("tpch:workers=6,steps=5,queue=3", 3), ("tpch:workers=7", 1)] {
            let made = build(spec).unwrap();
            let (mut posts, mut waits) = (BTreeMap::new(), BTreeMap::new());
            let phases = made.tasks.iter().flat_map(|task| &task.phases);
            for (loops, what) in phases.flat_map(|phase| phase.events.iter().map(|e| (phase.loops.unwrap(), &e.what))) {
                match what {
                    Action::SemPost(name) => *posts.entry(name.clone()).or_insert(0) += loops,
                    Action::SemWait(name) => *waits.entry(name.clone()).or_insert(0) += loops,
                    _ => {}
                }
            }
            let workers = made.tasks.iter().filter(|task| task.name.starts_with("worker")).count();
            assert_eq!(waits.len(), 2 * (workers - workers / stages), "{spec}: all stages but the first are fed");
            for (name, wanted) in waits {
                assert!(posts[&name] >= wanted, "{spec}: {name} is posted {} times of {wanted}", posts[&name]);
            }
        }
    }

    #[test]
    fn containers_differ_in_size_and_have_workers_of_every_stage() {
        let made = build("tpch").unwrap();
        let of = |session| made.tasks.iter().filter(move |task| task.session == Some(session));
        assert_eq!([1, 2, 3, 4].map(|session| of(session).count()), [28, 20, 12, 4]);
        assert!((1..=4).all(|s| (0..4).all(|stage| of(s).any(|t| t.name.starts_with(&format!("worker-{stage}-"))))));
    }
}
