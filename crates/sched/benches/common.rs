//! Helpers shared by the benchmarks.

// Each benchmark is a separate crate and uses only a part of this.
#![allow(dead_code)]

use schedlab_base::{Event, Meta, NameRecord, Nanos, Payload, Sink};
use schedlab_machine::Machine;
use schedlab_measure::Stats;
use schedlab_sim::program::{Amount, Load, Op, Start, TaskSpec};

/// Tasks that compute for a second at a time, for ever.
pub const HOG: [Op; 1] = [Op::Run(Amount { mean: 1_000_000_000, sd: 0 })];
/// Tasks that compute for 5 ms and sleep for 1 ms, both jittered.
pub const JITTERED: [Op; 2] =
    [Op::Run(Amount { mean: 5_000_000, sd: 500_000 }), Op::Sleep(Amount { mean: 1_000_000, sd: 100_000 })];

/// This many tasks that repeat `body` for ever.
pub fn load(tasks: usize, body: &[Op], start: Start) -> Load {
    let program = [&[Op::LoopStart { times: None }], body, &[Op::LoopEnd { start: 0 }]].concat();
    let spec = TaskSpec { name: "t".into(), copies: tasks as u32, program, ..TaskSpec::default() };
    Load { tasks: vec![spec], start, ..Load::default() }
}

/// Returns the CPU time of this process, in ns.
pub fn cpu_time() -> f64 {
    // SAFETY: the call fills the structure that it is given.
    unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t);
        t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
    }
}

/// Counts events, and passes them on to the statistics.
pub struct Counter {
    pub stats: Stats,
    pub switches: u64,
    pub events: u64,
    /// Events before this time are not counted; 0 counts all.
    pub from: Nanos,
    /// The CPU time when `from` was passed, and the simulated time at that point.
    pub began: Option<(f64, Nanos)>,
}

impl Counter {
    pub fn new(machine: &Machine, from: Nanos) -> Self {
        let meta = Meta { cpus: machine.cpus.iter().map(|c| c.place.clone()).collect(), ..Meta::default() };
        Self { stats: Stats::new(&meta), switches: 0, events: 0, from, began: None }
    }
}

impl Sink for Counter {
    fn events(&mut self, batch: &[Event]) {
        if self.from == 0 || self.began.is_some() {
            self.events += batch.len() as u64;
            self.switches += batch.iter().filter(|e| matches!(e.what, Payload::Switch { .. })).count() as u64;
        }
        self.stats.events(batch);
        if self.began.is_none()
            && let Some(last) = batch.last().filter(|last| last.time >= self.from)
        {
            self.began = Some((cpu_time(), last.time));
        }
    }

    fn name(&mut self, record: &NameRecord) {
        self.stats.name(record);
    }
}
