//! How the cost of an event and memory grow with the number of CPUs and of tasks: everything on (wake-ups, placement,
//! balancing, statistics), jittered bursts, so that nothing can be learnt from a pattern.
//!
//! Each line is `AXIS KERNEL N`, AXIS saying what N counts, and then ns of CPU time an event, simulated seconds a CPU
//! second, the most memory in MiB, and ns to make and start a task; scripts/bench_chart.py draws them. Each point is a
//! process of its own, so that the memory is its own.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark prints its figures, and this one starts itself for each of them"
)]

mod common;

use common::{Counter, JITTERED, cpu_time, load};
use schedlab_base::Nanos;
use schedlab_machine::{Costs, Machine, MachineFile};
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::Start;
use std::process::Command;

const KERNELS: [&str; 5] = ["linux-2.6.11", "linux-2.6.32", "linux-4.1", "linux-6.1", "linux-6.12"];
const CPUS: [u32; 7] = [1, 4, 16, 64, 256, 1024, 4096];
const TASKS: [usize; 6] = [10, 100, 1000, 10_000, 100_000, 1_000_000];
const CPU_AXIS: &str = "scale-cpus";
/// Tasks a CPU where the number of CPUs grows.
const PER_CPU: usize = 4;
/// Simulated before events are counted: starting, and the first balancing.
const WARM: Nanos = 50_000_000;
/// Events that are to be counted, about, and the least simulated time that they are counted in.
const EVENTS: u64 = 100_000;
const LEAST: Nanos = 100_000_000;
/// The most CPU time that is simulated: where few tasks run on many CPUs without NO_HZ, it is the ticks of idle CPUs
/// that cost.
const MOST: Nanos = 4_096_000_000_000;
/// A burst of the load.
const BURST: Nanos = 5_000_000;

/// Nodes of 64 CPUs, four of them a chassis.
fn machine(cpus: u32) -> Machine {
    let nodes = cpus.div_ceil(64);
    let distance = |a: u32, b: u32| {
        if a == b {
            10
        } else if a / 4 == b / 4 {
            16
        } else {
            50
        }
    };
    let distances = (0..nodes).map(|a| (0..nodes).map(|b| distance(a, b)).collect()).collect();
    let file = MachineFile { distances, ..MachineFile::flat("scale", nodes, cpus / nodes, 1) };
    Machine { costs: Costs::none(), ..file.build().expect("a machine") }
}

/// Measures one point and prints its line.
fn point(axis: &str, kernel: &str, cpus: u32, tasks: usize) {
    let began = cpu_time();
    let machine = machine(cpus);
    // Some four events a burst.
    let per_second = 4 * u64::from(cpus).min(tasks as u64) * 1_000_000_000 / BURST;
    let counted = (EVENTS * 1_000_000_000 / per_second).max(LEAST);
    let duration = WARM + counted.min(MOST / u64::from(cpus));
    let kernel = find(kernel).expect("a kernel");
    let values = kernel.values(&machine, &[]).expect("the defaults");
    let load = load(tasks, &JITTERED, Start::Wake);
    let mut counter = Counter::new(&machine, WARM);
    let how = How { duration: Some(duration), seed: 1, skip_ticks: true };
    kernel.simulate(&machine, &load, &values, &how, &mut counter).expect("a run");
    let end = cpu_time();
    let (warm, from) = counter.began.expect("the load goes on");
    let spent = end - warm;
    println!(
        "{axis} {} {} {:.1} {:.3} {} {:.0}",
        kernel.name,
        if axis == CPU_AXIS { cpus as usize } else { tasks },
        spent / counter.events as f64,
        (duration - from) as f64 / spent,
        most_memory() >> 20,
        (warm - began) / tasks as f64,
    );
    std::hint::black_box(counter.stats.finish(Some(duration)));
}

/// The most memory that this process ever had, in bytes.
fn most_memory() -> u64 {
    // SAFETY: the call fills the structure that it is given.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage.ru_maxrss as u64 * 1024
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, axis, kernel, cpus, tasks, ..] = &args[..]
        && word == "point"
    {
        return point(axis, kernel, cpus.parse().expect("CPUs"), tasks.parse().expect("tasks"));
    }
    let this = std::env::current_exe().expect("this program");
    let run = |axis: &str, kernel: &str, cpus: u32, tasks: usize| {
        let args = ["point", axis, kernel, &cpus.to_string(), &tasks.to_string()];
        let status = Command::new(&this).args(args).status().expect("a process");
        assert!(status.success(), "{kernel} with {cpus} CPUs and {tasks} tasks: {status}");
    };
    for kernel in KERNELS {
        CPUS.iter().for_each(|cpus| run(CPU_AXIS, kernel, *cpus, *cpus as usize * PER_CPU));
        TASKS.iter().for_each(|tasks| run("scale-tasks-64", kernel, 64, *tasks));
        TASKS.iter().for_each(|tasks| run("scale-tasks-4096", kernel, 4096, *tasks));
    }
}
