//! Instances of Linpack, started one after another, and either placed by the scheduler or bound to CPUs or nodes.
//!
//! An instance solves a system of equations. Its matrix is in memory of its own, allocated on the node where the
//! instance first touches it. It computes until it is done and never sleeps. Instances bound to CPUs are distributed to
//! the nodes in turn; each gets a core of its own as long as there are free cores, and then another thread of a core.
//! Instances bound to nodes are distributed to the nodes in turn, with their memory. If the times between their starts
//! are to vary, a shell forks them, whose own computing and sleeping are between two forks.

use super::{Given, Preset, exactly, param, step};
use crate::{Action, Amount, Memory, Phase, Start, TaskDef, Workload};
use schedlab_base::{Computing, Error, Nanos, Result};

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
        param("jitter", "0s", "the standard deviation of that time; above 0 s, a task \"shell\" forks them"),
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
    let (run, stagger, jitter) = (given.time("run")?, given.time("stagger")?, given.time("jitter")?);
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
    } else {
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
    }
    if jitter > 0 {
        fork_from_a_shell(&mut workload, stagger, jitter);
    }
    Ok(workload)
}

/// Lets a shell fork the tasks, one after another and `stagger` apart, with a standard deviation of `jitter`. It
/// computes for a quarter of that time and sleeps for the rest.
fn fork_from_a_shell(workload: &mut Workload, stagger: Nanos, jitter: Nanos) {
    let rest = Amount { mean: stagger - stagger / 4, sd: jitter };
    let mut phases = Vec::new();
    for task in &mut workload.tasks {
        let events = vec![
            step("run", Action::Run(exactly(stagger / 4))),
            step("fork", Action::Fork(task.name.clone())),
            step("sleep", Action::Sleep(rest)),
        ];
        let loops = Some(u64::from(std::mem::take(&mut task.instances)));
        phases.push(Phase { events, loops, ..Phase::default() });
        (task.delay, task.stagger) = (0, 0);
    }
    workload.tasks.push(TaskDef { name: "shell".to_owned(), loops: Some(1), phases, ..TaskDef::default() });
}

#[cfg(test)]
mod tests {
    use crate::{Action, Workload};

    /// The tasks that the shell forks, and how often.
    fn forked(workload: &Workload) -> Vec<(String, u64)> {
        let shell = workload.tasks.iter().find(|task| task.name == "shell").expect("a shell");
        let fork = |phase: &crate::Phase| match &phase.events[1].what {
            Action::Fork(name) => (name.clone(), phase.loops.expect("not for ever")),
            other => panic!("{other:?}"),
        };
        shell.phases.iter().map(fork).collect()
    }

    #[test]
    fn a_shell_forks_each_instance_once_where_the_starts_vary() {
        let free = crate::presets::build("linpack:instances=7,jitter=1ms").unwrap();
        assert_eq!(forked(&free), [("linpack".to_owned(), 7)]);
        assert!(free.tasks.iter().all(|task| task.name == "shell" || task.instances == 0));

        let bound = crate::presets::build("linpack:instances=3,bound=cpu,jitter=1ms").unwrap();
        assert_eq!(forked(&bound), [0, 1, 2].map(|i| (format!("linpack-{i}"), 1)));
        let cpus: Vec<_> = bound.tasks.iter().filter_map(|task| task.props.cpus.clone()).collect();
        assert_eq!(cpus, [vec![0], vec![30], vec![60]]);
        assert!(bound.tasks.iter().all(|task| task.delay == 0));
    }

    #[test]
    fn the_starts_are_even_unless_told_otherwise() {
        let even = crate::presets::build("linpack:instances=7").unwrap();
        assert_eq!((even.tasks.len(), even.tasks[0].instances, even.tasks[0].stagger), (1, 7, 2_000_000));
    }
}
