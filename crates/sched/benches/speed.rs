//! How fast the simulator is: simulated seconds and context switches a CPU second, statistics on, no trace file.
//!
//! The first row is LinSched's own benchmark (the 2.6.32 scheduler hosted in user space: 1,900 simulated seconds a
//! second on the machine where it was measured); jittered bursts leave no pattern to memoise.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

use schedlab_base::{Event, NameRecord, Nanos, Payload, Sink};
use schedlab_machine::Costs;
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::{Amount, Load, Op, Start, TaskSpec};

/// Counts, and hands on to the statistics.
struct Counter<'a> {
    stats: &'a mut schedlab_measure::Stats,
    switches: u64,
}

impl Sink for Counter<'_> {
    fn events(&mut self, batch: &[Event]) {
        self.switches += batch.iter().filter(|e| matches!(e.what, Payload::Switch { .. })).count() as u64;
        self.stats.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.stats.name(record);
    }
}

fn forever(name: String, body: Vec<Op>) -> TaskSpec {
    let mut program = vec![Op::LoopStart { times: None }];
    program.extend(body);
    program.push(Op::LoopEnd { start: 0 });
    TaskSpec { name, program, ..TaskSpec::default() }
}

fn load(tasks: usize, body: &[Op]) -> Load {
    let tasks = (0..tasks).map(|i| forever(format!("t{i}"), body.to_vec())).collect();
    Load { tasks, start: Start::Fork, ..Load::default() }
}

fn cpu_time() -> f64 {
    // SAFETY: the call fills the structure that it is given.
    unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t);
        t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
    }
}

fn measure(kernel: &str, machine: &str, what: &str, load: &Load, seconds: u64) {
    let kernel = find(kernel).expect("a kernel");
    let mut machine = schedlab_machine::load(machine).expect("a machine");
    machine.costs = Costs::none();
    let values = kernel.values(&machine, &[]).expect("the defaults");
    let duration: Nanos = seconds * 1_000_000_000;
    let how = How { duration: Some(duration), seed: 1, skip_ticks: true };
    let mut best = f64::MAX;
    let mut switches = 0;
    for _ in 0..3 {
        let mut stats = schedlab_measure::Stats::new(&schedlab_base::Meta {
            cpus: machine.cpus.iter().map(|c| c.place.clone()).collect(),
            ..schedlab_base::Meta::default()
        });
        let mut counter = Counter { stats: &mut stats, switches: 0 };
        let start = cpu_time();
        kernel.simulate(&machine, load, &values, &how, &mut counter).expect("a run");
        best = best.min(cpu_time() - start);
        switches = counter.switches;
        std::hint::black_box(stats.finish(Some(duration)));
    }
    println!(
        "{:<13} {:>3} CPUs  {:<34} {:>9.0} simulated s/CPU s  {:>6.2} M switches/CPU s",
        kernel.name,
        machine.cpus.len(),
        what,
        seconds as f64 / best,
        switches as f64 / best / 1e6
    );
}

fn main() {
    let hog = [Op::Run(Amount { mean: 1_000_000_000, sd: 0 })];
    let jittered =
        [Op::Run(Amount { mean: 5_000_000, sd: 500_000 }), Op::Sleep(Amount { mean: 1_000_000, sd: 100_000 })];
    let yielding = [Op::Run(Amount { mean: 100_000, sd: 0 }), Op::Yield];
    measure("linux-2.6.32", "4", "10 hogs (LinSched's benchmark)", &load(10, &hog), 250);
    measure("linux-2.6.32", "4", "10 tasks, jittered bursts", &load(10, &jittered), 250);
    for kernel in ["linux-2.6.11", "linux-2.6.32", "linux-6.1", "linux-6.12"] {
        measure(kernel, "4", "10 hogs", &load(10, &hog), 250);
        measure(kernel, "4", "10 tasks, jittered bursts", &load(10, &jittered), 50);
        measure(kernel, "up", "4 tasks that burn 100 us and yield", &load(4, &yielding), 50);
    }
    measure("linux-2.6.32", "16", "64 hogs", &load(64, &hog), 50);
    measure("linux-2.6.32", "64", "256 hogs", &load(256, &hog), 20);
    for kernel in ["linux-4.1", "linux-6.12"] {
        measure(kernel, "bulldozer-64", "70 hogs", &load(70, &hog), 20);
    }
    measure("linux-6.12", "huge-4096", "65,536 hogs", &load(65_536, &hog), 2);
}
