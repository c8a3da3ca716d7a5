//! What the tasks of a run report about themselves, beside the recording: how exactly they worked.

use crate::region::{CLASSES, Slot};
use crate::work::Calibration;
use crate::world::World;
use schedlab_base::{Computing, Nanos, Tid};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// A run that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Execution {
    /// How long it ran.
    pub duration_us: f64,
    /// How the loops of this machine were measured.
    pub calibration: Calibration,
    /// All bursts of all tasks.
    pub bursts: Bursts,
    /// Each task, in the order of the workload, then those that were forked.
    pub tasks: Vec<Reported>,
}

/// A task's own figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reported {
    /// Its name in the workload.
    pub name: String,
    /// Its thread id; 0 if it never started.
    pub tid: Tid,
    /// Whether its program ended.
    pub ended: bool,
    /// The CPU time that it used, by the kernel's count.
    pub cpu_us: f64,
    /// What it computed.
    pub bursts: Bursts,
    /// How often it waited for a timer.
    pub periods: u64,
    /// How many of these were missed: it came too late to sleep.
    pub missed: u64,
    /// What a task with `x-work` computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed: Option<Computed>,
}

/// What a computation yielded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Computed {
    /// The word of `x-work`.
    pub work: String,
    /// What `rate` counts in: `kflops`, or `MB/s`.
    pub unit: String,
    /// How much it computed in the time from the beginnings of its bursts to their ends, waiting included.
    pub rate: f64,
    /// How many results were checked.
    pub checked: u64,
    /// The largest error of a result: of Linpack the residual as HPL scales it, of STREAM relative to the number.
    /// `null` before the first check, and if a result is no number.
    pub error: Option<f64>,
    /// Whether all of these errors are as small as they must be; `null` before the first check.
    pub passed: Option<bool>,
}

impl Computed {
    fn of(slot: &Slot, computing: Computing) -> Option<Self> {
        // The bound that HPL sets, and the one of STREAM for numbers of 8 bytes.
        let (unit, scale, bound) = match computing {
            Computing::Loops => return None,
            Computing::Linpack => ("kflops", 1e6, 16.0),
            Computing::Stream => ("MB/s", 1e3, 1e-13),
        };
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let checked = load(&slot.checked);
        let error = Some(f64::from_bits(load(&slot.worst))).filter(|_| checked > 0);
        Some(Self {
            work: computing.word().to_owned(),
            unit: unit.to_owned(),
            rate: load(&slot.computed) as f64 * scale / load(&slot.computing_ns).max(1) as f64,
            checked,
            error: error.filter(|error| error.is_finite()),
            passed: error.map(|error| error < bound),
        })
    }
}

/// Completed bursts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Bursts {
    /// How many there were.
    pub count: u64,
    /// The CPU time that they were to take.
    pub wanted_us: f64,
    /// How many of them were timed by the thread's CPU clock.
    pub timed: u64,
    /// By how much a burst that was timed took more or less than it was to take.
    pub error_us: ErrorFigures,
    #[serde(skip)]
    classes: Vec<u64>,
    #[serde(skip)]
    sum: u64,
}

/// How exact the bursts were.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ErrorFigures {
    /// The mean.
    pub mean: f64,
    /// Nine in ten bursts had no more than this; known to a factor of two.
    pub p90: f64,
    /// 99 in 100 had no more than this; known to a factor of two.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

fn us(time: u64) -> f64 {
    time as f64 / 1e3
}

impl Bursts {
    fn of(slot: &Slot) -> Self {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut bursts = Self {
            count: load(&slot.bursts),
            wanted_us: us(load(&slot.wanted)),
            timed: load(&slot.timed),
            classes: slot.errors.iter().map(|n| u64::from(n.load(Ordering::Relaxed))).collect(),
            sum: load(&slot.error_sum),
            error_us: ErrorFigures { max: us(load(&slot.error_max)), ..ErrorFigures::default() },
        };
        bursts.summarise();
        bursts
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.wanted_us += other.wanted_us;
        self.timed += other.timed;
        self.sum += other.sum;
        self.error_us.max = self.error_us.max.max(other.error_us.max);
        self.classes.resize(CLASSES, 0);
        self.classes.iter_mut().zip(&other.classes).for_each(|(sum, n)| *sum += n);
    }

    fn summarise(&mut self) {
        self.error_us.mean = us(self.sum) / self.timed.max(1) as f64;
        self.error_us.p90 = self.quantile(0.9);
        self.error_us.p99 = self.quantile(0.99);
    }

    /// The upper end of the class that has the quantile.
    fn quantile(&self, q: f64) -> f64 {
        let count: u64 = self.classes.iter().sum();
        let mut left = (count as f64 * q).ceil() as u64;
        for (class, n) in self.classes.iter().enumerate() {
            if *n > 0 && left <= *n {
                return us((1_u64 << class) - 1).min(self.error_us.max);
            }
            left = left.saturating_sub(*n);
        }
        0.0
    }
}

/// What the tasks of an ended run reported; `now` is when it was ended.
pub(crate) fn collect(world: &World, now: Nanos) -> Execution {
    let tasks = world.region.slots()[..world.used()].iter().enumerate().map(|(at, slot)| Reported {
        name: world.name(at),
        tid: slot.tid.load(Ordering::Acquire),
        ended: slot.ended.load(Ordering::Acquire) != 0,
        cpu_us: us(slot.cpu_after.load(Ordering::Relaxed).saturating_sub(slot.cpu_before.load(Ordering::Relaxed))),
        bursts: Bursts::of(slot),
        periods: slot.periods.load(Ordering::Relaxed),
        missed: slot.missed.load(Ordering::Relaxed),
        computed: Computed::of(slot, world.spec(at).computing),
    });
    let tasks: Vec<Reported> = tasks.collect();
    let mut bursts = Bursts::default();
    tasks.iter().for_each(|task| bursts.add(&task.bursts));
    bursts.summarise();
    let (start, end) = world.region.span();
    let duration_us = us(now.min(end).saturating_sub(start));
    Execution { duration_us, calibration: world.calibration, bursts, tasks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_known_to_a_factor_of_two() {
        let mut classes = vec![0; CLASSES];
        (classes[10], classes[12]) = (95, 5);
        let error_us = ErrorFigures { max: 3.0, ..ErrorFigures::default() };
        let mut bursts = Bursts { timed: 100, sum: 100_000, classes, error_us, ..Bursts::default() };
        bursts.summarise();
        let ErrorFigures { mean, p90, p99, max } = bursts.error_us;
        assert_eq!((mean, p90, p99, max), (1.0, 1.023, 3.0, 3.0));
    }
}
