//! How fast the simulator is: simulated seconds and context switches for each CPU second, with statistics but without a
//! trace file.
//!
//! Words after `--` choose rows: those whose line has them all, as in `-- linux-6.12 "4 CPUs" hogs`.
//!
//! The first row is LinSched's own benchmark (the 2.6.32 scheduler hosted in user space: 1,900 simulated seconds a
//! second on the machine where it was measured). Jittered bursts leave no pattern to memoise.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a benchmark prints its figures, and takes words to choose them by"
)]

mod common;

use common::{Counter, HOG, JITTERED, cpu_time, load};
use schedlab_base::Nanos;
use schedlab_machine::Costs;
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::{Amount, Load, Op, Start};

fn measure(kernel: &str, machine: &str, what: &str, load: &Load, seconds: u64) {
    let kernel = find(kernel).expect("a kernel");
    let mut machine = schedlab_machine::load(machine).expect("a machine");
    let row = format!("{:<13} {:>3} CPUs  {what:<34}", kernel.name, machine.cpus.len());
    // `cargo bench` passes `--bench`.
    if !std::env::args().skip(1).filter(|word| word != "--bench").all(|word| row.contains(&word)) {
        return;
    }
    machine.costs = Costs::none();
    let values = kernel.values(&machine, &[]).expect("the defaults");
    let duration: Nanos = seconds * 1_000_000_000;
    let how = How { duration: Some(duration), seed: 1, skip_ticks: true };
    let mut best = f64::MAX;
    let mut switches = 0;
    for _ in 0..3 {
        let mut counter = Counter::new(&machine, 0);
        let start = cpu_time();
        kernel.simulate(&machine, load, &values, &how, &mut counter).expect("a run");
        best = best.min((cpu_time() - start) / 1e9);
        switches = counter.switches;
        std::hint::black_box(counter.stats.finish(Some(duration)));
    }
    let speed = seconds as f64 / best;
    println!(
        "{row} {:>9.*} simulated s/CPU s  {:>6.2} M switches/CPU s",
        usize::from(speed < 10.0),
        speed,
        switches as f64 / best / 1e6
    );
}

fn main() {
    let load = |tasks, body: &[Op]| load(tasks, body, Start::Fork);
    let dozing =
        [Op::Run(Amount { mean: 1_000_000, sd: 100_000 }), Op::Sleep(Amount { mean: 24_000_000, sd: 2_000_000 })];
    let mut pinned = load(20, &HOG);
    pinned.tasks.iter_mut().for_each(|task| task.initial.cpus = Some(vec![38]));
    let yielding = [Op::Run(Amount { mean: 100_000, sd: 0 }), Op::Yield];
    measure("linux-2.6.32", "4", "10 hogs (LinSched's benchmark)", &load(10, &HOG), 250);
    measure("linux-2.6.32", "4", "10 tasks, jittered bursts", &load(10, &JITTERED), 250);
    for kernel in ["linux-2.6.11", "linux-2.6.32", "linux-6.1", "linux-6.12"] {
        measure(kernel, "4", "10 hogs", &load(10, &HOG), 250);
        measure(kernel, "4", "10 tasks, jittered bursts", &load(10, &JITTERED), 50);
        measure(kernel, "up", "4 tasks that burn 100 us and yield", &load(4, &yielding), 50);
    }
    for kernel in ["linux-2.6.32", "linux-6.1", "linux-6.12"] {
        measure(kernel, "16", "64 hogs", &load(64, &HOG), 50);
        measure(kernel, "16", "64 tasks, jittered bursts", &load(64, &JITTERED), 10);
        measure(kernel, "64", "256 hogs", &load(256, &HOG), 20);
        measure(kernel, "64", "256 tasks, jittered bursts", &load(256, &JITTERED), 2);
        measure(kernel, "2x12x2", "20 hogs pinned to CPU 38", &pinned, 20);
        measure(kernel, "64", "64 tasks, asleep for 24 of 25 ms", &load(64, &dozing), 5);
    }
    for kernel in ["linux-4.1", "linux-6.12"] {
        measure(kernel, "bulldozer-64", "70 hogs", &load(70, &HOG), 20);
    }
    // Forked tasks would begin in one chassis: these kernels fork across no distance greater than 30.
    for kernel in ["linux-2.6.32", "linux-6.12"] {
        measure(kernel, "huge-4096", "65,536 hogs", &common::load(65_536, &HOG, Start::Wake), 2);
    }
}
