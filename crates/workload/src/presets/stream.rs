//! Instances of STREAM, which wait for memory most of the time.

use super::{Given, Preset, alone, exactly, param, step};
use crate::{Action, Memory, Phase, Start, TaskDef, Workload};
use schedlab_base::{Computing, Result};

pub(super) const PRESET: Preset = Preset {
    name: "stream",
    meaning: "instances of STREAM: loops over three large arrays, bound by memory",
    params: &[
        param("instances", "1", "how many"),
        param("run", "3s", "what each computes, alone on a core beside its memory"),
        param("mib", "24", "the memory of each, in MiB: three arrays"),
        param("stagger", "2ms", "from the start of one to the start of the next"),
    ],
    build,
};

/// The percentage of a run that waits for memory.
const BOUND: u32 = 80;

fn build(given: &Given) -> Result<Workload> {
    let bytes = given.number("mib", 1, 1 << 20)?.unsigned_abs() << 20;
    let mut task = TaskDef {
        name: "stream".to_owned(),
        instances: given.number("instances", 1, 100_000)? as u32,
        stagger: given.time("stagger")?,
        loops: Some(1),
        phases: vec![Phase { events: vec![step("run", Action::Run(exactly(given.time("run")?)))], ..Phase::default() }],
        computing: Computing::Stream,
        ..TaskDef::default()
    };
    task.props.memory = Some(Memory { bytes, nodes: Vec::new(), pinned: false, shared: false, bound: BOUND });
    let mut workload = alone(task);
    workload.global.start = Start::Fork;
    Ok(workload)
}
