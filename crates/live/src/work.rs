//! Work: loops whose length is known, checked against the thread's CPU clock.
//!
//! Reading the thread's CPU clock makes the kernel account the thread, and newer kernels then end a slice that is over.
//! So a burst is done by counted loops, three quarters of what is left at a time, and the clock is read after each of
//! these steps: some eight times in a burst of 100 ms, and five times in one of 1 ms. The shortest bursts are counted
//! without a look at the clock, as a real task does its work: it would be looked at more often than anything else.

use crate::computing::Computation;
use crate::memory::Touched;
use crate::sys;
use schedlab_base::Nanos;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// How much work is done between two looks at whether the run is over.
const CHUNK: Nanos = 100_000;
/// Which part of what is left is done before the next look at the clock. Neighbours of a virtual machine make loops
/// slower or faster by tens of percent from one millisecond to the next.
const PART: f64 = 0.75;
/// Below this, loops are counted down to the end; a burst that is no longer is counted without a clock.
const SHORT: Nanos = 10_000;
/// How far a thread's own rate may be from the calibrated one: other threads of the core and its frequency change it.
const DRIFT: f64 = 8.0;
/// How the calibration measures.
const SAMPLES: usize = 15;
const SAMPLE: Nanos = 1_000_000;

/// The calibration of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The CPU time of a loop, by the thread's CPU clock: the least of some samples.
    pub ns_per_loop: f64,
    /// How much longer the median sample took than the least, as a fraction.
    pub spread: f64,
    /// The time that a reading of the thread's CPU clock takes.
    pub clock_ns: f64,
}

/// One counted loop each: a chain of multiplications, each of which needs the one before it.
#[inline(never)]
fn loops(count: u64) {
    let mut x = black_box(count | 1);
    for _ in 0..count {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    black_box(x);
}

impl Calibration {
    /// Measures this machine, in some 20 ms.
    #[must_use]
    pub fn measure() -> Self {
        let clock_ns = (0..64)
            .map(|_| {
                let start = sys::thread_cpu();
                sys::thread_cpu() - start
            })
            .min()
            .unwrap_or(0) as f64;
        let mut count = 1000;
        while timed(count) < SAMPLE {
            count *= 2;
        }
        let mut samples: Vec<f64> = (0..SAMPLES).map(|_| timed(count) as f64 / count as f64).collect();
        samples.sort_by(f64::total_cmp);
        let ns_per_loop = samples[0].max(1e-3);
        Self { ns_per_loop, spread: samples[SAMPLES / 2] / ns_per_loop - 1.0, clock_ns }
    }
}

fn timed(count: u64) -> Nanos {
    let start = sys::thread_cpu();
    loops(count);
    sys::thread_cpu() - start
}

/// How fast this CPU is, if these are the capacities of all.
fn speed(capacities: &[u32]) -> f64 {
    capacities.get(sys::current_cpu()).map_or(1.0, |capacity| f64::from(*capacity) / 1024.0)
}

/// What a burst took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    /// The CPU time that it was to take, on the CPUs that it ran on.
    pub(crate) wanted: Nanos,
    /// The CPU time that it took.
    pub(crate) took: Nanos,
    /// Whether it was timed; else it took what it was to take, as far as is known.
    pub(crate) timed: bool,
}

/// A thread's way of working.
pub(crate) struct Worker<'a> {
    calibration: Calibration,
    /// Loops in a ns, or units of its computation, as measured before the run and as this thread last saw it.
    measured: f64,
    rate: f64,
    /// The capacity of each CPU; empty if all have 1024.
    capacities: &'a [u32],
    /// When the run is over, whatever the task does.
    over: Nanos,
    /// The time between two readings of its own CPU clock; 0: it counts loops and does not look. If the task says
    /// nothing, the looks are where they make the burst exact.
    pub(crate) clock_poll: Option<Nanos>,
    /// The memory that it touches while it works.
    pub(crate) touched: Touched,
    /// What it computes in place of loops.
    computation: Option<Computation>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(calibration: Calibration, capacities: &'a [u32], over: Nanos) -> Self {
        let rate = 1.0 / calibration.ns_per_loop;
        let touched = Touched::default();
        Self { calibration, measured: rate, rate, capacities, over, clock_poll: None, touched, computation: None }
    }

    /// Computes this from now on.
    pub(crate) fn compute(&mut self, computation: Computation) {
        self.measured = computation.rate();
        self.rate = self.measured;
        self.computation = Some(computation);
    }

    /// The time when the run is over becomes known after the task exists.
    pub(crate) fn ends_at(&mut self, over: Nanos) {
        self.over = over;
    }

    /// Ends the process if the run is over and whoever should have ended it did not.
    pub(crate) fn check_over(&self) {
        if sys::monotonic() > self.over {
            sys::exit(0);
        }
    }

    /// Computes for this much CPU time: on a CPU of capacity 1024 if `scaled`, and on any CPU if not. Short bursts, and
    /// those of a task that does not look at its clock, are counted loops alone.
    pub(crate) fn burst(&mut self, amount: Nanos, scaled: bool) -> Burst {
        let capacities = if scaled { self.capacities } else { &[] };
        self.computation.iter_mut().for_each(Computation::begin);
        if self.clock_poll == Some(0) || amount <= SHORT {
            let time = amount as f64 / speed(capacities);
            self.work(time);
            return Burst { wanted: time as Nanos, took: time as Nanos, timed: false };
        }
        let start = sys::thread_cpu();
        let (mut now, mut left) = (start, amount as f64);
        let enough = self.calibration.clock_ns;
        let mut wanted = 0.0;
        while left > enough {
            let speed = speed(capacities);
            let step = self.step(left / speed);
            self.work(step);
            let then = std::mem::replace(&mut now, sys::thread_cpu());
            let took = (now - then) as f64;
            self.learn(step, took);
            let done = took * speed;
            wanted += if done >= left { left / speed } else { took };
            left -= done;
        }
        wanted += left.max(0.0);
        Burst { wanted: wanted as Nanos, took: now - start, timed: true }
    }

    /// How much CPU time to work before the next look at the clock.
    fn step(&self, left: f64) -> f64 {
        let step = if left > SHORT as f64 { left * PART } else { left };
        self.clock_poll.map_or(step, |poll| step.min(poll as f64))
    }

    /// Works for about this much CPU time, by the count of loops.
    fn work(&mut self, time: f64) {
        let mut left = time;
        while left > 0.0 {
            let chunk = left.min(CHUNK as f64);
            let count = chunk * self.rate;
            if let Some(computation) = &mut self.computation {
                computation.work(count as u64);
            } else {
                self.compute_loops(chunk, count);
            }
            left -= chunk;
            self.check_over();
        }
    }

    fn compute_loops(&mut self, time: f64, count: f64) {
        let touching = self.touched.part();
        loops((count * (1.0 - touching)) as u64);
        if touching > 0.0 {
            self.touched.touch(time * touching);
        }
    }

    /// Takes what a step took into account.
    fn learn(&mut self, step: f64, took: f64) {
        if step < SHORT as f64 || took <= 0.0 {
            return;
        }
        let seen = self.rate * (step / took);
        self.rate = (self.rate + (seen - self.rate) / 4.0).clamp(self.measured / DRIFT, self.measured * DRIFT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_the_cpu_time_asked() {
        let calibration = Calibration::measure();
        let mut worker = Worker::new(calibration, &[], Nanos::MAX);
        let mut errors: Vec<f64> = Vec::new();
        for _ in 0..30 {
            for amount in [100_000, 2_000_000] {
                let start = sys::thread_cpu();
                let burst = worker.burst(amount, true);
                let around = sys::thread_cpu() - start;
                assert!(burst.took <= around && burst.wanted == amount, "{burst:?}, {around}");
                errors.push((burst.took as f64 - amount as f64).abs() / amount as f64);
            }
        }
        errors.sort_by(f64::total_cmp);
        // A virtual machine's CPU can be taken away in the middle of a burst, so the median is judged.
        assert!(errors[30] < 0.02, "{errors:?}");
    }

    #[test]
    fn a_slow_cpu_takes_longer_for_work_and_not_for_time() {
        let mut worker = Worker::new(Calibration::measure(), &[512; 4096], Nanos::MAX);
        let burst = worker.burst(1_000_000, true);
        assert!((1_999_000..2_001_000).contains(&burst.wanted) && burst.took > 1_900_000, "{burst:?}");
        let burst = worker.burst(1_000_000, false);
        assert!(burst.wanted == 1_000_000 && burst.took < 1_900_000, "{burst:?}");
        let short = [worker.burst(2_000, true), worker.burst(2_000, false)];
        assert_eq!(short.map(|burst| (burst.took, burst.timed)), [(4_000, false), (2_000, false)]);
    }
}
