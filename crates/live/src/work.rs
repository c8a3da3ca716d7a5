//! Work: loops whose length is known, checked against the thread's CPU clock.
//!
//! Reading the thread's CPU clock makes the kernel account the thread, and newer kernels then end a slice that is over,
//! as no tick would yet. So a burst is done by counted loops, some 20 us at a time, and the time that has passed
//! meanwhile is read without entering the kernel. If it is much longer than usual, then the kernel says whether the
//! thread was preempted. If so, it has just got its CPU back, and its clock may be read; if not, the thread was slower,
//! or its virtual CPU was away. The clock is read when a burst begins, too, if the thread has slept before.
//!
//! A few of the bursts are timed by the thread's clock to their end: that tells how exact they are, and how much of the
//! time for which a virtual CPU is away its kernel counts as the thread's.

use crate::computing::Computation;
use crate::memory::Touched;
use crate::sys::{self, Switches};
use schedlab_base::Nanos;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// How much work is done between two looks at the time: so much, or as many times the cost of a look.
const CHUNK: f64 = 20_000.0;
const LOOKS: f64 = 200.0;
/// Loops that take so many times as long as usual may have been interrupted. Neighbours of a virtual machine make loops
/// slower or faster by tens of percent from one millisecond to the next.
const INTERRUPTED: f64 = 1.7;
/// After so many such chunks in a row the loops have become slower.
const IN_A_ROW: u32 = 8;
/// Less work than this does not show how fast loops are; a burst that is no longer is not timed.
const SHORT: Nanos = 10_000;
/// Of so many bursts one is timed by the thread's CPU clock, and so are the first ones.
const TIMED: u32 = 16;
const FIRST: u32 = 4;
/// How much of what was learnt from timed bursts is kept with each one.
const KEPT: f64 = 0.9;
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
    /// The time that a look at the time takes.
    pub look_ns: f64,
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
        let cost = |clock: fn() -> Nanos| {
            let reading = |_| {
                let start = clock();
                clock() - start
            };
            (0..64).map(reading).min().unwrap_or(0) as f64
        };
        let (clock_ns, look_ns) = (cost(sys::thread_cpu), cost(sys::monotonic));
        let mut count = 1000;
        while timed(count) < SAMPLE {
            count *= 2;
        }
        let mut samples: Vec<f64> = (0..SAMPLES).map(|_| timed(count) as f64 / count as f64).collect();
        samples.sort_by(f64::total_cmp);
        let ns_per_loop = samples[0].max(1e-3);
        Self { ns_per_loop, spread: samples[SAMPLES / 2] / ns_per_loop - 1.0, clock_ns, look_ns }
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
    /// The CPU time that it took, if it was timed.
    pub(crate) took: Option<Nanos>,
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
    /// The time between two readings of its own CPU clock; 0: it never reads it. If the task says nothing, it does so
    /// when a burst begins after a sleep, when it was preempted, and after some of its bursts.
    pub(crate) clock_poll: Option<Nanos>,
    /// How many bursts it has begun.
    bursts: u32,
    /// How many chunks in a row took much longer than usual, and how many times as long at least.
    longer: (u32, f64),
    /// How often it had left its CPU when it last asked.
    switches: Switches,
    /// Its CPU clock when it was last read, if it may be in this burst.
    read: Option<Nanos>,
    /// What counts as its CPU time since then.
    since: f64,
    /// For how long its virtual CPU was away since then, or it was slow.
    away: f64,
    /// The same in bursts that were timed, and how much of that its CPU clock counted.
    seen: (f64, f64),
    /// The memory that it touches while it works.
    pub(crate) touched: Touched,
    /// What it computes in place of loops.
    computation: Option<Computation>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(calibration: Calibration, capacities: &'a [u32], over: Nanos) -> Self {
        let rate = 1.0 / calibration.ns_per_loop;
        let touched = Touched::default();
        Self {
            calibration,
            measured: rate,
            rate,
            capacities,
            over,
            clock_poll: None,
            bursts: 0,
            longer: (0, f64::INFINITY),
            switches: Switches { voluntary: -1, involuntary: 0 },
            read: None,
            since: 0.0,
            away: 0.0,
            seen: (0.0, 0.0),
            touched,
            computation: None,
        }
    }

    /// Computes this from now on.
    pub(crate) fn compute(&mut self, computation: Computation) {
        self.measured = computation.rate();
        self.rate = self.measured;
        self.computation = Some(computation);
    }

    /// It is one of many alike that live for a few bursts each. They have the first timed ones together: the end of a
    /// timed burst can end the task's slice, and those of all of them would.
    pub(crate) fn is_one_of_many(&mut self, number: u32) {
        self.bursts = FIRST + number % TIMED;
    }

    /// The time when the run is over becomes known after the task exists.
    pub(crate) fn ends_at(&mut self, over: Nanos) {
        self.over = over;
    }

    /// Ends the process if the run is over and whoever should have ended it did not.
    pub(crate) fn check_over(&self) {
        self.over_by(sys::monotonic());
    }

    fn over_by(&self, now: Nanos) {
        if now > self.over {
            sys::exit(0);
        }
    }

    /// Computes for this much CPU time: on a CPU of capacity 1024 if `scaled`, and on any CPU if not.
    pub(crate) fn burst(&mut self, amount: Nanos, scaled: bool) -> Burst {
        let capacities = if scaled { self.capacities } else { &[] };
        self.computation.iter_mut().for_each(Computation::begin);
        if let Some(poll) = self.clock_poll.filter(|poll| *poll > 0 && amount > SHORT) {
            return self.polling(amount, poll, capacities);
        }
        let timed = self.bursts < FIRST || self.bursts.is_multiple_of(TIMED);
        self.bursts = self.bursts.saturating_add(1);
        let slept = amount > SHORT && self.has_slept();
        let start = (slept && self.clock_poll.is_none()).then(sys::thread_cpu);
        self.reads(start);
        let wanted = self.work(amount as f64, capacities).round() as Nanos;
        let took = start.filter(|_| timed).map(|start| {
            let now = sys::thread_cpu();
            self.sees(now);
            now - start
        });
        Burst { wanted, took }
    }

    /// Its CPU clock was read.
    fn reads(&mut self, clock: Option<Nanos>) {
        (self.read, self.since, self.away) = (clock, 0.0, 0.0);
    }

    /// Its CPU clock tells how much of the time counted for which its virtual CPU was away.
    fn sees(&mut self, clock: Nanos) {
        let Some(read) = self.read else { return };
        let (away, of_that) = self.seen;
        let without = self.since - self.away * self.counted();
        self.seen = (away * KEPT + self.away, of_that * KEPT + (clock - read) as f64 - without);
    }

    /// Computes, and reads the thread's CPU clock each time that it has worked for `poll`.
    fn polling(&mut self, amount: Nanos, poll: Nanos, capacities: &[u32]) -> Burst {
        let start = sys::thread_cpu();
        let (mut now, mut left) = (start, amount as f64);
        let mut wanted = 0.0;
        self.reads(None);
        while left > self.calibration.clock_ns {
            let speed = speed(capacities);
            let part = left.min(poll as f64 * speed);
            if part > SHORT as f64 {
                self.was_preempted();
            }
            self.work(part, capacities);
            let then = std::mem::replace(&mut now, sys::thread_cpu());
            let took = (now - then) as f64;
            wanted += took.min(left / speed);
            left -= took * speed;
        }
        wanted += left.max(0.0);
        Burst { wanted: wanted as Nanos, took: Some(now - start) }
    }

    /// Does this much work, for a CPU of capacity 1024, by the count of loops. The CPU time that it is to take.
    fn work(&mut self, amount: f64, capacities: &[u32]) -> f64 {
        let (mut left, mut time) = (amount, 0.0);
        let most = CHUNK.max(LOOKS * self.calibration.look_ns);
        let mut now = sys::monotonic();
        while left > 0.0 {
            let speed = speed(capacities);
            let chunk = (left / speed).min(most);
            let count = chunk * self.rate;
            if let Some(computation) = &mut self.computation {
                computation.work(count as u64);
            } else {
                self.compute_loops(chunk, count);
            }
            let then = std::mem::replace(&mut now, sys::monotonic());
            let took = self.took(chunk, (now - then) as f64);
            time += took.min(left / speed);
            left -= took * speed;
            self.over_by(now);
        }
        time
    }

    fn compute_loops(&mut self, time: f64, count: f64) {
        let touching = self.touched.part();
        loops((count * (1.0 - touching)) as u64);
        if touching > 0.0 {
            self.touched.touch(time * touching);
        }
    }

    /// Which part of the time for which its virtual CPU is away its CPU clock counts.
    fn counted(&self) -> f64 {
        let (away, of_that) = self.seen;
        if away > 0.0 { (of_that / away).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// A chunk of work was to take some time, and so much has passed: how much CPU time that was, as far as is known.
    fn took(&mut self, chunk: f64, passed: f64) -> f64 {
        if chunk >= SHORT as f64 && passed > chunk * INTERRUPTED && self.was_preempted() {
            return self.since_read().unwrap_or(chunk);
        }
        let took = self.learn(chunk, passed);
        self.since += took;
        took
    }

    /// Whether it was preempted since it last asked.
    fn was_preempted(&mut self) -> bool {
        let before = std::mem::replace(&mut self.switches, sys::switches());
        before.involuntary != self.switches.involuntary
    }

    /// Whether it has slept since it last asked. It never does in a burst.
    fn has_slept(&mut self) -> bool {
        let before = std::mem::replace(&mut self.switches, sys::switches());
        before.voluntary != self.switches.voluntary
    }

    /// Reads its CPU clock, if it may: the time that does not count yet.
    fn since_read(&mut self) -> Option<f64> {
        let (read, since) = (self.read, self.since);
        if self.clock_poll.is_some() {
            return None;
        }
        let clock = sys::thread_cpu();
        self.reads(Some(clock));
        Some((clock - read?) as f64 - since)
    }

    /// The same of a chunk in which it was not preempted, which shows how fast loops are.
    fn learn(&mut self, chunk: f64, passed: f64) -> f64 {
        if chunk < SHORT as f64 || passed <= 0.0 {
            return chunk;
        }
        let slower = passed / chunk;
        if slower > INTERRUPTED {
            self.longer = (self.longer.0 + 1, self.longer.1.min(slower));
            if self.longer.0 == IN_A_ROW {
                self.becomes(self.rate / self.longer.1);
                self.longer = (0, f64::INFINITY);
            }
            self.away += passed - chunk;
            return chunk + (passed - chunk) * self.counted();
        }
        self.longer = (0, f64::INFINITY);
        // Short interrupts make loops slower at times, and nothing makes them faster.
        let weight = if slower < 1.0 { 2.0 } else { 16.0 };
        self.becomes(self.rate + (self.rate / slower - self.rate) / weight);
        passed
    }

    /// The loops have become faster or slower.
    fn becomes(&mut self, rate: f64) {
        self.rate = rate.clamp(self.measured / DRIFT, self.measured * DRIFT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_the_cpu_time_asked() {
        // One that never reads its clock cannot tell for how long it was away when it was preempted.
        for (clock_poll, most) in [(None, 0.02), (Some(50_000), 0.02), (Some(0), 0.1)] {
            let mut worker = Worker::new(Calibration::measure(), &[], Nanos::MAX);
            worker.clock_poll = clock_poll;
            let mut errors: Vec<f64> = Vec::new();
            for _ in 0..30 {
                for amount in [500_000, 2_000_000] {
                    let start = sys::thread_cpu();
                    let burst = worker.burst(amount, true);
                    let around = sys::thread_cpu() - start;
                    assert!(
                        burst.wanted == amount && burst.took.is_none_or(|took| took <= around),
                        "{burst:?}, {around}"
                    );
                    errors.push((around as f64 - amount as f64).abs() / amount as f64);
                }
            }
            errors.sort_by(f64::total_cmp);
            // A virtual machine's CPU can be taken away in the middle of a burst, so the median is judged.
            assert!(errors[30] < most, "{clock_poll:?}: {errors:?}");
        }
    }

    #[test]
    fn of_many_tasks_that_live_for_a_few_bursts_each_a_few_are_timed() {
        let timed = (0..64).map(|number| {
            let mut worker = Worker::new(Calibration::measure(), &[], Nanos::MAX);
            worker.is_one_of_many(number);
            let bursts = (0..3).map(|_| {
                // As after a sleep.
                worker.switches = Switches { voluntary: -1, involuntary: 0 };
                worker.burst(2 * SHORT, false)
            });
            bursts.filter(|burst| burst.took.is_some()).count()
        });
        assert_eq!(timed.sum::<usize>(), 64 * 3 / TIMED as usize);
    }

    #[test]
    fn a_slow_cpu_takes_longer_for_work_and_not_for_time() {
        let mut worker = Worker::new(Calibration::measure(), &[512; 4096], Nanos::MAX);
        // The median of the first ones, which are all timed: a virtual machine's CPU can be taken away in one of them.
        let mut of = |scaled| {
            worker.bursts = 0;
            let mut after_a_sleep = |_| {
                worker.switches.voluntary = -1;
                worker.burst(1_000_000, scaled)
            };
            let mut bursts: Vec<Burst> = (0..FIRST).map(&mut after_a_sleep).collect();
            bursts.sort_by_key(|burst| burst.took);
            bursts[bursts.len() / 2]
        };
        let burst = of(true);
        assert!((1_999_000..2_001_000).contains(&burst.wanted) && burst.took.unwrap() > 1_900_000, "{burst:?}");
        let burst = of(false);
        assert!(burst.wanted == 1_000_000 && burst.took.unwrap() < 1_900_000, "{burst:?}");
        let short = [worker.burst(2_000, true), worker.burst(2_000, false)];
        assert_eq!(short.map(|burst| (burst.wanted, burst.took)), [(4_000, None), (2_000, None)]);
    }
}
