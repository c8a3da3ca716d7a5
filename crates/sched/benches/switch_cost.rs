//! What it costs a scheduler to put the running task back and to pick the next one, against the number of runnable
//! tasks: the CPU time of the simulator, which executes the kernel's own steps. Each line is
//! `switch-cost KERNEL TASKS NANOSECONDS`; scripts/bench_chart.py draws them.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

mod common;

use common::{cpu_time, load};
use schedlab_machine::Costs;
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::{Amount, Load, Op, Start};

/// Each finds the next task in another way: a scan of all tasks, two arrays of lists, a tree.
const KERNELS: [&str; 6] = ["linux-2.4", "bfs", "linux-2.6.11", "sd", "linux-2.6.32", "linux-6.12"];
const TASKS: [usize; 12] = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// How long a task runs before it yields, in ns.
const BURN: u64 = 100_000;
/// The number of yields in the shorter of the two runs; the longer has twice as many.
const YIELDS: u64 = 60_000;
/// The number of runs, of which the fastest counts.
const TIMES: usize = 5;

/// Returns the least CPU time of a run with this many yields, in ns.
fn cost(kernel: &str, load: &Load, yields: u64) -> f64 {
    let kernel = find(kernel).expect("a kernel");
    let mut machine = schedlab_machine::load("up").expect("a machine");
    machine.costs = Costs::none();
    let values = kernel.values(&machine, &[]).expect("the defaults");
    let how = How { duration: Some(yields * BURN), seed: 1, skip_ticks: true };
    let mut best = f64::MAX;
    for _ in 0..TIMES {
        let start = cpu_time();
        kernel.simulate(&machine, load, &values, &how, &mut ()).expect("a run");
        best = best.min(cpu_time() - start);
    }
    best
}

fn main() {
    for kernel in KERNELS {
        for tasks in TASKS {
            let load = load(tasks, &[Op::Run(Amount { mean: BURN, sd: 0 }), Op::Yield], Start::Threads);
            // The difference between two runs cancels the cost of creating the tasks.
            let more = cost(kernel, &load, 2 * YIELDS) - cost(kernel, &load, YIELDS);
            println!("switch-cost {kernel} {tasks} {:.1}", more / YIELDS as f64);
        }
    }
}
