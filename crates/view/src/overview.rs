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
        let (length, bins) = (self.to - self.from, self.bins.max(1) as u64);
        let whole = match length.checked_mul(bin as u64) {
            Some(product) => product / bins,
            None => (u128::from(length) * bin as u128 / u128::from(bins)) as Nanos,
        };
        self.from + whole
    }

    /// The bin of an instant.
    fn bin(&self, time: Nanos) -> usize {
        let (length, bins) = ((self.to - self.from).max(1), self.bins as u64);
        let time = time.clamp(self.from, self.to) - self.from;
        // The last bin whose edge, rounded down, is not after this instant.
        let at = match (time + 1).checked_mul(bins) {
            Some(product) => product.div_ceil(length) - 1,
            None => ((u128::from(time) + 1) * u128::from(bins)).div_ceil(length.into()) as u64 - 1,
        };
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
    /// Bins of 2 to the power of this many ns, where they are: those of tiles.
    level: Option<u32>,
    parts: Vec<f64>,
    /// Changes of the value that whole bins have.
    changes: Vec<f64>,
}

impl Spread {
    /// Nothing yet.
    #[must_use]
    pub fn new(axis: Axis) -> Self {
        let width = (axis.to - axis.from) / axis.bins.max(1) as u64;
        let even = width.is_power_of_two() && width * axis.bins as u64 == axis.to - axis.from;
        let level = even.then(|| width.trailing_zeros());
        Self { axis, level, parts: vec![0.0; axis.bins], changes: vec![0.0; axis.bins + 1] }
    }

    /// The bin of an instant on the axis.
    fn bin(&self, time: Nanos) -> usize {
        self.level.map_or_else(|| self.axis.bin(time), |level| ((time - self.axis.from) >> level) as usize)
    }

    fn edge(&self, bin: usize) -> Nanos {
        self.level.map_or_else(|| self.axis.edge(bin), |level| self.axis.from + ((bin as u64) << level))
    }

    /// Adds a value that holds for this time.
    pub fn add(&mut self, from: Nanos, to: Nanos, value: f64) {
        let (from, to) = (from.max(self.axis.from), to.min(self.axis.to));
        if from >= to || value == 0.0 {
            return;
        }
        let (first, last) = (self.bin(from), self.bin(to - 1));
        if first == last {
            self.parts[first] += value * (to - from) as f64;
            return;
        }
        self.parts[first] += value * (self.edge(first + 1) - from) as f64;
        self.parts[last] += value * (to - self.edge(last)) as f64;
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
}

fn busy(index: &Index, axis: Axis) -> Busy {
    let now = index.end;
    let (mut running, mut unknown) = (Spread::new(axis), Spread::new(axis));
    for spans in index.cpus.iter().filter(|spans| !spans.is_empty() || spans.tail().is_some()) {
        row(spans, axis, now, &mut running, &mut unknown);
    }
    Busy { running: running.finish(), unknown: unknown.finish() }
}

/// The runnable tasks of all CPUs, by bin.
fn runnable(index: &Index, axis: Axis) -> Vec<f64> {
    let mut queue = Spread::new(axis);
    index.queues.iter().for_each(|steps| spread_steps(steps, axis, index.end, &mut queue, None));
    queue.finish()
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

/// Adds a row's values, and for how long they are not known.
pub fn spread_steps(steps: &Steps, axis: Axis, now: Nanos, to: &mut Spread, mut unknown: Option<&mut Spread>) {
    let (first, end) = (steps.find(axis.from), axis.to.min(now));
    let mut not_known = |from, to| {
        if let Some(unknown) = &mut unknown {
            unknown.add(from, to, 1.0);
        }
    };
    let many = first.unwrap_or(0) + axis.bins * 8;
    if steps.get(many, now).is_none_or(|(from, ..)| from >= end) {
        if first.is_none() {
            not_known(axis.from, steps.get(0, now).map_or(end, |(from, ..)| from.min(end)));
        }
        for (from, until, step) in (first.unwrap_or(0)..).map_while(|at| steps.get(at, now)) {
            if from >= end {
                break;
            }
            if step.value == UNKNOWN {
                not_known(from, until.min(end));
            } else {
                to.add(from, until.min(end), step.value as f64);
            }
        }
        return;
    }
    let mut cursor = first.unwrap_or(0);
    for bin in 0..axis.bins {
        let (from, until) = (axis.edge(bin), axis.edge(bin + 1).min(end));
        let part = steps.area(from, until, now, &mut cursor);
        to.parts[bin] += part.area;
        if let Some(unknown) = &mut unknown {
            unknown.parts[bin] += (until.saturating_sub(from) - part.known) as f64;
        }
    }
}

/// The strip: run queues, running tasks, waste, losses.
#[must_use]
pub fn overview(index: &Index, wasted: Option<&Wasted>, axis: Axis, cpus: usize) -> Vec<u8> {
    let (Busy { running, unknown }, queue) = (busy(index, axis), runnable(index, axis));
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
    /// The mean frequency of the CPUs, where it is known.
    Frequency,
    /// A quantile of the latency from wake-up to running, in percent.
    Latency(u8),
}

impl Curve {
    /// The curve of this name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "runnable" => Self::Runnable,
            "frequency" => Self::Frequency,
            "latency_p50" => Self::Latency(50),
            "latency_p99" => Self::Latency(99),
            _ => return None,
        })
    }
}

/// A curve's value in each bin, unless nothing is known there, and the unit.
fn values(index: &Index, curve: Curve, axis: Axis) -> (Vec<Option<f64>>, &'static str) {
    match curve {
        Curve::Runnable => {
            let known = means(&index.queues, axis, index.end);
            let queue = runnable(index, axis);
            let mean = |bin: usize| known[bin].map(|_| queue[bin] / axis.width(bin).max(1.0));
            ((0..axis.bins).map(mean).collect(), "tasks")
        }
        Curve::Frequency => (means(&index.frequencies, axis, index.end), "kHz"),
        Curve::Latency(percent) => (latencies(index, percent, axis), "ns"),
    }
}

/// The values of a curve; bins in which nothing is known are left out.
#[must_use]
pub fn curve(index: &Index, curve: Curve, axis: Axis) -> Vec<u8> {
    let (values, unit) = values(index, curve, axis);
    let known: Vec<(u32, f64)> = (0..).zip(values).filter_map(|(bin, value)| Some((bin, value?))).collect();
    let columns = vec![
        ("bin", Arc::new(UInt32Array::from_iter_values(known.iter().map(|(bin, _)| *bin))) as ArrayRef),
        ("value", Arc::new(Float64Array::from_iter_values(known.iter().map(|(_, value)| *value))) as ArrayRef),
    ];
    stream(columns, &[("unit", unit.to_owned())])
}

/// The mean of steps in each bin until `end`, each weighted by the time for which it is known.
pub fn means<'a>(rows: impl IntoIterator<Item = &'a Steps>, axis: Axis, end: Nanos) -> Vec<Option<f64>> {
    let (mut sum, mut unknown, mut count) = (Spread::new(axis), Spread::new(axis), 0);
    for steps in rows {
        spread_steps(steps, axis, end, &mut sum, Some(&mut unknown));
        count += 1;
    }
    let mean = |(bin, (sum, unknown)): (usize, (f64, f64))| {
        let length = axis.edge(bin + 1).min(end).saturating_sub(axis.edge(bin));
        let time = length as f64 * f64::from(count) - unknown;
        (time > 0.0).then(|| sum / time)
    };
    sum.finish().into_iter().zip(unknown.finish()).enumerate().map(mean).collect()
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
    use crate::steps::Step;
    use proptest::prelude::*;

    #[test]
    fn queues_that_nobody_knows_are_not_empty() {
        let steps = |all: &[(Nanos, u64)]| {
            let mut steps = Steps::default();
            all.iter().for_each(|&(time, value)| steps.push(time, Step { value, waiting: false }));
            steps
        };
        let queues = vec![steps(&[(10, 2), (20, UNKNOWN), (25, 0)]), steps(&[(0, UNKNOWN), (30, 1)])];
        let mut index = Index::default();
        (index.end, index.queues) = (40, queues);
        let (values, _) = values(&index, Curve::Runnable, Axis { from: 0, to: 40, bins: 8 });
        let known = [None, None, Some(2.0), Some(2.0), None, Some(0.0), Some(1.0), Some(1.0)];
        assert_eq!(values, known);
    }

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
        fn steps_are_spread_as_they_add_up(
            lengths in proptest::collection::vec((0u64..50, 0u64..6), 0..400),
            begin in 0u64..100, from in 0u64..6000, width in 1u64..70, bins in 1usize..20, later in 0u64..50,
        ) {
            let (mut steps, mut time) = (Steps::default(), begin);
            for (length, value) in lengths {
                steps.push(time, Step { value: if value == 5 { UNKNOWN } else { value }, waiting: false });
                time += length;
            }
            let now = time + later;
            let axis = Axis { from, to: from + width * bins as u64, bins };
            let (mut values, mut unknown) = (Spread::new(axis), Spread::new(axis));
            spread_steps(&steps, axis, now, &mut values, Some(&mut unknown));
            for (bin, (value, unknown)) in values.finish().into_iter().zip(unknown.finish()).enumerate() {
                let (from, to) = (axis.edge(bin), axis.edge(bin + 1).min(now));
                let part = steps.area(from, to, now, &mut 0);
                let not_known = to.saturating_sub(from) - part.known;
                prop_assert_eq!((value, unknown), (part.area, not_known as f64), "bin {}", bin);
            }
        }

        #[test]
        fn an_instant_is_in_its_bin(
            from in 0u64..100, length in 1u64..500, scale in 0u32..55, bins in 1usize..700, at in any::<u64>(),
        ) {
            let length = length << scale;
            let axis = Axis { from, to: from + length, bins };
            let time = from + at % length;
            for bin in [axis.bin(time), Spread::new(axis).bin(time)] {
                prop_assert!(axis.edge(bin) <= time && time < axis.edge(bin + 1));
            }
        }
    }
}
