//! Instances of Linpack, started one after another, and either placed by the scheduler or bound to CPUs or nodes.
//!
//! An instance solves a system of equations. Its matrix is in memory of its own, allocated on the node where the
//! instance first touches it. It computes until it is done and never sleeps. Instances bound to CPUs are distributed to
//! the nodes in turn; each gets a core of its own as long as there are free cores, and then another thread of a core.
//! Instances bound to nodes are distributed to the nodes in turn, with their memory.

use super::{Given, Preset, exactly, param, step};
use crate::{Action, Memory, Phase, Start, TaskDef, Workload};
use schedlab_base::{Computing, Error, Result};

pub(super) const PRESET: Preset = Preset {
    name: "linpack",
    meaning: "instances of Linpack, left to the scheduler or bound to CPUs or to nodes of a machine with SMT",
    params: &[
        param("instances", "1", "how many"),
        param(
            "bound",
            "no",
            "no: the scheduler places them; cpu: each to a CPU; node: each to a node, with its memory",
        ),
        param("run", "3s", "what each computes, alone on a core beside its memory"),
        param("stagger", "2ms", "from the start of one to the start of the next"),
        param("nodes", "4", "nodes of the machine, whose CPUs are numbered node by node, core by core"),
        param("cores", "15", "of a node"),
        param("threads", "2", "of a core"),
    ],
    build,
};

/// A matrix of 1000 x 1000 numbers of 8 bytes, Linpack's default.
const MATRIX: u64 = 8_000_000;

/// The percentage of a run that waits for memory. Linpack works on blocks that are mostly in the caches.
const BOUND: u32 = 10;

fn build(given: &Given) -> Result<Workload> {
    let number = |key, most| given.number(key, 1, most).map(|n| n as u32);
    let (nodes, cores, threads) = (number("nodes", 1024)?, number("cores", 4096)?, number("threads", 8)?);
    let instances = number("instances", 100_000)?;
    let (run, stagger) = (given.time("run")?, given.time("stagger")?);
    let mut workload = Workload::default();
    workload.global.start = Start::Fork;
    let one = |name: String| {
        let mut task = TaskDef { name, loops: Some(1), computing: Computing::Linpack, ..TaskDef::default() };
        task.phases = vec![Phase { events: vec![step("run", Action::Run(exactly(run)))], ..Phase::default() }];
        task.props.working_set = Some(MATRIX);
        task.props.memory =
            Some(Memory { bytes: MATRIX, nodes: Vec::new(), pinned: false, shared: false, bound: BOUND });
        task
    };
    let bound = given.text("bound");
    if bound == "no" {
        workload.tasks = vec![TaskDef { instances, stagger, ..one("linpack".to_owned()) }];
        return Ok(workload);
    }
    for i in 0..instances {
        let (node, core, thread) = (i % nodes, i / nodes % cores, i / (nodes * cores) % threads);
        let of_node = cores * threads;
        let mut task = TaskDef { delay: u64::from(i) * stagger, ..one(format!("linpack-{i}")) };
        match bound {
            "cpu" => task.props.cpus = Some(vec![node * of_node + core * threads + thread]),
            "node" => {
                task.props.cpus = Some((node * of_node..(node + 1) * of_node).collect());
                task.props.nodes_membind = Some(vec![node]);
            }
            _ => return Err(Error::input(format!("bound={bound} is not known")).mend("no, cpu or node")),
        }
        workload.tasks.push(task);
    }
    Ok(workload)
}
