//! Run-queue length over time: runnable tasks, the running one included (the kernel's `nr_running`).
//!
//! For each CPU, each node and in all: the mean over the time in which it is known, the maximum, and a
//! series of means over equal steps.

use crate::row;
use crate::tracker::Observer;
use schedlab_base::{CpuId, Nanos};
use serde::Serialize;

/// A series has between half of this and this many points.
const POINTS: usize = 256;

/// A length over time.
#[derive(Clone, Debug, Default)]
struct Gauge {
    length: u32,
    known: u32,
    max: u32,
    since: Nanos,
    /// Length times time.
    area: u128,
    known_time: u128,
    series: Vec<Nanos>,
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
#[derive(Clone, Debug, Default)]
pub struct RunQueues {
    cpus: Vec<Gauge>,
    nodes: Vec<Gauge>,
    total: Gauge,
    /// The node of each CPU; empty where there is but one, whose length is the total.
    node_of: Vec<u32>,
    start: Option<Nanos>,
    /// A step of the series is 2^shift ns.
    shift: u32,
}

impl RunQueues {
    /// Knows each CPU's node; empty where there is but one.
    #[must_use]
    pub fn new(node_of: Vec<u32>) -> Self {
        Self { node_of, ..Self::default() }
    }

    /// A CPU's length.
    #[must_use]
    pub fn cpu(&self, cpu: CpuId) -> QueueLength {
        self.length(self.cpus.get(cpu as usize))
    }

    /// A node's length: the sum over its CPUs.
    #[must_use]
    pub fn node(&self, node: u32) -> QueueLength {
        if self.node_of.is_empty() { self.total() } else { self.length(self.nodes.get(node as usize)) }
    }

    /// The sum over all CPUs.
    #[must_use]
    pub fn total(&self) -> QueueLength {
        self.length(Some(&self.total))
    }

    fn length(&self, gauge: Option<&Gauge>) -> QueueLength {
        let Some(gauge) = gauge else { return QueueLength::default() };
        let step = (1u128 << self.shift) as f64;
        QueueLength {
            mean: if gauge.known_time == 0 { 0.0 } else { gauge.area as f64 / gauge.known_time as f64 },
            max: gauge.max,
            step_us: step / 1e3,
            series: gauge.series.iter().map(|&area| area as f64 / step).collect(),
        }
    }

    /// Halves the resolution until `now` fits.
    #[cold]
    fn coarsen(&mut self, offset: Nanos) {
        while offset >> self.shift >= POINTS as u64 {
            self.shift += 1;
            for gauge in self.cpus.iter_mut().chain(&mut self.nodes).chain([&mut self.total]) {
                gauge.series = gauge.series.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
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
            self.known_time += u128::from(if self.known > 0 { time } else { 0 });
            if self.length > 0 {
                self.area += u128::from(self.length) * u128::from(time);
                self.draw(from - start, now - start, shift);
            }
        }
        self.length = length;
        self.known = known;
        self.max = self.max.max(length);
    }

    #[inline]
    fn draw(&mut self, from: Nanos, to: Nanos, shift: u32) {
        let (first, last) = ((from >> shift) as usize, ((to - 1) >> shift) as usize);
        if self.series.len() <= last {
            self.series.resize(last + 1, 0);
        }
        let length = u64::from(self.length);
        if first == last {
            self.series[last] = self.series[last].saturating_add((to - from).saturating_mul(length));
            return;
        }
        for (step, area) in self.series.iter_mut().enumerate().take(last + 1).skip(first) {
            let begin = (step as u64) << shift;
            let part = (to - begin).min(1 << shift) - from.saturating_sub(begin);
            *area = area.saturating_add(part.saturating_mul(length));
        }
    }
}

impl Observer for RunQueues {
    #[inline]
    fn queue(&mut self, cpu: CpuId, now: Nanos, length: Option<u32>) {
        let start = *self.start.get_or_insert(now);
        let now = now.max(start);
        if (now - start) >> self.shift >= POINTS as u64 {
            self.coarsen(now - start);
        }
        let shift = self.shift;
        let gauge = row(&mut self.cpus, cpu);
        let (was, was_known) = (gauge.length, gauge.known);
        let (is, known) = length.map_or((0, 0), |length| (length, 1));
        if was == is && was_known == known && length.is_some() {
            return;
        }
        gauge.change(now, start, shift, is, known);
        let total = &mut self.total;
        total.change(now, start, shift, total.length - was + is, total.known - was_known + known);
        if let Some(&node) = self.node_of.get(cpu as usize) {
            let node = row(&mut self.nodes, node);
            node.change(now, start, shift, node.length - was + is, node.known - was_known + known);
        }
    }
}
