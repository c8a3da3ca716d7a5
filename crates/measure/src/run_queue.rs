//! Run-queue length over time: runnable tasks, the running one included (the kernel's `nr_running`).
//!
//! For each CPU, each node and in all: the mean over the time in which it is known, the maximum, and a
//! series of means over equal steps.

use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Observer, row};
use serde::Serialize;

/// A series has between half of this and this many points.
const POINTS: usize = 256;

/// A length as it is, and how long it has been known.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    length: u32,
    /// Of how many CPUs it is known.
    known: u32,
    max: u32,
    /// How long it was known, but for the time since `known_since` if it is.
    known_time: u128,
    known_since: Nanos,
}

/// A CPU's length over time. Those of nodes and of all are their sums.
#[derive(Clone, Debug, Default)]
struct Gauge {
    level: Level,
    since: Nanos,
    /// Length times time.
    area: u128,
    series: Vec<Nanos>,
    /// What the step that ends at `step_end` has beyond the series.
    pending: Nanos,
    /// Counted from the start; 0 if there is no such step yet.
    step_end: Nanos,
}

/// A run queue's length over the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueLength {
    /// Time-weighted mean over the time in which it is known.
    pub mean: f64,
    /// The longest.
    pub max: u32,
    /// The length of a step of the series, in microseconds.
    pub step_us: f64,
    /// The mean of each step, from the trace's start on. What is unknown counts as 0.
    pub series: Vec<f64>,
}

/// The measure.
#[derive(Debug, Default)]
pub(crate) struct RunQueues {
    cpus: Vec<Gauge>,
    nodes: Vec<Level>,
    total: Level,
    /// The node of each CPU; empty where there is but one, whose length is the total.
    node_of: Vec<u32>,
    start: Option<Nanos>,
    /// A step of the series is 2^shift ns.
    shift: u32,
}

impl RunQueues {
    /// Knows each CPU's node; empty where there is but one.
    pub(crate) fn new(node_of: Vec<u32>) -> Self {
        Self { node_of, ..Self::default() }
    }

    /// A CPU's length.
    pub(crate) fn cpu(&self, cpu: CpuId) -> QueueLength {
        let gauge = self.cpus.get(cpu as usize);
        self.length(gauge.map(|gauge| gauge.level).unwrap_or_default(), gauge.into_iter())
    }

    /// A node's length: the sum over its CPUs.
    pub(crate) fn node(&self, node: u32) -> QueueLength {
        if self.node_of.is_empty() {
            return self.total();
        }
        let level = self.nodes.get(node as usize).copied().unwrap_or_default();
        let members = self.cpus.iter().zip(&self.node_of).filter(|(_, of)| **of == node);
        self.length(level, members.map(|(gauge, _)| gauge))
    }

    /// The sum over all CPUs.
    pub(crate) fn total(&self) -> QueueLength {
        self.length(self.total, self.cpus.iter())
    }

    fn length<'a>(&self, level: Level, parts: impl Iterator<Item = &'a Gauge>) -> QueueLength {
        let (mut area, mut series) = (0, Vec::<Nanos>::new());
        for gauge in parts {
            area += gauge.area;
            series.resize(series.len().max(gauge.series.len()), 0);
            series.iter_mut().zip(&gauge.series).for_each(|(sum, part)| *sum = sum.saturating_add(*part));
            if let Some(step) = gauge.step(self.shift) {
                series[step] = series[step].saturating_add(gauge.pending);
            }
        }
        let step = (1u128 << self.shift) as f64;
        QueueLength {
            mean: if level.known_time == 0 { 0.0 } else { area as f64 / level.known_time as f64 },
            max: level.max,
            step_us: step / 1e3,
            series: series.iter().map(|&area| area as f64 / step).collect(),
        }
    }

    /// From `now` on the CPU has this length, another than before.
    #[inline(never)]
    fn change(&mut self, cpu: CpuId, now: Nanos, length: Option<u32>) {
        let start = *self.start.get_or_insert(now);
        let now = now.max(start);
        if (now - start) >> self.shift >= POINTS as u64 {
            self.coarsen(now - start);
        }
        let (is, known) = length.map_or((0, 0), |length| (length, 1));
        let shift = self.shift;
        let gauge = &mut self.cpus[cpu as usize];
        let Level { length: was, known: was_known, .. } = gauge.level;
        gauge.change(now, start, shift, is, known);
        let total = &mut self.total;
        total.set(now, total.length - was + is, total.known - was_known + known);
        if let Some(&node) = self.node_of.get(cpu as usize) {
            let node = row(&mut self.nodes, node);
            node.set(now, node.length - was + is, node.known - was_known + known);
        }
    }

    /// Halves the resolution until `now` fits.
    #[cold]
    fn coarsen(&mut self, offset: Nanos) {
        for gauge in &mut self.cpus {
            gauge.settle(self.shift);
        }
        while offset >> self.shift >= POINTS as u64 {
            self.shift += 1;
            for gauge in &mut self.cpus {
                gauge.series = gauge.series.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
    }
}

impl Level {
    /// From `now` on it is so much, of so many CPUs.
    #[inline]
    fn set(&mut self, now: Nanos, length: u32, known: u32) {
        if known != self.known {
            self.know(now, known);
        }
        self.length = length;
        self.max = self.max.max(length);
    }

    /// From `now` on it is known of so many CPUs.
    #[cold]
    fn know(&mut self, now: Nanos, known: u32) {
        if (known > 0) != (self.known > 0) {
            if self.known > 0 {
                self.known_time += u128::from(now.saturating_sub(self.known_since));
            }
            self.known_since = now.max(self.known_since);
        }
        self.known = known;
    }
}

impl Gauge {
    /// Goes on to `now`, then changes by so much. `known` counts the CPUs whose length is known.
    #[inline]
    fn change(&mut self, now: Nanos, start: Nanos, shift: u32, length: u32, known: u32) {
        let from = self.since.max(start);
        let time = now.saturating_sub(from);
        if time > 0 {
            self.since = now;
            let length = u64::from(self.level.length);
            self.area += u128::from(length) * u128::from(time);
            if now - start <= self.step_end {
                self.pending = self.pending.saturating_add(time.saturating_mul(length));
            } else if length > 0 {
                self.draw(from - start, now - start, shift);
            }
        }
        self.level.set(now.max(self.since), length, known);
    }

    /// The step that is under way.
    fn step(&self, shift: u32) -> Option<usize> {
        self.step_end.checked_sub(1).map(|last| (last >> shift) as usize)
    }

    /// Adds what is pending to the series. The next time begins another step.
    fn settle(&mut self, shift: u32) {
        if let Some(step) = self.step(shift) {
            self.series[step] = self.series[step].saturating_add(self.pending);
        }
        (self.pending, self.step_end) = (0, 0);
    }

    /// Adds a time that does not end in the step under way to the series. The step in which it ends is then under way.
    #[cold]
    fn draw(&mut self, from: Nanos, to: Nanos, shift: u32) {
        self.settle(shift);
        let (first, last) = ((from >> shift) as usize, ((to - 1) >> shift) as usize);
        if self.series.len() <= last {
            self.series.resize(last + 1, 0);
        }
        let length = u64::from(self.level.length);
        for (step, area) in self.series.iter_mut().enumerate().take(last + 1).skip(first) {
            let begin = (step as u64) << shift;
            let part = (to - begin).min(1 << shift) - from.saturating_sub(begin);
            *area = area.saturating_add(part.saturating_mul(length));
        }
        self.step_end = (last as u64 + 1) << shift;
    }
}

impl Observer for RunQueues {
    #[inline]
    fn queue(&mut self, cpu: CpuId, now: Nanos, length: Option<u32>) {
        let Level { length: was, known, .. } = row(&mut self.cpus, cpu).level;
        if length != Some(was) || known == 0 {
            self.change(cpu, now, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Rng;

    #[test]
    fn each_point_of_the_series_is_the_area_of_its_step() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut queues, start) = (RunQueues::default(), 1_000);
            // From when on, and how long.
            let mut told = vec![(start, 0)];
            let mut now = start;
            queues.queue(0, now, Some(0));
            for _ in 0..2_000 {
                now += rng.below(3) * rng.below(1 << (seed % 12));
                let length = (rng.below(10) > 0).then(|| rng.below(4) as u32);
                queues.queue(0, now, length);
                told.push((now, u64::from(length.unwrap_or(0))));
            }
            queues.queue(0, now, None);
            let QueueLength { series, step_us, .. } = queues.cpu(0);
            let step = (step_us * 1e3) as Nanos;
            assert!(series.len() <= POINTS && (now - start).div_ceil(step) <= POINTS as u64, "seed {seed}");
            for (at, mean) in (0..).zip(&series) {
                let (begin, end) = (start + at * step, start + (at + 1) * step);
                let part = |pair: &[(Nanos, u64)]| pair[1].0.min(end).saturating_sub(pair[0].0.max(begin)) * pair[0].1;
                let area: u64 = told.windows(2).map(part).sum();
                assert_eq!(*mean, area as f64 / step as f64, "seed {seed}, step {at}");
            }
        }
    }
}
