//! The strip above the rows, and curves over time.

use crate::arrow::stream;
use crate::index::Index;
use crate::spans::{Spans, State};
use crate::steps::{Steps, UNKNOWN};
use arrow_array::{ArrayRef, Float32Array, Float64Array, UInt32Array};
use schedlab_base::Nanos;
use schedlab_measure::Wasted;
use std::sync::Arc;

/// The most bins.
pub const MOST_BINS: usize = 4096;

/// A stretch of time in equal bins, the last of which may be longer by less than their number of ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The first instant.
    pub from: Nanos,
    /// The end.
    pub to: Nanos,
    /// How many bins.
    pub bins: usize,
}

impl Axis {
    /// Where a bin begins; the number of bins stands for the end.
    #[must_use]
    pub fn edge(&self, bin: usize) -> Nanos {
        let whole = u128::from(self.to - self.from) * bin as u128 / self.bins.max(1) as u128;
        self.from + whole as Nanos
    }

    /// The bin of an instant.
    fn bin(&self, time: Nanos) -> usize {
        let length = u128::from(self.to - self.from).max(1);
        let time = u128::from(time.clamp(self.from, self.to) - self.from);
        // The last bin whose edge, rounded down, is not after this instant.
        let at = ((time + 1) * self.bins as u128).div_ceil(length) - 1;
        (at as usize).min(self.bins - 1)
    }

    /// How long a bin is.
    fn width(&self, bin: usize) -> f64 {
        (self.edge(bin + 1) - self.edge(bin)) as f64
    }
}

/// Sums by bin, in which a long stretch costs no more than a short one.
#[derive(Debug)]
pub struct Spread {
    axis: Axis,
    parts: Vec<f64>,
    /// Changes of the value that whole bins have.
    changes: Vec<f64>,
}

impl Spread {
    /// Nothing yet.
    #[must_use]
    pub fn new(axis: Axis) -> Self {
        Self { axis, parts: vec![0.0; axis.bins], changes: vec![0.0; axis.bins + 1] }
    }

    /// Adds a value that holds for this time.
    pub fn add(&mut self, from: Nanos, to: Nanos, value: f64) {
        let (from, to) = (from.max(self.axis.from), to.min(self.axis.to));
        if from >= to || value == 0.0 {
            return;
        }
        let (first, last) = (self.axis.bin(from), self.axis.bin(to - 1));
        if first == last {
            self.parts[first] += value * (to - from) as f64;
            return;
        }
        self.parts[first] += value * (self.axis.edge(first + 1) - from) as f64;
        self.parts[last] += value * (to - self.axis.edge(last)) as f64;
        self.changes[first + 1] += value;
        self.changes[last] -= value;
    }

    /// The sums of value times time.
    #[must_use]
    pub fn finish(self) -> Vec<f64> {
        let mut level = 0.0;
        let all = self.parts.iter().zip(&self.changes).enumerate();
        all.map(|(bin, (part, change))| {
            level += change;
            part + level * self.axis.width(bin)
        })
        .collect()
    }
}

/// What the CPUs did, by bin.
struct Busy {
    running: Vec<f64>,
    unknown: Vec<f64>,
    queue: Vec<f64>,
}

fn busy(index: &Index, axis: Axis) -> Busy {
    let now = index.end;
    let (mut running, mut unknown, mut queue) = (Spread::new(axis), Spread::new(axis), Spread::new(axis));
    for spans in index.cpus.iter().filter(|spans| !spans.is_empty() || spans.tail().is_some()) {
        row(spans, axis, now, &mut running, &mut unknown);
    }
    for steps in &index.queues {
        spread_steps(steps, axis, now, &mut queue);
    }
    Busy { running: running.finish(), unknown: unknown.finish(), queue: queue.finish() }
}

fn row(spans: &Spans, axis: Axis, now: Nanos, running: &mut Spread, unknown: &mut Spread) {
    let count = spans.count(axis.from, axis.to);
    if count <= axis.bins * 8 {
        for span in spans.within(axis.from, axis.to, now) {
            match span.state {
                State::Running => running.add(span.from, span.to, 1.0),
                State::Unknown => unknown.add(span.from, span.to, 1.0),
                _ => {}
            }
        }
        return;
    }
    let mut cursor = spans.find(axis.from);
    for bin in 0..axis.bins {
        let sums = spans.sums(axis.edge(bin), axis.edge(bin + 1), now, &mut cursor);
        running.parts[bin] += sums.time[State::Running as usize] as f64;
        unknown.parts[bin] += sums.time[State::Unknown as usize] as f64;
    }
}

/// Adds a row's values.
pub fn spread_steps(steps: &Steps, axis: Axis, now: Nanos, to: &mut Spread) {
    let first = steps.find(axis.from).unwrap_or(0);
    let last = axis.to.checked_sub(1).and_then(|end| steps.find(end)).map_or(0, |last| last + 1);
    if last.saturating_sub(first) <= axis.bins * 8 {
        for (from, end, step) in (first..last).filter_map(|at| steps.get(at, now)) {
            if step.value != UNKNOWN {
                to.add(from, end, step.value as f64);
            }
        }
        return;
    }
    let mut cursor = first;
    for bin in 0..axis.bins {
        to.parts[bin] += steps.area(axis.edge(bin), axis.edge(bin + 1), now, &mut cursor).area;
    }
}

/// The strip: run queues, running tasks, waste, losses.
#[must_use]
pub fn overview(index: &Index, wasted: Option<&Wasted>, axis: Axis, cpus: usize) -> Vec<u8> {
    let Busy { running, unknown, queue } = busy(index, axis);
    let mut waste = Spread::new(axis);
    if let Some(wasted) = wasted {
        wasted.stretches().for_each(|(from, to, count)| waste.add(from, to, count.into()));
    }
    let waste = waste.finish();
    let mean = |sums: &[f64], of: f64| -> Vec<f32> {
        (0..axis.bins).map(|bin| (sums[bin] / (axis.width(bin) * of).max(1.0)) as f32).collect()
    };
    let queue = mean(&queue, 1.0);
    let highest = queue.iter().copied().fold(0.0, f32::max);
    let floats = |values: Vec<f32>| Arc::new(Float32Array::from(values)) as ArrayRef;
    let columns = vec![
        ("bin", Arc::new(UInt32Array::from_iter_values(0..axis.bins as u32)) as ArrayRef),
        ("queue", floats(queue)),
        ("running", floats(mean(&running, 1.0))),
        ("violation", floats(mean(&waste, 1.0))),
        ("lost", floats(mean(&unknown, cpus.max(1) as f64))),
    ];
    stream(columns, &[("highest", highest.to_string()), ("checked", wasted.is_some().to_string())])
}

/// A curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// Runnable tasks of all CPUs.
    Runnable,
    /// A quantile of the latency from wake-up to running, in percent.
    Latency(u8),
}

impl Curve {
    /// The curve of this name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "runnable" => Self::Runnable,
            "latency_p50" => Self::Latency(50),
            "latency_p99" => Self::Latency(99),
            _ => return None,
        })
    }
}

/// The values of a curve; bins in which nothing is known are left out.
#[must_use]
pub fn curve(index: &Index, curve: Curve, axis: Axis) -> Vec<u8> {
    let (values, unit): (Vec<Option<f64>>, _) = match curve {
        Curve::Runnable => {
            let queue = busy(index, axis).queue;
            ((0..axis.bins).map(|bin| Some(queue[bin] / axis.width(bin).max(1.0))).collect(), "tasks")
        }
        Curve::Latency(percent) => (latencies(index, percent, axis), "ns"),
    };
    let known: Vec<(u32, f64)> = (0..).zip(values).filter_map(|(bin, value)| Some((bin, value?))).collect();
    let columns = vec![
        ("bin", Arc::new(UInt32Array::from_iter_values(known.iter().map(|(bin, _)| *bin))) as ArrayRef),
        ("value", Arc::new(Float64Array::from_iter_values(known.iter().map(|(_, value)| *value))) as ArrayRef),
    ];
    stream(columns, &[("unit", unit.to_owned())])
}

/// By nearest rank.
fn latencies(index: &Index, percent: u8, axis: Axis) -> Vec<Option<f64>> {
    let (times, latencies) = &index.served;
    let mut at = times.partition_point(|time| *time < axis.from);
    let mut of_bin = Vec::new();
    (0..axis.bins)
        .map(|bin| {
            of_bin.clear();
            while times.get(at).is_some_and(|time| *time < axis.edge(bin + 1)) {
                of_bin.push(latencies[at]);
                at += 1;
            }
            let rank = (of_bin.len() * usize::from(percent)).div_ceil(100).checked_sub(1)?;
            Some(f64::from(*of_bin.select_nth_unstable_by(rank, f32::total_cmp).1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_spread_is_conserved(
            stretches in proptest::collection::vec((0u64..5000, 0u64..5000, 0u32..5), 1..50),
            from in 0u64..2000, length in 1u64..4000, bins in 1usize..60,
        ) {
            let axis = Axis { from, to: from + length, bins };
            let (mut spread, mut all) = (Spread::new(axis), 0.0);
            for (a, b, value) in stretches {
                let (a, b) = (a.min(b), a.max(b));
                spread.add(a, b, value.into());
                all += f64::from(value) * b.min(axis.to).saturating_sub(a.max(axis.from)) as f64;
            }
            let sums = spread.finish();
            prop_assert!(sums.iter().all(|sum| *sum >= 0.0));
            prop_assert_eq!(sums.iter().sum::<f64>(), all);
        }

        #[test]
        fn an_instant_is_in_its_bin(from in 0u64..100, length in 1u64..500, bins in 1usize..700, at in 0u64..500) {
            let axis = Axis { from, to: from + length, bins };
            let time = from + at % length;
            let bin = axis.bin(time);
            prop_assert!(axis.edge(bin) <= time && time < axis.edge(bin + 1));
        }
    }
}
