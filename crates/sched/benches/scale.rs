//! How the cost of an event and the memory grow with the number of CPUs and of tasks. Everything is on (wake-ups,
//! placement, balancing, statistics), and bursts are jittered, so that there is no pattern to exploit.
//!
//! Each line is `AXIS KERNEL N`, where AXIS says what N counts, followed by ns of CPU time for each event, simulated
//! seconds for each CPU second, peak memory in MiB, and ns to create and start a task; scripts/bench_chart.py draws
//! them. Each point is a separate process, so that its memory is its own.

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
/// The number of tasks for each CPU when the number of CPUs grows.
const PER_CPU: usize = 4;
/// Simulated before events are counted: the start, and the first load balancing.
const WARM: Nanos = 50_000_000;
/// About how many events are counted; `LEAST` is the shortest simulated time in which they are.
const EVENTS: u64 = 100_000;
const LEAST: Nanos = 100_000_000;
/// The greatest total CPU time that is simulated: with few tasks on many CPUs without NO_HZ, the ticks of idle CPUs
/// dominate the cost.
const MOST: Nanos = 4_096_000_000_000;
/// A burst of the load.
const BURST: Nanos = 5_000_000;

/// A machine with nodes of 64 CPUs, four of them in each chassis.
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
    // About four events for each burst.
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

/// Returns the peak memory of this process, in bytes.
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
