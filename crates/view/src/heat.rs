//! Heat: a value of each CPU (or of a few together) in each bin of a tile.

use crate::arrow::stream;
use crate::index::Index;
use crate::overview::Axis;
use crate::steps::{Steps, UNKNOWN};
use crate::tile::{BINS, Place};
use arrow_array::{ArrayRef, Float32Array, UInt16Array, UInt32Array};
use schedlab_base::{CpuId, Nanos};
use schedlab_measure::Heat;
use schedlab_measure::heatmap::Cells;
use serde_json::json;
use std::sync::Arc;

/// At most so many stretches are listed in which nothing is known.
const MOST_UNKNOWN: usize = 10_000;

/// What the cells come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Runnable tasks.
    Queue,
    /// Their load.
    Load,
}

/// The cells of a tile, and where nothing is known.
#[derive(Debug, Default)]
struct Picture {
    row: Vec<u32>,
    bin: Vec<u16>,
    value: Vec<f32>,
    unknown: Vec<(u32, u16, u16)>,
    highest: f32,
}

impl Picture {
    fn cell(&mut self, row: u32, bin: u16, value: Option<f64>) {
        match value {
            Some(0.0) => {}
            Some(value) => {
                let value = value as f32;
                self.row.push(row);
                self.bin.push(bin);
                self.value.push(value);
                self.highest = self.highest.max(value);
            }
            None => {
                let many = self.unknown.len() >= MOST_UNKNOWN;
                match self.unknown.last_mut() {
                    Some((of, _, last)) if *of == row && *last + 1 == bin => *last = bin,
                    _ if many => {}
                    _ => self.unknown.push((row, bin, bin)),
                }
            }
        }
    }

    fn finish(self, labels: &[String]) -> Vec<u8> {
        let columns = vec![
            ("row", Arc::new(UInt32Array::from(self.row)) as ArrayRef),
            ("bin", Arc::new(UInt16Array::from(self.bin)) as ArrayRef),
            ("value", Arc::new(Float32Array::from(self.value)) as ArrayRef),
        ];
        let beside = [
            ("highest", self.highest.to_string()),
            ("rows", labels.len().to_string()),
            ("labels", json!(labels).to_string()),
            ("unknown", json!(self.unknown).to_string()),
        ];
        stream(columns, &beside)
    }
}

/// The tile of a value that steps are kept of; `group` CPUs share a row.
#[must_use]
pub fn tile(index: &Index, cpus: &[CpuId], value: Value, place: Place, group: usize) -> Vec<u8> {
    let steps = if value == Value::Queue { &index.queues } else { &index.loads };
    let mut picture = Picture::default();
    let mut labels = Vec::new();
    for (row, cpus) in (0..).zip(cpus.chunks(group.max(1))) {
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        labels.push(if first == last { format!("CPU {first}") } else { format!("CPUs {first}-{last}") });
        let (mut area, mut known) = ([0.0; BINS as usize], [0; BINS as usize]);
        for steps in cpus.iter().filter_map(|cpu| steps.get(*cpu as usize)) {
            add(steps, place, index.end, &mut area, &mut known);
        }
        let (start, width) = place.bounds();
        for bin in 0..BINS {
            if start + bin * width >= index.end {
                break;
            }
            let (area, known) = (area[bin as usize], known[bin as usize]);
            picture.cell(row, bin as u16, (known > 0).then(|| area / known as f64));
        }
    }
    picture.finish(&labels)
}

/// Adds a CPU's areas by bin.
fn add(steps: &Steps, place: Place, now: Nanos, area: &mut [f64], known: &mut [Nanos]) {
    let (start, width) = place.bounds();
    let (first, end) = (steps.find(start).unwrap_or(0), (start + BINS * width).min(now));
    let last = end.checked_sub(1).and_then(|end| steps.find(end)).map_or(0, |last| last + 1);
    if last.saturating_sub(first) as u64 <= BINS {
        for (from, to, step) in (first..last).filter_map(|at| steps.get(at, now)) {
            let (mut from, to) = (from.max(start), to.min(end));
            while from < to && step.value != UNKNOWN {
                let bin = (from - start) / width;
                let until = to.min(start + (bin + 1) * width);
                area[bin as usize] += step.value as f64 * (until - from) as f64;
                known[bin as usize] += until - from;
                from = until;
            }
        }
        return;
    }
    let mut cursor = first;
    for bin in 0..BINS {
        let from = start + bin * width;
        let part = steps.area(from, (from + width).min(end.max(from)), now, &mut cursor);
        area[bin as usize] += part.area;
        known[bin as usize] += part.known;
    }
}

/// A picture that `schedlab heatmap` would draw, as a tile.
#[must_use]
pub fn drawn(heat: &Heat, axis: Axis) -> Vec<u8> {
    let mut picture = Picture::default();
    let label = |row: &schedlab_measure::heatmap::HeatRow| match (row.cpus.first(), row.cpus.last(), row.node) {
        (Some(first), Some(last), _) if first == last => format!("CPU {first}"),
        (Some(first), Some(last), _) => format!("CPUs {first}-{last}"),
        (_, _, Some(node)) => format!("node {node}"),
        _ => String::new(),
    };
    let labels: Vec<String> = heat.rows.iter().map(label).collect();
    for row in 0..labels.len() {
        for bin in 0..heat.columns.min(axis.bins) {
            let at = row * heat.columns + bin;
            let value = match &heat.cells {
                Cells::Means(means) => means[at],
                Cells::Looks(looks) => Some(looks[at].iter().map(|count| f64::from(*count)).sum()),
            };
            picture.cell(row as u32, bin as u16, value);
        }
    }
    picture.finish(&labels)
}
