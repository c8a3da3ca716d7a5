//! The speed beside LinSched's, which hosts the kernel's own 2.6.32 scheduler in user space, in one run and in turns.
//!
//! The environment variable LINSCHED names a program that simulates hogs with LinSched: it is called with a number of
//! CPUs, of tasks that never sleep, and of seconds, and has ticks of 1 ms. Without it there is nothing to compare with.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark prints its figures, and runs the other program"
)]

mod common;

use common::{Counter, HOG, cpu_time, load};
use schedlab_machine::Costs;
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::Start;
use std::process::{Command, Stdio};

const ROUNDS: usize = 5;

fn main() {
    let Some(program) = std::env::var_os("LINSCHED") else {
        println!("LinSched is left out: LINSCHED does not name a program that takes CPUS TASKS SECONDS");
        return;
    };
    // LinSched's counter of ticks wraps after 300 s.
    for (cpus, tasks, seconds) in [(4, 10, 250), (16, 64, 200), (32, 128, 80)] {
        let (mut theirs, mut ours) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            theirs = theirs.min(run(&program, [cpus, tasks, seconds]));
            ours = ours.min(simulate(cpus, tasks, seconds));
        }
        println!(
            "linux-2.6.32 {cpus:>3} CPUs {tasks:>4} hogs: LinSched {:.0}, schedlab {:.0} simulated s/CPU s, {:.1}x",
            seconds as f64 / theirs,
            seconds as f64 / ours,
            theirs / ours
        );
    }
}

/// The CPU time, in s, that the program takes with these arguments.
fn run(program: &std::ffi::OsStr, arguments: [u64; 3]) -> f64 {
    let before = children_time();
    let mut command = Command::new(program);
    command.args(arguments.map(|argument| argument.to_string())).stdout(Stdio::null());
    let status = command.status().expect("LINSCHED names a program that can be run");
    assert!(status.success(), "the program that LINSCHED names failed: {status}");
    children_time() - before
}

/// The CPU time, in s, that the same load takes here.
fn simulate(cpus: u64, tasks: u64, seconds: u64) -> f64 {
    let kernel = find("linux-2.6.32").expect("a kernel");
    let mut machine = schedlab_machine::load(&cpus.to_string()).expect("a machine");
    machine.costs = Costs::none();
    let values = kernel.values(&machine, &[]).expect("the defaults");
    let how = How { duration: Some(seconds * 1_000_000_000), seed: 1, skip_ticks: true };
    let mut counter = Counter::new(&machine, 0);
    let start = cpu_time();
    kernel.simulate(&machine, &load(tasks as usize, &HOG, Start::Fork), &values, &how, &mut counter).expect("a run");
    std::hint::black_box(counter.stats.finish(how.duration));
    (cpu_time() - start) / 1e9
}

/// The CPU time, in s, of the programs that were run and have ended.
fn children_time() -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    // SAFETY: the call fills the structure that it is given.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
}
