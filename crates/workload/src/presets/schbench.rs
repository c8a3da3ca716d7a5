//! The pattern of schbench: threads that hand out requests, and workers that serve them. Each worker sleeps until the
//! thread that hands out wakes it, waits for the network, and computes. What matters is the latency of its wake-ups.

use super::{Given, Preset, exactly, param, step};
use crate::{Action, Phase, TaskDef, Workload};
use schedlab_base::{Error, Result};

pub(super) const PRESET: Preset = Preset {
    name: "schbench",
    meaning: "like schbench: message threads that wake workers, whose wake-up latency matters",
    params: &[
        param("messages", "1", "message threads"),
        param("workers", "4", "workers of each message thread"),
        param("run", "1ms", "computing for a request"),
        param("sleep", "100us", "waiting for the network before that"),
    ],
    build,
};

/// The most tasks.
const MOST: i64 = 100_000;

fn build(given: &Given) -> Result<Workload> {
    let (messages, workers) = (given.number("messages", 1, MOST)?, given.number("workers", 1, MOST)?);
    if messages * (workers + 1) > MOST {
        return Err(Error::input(format!("messages * (workers + 1) is more than {MOST}")).mend("take fewer workers"));
    }
    let (run, sleep) = (given.time("run")?, given.time("sleep")?);
    let mut workload = Workload::default();
    for n in 0..messages {
        let (idle, request) = (format!("idle-{n}"), format!("request-{n}"));
        let mut serve = vec![
            step("sem_post", Action::SemPost(idle.clone())),
            step("sem_wait", Action::SemWait(request.clone())),
            step("sleep", Action::Sleep(exactly(sleep))),
            step("run", Action::Run(exactly(run))),
        ];
        serve.retain(|step| step.what != Action::Sleep(exactly(0)));
        let hand_out = vec![step("sem_wait", Action::SemWait(idle)), step("sem_post", Action::SemPost(request))];
        let task = |name: String, instances: i64, events| TaskDef {
            name,
            instances: instances as u32,
            phases: vec![Phase { events, ..Phase::default() }],
            ..TaskDef::default()
        };
        workload.tasks.push(task(format!("message-{n}"), 1, hand_out));
        workload.tasks.push(task(format!("worker-{n}"), workers, serve));
    }
    Ok(workload)
}
